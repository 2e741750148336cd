"""How turns are stopped: one way to begin it, whatever the cause (TURN-9).

Nothing is cut off: the model and the tools are cancelled and their last words
awaited, an append in flight is awaited, and every call gets its result.
"""

from msgspec.structs import replace

from tenure.actors.turn_end import (
    aborted,
    after,
    end_with,
    ended_of,
    never_began,
    not_run,
)
from tenure.actors.turn_fates import give_back
from tenure.actors.turn_holdings import with_queue
from tenure.actors.turn_state import (
    Acting,
    Allowed,
    Begun,
    Busy,
    Call,
    Calling,
    Delivering,
    Done,
    Drainer,
    End,
    Ending,
    Finished,
    MakingRoom,
    Overflown,
    Preparing,
    Retrying,
    Running,
    Saving,
    SavingAnswer,
    SavingPrompt,
    State,
    Stopped,
    StoppingDelivery,
    StoppingModel,
    StoppingPrompt,
    StoppingRoom,
    StoppingSave,
    StoppingTools,
    Undecided,
    Waiting,
)
from tenure.actors.turn_waiting import Queue
from tenure.messages.approval import RevokeApprovals
from tenure.messages.compaction import DropPass
from tenure.messages.content import calls_of
from tenure.messages.entries import CustomEntry, MessageEntry
from tenure.messages.turn import StopCause, TurnNotStarted, TurnStopping
from tenure.messages.turn_effects import PrepareTurn
from tenure.runtime.step import AskId, Step, Taken


def stop(
    state: Busy, cause: StopCause, asker: AskId | None, taken: Taken, why: str = ""
) -> Step[State]:
    """A stop: the queue is emptied first, its texts are given back, then the turn is stopped.

    Args:
        why: for the event of the end, what there is to say beyond the cause.
    """
    run = state.run
    queue = run.queue
    emptied = with_queue(state, Queue(queue.kept))
    dropped = tuple(item.prompt.text for item in queue.armed)
    stopping = Step[State](emptied).answer(
        asker, TurnStopping(turn_id=run.turn_id, dropped=dropped)
    )
    return after(
        give_back(stopping, queue, cause), begin_stop(emptied, Stopped(cause, why), (), taken)
    )


def begin_stop(
    state: Busy, stopped: Stopped, drainers: tuple[Drainer, ...], taken: Taken
) -> Step[State]:
    """The one way to begin a stop.  `drainers` wait for the end and keep the queue."""
    if not isinstance(state, Preparing):
        return _wind_down(state, stopped, drainers, taken)
    run = state.run
    refused = TurnNotStarted(turn_id=run.turn_id, cause=stopped.cause)
    step = never_began(run, state.asker, refused, ended_of(run, stopped, ""), drainers)
    return step.cancel(PrepareTurn(turn_id=run.turn_id, model=run.prompt.model).key)


def lose(state: Busy, why: str, taken: Taken) -> Step[State]:
    """The session is not this turn's any more: what it says can no longer be written."""
    match state:
        case (
            MakingRoom()
            | Overflown()
            | Calling()
            | Retrying()
            | SavingAnswer()
            | Acting()
            | Delivering()
        ):
            return _wind_down(state, Finished("session_lost", error=why), (), taken)
        case _:
            # Its start, or its end, is being written: the answer to that will say so.
            return Step(state)


def settle_tools(state: StoppingTools) -> Step[State]:
    """Once no tool runs and nothing is being written, what has no result on disk gets one."""
    if any(isinstance(call.status, Running | Saving) for call in state.calls):
        return Step(state)
    owed: tuple[MessageEntry | CustomEntry, ...] = ()
    for call in state.calls:
        if isinstance(call.status, Done):
            owed = (*owed, MessageEntry(message=call.status.result), *call.status.also)
    return end_with(state.run, state.end, owed, state.drainers)


def unsaved(calls: tuple[Call, ...]) -> tuple[Call, ...]:
    """The calls after an append that failed: what was being saved is owed again."""
    return tuple(
        replace(call, status=Done(call.status.result, call.status.also))
        if isinstance(call.status, Saving)
        else call
        for call in calls
    )


# --- pure helpers ------------------------------------------------------------------------


def _wind_down(state: Begun, end: End, drainers: tuple[Drainer, ...], taken: Taken) -> Step[State]:
    match state:
        case SavingPrompt(run, asker):
            return Step(StoppingPrompt(run, end, drainers, asker))
        case MakingRoom(run) | Overflown(run):
            stopping = Step[State](StoppingRoom(run, end, drainers))
            return stopping.tell("compaction", DropPass(turn_id=run.turn_id))
        case Calling(run):
            return Step[State](StoppingModel(run, end, drainers)).cancel(f"model {run.turn_id}")
        case Retrying(run):
            entries = (MessageEntry(message=aborted(run, (), taken)),)
            return end_with(run, end, entries, drainers).cancel(f"wait {run.turn_id}")
        case SavingAnswer(run, message):
            return Step(StoppingSave(run, end, drainers, calls_of(message)))
        case Delivering(run, item):
            return Step(StoppingDelivery(run, end, drainers, item))
        case Acting():
            return _stop_tools(state, end, drainers, taken)
        case (
            StoppingPrompt()
            | StoppingRoom()
            | StoppingModel()
            | StoppingSave()
            | StoppingDelivery()
            | StoppingTools()
            | Ending()
        ):
            return Step(replace(state, drainers=state.drainers + drainers))


def _stop_tools(
    state: Acting, end: End, drainers: tuple[Drainer, ...], taken: Taken
) -> Step[State]:
    run = state.run
    settled = tuple(
        replace(call, status=Done(not_run(call.block, end, taken)))
        if isinstance(call.status, Waiting | Undecided | Allowed)
        else call
        for call in state.calls
    )
    step = settle_tools(StoppingTools(run, end, drainers, settled))
    step = step.tell("approval", RevokeApprovals(turn_id=run.turn_id))
    for call in settled:
        if isinstance(call.status, Running):
            step = step.cancel(f"tool {run.turn_id} {call.call_id}")
    return step
