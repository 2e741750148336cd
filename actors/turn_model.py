"""A turn's model calls: call, retry, keep the answer before its tools run (TURN-8)."""

from msgspec.structs import replace

from tenure.actors.turn_budget import cost_unknown
from tenure.actors.turn_end import aborted, end_with, not_run
from tenure.actors.turn_state import (
    AnswerSaved,
    Calling,
    Finished,
    Loop,
    Relief,
    Retrying,
    Run,
    SavingAnswer,
    State,
    StoppingModel,
)
from tenure.messages.content import (
    AssistantBlock,
    AssistantMessage,
    TextBlock,
    ThinkingBlock,
    calls_of,
)
from tenure.messages.entries import MessageEntry, ModelChangeEntry
from tenure.messages.models import RETRYABLE, ModelFailure
from tenure.messages.session import AppendEntries
from tenure.messages.tokens import turn_session
from tenure.messages.turn import ModelFellBack, ModelRetrying, TextDelta, ThinkingDelta
from tenure.messages.turn_effects import CallModel, ModelCallFailed, ModelDelta, Wait
from tenure.runtime.step import Step, Taken

BACKOFF_MS = 500
"""Before the second attempt; doubled for each further one."""
BACKOFF_MS_MAX = 8_000
RETRY_AFTER_MS_MAX = 120_000
"""A provider that asks for more is not waited for."""


def call_model(run: Run, attempt: int) -> Step[State]:
    called = replace(run, calls=run.calls + 1)
    effect = CallModel(
        turn_id=run.turn_id,
        call=called.calls,
        session_id=turn_session(run.turn_id),
        model=run.model,
        system=run.system,
        tools=run.tools,
        thinking=run.rules.thinking,
    )
    return Step[State](Calling(called, attempt)).do(effect)


def on_model_done(
    state: Calling | StoppingModel, message: AssistantMessage, taken: Taken
) -> Step[State]:
    """The model has spoken: its message is written before anything is done about it."""
    unused: Relief = "unused"
    loop = state.run.loop if calls_of(message) else Loop()
    run = replace(state.run, usage=state.run.usage.plus(message.usage), relief=unused, loop=loop)
    stamped = replace(message, timestamp=message.timestamp or taken.now_ms)
    if isinstance(state, StoppingModel):
        # It ended before the cancel reached it: the answer is kept, its calls are not run.
        results = tuple(
            MessageEntry(message=not_run(call, state.end, taken)) for call in calls_of(stamped)
        )
        entries = (MessageEntry(message=stamped), *results)
        return end_with(run, state.end, entries, state.drainers)
    append = AppendEntries(
        token=run.token,
        entries=(*model_changed(run), MessageEntry(message=stamped)),
        turn_id=run.turn_id,
    )
    saving = SavingAnswer(replace(run, noted_model=run.model), stamped)
    step = Step[State](saving).ask("session", append, re=AnswerSaved(turn_id=run.turn_id))
    return step.emit(*cost_unknown(run, state.run.usage.priced, stamped.model or run.model))


def on_model_failed(
    state: Calling | StoppingModel, message: ModelCallFailed, taken: Taken
) -> Step[State]:
    """Try again where that can help; else keep what was said and end the turn."""
    run = state.run
    partial = spoken(message.partial)
    if isinstance(state, StoppingModel):
        entries = (MessageEntry(message=aborted(run, partial, taken)),)
        return end_with(run, state.end, entries, state.drainers)
    failure = message.failure
    rules = run.rules.retries
    if can_retry(failure, state.attempt, rules.attempts_max):
        return _retry(state, failure, taken)
    if run.fallback and failure.kind in rules.fallback_on:
        return fall_back(run, failure)
    why = f"{failure.kind}: {failure.reason}"
    failed = AssistantMessage(
        content=partial,
        model=run.model,
        stop_reason="error",
        error_message=why,
        timestamp=taken.now_ms,
    )
    return end_with(run, Finished("error", error=why), (MessageEntry(message=failed),), ())


def fall_back(run: Run, failure: ModelFailure) -> Step[State]:
    """Give the model up for the next one, for the rest of the turn."""
    fell_back = ModelFellBack(
        turn_id=run.turn_id,
        model=run.fallback[0],
        instead_of=run.model,
        kind=failure.kind,
        reason=failure.reason,
    )
    other = replace(run, model=run.fallback[0], fallback=run.fallback[1:])
    # What is left of a budget is looked at as before an attempt: the failed ones count.
    return Step[State](Retrying(other, 1)).emit(fell_back).do(_wait(other, 0))


def model_changed(run: Run) -> tuple[ModelChangeEntry, ...]:
    """Written before the first answer of another model, as the dialect wants it."""
    if run.model == run.noted_model:
        return ()
    provider, _, name = run.model.partition(":")
    return (ModelChangeEntry(provider=provider, model_id=name or provider),)


def delta(piece: ModelDelta) -> TextDelta | ThinkingDelta:
    if piece.kind == "thinking":
        return ThinkingDelta(turn_id=piece.turn_id, text=piece.text)
    return TextDelta(turn_id=piece.turn_id, text=piece.text)


def can_retry(failure: ModelFailure, attempt: int, attempts_max: int) -> bool:
    return (
        failure.kind in RETRYABLE
        and attempt < attempts_max
        and failure.retry_after_ms <= RETRY_AFTER_MS_MAX
    )


def backoff_ms(failure: ModelFailure, attempt: int, taken: Taken) -> int:
    """Doubling, with a quarter of jitter, and never before the provider said."""
    base = min(BACKOFF_MS << (attempt - 1), BACKOFF_MS_MAX)
    jitter = base * (int(taken.fresh[:4], 16) % 256) // 1024
    return max(base + jitter, failure.retry_after_ms)


def spoken(partial: tuple[AssistantBlock, ...]) -> tuple[AssistantBlock, ...]:
    """Text and thoughts of a call that did not end; its tool calls were never whole."""
    return tuple(block for block in partial if isinstance(block, TextBlock | ThinkingBlock))


def _retry(state: Calling, failure: ModelFailure, taken: Taken) -> Step[State]:
    run = state.run
    attempt = state.attempt + 1
    delay_ms = backoff_ms(failure, state.attempt, taken)
    retrying = ModelRetrying(
        turn_id=run.turn_id,
        attempt=attempt,
        delay_ms=delay_ms,
        kind=failure.kind,
        reason=failure.reason,
    )
    return Step[State](Retrying(run, attempt)).emit(retrying).do(_wait(run, delay_ms))


def _wait(run: Run, delay_ms: int) -> Wait:
    return Wait(turn_id=run.turn_id, call=run.calls, delay_ms=delay_ms)
