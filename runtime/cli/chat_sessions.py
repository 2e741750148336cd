"""What one types in a chat to name, fork, rewind, show, export and search sessions."""

from tenure.runtime.cli.branches import print_tree
from tenure.runtime.cli.changing import entry_of, show
from tenure.runtime.cli.listing import print_matches
from tenure.runtime.cli.looking import write_document
from tenure.runtime.cli.screen import JsonScreen, Screen, print_json, print_text
from tenure.runtime.doors.transcripts import Exported
from tenure.runtime.host import Host
from tenure.runtime.seat import Seat

HELP = """\
/name TEXT    name the session
/tree         show the entries of the session and their branches
/rewind [ID]  go back to before your last prompt, or to an entry, and go on there
/fork [ID]    go on in a copy of the session, whole or up to an entry
/search TEXT  find sessions by what was said in them
/export [DIR] print the session as a document, or write it into a folder"""


async def session_command(word: str, rest: str, host: Host, seat: Seat, screen: Screen) -> bool:
    """Do it; whether it was one of these commands.

    Raises:
        Refused, SaidNo: it was, and cannot be done.
    """
    match word:
        case "/name":
            show(await seat.rename(rest), screen)
        case "/tree":
            await _tree(host, seat, screen)
        case "/rewind":
            await _rewind(rest, host, seat, screen)
        case "/fork":
            await _fork(rest, host, seat, screen)
        case "/search":
            print_matches(await host.sessions.search(rest), screen)
        case "/export":
            await _export(rest, host, seat, screen)
        case _:
            return False
    return True


async def _tree(host: Host, seat: Seat, screen: Screen) -> None:
    tree = await host.sessions.tree((await seat.session()).path)
    if isinstance(screen, JsonScreen):
        print_json(tree)
    else:
        print_tree(tree)


async def _rewind(rest: str, host: Host, seat: Seat, screen: Screen) -> None:
    path = (await seat.session()).path
    if rest:
        show(await seat.rewind(await entry_of(host, path, rest)), screen)
        return
    tree = await host.sessions.tree(path)
    prompts = [node.id for node in tree.nodes if node.on_path and node.kind == "user"]
    if not prompts:
        screen.note("nothing was said yet")
        return
    show(await seat.rewind(prompts[-1], position="before"), screen)


async def _fork(rest: str, host: Host, seat: Seat, screen: Screen) -> None:
    path = (await seat.session()).path
    forked = await seat.fork(await entry_of(host, path, rest) if rest else None)
    screen.opened(await seat.open(forked.session_id))


async def _export(folder: str, host: Host, seat: Seat, screen: Screen) -> None:
    document = await host.sessions.export((await seat.session()).path)
    if not isinstance(document, Exported):
        screen.note(document.remedy)
    elif folder:
        screen.note(write_document(document, folder))
    else:
        print_text(document.text)
