"""How turns begin: one at a time, queued or refused as asked, and only over a durable prompt."""

import pytest
from steps import A, B, DrivenTurn, answer, token

from tenure.actors.turn_ledger import EARLY_STOPS_KEPT_MAX
from tenure.actors.turn_start import PROMPT_BYTES_MAX
from tenure.messages.content import ImageBlock, TextBlock, UserMessage
from tenure.messages.queue import QUEUE_ITEMS_MAX, QueueFull
from tenure.messages.session import AppendEntries, Stale
from tenure.messages.tokens import turn_id
from tenure.messages.turn import (
    AttachSession,
    GetTurn,
    ModelUnavailable,
    PromptEmpty,
    PromptTooLarge,
    TurnAccepted,
    TurnBusy,
    TurnNotRunning,
    TurnNotStarted,
    TurnQueued,
    TurnStarted,
    TurnStopping,
    TurnView,
)
from tenure.messages.turn_effects import CallModel, PrepareTurn, TurnNotPrepared


def test_start_is_answered_when_its_prompt_is_durable() -> None:
    turn = DrivenTurn()
    asker = turn.run("hello", model="acme:1")
    assert turn.wanted(PrepareTurn) == [PrepareTurn(turn_id=turn_id(A, 1), model="acme:1")]
    turn.prepared()
    assert turn.reply_to(asker) is None
    turn.saved()
    assert turn.reply_to(asker) == TurnAccepted(turn_id=turn_id(A, 1), token=token())
    assert [event.turn_id for event in turn.said(TurnStarted)] == [turn_id(A, 1)]


def test_prompt_with_images_is_one_user_message() -> None:
    turn = DrivenTurn()
    image = ImageBlock(data="aGk=", mime_type="image/png")
    turn.run("look", images=(image,))
    turn.prepared()
    (message,) = turn.written
    assert isinstance(message, UserMessage)
    assert message.content == (TextBlock(text="look"), image)


@pytest.mark.witness("TURN-1")
def test_second_start_is_refused_with_the_turn_that_runs() -> None:
    turn = DrivenTurn().to_calling()
    second = turn.run("again")
    assert turn.reply_to(second) == TurnBusy(turn_id=turn_id(A, 1))
    turn.says(answer())
    turn.saved()
    assert turn.name == "Idle"
    assert len(turn.said(TurnStarted)) == 1


@pytest.mark.witness("TURN-1")
def test_second_start_that_may_wait_begins_when_the_first_has_ended() -> None:
    turn = DrivenTurn().to_calling()
    second, third = turn.queue("second"), turn.queue("third")
    replies = [turn.reply_to(each) for each in (second, third)]
    assert [type(reply) for reply in replies] == [TurnQueued, TurnQueued]
    assert [(each.turn_id, each.position) for each in replies] == [  # type: ignore[union-attr]
        (turn_id(A, 2), 1),
        (turn_id(A, 3), 2),
    ]
    assert len(turn.wanted(PrepareTurn)) == 1
    turn.says(answer())
    turn.saved()
    assert turn.wanted(PrepareTurn)[-1].turn_id == turn_id(A, 2)
    assert len(turn.wanted(PrepareTurn)) == 2


def test_queue_that_is_full_refuses_and_keeps_what_waits() -> None:
    turn = DrivenTurn().to_calling()
    for number in range(QUEUE_ITEMS_MAX):
        turn.queue(f"prompt {number}")
    late = turn.queue("one too many")
    refusal = turn.reply_to(late)
    assert isinstance(refusal, QueueFull)
    assert (refusal.items, refusal.items_max) == (QUEUE_ITEMS_MAX, QUEUE_ITEMS_MAX)
    view = turn.reply_to(turn.ask(GetTurn()))
    assert isinstance(view, TurnView)
    assert view.queued == tuple(f"prompt {number}" for number in range(QUEUE_ITEMS_MAX))


@pytest.mark.parametrize("text", ["", "  \n\t "])
def test_prompt_that_says_nothing_is_refused_and_writes_nothing(text: str) -> None:
    turn = DrivenTurn()
    assert turn.reply_to(turn.run(text)) == PromptEmpty()
    assert (turn.name, turn.effects, turn.mail) == ("Idle", [], [])


def test_prompt_that_is_too_large_is_refused_by_its_bytes() -> None:
    turn = DrivenTurn()
    reply = turn.reply_to(turn.run("ä" * (PROMPT_BYTES_MAX // 2) + "."))
    assert reply == PromptTooLarge(bytes_given=PROMPT_BYTES_MAX + 1, bytes_max=PROMPT_BYTES_MAX)


def test_unavailable_model_refuses_the_start_before_anything_is_written() -> None:
    turn = DrivenTurn()
    asker = turn.run()
    turn.tell(TurnNotPrepared(turn_id=turn_id(A, 1), model="acme", reason="no key"))
    assert turn.reply_to(asker) == ModelUnavailable(model="acme", reason="no key")
    assert turn.sent(AppendEntries) == []
    assert turn.name == "Idle"
    assert [each.stop_reason for each in turn.ended] == ["error"]


def test_unavailable_model_of_a_queued_prompt_ends_its_stream_and_the_next_begins() -> None:
    turn = DrivenTurn().to_calling()
    turn.queue("second")
    turn.queue("third")
    turn.says(answer())
    turn.saved()
    turn.tell(TurnNotPrepared(turn_id=turn_id(A, 2), model="acme", reason="no key"))
    assert turn.ended[-1].turn_id == turn_id(A, 2)
    assert (turn.ended[-1].stop_reason, turn.ended[-1].error) == ("error", "no key")
    assert turn.wanted(PrepareTurn)[-1].turn_id == turn_id(A, 3)


def test_prompt_that_cannot_be_written_gives_its_asker_the_reason() -> None:
    turn = DrivenTurn()
    asker = turn.run()
    turn.prepared()
    stale = Stale(current=token(epoch=2))
    turn.refused(stale)
    assert turn.reply_to(asker) == stale
    assert turn.wanted(CallModel) == []
    assert turn.name == "Idle"


@pytest.mark.witness("TURN-2")
def test_stop_that_came_before_its_turn_answers_the_start() -> None:
    turn = DrivenTurn()
    assert turn.stop(1) == TurnStopping(turn_id=turn_id(A, 1))
    asker = turn.run()
    assert turn.reply_to(asker) == TurnNotStarted(turn_id=turn_id(A, 1), cause="user")
    assert [(each.turn_id, each.stop_reason) for each in turn.ended] == [(turn_id(A, 1), "stopped")]
    assert (turn.name, turn.effects) == ("Idle", [])
    assert turn.stop(1) == TurnNotRunning(turn_id=None)


def test_stop_that_came_early_answers_its_start_behind_a_running_turn() -> None:
    turn = DrivenTurn().to_calling()
    assert turn.stop(2, cause="budget") == TurnStopping(turn_id=turn_id(A, 2))
    second = turn.queue("second")
    assert turn.reply_to(second) == TurnNotStarted(turn_id=turn_id(A, 2), cause="budget")
    assert turn.name == "Calling"


def test_early_stop_outlives_an_opening_of_the_same_session_and_no_other() -> None:
    turn = DrivenTurn(last_turn=3)
    turn.stop(4)
    turn.tell(AttachSession(token=token(A), last_turn=3))
    assert isinstance(turn.reply_to(turn.run()), TurnNotStarted)
    turn.stop(5)
    turn.tell(AttachSession(token=token(B), last_turn=0))
    assert turn.state.ledger.early == ()


def test_early_stops_are_bounded() -> None:
    turn = DrivenTurn()
    for number in range(1, EARLY_STOPS_KEPT_MAX + 3):
        turn.stop(number)
    assert len(turn.state.ledger.early) == EARLY_STOPS_KEPT_MAX
    assert turn.state.ledger.early[0].turn_id == turn_id(A, 3)


def test_opening_the_session_again_never_counts_turns_down() -> None:
    turn = DrivenTurn(last_turn=7)
    turn.tell(AttachSession(token=token(A), last_turn=2))
    assert turn.stop(5) == TurnNotRunning(turn_id=None)
