"""What `tenure sessions` does."""

from tenure.runtime.cli.hosting import SaidNo, session_of
from tenure.runtime.cli.listing import print_sessions
from tenure.runtime.cli.screen import print_json, screen_of
from tenure.runtime.cli.story import print_story
from tenure.runtime.cli.turns import EXIT_DONE, EXIT_REFUSED
from tenure.runtime.host import Host


async def list_sessions(root: str, form: str) -> int:
    async with Host.open(root) as host:
        print_sessions(await host.sessions.list(), screen_of(form))
    return EXIT_DONE


async def show_session(root: str, text: str, form: str) -> int:
    screen = screen_of(form)
    async with Host.open(root) as host:
        try:
            path = (await session_of(host, text)).path
        except SaidNo as said:
            screen.refusal(said.no)
            return EXIT_REFUSED
        snapshot = await host.sessions.read(path)
    if form == "json":
        print_json(snapshot)
    else:
        print_story(snapshot)
    return EXIT_DONE
