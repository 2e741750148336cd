"""One answer of a model, checked and put together while it comes."""

import json
from collections.abc import Callable
from typing import Any, Literal, get_args

import msgspec

from tenure.messages.content import (
    AssistantBlock,
    AssistantMessage,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from tenure.messages.models import (
    INVALID_JSON,
    FailureKind,
    ModelCallError,
    ModelDone,
    ModelEvent,
    ModelFailure,
    ModelText,
    ModelThinking,
    ModelToolCall,
)
from tenure.runtime.doors.models.mending import Mender, mended, mended_value

ANSWER_BYTES_MAX = 4 * 1024 * 1024
"""Text, thoughts and arguments of one answer together, in UTF-8."""


PieceKind = Literal["text", "thinking"]

Piece = tuple[PieceKind, str]
"""Something to show at once."""


def failed(kind: FailureKind, reason: str) -> ModelCallError:
    return ModelCallError(ModelFailure(kind=kind, reason=reason))


class Answer:
    """Takes a model's events in order and holds the blocks they make.

    Args:
        ids_taken: call ids that stand in the conversation already.
        fresh: gives a new id for a call that has none of its own.
        bytes_max: the size at which an answer is refused.
    """

    def __init__(
        self,
        *,
        ids_taken: frozenset[str],
        fresh: Callable[[], str],
        bytes_max: int = ANSWER_BYTES_MAX,
    ) -> None:
        self._ids = set(ids_taken)
        self._fresh = fresh
        self._bytes_max = bytes_max
        self._bytes = 0
        self._blocks: list[AssistantBlock] = []
        self._kind: PieceKind | None = None
        self._pieces: list[str] = []
        self._mender = Mender()
        self._done: ModelDone | None = None

    def take(self, event: ModelEvent) -> tuple[Piece, ...]:
        """Add one event; what of it is to be shown.

        Raises:
            ModelCallError: invalid, where the model breaks the port's rules.
        """
        if self._done is not None:
            raise failed("invalid", "the model went on after it had ended its answer")
        match event:
            case ModelText(text=str(text)):
                return self._add("text", text)
            case ModelThinking(text=str(text), signature=str(signature)):
                return self._think(text, signature)
            case ModelToolCall(id=str(), name=str()):
                return self._call(event)
            case ModelDone():
                return self._end(event)
        raise failed(
            "invalid", f"the model gave {_described(event)}, which is no part of an answer"
        )

    def blocks(self) -> tuple[AssistantBlock, ...]:
        """All that has come so far."""
        open_block = self._open_block()
        return (*self._blocks, open_block) if open_block else tuple(self._blocks)

    def message(self, *, provider: str, model: str, now_ms: int) -> AssistantMessage:
        """The whole answer.  `provider` and `model` stand where the model did not say.

        Raises:
            ModelCallError: invalid, if the model stopped without ending its answer.
        """
        done = self._done
        if done is None:
            raise failed("invalid", "the model stopped without ending its answer")
        return AssistantMessage(
            content=self.blocks(),
            api=done.api,
            provider=done.provider or provider,
            model=done.model or model,
            usage=done.usage,
            stop_reason=self._stop_reason(done.stop_reason),
            provider_part=msgspec.UNSET if done.provider_part is None else done.provider_part,
            timestamp=now_ms,
        )

    def _stop_reason(self, said: StopReason) -> StopReason:
        """What the turn goes by: calls are to be run unless the answer was cut short."""
        calls = any(isinstance(block, ToolCallBlock) for block in self._blocks)
        if calls:
            return "length" if said == "length" else "toolUse"
        return "stop" if said == "toolUse" else said

    def _add(self, kind: PieceKind, text: str) -> tuple[Piece, ...]:
        shown: tuple[Piece, ...] = ()
        if self._kind != kind:
            shown = self._close()
            self._kind = kind
        text = self._mender.take(text)
        if not text:
            return shown
        self._count(len(text) if text.isascii() else len(text.encode()))
        self._pieces.append(text)
        return (*shown, (kind, text))

    def _think(self, text: str, signature: str) -> tuple[Piece, ...]:
        shown = self._add("thinking", text)
        if not signature:
            return shown
        # A signature seals its thought: what follows is another one.
        self._count(len(signature))
        shown += self._rest()
        thought = "".join(self._pieces)
        self._pieces, self._kind = [], None
        self._blocks.append(ThinkingBlock(thinking=thought, thinking_signature=mended(signature)))
        return shown

    def _call(self, event: ModelToolCall) -> tuple[Piece, ...]:
        shown = self._close()
        arguments = _object_of(event.arguments)
        self._count(len(msgspec.json.encode(arguments)))
        call_id = mended(event.id)
        if not call_id or call_id in self._ids:
            call_id = f"call_{self._fresh()}"
        self._ids.add(call_id)
        self._blocks.append(ToolCallBlock(id=call_id, name=mended(event.name), arguments=arguments))
        return shown

    def _end(self, event: ModelDone) -> tuple[Piece, ...]:
        if event.stop_reason not in get_args(StopReason) or not isinstance(event.usage, Usage):
            raise failed(
                "invalid", "the model ended its answer with a stop reason or usage unknown"
            )
        if event.stop_reason in ("error", "aborted"):
            raise failed("invalid", f"the model ended its answer as {event.stop_reason!r}")
        part = mended_value(event.provider_part)
        try:
            msgspec.json.encode(part)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise failed(
                "invalid", "the model's provider part cannot be written as JSON"
            ) from error
        shown = self._close()
        names = {
            "model": mended(str(event.model)),
            "provider": mended(str(event.provider)),
            "api": mended(str(event.api)),
        }
        self._done = msgspec.structs.replace(event, provider_part=part, **names)
        return shown

    def _rest(self) -> tuple[Piece, ...]:
        """The half of a pair that waited, if any."""
        rest = self._mender.end()
        if not rest or self._kind is None:
            return ()
        self._pieces.append(rest)
        return ((self._kind, rest),)

    def _close(self) -> tuple[Piece, ...]:
        shown = self._rest()
        block = self._open_block()
        if block is not None:
            self._blocks.append(block)
        self._pieces, self._kind = [], None
        return shown

    def _open_block(self) -> AssistantBlock | None:
        if not self._pieces:
            return None
        text = "".join(self._pieces)
        return TextBlock(text=text) if self._kind == "text" else ThinkingBlock(thinking=text)

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._bytes > self._bytes_max:
            raise failed(
                "invalid",
                f"the model's answer is larger than {self._bytes_max} bytes; it was cut off",
            )


def _object_of(arguments: Any) -> dict[str, Any]:
    """The arguments as a JSON object, or what came as the one argument `__invalid_json__`."""
    if isinstance(arguments, str) and not arguments.strip():
        return {}
    try:
        # The standard parser: unlike msgspec's it lets half a surrogate pair pass, to be mended.
        value = json.loads(arguments) if isinstance(arguments, str) else arguments
        value = msgspec.json.decode(msgspec.json.encode(mended_value(value)))
    except (TypeError, ValueError, OverflowError, RecursionError):
        value = None
    if isinstance(value, dict):
        return value
    raw = arguments if isinstance(arguments, str) else _described(arguments)
    return {INVALID_JSON: mended(raw)}


def _described(value: object) -> str:
    return f"a {type(value).__name__}"
