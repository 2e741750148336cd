"""Questions of tools: asked beside approvals, answered once, over with their turn."""

import asyncio
from typing import Any

import pytest
from host_world import Machine, events_of, last, reading
from steps import A, DrivenApproval, DrivenTurn, call, token, tool
from toys import asynchronous, settle

from tenure.messages.approval import EndSessionGrants, Expired, RevokeApprovals, Superseded
from tenure.messages.bus import OwnerStopped
from tenure.messages.models import ModelToolCall
from tenure.messages.questions import (
    Answer,
    AnswerQuestion,
    AnswerTaken,
    AnswerTool,
    Declined,
    GetQuestions,
    PutQuestion,
    PutToUser,
    Question,
    QuestionAnswered,
    QuestionAsked,
    QuestionClosed,
    QuestionRequest,
    QuestionsOpen,
    Said,
    ToolAsked,
    UserNotReached,
    UserReplied,
)
from tenure.messages.tokens import CallId, RequestId, turn_id
from tenure.messages.turn import ToolCallFinished
from tenure.runtime.cli.questioning import answer_of
from tenure.runtime.step import AskId

WHICH = Question(text="Which one?", options=("red", "blue"))
FIRST = turn_id(A, 1)
RED = Said(text="red")


def put(gate: DrivenApproval, turn: int = 1, call_id: str = "c1") -> tuple[AskId, RequestId]:
    asker = gate.ask(
        PutQuestion(
            token=token(), turn_id=turn_id(A, turn), call_id=CallId(call_id), question=WHICH
        )
    )
    return asker, gate.said(QuestionAsked)[-1].request.request_id


def reply(gate: DrivenApproval, request_id: RequestId, answer: Answer = RED) -> Any:
    return gate.reply_to(gate.ask(AnswerQuestion(request_id=request_id, answer=answer)))


# --- the owner -------------------------------------------------------------------------------


def test_question_is_open_until_its_answer_goes_to_the_turn() -> None:
    gate = DrivenApproval()
    asker, request_id = put(gate)
    shown = gate.reply_to(gate.ask(GetQuestions()))
    assert isinstance(shown, QuestionsOpen)
    assert [each.question for each in shown.requests] == [WHICH]
    gate.tell(UserNotReached(request_id=request_id, reason="no terminal"))
    assert gate.reply_to(asker) is None
    assert reply(gate, request_id) == AnswerTaken(request_id=request_id)
    assert gate.reply_to(asker) == QuestionAnswered(answer=RED)
    assert [each.outcome for each in gate.said(QuestionClosed)] == ["answered"]
    assert gate.cancelled == [f"question {request_id}"]


@pytest.mark.witness("ASK-1")
def test_answer_counts_once_and_only_for_a_question_that_is_known() -> None:
    gate = DrivenApproval()
    _, request_id = put(gate)
    reply(gate, request_id)
    assert reply(gate, request_id, Said(text="blue")) == Superseded(request_id=request_id)
    gate.tell(UserReplied(request_id=request_id, answer=Said(text="late")))
    foreign = RequestId("of another seat")
    assert reply(gate, foreign) == Expired(request_id=foreign)
    assert len(gate.said(QuestionClosed)) == 1


@pytest.mark.witness("ASK-1")
@pytest.mark.parametrize("end", ["turn", "session"])
def test_question_is_over_with_its_turn_and_one_of_another_turn_stays(end: str) -> None:
    gate = DrivenApproval()
    mine, request_id = put(gate)
    other, _ = put(gate, turn=2, call_id="c2")
    if end == "turn":
        gate.tell(RevokeApprovals(turn_id=FIRST))
        assert gate.reply_to(other) is None
    else:
        gate.tell(EndSessionGrants(session_id=A))
    answered = gate.reply_to(mine)
    assert isinstance(answered, QuestionAnswered)
    assert isinstance(answered.answer, Declined)
    assert reply(gate, request_id) == Superseded(request_id=request_id)
    assert PutToUser(request=gate.said(QuestionAsked)[0].request).key in gate.cancelled


# --- the turn --------------------------------------------------------------------------------


def asking() -> DrivenTurn:
    turn = DrivenTurn(tool("ask", mutating=False)).to_acting(call("c1", "ask"))
    turn.allows("c1")
    turn.tell(ToolAsked(turn_id=FIRST, call_id=CallId("c1"), number=1, question=WHICH))
    return turn


def test_answer_goes_to_the_call_that_asked() -> None:
    turn = asking()
    turn.answer(PutQuestion, QuestionAnswered(answer=RED))
    (given,) = turn.wanted(AnswerTool)
    assert (given.call_id, given.number, given.answer) == ("c1", 1, RED)


def test_question_that_cannot_be_put_is_declined() -> None:
    turn = asking()
    turn.answer(PutQuestion, OwnerStopped(begun=True, reason="gone"))
    assert isinstance(turn.wanted(AnswerTool)[0].answer, Declined)


def test_answer_for_a_turn_that_is_being_stopped_goes_nowhere() -> None:
    turn = asking()
    turn.stop()
    turn.answer(PutQuestion, QuestionAnswered(answer=RED))
    assert turn.wanted(AnswerTool) == []


def test_call_that_does_not_run_asks_nothing() -> None:
    turn = asking()
    turn.tell(ToolAsked(turn_id=FIRST, call_id=CallId("c9"), number=1, question=WHICH))
    assert len(turn.sent(PutQuestion)) == 1


# --- through a seat ----------------------------------------------------------------------------

ASKS = [
    ModelToolCall(name="ask_user", arguments={"question": "Which?", "options": ["red"]}, id="c1")
]


def result_of(events: list[Any]) -> str:
    (finished,) = [event for event in events if isinstance(event, ToolCallFinished)]
    return finished.text


@asynchronous
async def test_model_asks_and_the_hosts_callable_answers() -> None:
    async def answering(request: QuestionRequest) -> Answer:
        assert request.question.text == "Which?"
        return Said(text=request.question.options[0])

    async with Machine().host(ASKS, "so be it", reply=answering) as host:
        events = await events_of(await host.seat())
    assert result_of(events) == "red"
    assert last(events).stop_reason == "end_turn"


@asynchronous
async def test_question_without_a_callable_waits_for_the_seat_and_is_answered_once() -> None:
    async with Machine().host(ASKS, "so be it") as host:
        seat = await host.seat()
        running = reading(seat)
        while not (waiting := await seat.questions()):
            await settle()
        request_id = waiting[0].request_id
        both = await asyncio.gather(
            seat.reply(request_id, Declined(reason="not now")),
            seat.reply(request_id, Said(text="red")),
        )
        assert [type(each) for each in both] == [AnswerTaken, Superseded]
        assert "did not answer: not now" in result_of(await running)


@asynchronous
async def test_stop_while_a_question_is_open_ends_the_turn_and_the_question() -> None:
    async with Machine().host(ASKS, "so be it") as host:
        seat = await host.seat()
        running = reading(seat)
        while not (waiting := await seat.questions()):
            await settle()
        await seat.stop()
        assert last(await running).cause == "user"
        assert await seat.questions() == ()
        late = await seat.reply(waiting[0].request_id, RED)
        assert late == Superseded(request_id=waiting[0].request_id)


# --- what a person types -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("2", Said(text="blue")),
        ("3", Said(text="3")),
        (" green ", Said(text="green")),
        ("/decline", Declined(reason="the user declined to answer")),
        ("", "the answer is empty"),
    ],
)
def test_line_is_an_option_a_text_or_no_answer(line: str, answer: Answer | str) -> None:
    assert answer_of(line, WHICH) == answer


def test_form_is_answered_with_one_json_object() -> None:
    form = Question(text="Who?", form={"type": "object", "properties": {"name": {}}})
    assert answer_of('{"name": "Ada"}', form) == Said(fields={"name": "Ada"})
    assert "no JSON" in str(answer_of("Ada", form))
    assert "no JSON object" in str(answer_of("[1]", form))
