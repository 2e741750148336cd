"""What a TurnActor wants done outside, and how it went: models, tools, pauses."""

from typing import Any, Literal, Self

import msgspec

from tenure.messages.base import Effect, Outcome
from tenure.messages.checkpoints import FileImage
from tenure.messages.content import AssistantBlock, AssistantMessage, UserBlock
from tenure.messages.limits import Overrides, TurnRules
from tenure.messages.models import ModelFailure, Thinking, ToolSpec
from tenure.messages.tokens import CallId, SessionId, TurnId


class PrepareTurn(Effect, frozen=True, kw_only=True):
    """Find the model and the tools for a turn, before anything is written."""

    turn_id: TurnId
    model: str
    overrides: Overrides = Overrides()
    concurrent = True

    @property
    def key(self) -> str:
        return f"prepare {self.turn_id}"

    def failed(self, reason: str) -> Outcome:
        return TurnNotPrepared(turn_id=self.turn_id, model=self.model, reason=reason)


class TurnPrepared(Outcome, frozen=True, kw_only=True):
    turn_id: TurnId
    model: str
    """The full model string."""
    system: str
    tools: tuple[ToolSpec, ...]
    window: int = 0
    """Tokens that the model can read; 0 where nobody knows."""
    rules: TurnRules = TurnRules()


class TurnNotPrepared(Outcome, frozen=True, kw_only=True):
    turn_id: TurnId
    model: str
    reason: str


class CallModel(Effect, frozen=True, kw_only=True):
    """One model call over the session's context up to its leaf.  Never repeated by itself."""

    turn_id: TurnId
    call: int
    """Counts the model calls of the turn, retries included, from 1."""
    session_id: SessionId
    model: str
    system: str
    tools: tuple[ToolSpec, ...]
    thinking: Thinking = "default"
    concurrent = True

    @property
    def key(self) -> str:
        return f"model {self.turn_id}"

    def failed(self, reason: str) -> Outcome:
        return ModelCallFailed(
            turn_id=self.turn_id, call=self.call, failure=ModelFailure(kind="bug", reason=reason)
        )


class ModelDelta(Outcome, frozen=True, kw_only=True):
    """Progress: more text.  The handler holds the whole; this is only shown."""

    turn_id: TurnId
    call: int
    kind: Literal["text", "thinking"]
    text: str

    def joined(self, later: Outcome) -> Self | None:
        if (
            isinstance(later, ModelDelta)
            and later.turn_id == self.turn_id
            and later.call == self.call
            and later.kind == self.kind
        ):
            return msgspec.structs.replace(self, text=self.text + later.text)
        return None


class ModelCallDone(Outcome, frozen=True, kw_only=True):
    turn_id: TurnId
    call: int
    message: AssistantMessage


class ModelCallFailed(Outcome, frozen=True, kw_only=True):
    turn_id: TurnId
    call: int
    failure: ModelFailure
    partial: tuple[AssistantBlock, ...] = ()
    """What had come before it failed or was cancelled."""


class RunTool(Effect, frozen=True, kw_only=True):
    """Run one tool call.  Never repeated."""

    turn_id: TurnId
    call_id: CallId
    tool: str
    arguments: dict[str, Any]
    expects: str = ""
    """The digest of the file as it was previewed or kept for undo; empty for none."""
    paths: tuple[str, ...] = ()
    """The files that were allowed, with links followed; empty where the tool names none."""
    checkpoint: str = ""
    """Names what the files held before; empty for nothing."""
    concurrent = True

    @property
    def key(self) -> str:
        return f"tool {self.turn_id} {self.call_id}"

    def failed(self, reason: str) -> Outcome:
        return ToolCallFailed(turn_id=self.turn_id, call_id=self.call_id, reason=reason)


class ToolCallDone(Outcome, frozen=True, kw_only=True):
    turn_id: TurnId
    call_id: CallId
    content: tuple[UserBlock, ...]
    is_error: bool = False
    details: dict[str, Any] = {}
    after: tuple[FileImage, ...] = ()
    """The files of the checkpoint as the tool left them."""


class ToolCallFailed(Outcome, frozen=True, kw_only=True):
    """The tool did not come to an end of its own; its side effects are not known."""

    turn_id: TurnId
    call_id: CallId
    reason: str


class Wait(Effect, frozen=True, kw_only=True):
    """Let time pass before a retry."""

    turn_id: TurnId
    call: int
    delay_ms: int
    concurrent = True

    @property
    def key(self) -> str:
        return f"wait {self.turn_id}"

    def failed(self, reason: str) -> Outcome:
        return WaitOver(turn_id=self.turn_id, call=self.call)


class WaitOver(Outcome, frozen=True, kw_only=True):
    turn_id: TurnId
    call: int


class KeepTime(Effect, frozen=True, kw_only=True):
    """Ring when the time of a turn is used up; cancelled at its end."""

    turn_id: TurnId
    delay_ms: int
    concurrent = True

    @property
    def key(self) -> str:
        return f"time {self.turn_id}"

    def failed(self, reason: str) -> Outcome:
        return TimeNotKept(turn_id=self.turn_id, reason=reason)


class TimeUp(Outcome, frozen=True, kw_only=True):
    turn_id: TurnId


class TimeNotKept(Outcome, frozen=True, kw_only=True):
    """The timer was cancelled, or failed."""

    turn_id: TurnId
    reason: str
