"""How turns begin to stop, and how they end: one way for every cause (TURN-9)."""

from msgspec.structs import replace

from tenure.actors.turn_state import (
    Acting,
    Allowed,
    Busy,
    Call,
    Calling,
    Done,
    Drained,
    End,
    Ending,
    EndSaved,
    Finished,
    Idle,
    Ledger,
    Preparing,
    Prompt,
    Retrying,
    Run,
    Running,
    Saving,
    SavingAnswer,
    SavingPrompt,
    State,
    Stopped,
    StoppingModel,
    StoppingPrompt,
    StoppingSave,
    StoppingTools,
    Undecided,
    Waiting,
)
from tenure.messages.approval import RevokeApprovals
from tenure.messages.content import (
    AssistantBlock,
    AssistantMessage,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    calls_of,
)
from tenure.messages.entries import MessageEntry
from tenure.messages.session import AppendEntries
from tenure.messages.tokens import turn_number, turn_session
from tenure.messages.turn import (
    PrepareTurn,
    StopCause,
    TurnDrained,
    TurnEnded,
    TurnNotStarted,
    TurnStopping,
)
from tenure.runtime.step import AskId, Step, Taken

Drainers = tuple[AskId | None, ...]

EARLY_STOPS_KEPT_MAX = 64
"""Stops that came before their turn; the oldest is forgotten first."""


def begin(
    prompt: Prompt, asker: AskId | None, ledger: Ledger, queue: tuple[Prompt, ...]
) -> Step[State]:
    """The first step of a turn: is there a model, and which tools are there?"""
    counted = replace(
        ledger,
        session_id=turn_session(prompt.turn_id),
        last_turn=max(ledger.last_turn, turn_number(prompt.turn_id)),
    )
    run = Run(prompt=prompt, ledger=counted, queue=queue)
    prepare = PrepareTurn(turn_id=prompt.turn_id, model=prompt.model)
    return Step[State](Preparing(run, asker)).do(prepare)


def stop(state: Busy, cause: StopCause, asker: AskId | None, taken: Taken) -> Step[State]:
    """A stop: the queue is emptied first, its texts are given back, then the turn is stopped."""
    run = state.run
    numbers = [turn_number(prompt.turn_id) for prompt in run.queue]
    last_turn = max(run.ledger.last_turn, *numbers, 0)
    ledger = replace(run.ledger, last_turn=last_turn)
    emptied = replace(state, run=replace(run, queue=(), ledger=ledger))
    dropped = tuple(prompt.text for prompt in run.queue)
    step = begin_stop(emptied, cause, (), taken)
    for prompt in run.queue:
        step = step.emit(TurnEnded(turn_id=prompt.turn_id, stop_reason="stopped", cause=cause))
    return step.answer(asker, TurnStopping(turn_id=run.turn_id, dropped=dropped))


def begin_stop(state: Busy, cause: StopCause, drainers: Drainers, taken: Taken) -> Step[State]:
    """The one way to begin a stop.  `drainers` wait for the end and keep the queue."""
    match state:
        case Preparing(run, asker):
            step = not_started(run, asker, cause, drainers)
            return step.cancel(PrepareTurn(turn_id=run.turn_id, model="").key)
        case SavingPrompt(run, asker):
            return Step(StoppingPrompt(run, cause, drainers, asker))
        case Calling(run):
            return Step[State](StoppingModel(run, cause, drainers)).cancel(f"model {run.turn_id}")
        case Retrying(run):
            entries = (MessageEntry(message=aborted(run, (), taken)),)
            step = end_with(run, Stopped(cause), entries, drainers)
            return step.cancel(f"wait {run.turn_id}")
        case SavingAnswer(run, message):
            return Step(StoppingSave(run, cause, drainers, calls_of(message)))
        case Acting(run, calls):
            return _stop_tools(run, calls, cause, drainers, taken)
        case StoppingModel() | StoppingSave() | StoppingPrompt() | StoppingTools() | Ending():
            return Step(replace(state, drainers=state.drainers + drainers))


def _stop_tools(
    run: Run, calls: tuple[Call, ...], cause: StopCause, drainers: Drainers, taken: Taken
) -> Step[State]:
    settled = tuple(
        replace(call, status=Done(not_run(call.block, cause, taken)))
        if isinstance(call.status, Waiting | Undecided | Allowed)
        else call
        for call in calls
    )
    step = settle_tools(StoppingTools(run, cause, drainers, settled))
    step = step.tell("approval", RevokeApprovals(turn_id=run.turn_id))
    for call in settled:
        if isinstance(call.status, Running):
            step = step.cancel(f"tool {run.turn_id} {call.call_id}")
    return step


def settle_tools(state: StoppingTools) -> Step[State]:
    """Once no tool runs and nothing is being written, what has no result on disk gets one."""
    if any(isinstance(call.status, Running | Saving) for call in state.calls):
        return Step(state)
    owed = tuple(
        MessageEntry(message=call.status.result)
        for call in state.calls
        if isinstance(call.status, Done)
    )
    return end_with(state.run, Stopped(state.cause), owed, state.drainers)


def not_started(run: Run, asker: AskId | None, cause: StopCause, drainers: Drainers) -> Step[State]:
    """Stopped before anything was written: there is nothing to end but the wait."""
    reply = TurnNotStarted(turn_id=run.turn_id, cause=cause)
    if asker is not None:
        return _next(run, drainers).answer(asker, reply)
    ended = TurnEnded(turn_id=run.turn_id, stop_reason="stopped", cause=cause)
    return _next(run, drainers).emit(ended)


def end_with(
    run: Run, end: End, entries: tuple[MessageEntry, ...], drainers: Drainers
) -> Step[State]:
    """Write the turn's last entries, then end it."""
    if not entries:
        return finish(run, end, drainers)
    append = AppendEntries(token=run.token, entries=entries, turn_id=run.turn_id)
    ending = Ending(run, end, drainers)
    return Step[State](ending).ask("session", append, re=EndSaved(turn_id=run.turn_id))


def finish(run: Run, end: End, drainers: Drainers, error: str = "") -> Step[State]:
    """The turn is over: say so, revoke what it asked, and go on with what waits."""
    match end:
        case Finished(stop_reason, own_error):
            ended = TurnEnded(
                turn_id=run.turn_id,
                stop_reason=stop_reason,
                error=own_error or error,
                usage=run.usage,
            )
        case Stopped(cause):
            ended = TurnEnded(
                turn_id=run.turn_id,
                stop_reason="stopped",
                cause=cause,
                error=error,
                usage=run.usage,
            )
    first = Step[State](Idle(run.ledger)).emit(ended)
    first = first.tell("approval", RevokeApprovals(turn_id=run.turn_id))
    then = _next(run, drainers)
    return Step(
        then.state,
        then.replies,
        first.events + then.events,
        first.mail + then.mail,
        then.effects,
    )


def _next(run: Run, drainers: Drainers) -> Step[State]:
    """What comes after a turn: the drain, the queue, or nothing."""
    if drainers:
        step = Step[State](Drained(run.ledger, run.queue))
        held = tuple(prompt.text for prompt in run.queue)
        for drainer in drainers:
            step = step.answer(drainer, TurnDrained(queued=held))
        return step
    return go_on(run.ledger, run.queue)


def go_on(ledger: Ledger, queue: tuple[Prompt, ...]) -> Step[State]:
    if queue:
        return begin(queue[0], None, ledger, queue[1:])
    return Step(Idle(ledger))


# --- pure helpers ------------------------------------------------------------------------

WHY: dict[StopCause, str] = {
    "user": "the user stopped the turn",
    "approval": "the user stopped the turn when asked for approval",
    "budget": "the turn's budget was used up",
    "swap": "the seat changed to another session",
    "shutdown": "the host shut down",
    "loop_guard": "the turn repeated itself",
}


def not_run(block: ToolCallBlock, cause: StopCause, taken: Taken) -> ToolResultMessage:
    return error_result(block, f"Not run: {WHY[cause]}.", taken)


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
