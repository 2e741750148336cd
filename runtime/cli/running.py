"""What `tenure run` does."""

from tenure.messages.turn import TurnNotStarted
from tenure.runtime.cli.approving import Desk, Person, decide_with, decline
from tenure.runtime.cli.hosting import SaidNo, open_seat, tell_opening
from tenure.runtime.cli.options import Conversation
from tenure.runtime.cli.screen import Screen, screen_of
from tenure.runtime.cli.terminal import Interrupts, keyboard_of
from tenure.runtime.cli.turns import EXIT_REFUSED, EXIT_STOPPED, PromptedTurn, exit_code_of
from tenure.runtime.errors import Refused
from tenure.runtime.host import Host


async def run(
    conversation: Conversation,
    text: str,
    stdin: str,
    interrupts: Interrupts,
    trace: str | None = None,
) -> int:
    """One prompt; gives the exit code.

    Args:
        trace: a file that gets every step; see `runtime/trace.py`.
    """
    screen = screen_of(conversation.form)
    keyboard = keyboard_of(stdin)
    async with Host.open(
        conversation.root,
        model=conversation.model,
        base_url=conversation.base_url,
        trace=trace,
    ) as host:
        try:
            seat = await open_seat(host, conversation)
        except SaidNo as said:
            screen.refusal(said.no)
            return EXIT_REFUSED
        await tell_opening(host, seat, screen)
        answers = keyboard.answer if keyboard else None
        replying = Person(answers, screen).reply if answers else decline
        desk = Desk(seat, decide_with(conversation.approve, answers, screen), screen, replying)
        turn = PromptedTurn(seat, screen, desk, conversation.overrides)
        code = await _one_turn(turn, screen, text, interrupts)
        if host.trace_failed:
            screen.note(f"the trace is incomplete: {host.trace_failed}")
        return code


async def _one_turn(turn: PromptedTurn, screen: Screen, text: str, interrupts: Interrupts) -> int:
    interrupts.first(turn.stop)
    try:
        ended = await turn.run(text)
    except Refused as refused:
        screen.refusal(refused.reply)
        stopped = isinstance(refused.reply, TurnNotStarted) and refused.reply.cause == "user"
        return EXIT_STOPPED if stopped else EXIT_REFUSED
    finally:
        interrupts.end_of_turn()
    return exit_code_of(ended)
