"""Tools that ask the user: the question goes to the ApprovalActor, its answer to the tool."""

from tenure.actors.turn_state import Acting, QuestionPut, Running, State
from tenure.actors.turn_tools import find
from tenure.messages.base import Reply
from tenure.messages.questions import (
    Answer,
    AnswerTool,
    Declined,
    PutQuestion,
    QuestionAnswered,
    ToolAsked,
)
from tenure.runtime.step import Step


def on_tool_asked(state: Acting, asked: ToolAsked) -> Step[State]:
    """Only a call that runs may ask."""
    call = find(state.calls, asked.call_id)
    if call is None or not isinstance(call.status, Running):
        return Step(state)
    put = PutQuestion(
        token=state.run.token,
        turn_id=asked.turn_id,
        call_id=asked.call_id,
        question=asked.question,
    )
    re = QuestionPut(turn_id=asked.turn_id, call_id=asked.call_id, number=asked.number)
    return Step[State](state).ask("approval", put, re=re)


def on_question_answered(state: Acting, put: QuestionPut, reply: Reply) -> Step[State]:
    """The answer is for the call that asked."""
    answer: Answer = Declined(reason="the user could not be asked")
    if isinstance(reply, QuestionAnswered):
        answer = reply.answer
    give = AnswerTool(turn_id=put.turn_id, call_id=put.call_id, number=put.number, answer=answer)
    return Step[State](state).do(give)
