"""What one types in a chat about what tools may do, what was decided, and what is taken back."""

from typing import get_args

from tenure.messages.settings import Mode, Policy, Rule
from tenure.runtime.cli.governing import decisions_in, line_of, policy_lines
from tenure.runtime.cli.screen import Screen
from tenure.runtime.cli.undoing import show_undo, undo
from tenure.runtime.host import Host
from tenure.runtime.seat import Seat

HELP = """\
/undo         take back the last change that a tool made to files; /undo show only
              shows it, /undo force does it also where the file changed since
/mode NAME    safe, yolo or plan, for every session of the folder
/policy       what tools may do unasked; /policy TOOL RULE gives a tool (or
              TOOL:PATTERN) a rule: allow, ask or deny; /policy rm TOOL forgets it
/audit        what was decided about the calls of tools in this session"""


async def policy_command(word: str, text: str, host: Host, seat: Seat, screen: Screen) -> bool:
    """Do it; whether it was one of these commands.

    Raises:
        Refused: it was, and cannot be done.
    """
    match word, text:
        case "/undo", "show":
            await show_undo(seat, screen)
        case "/undo", "" | "force":
            await undo("overwrite" if text else "refuse", seat, screen)
        case "/undo", _:
            screen.note("/undo takes nothing, show or force")
        case "/mode", _:
            await _mode(text, host, screen)
        case "/policy", _:
            await _policy(text, host, screen)
        case "/audit", "":
            await _audit(host, seat, screen)
        case _:
            return False
    return True


async def _mode(text: str, host: Host, screen: Screen) -> None:
    for mode in get_args(Mode):
        if mode == text:
            _show((await host.settings.set_mode(mode)).policy, screen)
            return
    screen.note(f"/mode takes one of: {', '.join(get_args(Mode))}")


async def _policy(text: str, host: Host, screen: Screen) -> None:
    """A key may hold blanks (`bash:git *`), so the rule is the last word."""
    if not text:
        _show((await host.settings.get()).policy, screen)
        return
    if text.startswith("rm "):
        _show((await host.settings.remove_tool_policy(text[3:].strip())).policy, screen)
        return
    key, _, word = text.rpartition(" ")
    for rule in get_args(Rule):
        if rule == word and key.strip():
            _show((await host.settings.set_tool_policy(key.strip(), rule)).policy, screen)
            return
    screen.note(f"/policy takes a tool and one of: {', '.join(get_args(Rule))}")


def _show(policy: Policy, screen: Screen) -> None:
    for line in policy_lines(policy):
        screen.note(line)


async def _audit(host: Host, seat: Seat, screen: Screen) -> None:
    try:
        snapshot = await host.sessions.read((await seat.session()).path)
    except FileNotFoundError:  # a session has no file before its first entry
        said = []
    else:
        said = [line_of(each) for each in decisions_in(snapshot)]
    for line in said or ["nothing was decided yet"]:
        screen.note(line)
