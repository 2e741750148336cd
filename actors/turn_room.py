"""Room in the model's window: asked for before a call, and when the provider said "too long".

The prompt is durable before any of it, and no pass that fails, or does not help,
keeps the model from being called.
"""

from msgspec.structs import replace

from tenure.actors.turn_budget import overrun_of
from tenure.actors.turn_end import end_with
from tenure.actors.turn_model import call_model, on_model_failed
from tenure.actors.turn_state import (
    Acting,
    Calling,
    MakingRoom,
    Overflown,
    Relief,
    Retrying,
    Room,
    RoomMade,
    Run,
    State,
    StoppingRoom,
)
from tenure.actors.turn_stop import stop
from tenure.messages.base import Refusal, Reply
from tenure.messages.compaction import Compacted, NothingToCompact, RunCompaction, Trigger
from tenure.messages.turn_effects import ModelCallFailed
from tenure.runtime.step import Step, Taken

SHRUNK_PERCENT = 80
"""A pass that leaves more of the conversation than this has not helped."""


def next_call(run: Run, taken: Taken) -> Step[State]:
    """The next model call; first room for it, where the window is known and may fill up."""
    overrun = overrun_of(run, taken.now_ms)
    if overrun is not None:  # guard: TURN-12
        return stop(Acting(run, ()), "budget", None, taken, why=overrun.why)
    if not run.window or run.room == "spent":
        return call_model(run, attempt=1)
    return _ask(MakingRoom(run), "threshold")


def call_again(state: Retrying, taken: Taken) -> Step[State]:
    """The next attempt, unless the failed ones have used up what there was."""
    overrun = overrun_of(state.run, taken.now_ms)
    if overrun is not None:  # guard: TURN-12
        return stop(state, "budget", None, taken, why=overrun.why)
    return call_model(state.run, state.attempt)


def on_too_long(state: Calling, failure: ModelCallFailed, taken: Taken) -> Step[State]:
    """The provider refused the conversation: make room once for this call."""
    run = state.run
    if run.relief == "used":
        return on_model_failed(state, failure, taken)
    used: Relief = "used"
    return _ask(Overflown(replace(run, relief=used), failure), "context_exceeded")


def on_room_made(
    state: MakingRoom | Overflown | StoppingRoom, reply: Reply, taken: Taken
) -> Step[State]:
    """The pass is over, or was none: go on."""
    if isinstance(state, StoppingRoom):
        return end_with(state.run, state.end, (), state.drainers)
    run = state.run
    if isinstance(state, MakingRoom):  # guard: COMPACT-3
        # Whatever became of the pass: the prompt is durable and waits for its answer.
        room: Room = "open" if _may_ask_again(reply) else "spent"
        return call_model(replace(run, room=room), attempt=1)
    if isinstance(reply, Compacted) and reply.tokens_after < reply.tokens_before:
        return call_model(run, attempt=1)
    failure = _in_vain(state.failure, reply)
    return on_model_failed(Calling(run, run.rules.retries.attempts_max), failure, taken)


# --- pure helpers ------------------------------------------------------------------------


def _ask(state: MakingRoom | Overflown, trigger: Trigger) -> Step[State]:
    run = state.run
    need = RunCompaction(
        token=run.token,
        trigger=trigger,
        turn_id=run.turn_id,
        model=run.model,
        window=run.window,
    )
    return Step[State](state).ask("compaction", need, re=RoomMade(turn_id=run.turn_id))


def _may_ask_again(reply: Reply) -> bool:
    """Not where a pass did not help: it would be made before every call, and help no more."""
    match reply:
        case NothingToCompact(reason=reason):
            return reason == "under_threshold"
        case Compacted(tokens_before=before, tokens_after=after):
            return after * 100 <= before * SHRUNK_PERCENT
        case _:
            return False


def _in_vain(failed: ModelCallFailed, reply: Reply) -> ModelCallFailed:
    """The provider's words, and why there is no more room."""
    why = reply.remedy if isinstance(reply, Refusal) else "compacting it did not make it shorter"
    failure = failed.failure
    return replace(failed, failure=replace(failure, reason=f"{failure.reason} ({why})"))
