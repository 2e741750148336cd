"""Model calls of a turn: deltas, retries with their causes, and what comes too late."""

import pytest
from steps import A, DrivenTurn, answer, call

from tenure.actors.turn_model import (
    BACKOFF_MS,
    BACKOFF_MS_MAX,
    RETRY_AFTER_MS_MAX,
    backoff_ms,
)
from tenure.messages.content import AssistantMessage, Cost, TextBlock, ThinkingBlock, Usage
from tenure.messages.limits import RetryRules
from tenure.messages.models import RETRYABLE, FailureKind, ModelFailure
from tenure.messages.session import AppendEntries
from tenure.messages.tokens import turn_id
from tenure.messages.turn import ModelRetrying, TextDelta, ThinkingDelta
from tenure.messages.turn_effects import (
    CallModel,
    ModelCallDone,
    ModelDelta,
    ToolCallDone,
    TurnPrepared,
    Wait,
    WaitOver,
)
from tenure.runtime.step import Taken

FIRST = turn_id(A, 1)
ATTEMPTS_MAX = RetryRules().attempts_max
KINDS: tuple[FailureKind, ...] = (
    "auth",
    "rate_limit",
    "overloaded",
    "context_exceeded",
    "transport",
    "refused",
    "invalid",
    "cancelled",
    "bug",
)


def waited(turn: DrivenTurn) -> None:
    wait = turn.wanted(Wait)[-1]
    turn.tell(WaitOver(turn_id=wait.turn_id, call=wait.call))


def test_pieces_of_the_answer_are_said_as_they_come() -> None:
    turn = DrivenTurn().to_calling()
    turn.tell(ModelDelta(turn_id=FIRST, call=1, kind="thinking", text="hm"))
    turn.tell(ModelDelta(turn_id=FIRST, call=1, kind="text", text="hello"))
    assert turn.events[-2:] == [
        ThinkingDelta(turn_id=FIRST, text="hm"),
        TextDelta(turn_id=FIRST, text="hello"),
    ]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in RETRYABLE])
def test_failure_that_may_pass_is_tried_again_where_everybody_can_see_it(
    kind: FailureKind,
) -> None:
    turn = DrivenTurn().to_calling()
    turn.fails(kind)
    (retrying,) = turn.said(ModelRetrying)
    assert (retrying.attempt, retrying.kind, retrying.reason) == (2, kind, "no")
    assert turn.wanted(Wait)[0].delay_ms == retrying.delay_ms
    assert len(turn.wanted(CallModel)) == 1
    waited(turn)
    assert [effect.call for effect in turn.wanted(CallModel)] == [1, 2]
    turn.says(answer("at last"))
    turn.saved()
    assert [each.stop_reason for each in turn.ended] == ["end_turn"]


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind not in RETRYABLE | {"context_exceeded"}]
)
def test_failure_that_will_not_pass_ends_the_turn_with_its_kind(kind: FailureKind) -> None:
    turn = DrivenTurn().to_calling()
    turn.fails(kind, partial=(ThinkingBlock(thinking="hm"), TextBlock(text="ha"), call("c1")))
    turn.saved()
    (ended,) = turn.ended
    assert (ended.stop_reason, ended.error) == ("error", f"{kind}: no")
    last = turn.written[-1]
    assert isinstance(last, AssistantMessage)
    assert last.content == (ThinkingBlock(thinking="hm"), TextBlock(text="ha"))
    assert (last.stop_reason, last.error_message) == ("error", f"{kind}: no")


def test_retries_end_and_the_last_failure_is_kept() -> None:
    turn = DrivenTurn().to_calling()
    for _ in range(ATTEMPTS_MAX - 1):
        turn.fails("overloaded")
        waited(turn)
    turn.fails("transport")
    turn.saved()
    assert len(turn.wanted(CallModel)) == ATTEMPTS_MAX
    assert [each.error for each in turn.ended] == ["transport: no"]


def test_retries_are_counted_anew_for_the_next_model_call_of_the_turn() -> None:
    turn = DrivenTurn().to_calling()
    for _ in range(ATTEMPTS_MAX - 1):
        turn.fails("overloaded")
        waited(turn)
    turn.says(answer("", call("c1", "no such tool")))
    turn.saved()
    turn.saved()
    turn.fails("overloaded")
    assert turn.name == "Retrying"


def test_pauses_double_up_to_a_bound_with_a_quarter_of_jitter() -> None:
    failure = ModelFailure(kind="overloaded", reason="")
    least = Taken(None, 0, "0000" + 12 * "0")
    most = Taken(None, 0, "00ff" + 12 * "0")
    shortest = [backoff_ms(failure, attempt, least) for attempt in range(1, 7)]
    assert shortest == [500, 1_000, 2_000, 4_000, 8_000, 8_000]
    assert shortest[0] == BACKOFF_MS
    longest = backoff_ms(failure, 6, most)
    assert BACKOFF_MS_MAX < longest <= BACKOFF_MS_MAX * 5 // 4


def test_pause_is_never_shorter_than_the_provider_asked_for() -> None:
    turn = DrivenTurn().to_calling()
    turn.fails("rate_limit", after_ms=17_000)
    assert turn.wanted(Wait)[0].delay_ms == 17_000


def test_provider_that_asks_for_too_long_a_pause_is_not_waited_for() -> None:
    turn = DrivenTurn().to_calling()
    turn.fails("rate_limit", after_ms=RETRY_AFTER_MS_MAX + 1)
    turn.saved()
    assert [each.stop_reason for each in turn.ended] == ["error"]


def test_usage_of_every_call_of_a_turn_is_summed() -> None:
    usage = Usage(input=10, output=2, cost=Cost(total=0.5), priced=True)
    turn = DrivenTurn().to_calling()
    turn.says(answer("", call("c1", "no such tool"), usage=usage))
    turn.saved()
    turn.saved()
    turn.says(answer("done", usage=usage))
    turn.saved()
    (ended,) = turn.ended
    assert (ended.usage.input, ended.usage.output, ended.usage.cost.total) == (20, 4, 1.0)
    assert ended.usage.priced


def test_price_that_one_call_does_not_know_is_unknown_for_the_turn() -> None:
    turn = DrivenTurn().to_calling()
    turn.says(answer("done", usage=Usage(input=3)))
    turn.saved()
    assert not turn.ended[0].usage.priced


def test_answer_that_was_cut_off_without_calls_ends_the_turn_as_cut_off() -> None:
    turn = DrivenTurn().to_calling()
    turn.says(answer("too lo", stop_reason="length"))
    turn.saved()
    assert [each.stop_reason for each in turn.ended] == ["max_tokens"]


@pytest.mark.witness("TURN-4")
def test_late_words_of_an_ended_turn_never_reach_the_next_one() -> None:
    turn = DrivenTurn().to_calling()
    turn.queue("second")
    turn.stop(cause="user")
    turn.queue("third")
    turn.fails("cancelled")
    turn.saved()
    assert turn.state.run.turn_id == turn_id(A, 3)
    turn.prepared(3)
    turn.saved()
    late = (
        TurnPrepared(turn_id=FIRST, model="late", system="", tools=()),
        ModelDelta(turn_id=FIRST, call=1, kind="text", text="late"),
        ModelCallDone(turn_id=FIRST, call=turn.wanted(CallModel)[-1].call, message=answer("late")),
        ToolCallDone(turn_id=FIRST, call_id=call("c1").id, content=()),  # type: ignore[arg-type]
        WaitOver(turn_id=FIRST, call=1),
    )
    before = turn.state
    for outcome in late:
        step = turn.tell(outcome)
        assert (step.events, step.mail, step.effects) == ((), (), ())
    assert turn.state == before


@pytest.mark.witness("TURN-4")
def test_late_words_after_the_last_turn_change_nothing() -> None:
    turn = DrivenTurn().to_calling()
    turn.says(answer())
    turn.saved()
    before = turn.state
    turn.tell(ModelCallDone(turn_id=FIRST, call=1, message=answer("late")))
    turn.tell(ModelDelta(turn_id=FIRST, call=1, kind="text", text="late"))
    assert turn.state == before
    assert turn.said(TextDelta) == []
    assert len(turn.sent(AppendEntries)) == 2


def test_words_of_an_earlier_attempt_are_not_taken_for_those_of_the_next() -> None:
    turn = DrivenTurn().to_calling()
    turn.fails("transport")
    waited(turn)
    turn.tell(ModelDelta(turn_id=FIRST, call=1, kind="text", text="late"))
    turn.tell(ModelCallDone(turn_id=FIRST, call=1, message=answer("late")))
    assert turn.name == "Calling"
    assert turn.said(TextDelta) == []


def test_end_counts_whatever_the_clock_says() -> None:
    """A turn's own end is told by its name, not by its time: clocks may go back."""
    turn = DrivenTurn().to_calling()
    turn.says(answer("done", timestamp=5))
    turn.saved()
    assert [each.stop_reason for each in turn.ended] == ["end_turn"]
