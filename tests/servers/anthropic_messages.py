"""Models that speak Anthropic's messages interface, for provider.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from provider import Talk

USAGE = {
    "input_tokens": 10,
    "cache_read_input_tokens": 100,
    "cache_creation_input_tokens": 40,
    "output_tokens": 1,
}


def begin(talk: Talk) -> None:
    talk.start()
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": talk.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": USAGE,
    }
    talk.event({"type": "message_start", "message": message}, "message_start")


def block(talk: Talk, index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> None:
    event = {"type": "content_block_start", "index": index, "content_block": start}
    talk.event(event, "content_block_start")
    for delta in deltas:
        event = {"type": "content_block_delta", "index": index, "delta": delta}
        talk.event(event, "content_block_delta")
    talk.event({"type": "content_block_stop", "index": index}, "content_block_stop")


def finish(talk: Talk, reason: str) -> None:
    delta = {"stop_reason": reason, "stop_sequence": None}
    usage = {**USAGE, "output_tokens": 12}
    talk.event({"type": "message_delta", "delta": delta, "usage": usage}, "message_delta")
    talk.event({"type": "message_stop"}, "message_stop")
    talk.end()


def thinker(talk: Talk) -> None:
    """A signed thought, one that only the provider can read, a sentence, and a call."""
    begin(talk)
    block(
        talk,
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "The user wants "},
        {"type": "thinking_delta", "thinking": "a file."},
        {"type": "signature_delta", "signature": "c2lnbmVk"},
    )
    block(talk, 1, {"type": "redacted_thinking", "data": "b3BhcXVl"})
    block(
        talk,
        2,
        {"type": "text", "text": ""},
        {"type": "text_delta", "text": "Reading "},
        {"type": "text_delta", "text": "it."},
    )
    block(
        talk,
        3,
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"path": '},
        {"type": "input_json_delta", "partial_json": '"a.md"}'},
    )
    finish(talk, "tool_use")


def cut_clean(talk: Talk) -> None:
    begin(talk)
    delta = {"type": "text_delta", "text": "Half an"}
    block(talk, 0, {"type": "text", "text": ""}, delta)
    talk.end()


def breaks(talk: Talk) -> None:
    begin(talk)
    error = {"type": "overloaded_error", "message": "Overloaded"}
    talk.event({"type": "error", "error": error}, "error")
    talk.end()


def stall(talk: Talk) -> None:
    begin(talk)
    delta = {"type": "text_delta", "text": "One moment"}
    event = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    talk.event(event, "content_block_start")
    talk.event({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")
    talk.wait_until_gone()


def refusing(talk: Talk) -> None:
    begin(talk)
    finish(talk, "refusal")


def refuses(status: int, kind: str, message: str, **headers: str) -> Callable[[Talk], None]:
    def model(talk: Talk) -> None:
        error = {"type": "error", "error": {"type": kind, "message": message}}
        talk.answer(status, error, **headers)

    return model


MODELS: dict[str, Callable[[Talk], None]] = {
    "thinker": thinker,
    "cut-clean": cut_clean,
    "breaks": breaks,
    "stall-claude": stall,
    "refusing": refusing,
    "overloaded": refuses(529, "overloaded_error", "Overloaded"),
    "limited": refuses(429, "rate_limit_error", "Too fast", retry_after="3"),
    "unauthorized": refuses(401, "authentication_error", "invalid x-api-key"),
    "too-long": refuses(
        400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"
    ),
}
