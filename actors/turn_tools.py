"""A turn's tool calls: decided, run, and their results saved in the order of the calls.

Calls come in waves.  A batch with a sequential tool has waves of one call, each
saved before the next begins; else the whole batch is one wave.  Nothing of a
wave runs before every call of it is decided.
"""

from typing import TypeVar

from msgspec.structs import replace

from tenure.actors.turn_budget import overrun_of, with_child
from tenure.actors.turn_end import after, error_result
from tenure.actors.turn_loop_guard import is_looping, noted, why_stopped
from tenure.actors.turn_state import (
    Acting,
    Allowed,
    Call,
    CallDecided,
    Done,
    ResultsSaved,
    Run,
    Running,
    Saved,
    Saving,
    State,
    Status,
    StoppingTools,
    Undecided,
    Waiting,
)
from tenure.actors.turn_steering import after_step
from tenure.actors.turn_stop import settle_tools, stop
from tenure.messages.approval import (
    CallAllowed,
    CallDenied,
    DecideCall,
    NoteDecision,
    digest_of,
)
from tenure.messages.base import Reply
from tenure.messages.checkpoints import result_entry
from tenure.messages.content import (
    AssistantMessage,
    TextBlock,
    ToolResultMessage,
    UserBlock,
    calls_of,
)
from tenure.messages.entries import CustomEntry, MessageEntry
from tenure.messages.session import AppendEntries
from tenure.messages.tokens import CallId, RequestId
from tenure.messages.turn import ToolCallFinished, ToolCallStarted
from tenure.messages.turn_effects import RunTool, ToolCallDone, ToolCallFailed
from tenure.runtime.step import Step, Taken

S = TypeVar("S")

SHOWN_CHARS_MAX = 400
"""How much of a result its event shows; the transcript has the whole."""

TRUNCATED = (
    "Not run: the answer was cut off by the model's length limit, so the call may be "
    "incomplete. Make the call again, shorter."
)


def act(run: Run, message: AssistantMessage, taken: Taken) -> Step[State]:
    """Begin with the tool calls of a message that is durable."""
    calls = tuple(Call(block, Waiting()) for block in calls_of(message))
    if message.stop_reason == "length":
        calls = tuple(
            replace(call, status=Done(error_result(call.block, TRUNCATED, taken))) for call in calls
        )
    overrun = overrun_of(run, taken.now_ms, len(calls))
    if overrun is not None:  # guard: TURN-12
        return stop(Acting(run, calls), "budget", None, taken, why=overrun.why)
    counted = replace(run, tool_calls=run.tool_calls + len(calls))
    return advance(Step(Acting(counted, calls)), taken)


def advance(step: Step[Acting], taken: Taken) -> Step[State]:
    """Do everything that the statuses allow now."""
    step = _open_wave(step, taken)
    step = _start_allowed(step)
    step = _save_finished(step)
    state = step.state
    if all(isinstance(call.status, Saved) for call in state.calls):
        return after(step.to(state), _batch_done(state, taken))
    return step.to(state)


def on_decided(state: Acting, call: Call, reply: Reply, taken: Taken) -> Step[State]:
    """The ApprovalActor has decided one call (a stop is the caller's business)."""
    match reply:
        case CallAllowed(digest=digest, request_id=request_id):
            if digest != digest_of(call.block.name, call.block.arguments):  # guard: APPROVE-4
                denied = error_result(call.block, "Not run: another call was approved.", taken)
                step = _with_status(state, call, Done(denied))
                return advance(superseded(step, request_id), taken)
            status = Allowed(reply.expects, reply.paths, reply.checkpoint)
            step = _with_status(state, call, status)
            return advance(applied(step, request_id), taken)
        case CallDenied(reason=reason, request_id=request_id):
            denied = error_result(call.block, f"Denied: {reason}", taken)
            return advance(applied(_with_status(state, call, Done(denied)), request_id), taken)
        case _:
            denied = error_result(call.block, "Not run: it could not be decided.", taken)
            return advance(_with_status(state, call, Done(denied)), taken)


def on_tool_ended(
    state: Acting | StoppingTools, outcome: ToolCallDone | ToolCallFailed, taken: Taken
) -> Step[State]:
    """A tool's last word; also that of a tool which was cancelled."""
    call = find(state.calls, outcome.call_id)
    if call is None or not isinstance(call.status, Running):
        return Step(state)
    also = _checkpoint_result(call.status.checkpoint, outcome)
    done = Done(result_of(call, outcome, taken), also)
    state = replace(state, run=with_child(state.run, outcome))
    if isinstance(state, Acting):
        return advance(_with_status(state, call, done), taken)
    return settle_tools(replace(state, calls=with_status(state.calls, call, done)))


def on_results_saved(state: Acting, call_ids: tuple[CallId, ...], taken: Taken) -> Step[State]:
    """These results are durable: they are shown, and the turn goes on."""
    step = Step(Acting(state.run, mark_saved(state.calls, call_ids)))
    for call in state.calls:
        if call.call_id in call_ids and isinstance(call.status, Saving):
            step = step.emit(_finished(state.run, call, call.status.result))
    return advance(step, taken)


def mark_saved(calls: tuple[Call, ...], call_ids: tuple[CallId, ...]) -> tuple[Call, ...]:
    return tuple(
        replace(call, status=Saved(call.status.result))
        if call.call_id in call_ids and isinstance(call.status, Saving)
        else call
        for call in calls
    )


def result_of(
    call: Call, outcome: ToolCallDone | ToolCallFailed, taken: Taken
) -> ToolResultMessage:
    match outcome:
        case ToolCallDone(content=content, is_error=is_error, details=details):
            result = ToolResultMessage(
                tool_call_id=call.block.id,
                tool_name=call.block.name,
                content=content,
                is_error=is_error,
                timestamp=taken.now_ms,
            )
            return replace(result, details=details) if details else result
        case ToolCallFailed(reason=reason):
            text = f"The tool was interrupted ({reason}). Its side effects are not known."
            return error_result(call.block, text, taken)


def with_status(calls: tuple[Call, ...], call: Call, status: Status) -> tuple[Call, ...]:
    return tuple(
        replace(each, status=status) if each.call_id == call.call_id else each for each in calls
    )


def find(calls: tuple[Call, ...], call_id: CallId) -> Call | None:
    return next((call for call in calls if call.call_id == call_id), None)


def applied(step: Step[S], request_id: RequestId | None) -> Step[S]:
    """Tell that an answer took effect; a decision of the policy alone has no request."""
    if request_id is None:
        return step
    return step.tell("approval", NoteDecision(request_id=request_id, fate="applied"))


def superseded(step: Step[S], request_id: RequestId | None) -> Step[S]:
    """Tell that an answer came too late to take effect."""
    if request_id is None:
        return step
    return step.tell("approval", NoteDecision(request_id=request_id, fate="superseded"))


# --- pure helpers ------------------------------------------------------------------------


def _batch_done(state: Acting, taken: Taken) -> Step[State]:
    """Every result is durable: on to the next model call, unless the turn repeats itself."""
    run = noted(state.run, state.calls)
    if is_looping(run):  # guard: TURN-11
        looping = Acting(run, state.calls)
        return stop(looping, "loop_guard", None, taken, why=why_stopped(state.calls))
    return after_step(run, taken)


def _open_wave(step: Step[Acting], taken: Taken) -> Step[Acting]:
    """Have the next calls decided, if none of the wave before is still under way."""
    run, calls = step.state.run, step.state.calls
    under_way = Undecided | Allowed | Running | Done | Saving
    waiting = [call for call in calls if isinstance(call.status, Waiting)]
    if not waiting or any(isinstance(call.status, under_way) for call in calls):
        return step
    wave = waiting[:1] if _one_by_one(run, calls) else waiting
    for call in wave:
        step = _decide(step, call, taken)
    return step


def _one_by_one(run: Run, calls: tuple[Call, ...]) -> bool:
    tools = (run.tool(call.block.name) for call in calls)
    return any(tool is not None and tool.sequential for tool in tools)


def _decide(step: Step[Acting], call: Call, taken: Taken) -> Step[Acting]:
    run = step.state.run
    tool = run.tool(call.block.name)
    if tool is None:
        known = ", ".join(each.name for each in run.tools) or "none"
        text = f"There is no tool {call.block.name!r}. The tools are: {known}."
        return _becomes(step, call, Done(error_result(call.block, text, taken)))
    decide = DecideCall(
        token=run.token,
        turn_id=run.turn_id,
        call_id=call.call_id,
        tool=tool,
        arguments=call.block.arguments,
    )
    re = CallDecided(turn_id=run.turn_id, call_id=call.call_id)
    return _becomes(step, call, Undecided()).ask("approval", decide, re=re)


def _start_allowed(step: Step[Acting]) -> Step[Acting]:
    calls = step.state.calls
    if any(isinstance(call.status, Undecided) for call in calls):
        return step
    run = step.state.run
    for call in calls:
        if isinstance(call.status, Allowed):
            effect = RunTool(
                turn_id=run.turn_id,
                call_id=call.call_id,
                tool=call.block.name,
                arguments=call.block.arguments,
                expects=call.status.expects,
                paths=call.status.paths,
                checkpoint=call.status.checkpoint,
            )
            started = ToolCallStarted(
                turn_id=run.turn_id,
                call_id=call.call_id,
                tool=call.block.name,
                arguments=call.block.arguments,
            )
            running = Running(call.status.checkpoint)
            step = _becomes(step, call, running).emit(started).do(effect)
    return step


def _save_finished(step: Step[Acting]) -> Step[Acting]:
    """Save the finished calls that come next in order, one append at a time."""
    run, calls = step.state.run, step.state.calls
    if any(isinstance(call.status, Saving) for call in calls):
        return step
    ready: list[Call] = []
    for call in calls:
        if isinstance(call.status, Saved):
            continue
        if not isinstance(call.status, Done):
            break
        ready.append(call)
    if not ready:
        return step
    entries: list[MessageEntry | CustomEntry] = []
    for call in ready:
        assert isinstance(call.status, Done)
        entries += (MessageEntry(message=call.status.result), *call.status.also)
        step = _becomes(step, call, Saving(call.status.result, call.status.also))
    append = AppendEntries(token=run.token, entries=tuple(entries), turn_id=run.turn_id)
    call_ids = tuple(call.call_id for call in ready)
    return step.ask("session", append, re=ResultsSaved(turn_id=run.turn_id, call_ids=call_ids))


def _becomes(step: Step[Acting], call: Call, status: Status) -> Step[Acting]:
    return step.to(Acting(step.state.run, with_status(step.state.calls, call, status)))


def _with_status(state: Acting, call: Call, status: Status) -> Step[Acting]:
    return _becomes(Step(state), call, status)


def _checkpoint_result(
    checkpoint: str, outcome: ToolCallDone | ToolCallFailed
) -> tuple[CustomEntry, ...]:
    """How the files are now; of a tool that was interrupted nobody can say it."""
    if not checkpoint or isinstance(outcome, ToolCallFailed):
        return ()
    return (result_entry(checkpoint, outcome.after),)


def _finished(run: Run, call: Call, result: ToolResultMessage) -> ToolCallFinished:
    return ToolCallFinished(
        turn_id=run.turn_id,
        call_id=call.call_id,
        tool=call.block.name,
        is_error=result.is_error,
        text=_beginning(result.content),
    )


def _beginning(content: tuple[UserBlock, ...]) -> str:
    text = "\n".join(block.text for block in content if isinstance(block, TextBlock))
    return text if len(text) <= SHOWN_CHARS_MAX else text[:SHOWN_CHARS_MAX] + "…"
