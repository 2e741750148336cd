"""What a provider wants back unchanged, kept beside a message and put together again.

A reply of a provider has parts with ids and details of its own, and thoughts with
signatures.  The text, thoughts, signatures and calls stand in the message; the
provider part holds the rest, and for each part how much of the message is its
own.  So nothing is written twice, and what is taken out of the message (redacted)
is not left in the provider part.
"""

from collections.abc import Iterator
from typing import Any

from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)

from tenure.messages.content import (
    AssistantMessage,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from tenure.runtime.doors.models.mending import mended

BY = "pydantic-ai/1"


def provider_part_of(whole: ModelResponse) -> dict[str, Any] | None:
    """The provider part of a reply; None where the message alone says it all."""
    parts = [_kept(part) for part in whole.parts]
    if all(part.keys() <= {"kind", "chars"} for part in parts):
        return None
    dumped = ModelMessagesTypeAdapter.dump_python([_bare(whole)], mode="json")[0]
    about = {
        field: dumped[field]
        for field in (
            "provider_name",
            "provider_url",
            "provider_response_id",
            "provider_details",
            "canonical_system",
            "model_name",
        )
        if dumped.get(field) is not None
    }
    return {"by": BY, "about": about, "parts": parts}


def response_of(message: AssistantMessage) -> ModelResponse | None:
    """The reply as it was; None where its provider part is missing or fits the message no more."""
    kept = message.provider_part
    if not isinstance(kept, dict) or kept.get("by") != BY:
        return None
    try:
        parts = list(_rebuilt(kept["parts"], message))
        raw = {"kind": "response", "parts": parts, "usage": {}, **kept["about"]}
        (response,) = ModelMessagesTypeAdapter.validate_python([raw])
    except (_Unfit, KeyError, TypeError, ValueError):
        return None
    return response if isinstance(response, ModelResponse) else None


class _Unfit(Exception):
    """The message was changed since."""


def _bare(whole: ModelResponse) -> ModelResponse:
    return ModelResponse(
        parts=[],
        model_name=whole.model_name,
        provider_name=whole.provider_name,
        provider_url=whole.provider_url,
        provider_response_id=whole.provider_response_id,
        provider_details=whole.provider_details,
        canonical_system=whole.canonical_system,
    )


def _kept(part: Any) -> dict[str, Any]:
    (dumped,) = ModelMessagesTypeAdapter.dump_python([ModelResponse(parts=[part])], mode="json")
    (raw,) = dumped["parts"]
    extra = {
        field: raw[field]
        for field in ("id", "provider_name", "provider_details", "tool_kind")
        if raw.get(field) is not None
    }
    match part:
        case TextPart():
            return {"kind": "text", "chars": len(mended(part.content)), **extra}
        case ThinkingPart():
            signed = {"signed": True} if part.signature else {}
            return {"kind": "thinking", "chars": len(mended(part.content)), **extra, **signed}
        case ToolCallPart():
            return {"kind": "tool-call", **extra}
        case _:
            return {"kind": "other", "raw": raw}


def _rebuilt(parts: list[dict[str, Any]], message: AssistantMessage) -> Iterator[dict[str, Any]]:
    texts = "".join(b.text for b in message.content if isinstance(b, TextBlock))
    thoughts = [b for b in message.content if isinstance(b, ThinkingBlock)]
    thinking = "".join(b.thinking for b in thoughts)
    signatures = [b.thinking_signature for b in thoughts if b.thinking_signature]
    calls = [b for b in message.content if isinstance(b, ToolCallBlock)]
    for part in parts:
        kind, chars = part["kind"], part.get("chars", 0)
        extra = {k: v for k, v in part.items() if k not in ("kind", "chars", "signed", "raw")}
        if kind == "text":
            content, texts = _cut(texts, chars)
            yield {"part_kind": "text", "content": content, **extra}
        elif kind == "thinking":
            content, thinking = _cut(thinking, chars)
            if part.get("signed"):
                extra["signature"] = _first(signatures)
            yield {"part_kind": "thinking", "content": content, **extra}
        elif kind == "tool-call":
            call: ToolCallBlock = _first(calls)
            yield {
                "part_kind": "tool-call",
                "tool_name": call.name,
                "args": call.arguments,
                "tool_call_id": call.id,
                **extra,
            }
        else:
            yield part["raw"]
    if texts or thinking or signatures or calls:
        raise _Unfit


def _cut(text: str, chars: int) -> tuple[str, str]:
    if len(text) < chars:
        raise _Unfit
    return text[:chars], text[chars:]


def _first(items: list[Any]) -> Any:
    if not items:
        raise _Unfit
    return items.pop(0)
