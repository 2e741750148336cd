"""What `tenure compact` and `tenure uncompact` do, and the same in a chat."""

from collections.abc import Awaitable, Callable

from tenure.messages.compaction import Compacted
from tenure.runtime.cli.hosting import SaidNo, open_seat, tell_opening
from tenure.runtime.cli.options import Conversation
from tenure.runtime.cli.screen import JsonScreen, Screen, print_json, screen_of
from tenure.runtime.cli.terminal import Interrupts
from tenure.runtime.cli.turns import EXIT_DONE, EXIT_REFUSED
from tenure.runtime.errors import Refused
from tenure.runtime.host import Host
from tenure.runtime.seat import Seat


async def compact(instructions: str, seat: Seat, screen: Screen) -> None:
    """Put a summary in the place of the older messages.  Raises `Refused`."""
    reply = await seat.compact(instructions)
    assert isinstance(reply, Compacted), "one that may not wait is done or refused"
    screen.compacted(reply)


async def uncompact(seat: Seat, screen: Screen) -> None:
    """Take the last compaction back.  Raises `Refused`."""
    reply = await seat.uncompact()
    if isinstance(screen, JsonScreen):
        print_json(reply)
    screen.note("the conversation is as it was before its last compaction")


async def on_session(
    conversation: Conversation,
    interrupts: Interrupts,
    work: Callable[[Seat, Screen], Awaitable[None]],
) -> int:
    """Open the session, do one thing with it, and let it go; gives the exit code."""
    screen = screen_of(conversation.form)
    interrupts.first(interrupts.end)
    async with Host.open(
        conversation.root, model=conversation.model, base_url=conversation.base_url
    ) as host:
        try:
            seat = await open_seat(host, conversation)
            await tell_opening(host, seat, screen)
            await work(seat, screen)
        except SaidNo as said:
            screen.refusal(said.no)
            return EXIT_REFUSED
        except Refused as refused:
            screen.refusal(refused.reply)
            return EXIT_REFUSED
        return EXIT_DONE
