"""The models door: prepares a turn, and makes its model calls."""

import asyncio
import os
from collections.abc import Mapping
from typing import Protocol

from tenure.messages.content import AssistantMessage, ChatMessage, UserMessage
from tenure.messages.models import Model, ModelCallError, ModelFailure, ModelRequest, ToolSpec
from tenure.messages.tokens import SessionId
from tenure.messages.turn_effects import (
    CallModel,
    ModelCallDone,
    ModelCallFailed,
    PrepareTurn,
    TurnNotPrepared,
    TurnPrepared,
)
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.models.answer import ANSWER_BYTES_MAX
from tenure.runtime.doors.models.asking import whole_answer
from tenure.runtime.doors.models.call import CANCELLED, Call
from tenure.runtime.doors.models.names import HOST, ModelName, NotAvailable, parsed
from tenure.runtime.doors.models.prompt import SYSTEM
from tenure.runtime.doors.models.resolve import resolve
from tenure.runtime.doors.models.windows import window_of


class ContextSource(Protocol):
    """Where a session's conversation is read; the transcripts door."""

    def context(self, session_id: SessionId) -> tuple[ChatMessage, ...]:
        """The messages that a model sees, up to the session's leaf: an immutable snapshot."""
        ...


class ToolSource(Protocol):
    """What tools there are; the tools door."""

    def specs(self) -> tuple[ToolSpec, ...]: ...


class Models:
    """The handlers of `PrepareTurn` and `CallModel`.

    Args:
        default: the model of a turn that names none: a string, or the host's own callable.
        base_url: where the default model is served; also for any `openai-compatible:NAME`.
        environ: where keys are looked for.
        bytes_max: the largest answer that is accepted.
    """

    def __init__(
        self,
        leaves: Leaves,
        transcripts: ContextSource,
        tools: ToolSource,
        default: str | Model,
        base_url: str = "",
        *,
        environ: Mapping[str, str] = os.environ,
        bytes_max: int = ANSWER_BYTES_MAX,
    ) -> None:
        self._leaves = leaves
        self._transcripts = transcripts
        self._tools = tools
        self._environ = environ
        self._bytes_max = bytes_max
        self._base_url = base_url
        self._found: dict[str, Model] = {}
        self._windows: dict[str, int] = {}
        if isinstance(default, str):
            self._default = default
        else:
            self._default = HOST
            self._found[HOST] = default

    @property
    def default(self) -> str:
        """The model string that a turn without one gets; `host` for the host's own callable."""
        return self._default

    def choose(self, model: str, base_url: str = "") -> None:
        """Make this the default.  Whether it can be used shows when a turn is prepared."""
        self._default = model
        self._base_url = base_url

    async def prepare(
        self, effect: PrepareTurn, context: Context
    ) -> TurnPrepared | TurnNotPrepared:
        """Find the model and the tools.  Everything that can be refused is refused here."""
        try:
            name = self._name(effect.model)
            await self._find(name)
        except NotAvailable as error:
            return TurnNotPrepared(
                turn_id=effect.turn_id, model=effect.model or self._default, reason=error.reason
            )
        return TurnPrepared(
            turn_id=effect.turn_id, model=str(name), system=SYSTEM, tools=self._tools.specs()
        )

    async def call(self, effect: CallModel, context: Context) -> ModelCallDone | ModelCallFailed:
        """Make one model call.  Deltas go to `context.progress`; all of them before the outcome."""
        try:
            name = parsed(effect.model)
            model = await self._find(name)
        except NotAvailable as error:
            return _failed(effect, ModelFailure(kind=error.kind, reason=error.reason))
        except asyncio.CancelledError:
            # As a cancel of the call itself: the runner wants the outcome.
            return _failed(effect, ModelFailure(kind="cancelled", reason=CANCELLED))
        request = ModelRequest(
            model=effect.model,
            system=effect.system,
            messages=self._transcripts.context(effect.session_id),
            tools=effect.tools,
            session_id=effect.session_id,
            thinking=effect.thinking,
        )
        call = Call(
            effect=effect,
            context=context,
            name=name,
            request=request,
            clock=self._leaves.clock,
            fresh=self._leaves.entropy.fresh,
            bytes_max=self._bytes_max,
        )
        return await call.run(model)

    async def ask(
        self, model: str, system: str, prompt: str, session_id: SessionId, within_s: float
    ) -> AssistantMessage:
        """One question without tools and its whole answer; an empty model takes the default.

        Raises:
            ModelCallError: the model cannot be called, failed, or took too long.
        """
        try:
            name = self._name(model)
            found = await self._find(name)
        except NotAvailable as error:
            failure = ModelFailure(kind=error.kind, reason=error.reason)
            raise ModelCallError(failure) from error
        request = ModelRequest(
            model=str(name),
            system=system,
            messages=(UserMessage(content=prompt, timestamp=self._leaves.clock.now_ms()),),
            session_id=session_id,
        )
        return await whole_answer(
            found,
            name,
            request,
            clock=self._leaves.clock,
            fresh=self._leaves.entropy.fresh,
            within_s=within_s,
        )

    async def converse(
        self,
        system: str,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolSpec, ...],
        session_id: SessionId,
        within_s: float,
    ) -> AssistantMessage:
        """The next message of a conversation that is no session's, by the default model.

        Raises:
            ModelCallError: the model cannot be called, failed, or took too long.
        """
        try:
            name = self._name("")
            found = await self._find(name)
        except NotAvailable as error:
            failure = ModelFailure(kind=error.kind, reason=error.reason)
            raise ModelCallError(failure) from error
        request = ModelRequest(
            model=str(name), system=system, messages=messages, tools=tools, session_id=session_id
        )
        return await whole_answer(
            found,
            name,
            request,
            clock=self._leaves.clock,
            fresh=self._leaves.entropy.fresh,
            within_s=within_s,
        )

    async def window(self, model: str) -> int:
        """Tokens that a model can read; 0 where nobody knows.  Empty takes the default."""
        try:
            name = self._name(model)
        except NotAvailable:
            return 0
        key = str(name)
        if key not in self._windows:
            self._windows[key] = await self._leaves.workers.run(window_of, name)
        return self._windows[key]

    def _name(self, model: str) -> ModelName:
        """The full name, with the place where the model is served."""
        name = parsed(model or self._default)
        chosen = not model or model == self._default
        if (
            self._base_url
            and not name.base_url
            and (chosen or name.provider == "openai-compatible")
        ):
            return name.at(self._base_url)
        return name

    async def _find(self, name: ModelName) -> Model:
        key = str(name)
        if key not in self._found:
            known_here = (HOST,) if HOST in self._found else ()
            found = await resolve(name, self._leaves, self._environ, also_known=known_here)
            self._found.setdefault(key, found)
        return self._found[key]


def _failed(effect: CallModel, failure: ModelFailure) -> ModelCallFailed:
    return ModelCallFailed(turn_id=effect.turn_id, call=effect.call, failure=failure)
