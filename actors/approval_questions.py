"""Questions of tools: one answer each, and none once their turn is over.

Asked -> gone        answered, declined, or revoked with its turn
"""

from typing import Literal

from msgspec.structs import replace

from tenure.actors.approval_state import CLOSED_KEPT_MAX, Asked, Gate
from tenure.messages.approval import Expired, Superseded
from tenure.messages.base import Reply
from tenure.messages.questions import (
    Answer,
    AnswerQuestion,
    AnswerTaken,
    Declined,
    GetQuestions,
    PutQuestion,
    PutToUser,
    QuestionAnswered,
    QuestionAsked,
    QuestionClosed,
    QuestionRequest,
    QuestionsOpen,
    UserReplied,
)
from tenure.messages.tokens import RequestId
from tenure.runtime.step import AskId, Step, Taken


def on_question(
    state: Gate,
    message: PutQuestion | AnswerQuestion | UserReplied | GetQuestions,
    taken: Taken,
) -> Step[Gate]:
    """Everything about questions but their revocation."""
    match message:
        case PutQuestion():
            return on_put(state, message, taken)
        case AnswerQuestion(request_id=request_id, answer=answer):
            return on_reply(state, request_id, answer, taken.asker)
        case UserReplied(request_id=request_id, answer=answer):
            return on_reply(state, request_id, answer, None)
        case GetQuestions():
            return on_get_questions(state, taken)


def on_put(state: Gate, message: PutQuestion, taken: Taken) -> Step[Gate]:
    """A running tool wants to know something."""
    request = QuestionRequest(
        request_id=RequestId(taken.fresh),
        token=message.token,
        turn_id=message.turn_id,
        call_id=message.call_id,
        question=message.question,
        asked_ms=taken.now_ms,
    )
    asked = Step(replace(state, questions=(*state.questions, Asked(request, taken.asker))))
    return asked.emit(QuestionAsked(request=request)).do(PutToUser(request=request))


def on_reply(state: Gate, request_id: RequestId, answer: Answer, user: AskId | None) -> Step[Gate]:
    """An answer counts once, for the one question that it names."""
    asked = next((each for each in state.questions if each.request.request_id == request_id), None)
    if asked is None:  # guard: ASK-1
        late: Reply = Superseded(request_id=request_id)
        known = request_id in state.closed
        return Step(state).answer(user, late if known else Expired(request_id=request_id))
    outcome = _closed(asked.request, "declined" if isinstance(answer, Declined) else "answered")
    step = Step(_without(state, asked)).answer(asked.asker, QuestionAnswered(answer=answer))
    step = step.answer(user, AnswerTaken(request_id=request_id)).emit(outcome)
    return step.cancel(PutToUser(request=asked.request).key)


def on_get_questions(state: Gate, taken: Taken) -> Step[Gate]:
    requests = tuple(each.request for each in state.questions)
    return Step(state).answer(taken.asker, QuestionsOpen(requests=requests))


def revoke_questions(step: Step[Gate], asked: list[Asked]) -> Step[Gate]:
    """Their turn is over: nobody is asked any more, and no answer counts."""
    for each in asked:
        step = step.to(_without(step.state, each)).emit(_closed(each.request, "revoked"))
        step = step.answer(each.asker, QuestionAnswered(answer=Declined(reason="the turn ended")))
        step = step.cancel(PutToUser(request=each.request).key)
    return step


# --- pure helpers ------------------------------------------------------------------------


def _without(state: Gate, asked: Asked) -> Gate:
    rest = tuple(each for each in state.questions if each is not asked)
    closed = (*state.closed, asked.request.request_id)[-CLOSED_KEPT_MAX:]
    return replace(state, questions=rest, closed=closed)


def _closed(
    request: QuestionRequest, outcome: Literal["answered", "declined", "revoked"]
) -> QuestionClosed:
    return QuestionClosed(request_id=request.request_id, turn_id=request.turn_id, outcome=outcome)
