"""How turns end: what is still owed is written, the end is said, and what waits goes on."""

from tenure.actors.turn_budget import timer_of
from tenure.actors.turn_start import go_on
from tenure.actors.turn_state import (
    CallsWereSettled,
    Drained,
    Drainer,
    End,
    Ending,
    EndSaved,
    Finished,
    Ledger,
    Prompt,
    Recovering,
    Run,
    State,
    Stopped,
)
from tenure.messages.base import Reply
from tenure.messages.content import (
    AssistantBlock,
    AssistantMessage,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
)
from tenure.messages.entries import MessageEntry
from tenure.messages.session import AppendEntries, SettleCalls
from tenure.messages.turn import StopCause, TurnDrained, TurnEnded
from tenure.runtime.step import AskId, Step, Taken


def end_with(
    run: Run, end: End, entries: tuple[MessageEntry, ...], drainers: tuple[Drainer, ...]
) -> Step[State]:
    """Write the turn's last entries, then end it."""
    if not entries:
        return finish(run, end, drainers)
    append = AppendEntries(token=run.token, entries=entries, turn_id=run.turn_id)
    ending = Ending(run, end, drainers)
    return Step[State](ending).ask("session", append, re=EndSaved(turn_id=run.turn_id))


def finish(run: Run, end: End, drainers: tuple[Drainer, ...]) -> Step[State]:
    """The turn is over, and all of it is durable: say so, and go on with what waits."""
    then = _next(run, drainers)
    return after(_timeless(run, then.state).emit(ended_of(run, end, "")), then)


def finish_unsaved(run: Run, end: End, drainers: tuple[Drainer, ...], why: str) -> Step[State]:
    """The turn is over, and not all of it is durable: calls may stand without a result.

    Before anything else starts they are settled; behind a drain, when the session
    is opened again.
    """
    then = _next(run, drainers) if drainers else recover(run.ledger, run.queue)
    return after(_timeless(run, then.state).emit(ended_of(run, end, why)), then)


def never_began(
    run: Run, asker: AskId | None, refusal: Reply, ended: TurnEnded, drainers: tuple[Drainer, ...]
) -> Step[State]:
    """Nothing of the turn was written: whoever waits for its start is told why."""
    then = _next(run, drainers)
    return after(_timeless(run, then.state).emit(ended).answer(asker, refusal), then)


def _timeless(run: Run, state: State) -> Step[State]:
    """A state in which the turn is over: its timer, where it has one, is cancelled."""
    step = Step[State](state)
    for timer in timer_of(run):
        step = step.cancel(timer.key)
    return step


def recover(ledger: Ledger, queue: tuple[Prompt, ...]) -> Step[State]:
    """Have every call without a result settled before anything starts (TURN-7)."""
    recovering = Step[State](Recovering(ledger, queue))
    return recovering.ask("session", SettleCalls(), re=CallsWereSettled())


def after(first: Step[State], then: Step[State]) -> Step[State]:
    """The state of `then`, with what both send: what `first` sends leaves first."""
    return Step(
        then.state,
        first.replies + then.replies,
        first.events + then.events,
        first.mail + then.mail,
        first.effects + then.effects,
    )


def ended_of(run: Run, end: End, why: str) -> TurnEnded:
    """The last event of a turn.

    Args:
        why: what could not be made durable; empty for nothing.
    """
    match end:
        case Finished(stop_reason, error):
            return TurnEnded(
                turn_id=run.turn_id, stop_reason=stop_reason, error=error or why, usage=run.usage
            )
        case Stopped(cause, said):
            return TurnEnded(
                turn_id=run.turn_id,
                stop_reason="stopped",
                cause=cause,
                error=said or why,
                usage=run.usage,
            )


# --- what stands for what did not happen ---------------------------------------------------

WHY: dict[StopCause, str] = {
    "user": "the user stopped the turn",
    "approval": "the user stopped the turn when asked for approval",
    "budget": "the turn's budget was used up",
    "swap": "the seat changed to another session",
    "handover": "the session was handed over to another process",
    "shutdown": "the host shut down",
    "loop_guard": "the turn repeated itself",
}


def not_run(block: ToolCallBlock, end: End, taken: Taken) -> ToolResultMessage:
    why = WHY[end.cause] if isinstance(end, Stopped) else "the turn could not go on"
    return error_result(block, f"Not run: {why}.", taken)


def error_result(block: ToolCallBlock, text: str, taken: Taken) -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=block.id,
        tool_name=block.name,
        content=(TextBlock(text=text),),
        is_error=True,
        timestamp=taken.now_ms,
    )


def aborted(run: Run, partial: tuple[AssistantBlock, ...], taken: Taken) -> AssistantMessage:
    """What the model had said when it was stopped."""
    return AssistantMessage(
        content=partial,
        model=run.model,
        stop_reason="aborted",
        error_message="stopped",
        timestamp=taken.now_ms,
    )


# --- pure helpers ------------------------------------------------------------------------


def _next(run: Run, drainers: tuple[Drainer, ...]) -> Step[State]:
    """What comes after a turn: the drain, the queue, or nothing."""
    if not drainers:
        return go_on(run.ledger, run.queue)
    causes = {drainer.cause for drainer in drainers}
    cause = "shutdown" if "shutdown" in causes else drainers[0].cause
    step = Step[State](Drained(run.ledger, run.queue, cause))
    held = tuple(prompt.text for prompt in run.queue)
    for drainer in drainers:
        step = step.answer(drainer.asker, TurnDrained(queued=held))
    return step
