"""Questions to the user beside approvals: a tool asks, and one answer comes back to its call.

A question may bring a form: a JSON Schema of an object, whose fields the answer fills.
"""

from typing import Any, Literal

import msgspec

from tenure.messages.base import Command, Effect, Event, Outcome, Query, Reply
from tenure.messages.tokens import CallId, RequestId, SessionToken, TurnId


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool wants to know."""

    text: str
    options: tuple[str, ...] = ()
    """Answers to choose from; any other text is an answer, too."""
    form: dict[str, Any] = {}
    """JSON Schema of an object; empty for a question that one text answers."""
    source: str = ""
    """Who asks, where it is not the model: the name of a server."""


class Said(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """The user's answer."""

    text: str = ""
    fields: dict[str, Any] = {}
    """For a form: its fields."""


class Declined(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """The user does not answer; the tool is told so, and the turn goes on."""

    reason: str = ""


Answer = Said | Declined


class QuestionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a user is asked.  Bound to one call of one turn of one session."""

    request_id: RequestId
    token: SessionToken
    turn_id: TurnId
    call_id: CallId
    question: Question
    asked_ms: int


class PutQuestion(Command, frozen=True, kw_only=True):
    """The TurnActor asks for a tool that runs.  Answered `QuestionAnswered`."""

    token: SessionToken
    turn_id: TurnId
    call_id: CallId
    question: Question
    ask_deadline_s = None


class AnswerQuestion(Command, frozen=True, kw_only=True):
    """A user's answer.  Answered `AnswerTaken`, `Superseded` or `Expired`."""

    request_id: RequestId
    answer: Answer


class GetQuestions(Query, frozen=True, kw_only=True):
    """Answered `QuestionsOpen`."""


class QuestionAnswered(Reply, frozen=True, kw_only=True):
    """To the turn."""

    answer: Answer


class AnswerTaken(Reply, frozen=True, kw_only=True):
    """The answer was handed to the turn that asked."""

    request_id: RequestId


class QuestionsOpen(Reply, frozen=True, kw_only=True):
    requests: tuple[QuestionRequest, ...]


class QuestionAsked(Event, frozen=True, kw_only=True):
    request: QuestionRequest


class QuestionClosed(Event, frozen=True, kw_only=True):
    request_id: RequestId
    turn_id: TurnId
    outcome: Literal["answered", "declined", "revoked"]


# --- effects and their outcomes ----------------------------------------------------------


class PutToUser(Effect, frozen=True, kw_only=True):
    """Put a question before the embedder's callable.  Cancelled when the question closes."""

    request: QuestionRequest
    concurrent = True

    @property
    def key(self) -> str:
        return f"question {self.request.request_id}"

    def failed(self, reason: str) -> Outcome:
        return UserNotReached(request_id=self.request.request_id, reason=reason)


class UserReplied(Outcome, frozen=True, kw_only=True):
    request_id: RequestId
    answer: Answer


class UserNotReached(Outcome, frozen=True, kw_only=True):
    """Nobody here answers, or it failed: the question stays open for an `AnswerQuestion`."""

    request_id: RequestId
    reason: str


class ToolAsked(Outcome, frozen=True, kw_only=True):
    """Progress of a `RunTool`: the tool waits for an answer."""

    turn_id: TurnId
    call_id: CallId
    number: int
    """Counts the questions of the call, from 1."""
    question: Question


class AnswerTool(Effect, frozen=True, kw_only=True):
    """Give a running tool the answer that it waits for."""

    turn_id: TurnId
    call_id: CallId
    number: int
    answer: Answer
    concurrent = True

    @property
    def key(self) -> str:
        return f"answer {self.turn_id} {self.call_id} {self.number}"

    def failed(self, reason: str) -> Outcome:
        return ToolNotAnswered(turn_id=self.turn_id, call_id=self.call_id)


class ToolAnswered(Outcome, frozen=True, kw_only=True):
    turn_id: TurnId
    call_id: CallId


class ToolNotAnswered(Outcome, frozen=True, kw_only=True):
    """The tool waits no more."""

    turn_id: TurnId
    call_id: CallId
