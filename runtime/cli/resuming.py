"""What `tenure resume` does: an interrupted turn goes on, and what is held starts if asked."""

from typing import Literal

from tenure.messages.base import Refusal
from tenure.messages.queue import NothingToResume, ReleaseQueue, ResumeTurn
from tenure.runtime.cli.approving import Desk, decide_with
from tenure.runtime.cli.hosting import SaidNo, open_seat, tell_opening
from tenure.runtime.cli.options import Conversation
from tenure.runtime.cli.queueing import Place, seat_elsewhere, shown
from tenure.runtime.cli.reaching import outside
from tenure.runtime.cli.screen import screen_of
from tenure.runtime.cli.terminal import Interrupts
from tenure.runtime.cli.turns import EXIT_DONE, EXIT_REFUSED, PromptedTurn, exit_code_of
from tenure.runtime.errors import Refused
from tenure.runtime.host import Host

What = Literal["turn", "queue"]


async def resume_session(given: Conversation, what: What, interrupts: Interrupts) -> int:
    """Gives the exit code."""
    screen = screen_of(given.form)
    try:
        async with outside() as leaves:
            found = await seat_elsewhere(leaves, given)
            if found is not None:
                remote, seat = found
                async with remote:
                    theirs = Place(lambda command: remote.ask(command, seat), screen, "theirs")
                    return await _resume_there(theirs, what)
        async with Host.open(given.root) as host:
            here = await open_seat(host, given)
            await tell_opening(host, here, screen)
            desk = Desk(here, decide_with(given.approve, None, screen), screen)
            turn = PromptedTurn(here, screen, desk, given.overrides)
            return await resume_here(turn, what, interrupts)
    except SaidNo as said:
        screen.refusal(said.no)
    except Refused as refused:
        screen.refusal(refused.reply)
    return EXIT_REFUSED


async def resume_here(turn: PromptedTurn, what: What, interrupts: Interrupts) -> int:
    """To the end of all that goes on.

    Raises:
        Refused: nothing goes on.
    """
    interrupts.first(turn.stop)
    code = EXIT_DONE
    try:
        try:
            code = exit_code_of(await turn.resume())
        except Refused as refused:
            if what == "turn" or not isinstance(refused.reply, NothingToResume):
                raise
        if what == "queue" and code == EXIT_DONE:
            await turn.release()
        return code
    finally:
        interrupts.end_of_turn()


async def _resume_there(place: Place, what: What) -> int:
    reply = await place.ask(ResumeTurn())
    none = what == "queue" and isinstance(reply, NothingToResume)
    if isinstance(reply, Refusal) and not none:
        raise Refused(reply)
    if not none:
        shown(reply, place.screen)
    if what == "queue":
        released = await place.ask(ReleaseQueue())
        if isinstance(released, Refusal):
            raise Refused(released)
        shown(released, place.screen)
    return EXIT_DONE
