"""Models that speak OpenAI's chat completions, for provider.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from provider import Talk

USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 5,
    "total_tokens": 25,
    "prompt_tokens_details": {"cached_tokens": 8},
}


def chunk(talk: Talk, delta: dict[str, Any], finish: str | None = None) -> None:
    talk.event(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": f"{talk.model}-served",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
    )


def finish(talk: Talk, reason: str) -> None:
    chunk(talk, {}, reason)
    talk.event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000,
                "model": f"{talk.model}-served", "choices": [], "usage": USAGE})  # fmt: skip
    talk.event("[DONE]")
    talk.end()


def well(talk: Talk) -> None:
    talk.start()
    for piece in ("Hello", ", ", "world."):
        chunk(talk, {"role": "assistant", "content": piece})
    finish(talk, "stop")


def slow(talk: Talk) -> None:
    """Every piece in a packet of its own, with the loop's time to hear it."""
    import time

    talk.start()
    for number in range(10):
        chunk(talk, {"content": f"{number} "})
        time.sleep(0.02)
    finish(talk, "stop")


def tools(talk: Talk) -> None:
    """Two calls at once, their pieces mixed."""
    talk.start()
    chunk(talk, {"content": "Looking."})
    for index, (call_id, name) in enumerate((("call_a", "read"), ("call_b", "search"))):
        function = {"name": name, "arguments": ""}
        call = {"index": index, "id": call_id, "type": "function", "function": function}
        chunk(talk, {"tool_calls": [call]})
    for index, piece in ((0, '{"pa'), (1, '{"query"'), (0, 'th": "a.md"}'), (1, ': "é"}')):
        chunk(talk, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    finish(talk, "tool_calls")


def bad_arguments(talk: Talk) -> None:
    talk.start()
    call = {
        "index": 0,
        "id": "call_a",
        "type": "function",
        "function": {"name": "read", "arguments": '{"path": '},
    }
    chunk(talk, {"tool_calls": [call]})
    finish(talk, "tool_calls")


def thinking(talk: Talk) -> None:
    talk.start()
    chunk(talk, {"reasoning_content": "Let me "})
    chunk(talk, {"reasoning_content": "think."})
    chunk(talk, {"content": "Done."})
    finish(talk, "stop")


def ends(reason: str) -> Callable[[Talk], None]:
    def model(talk: Talk) -> None:
        talk.start()
        chunk(talk, {"content": "As far as"})
        finish(talk, reason)

    return model


def stall(talk: Talk) -> None:
    talk.start()
    chunk(talk, {"content": "One moment"})
    talk.wait_until_gone()


def silent(talk: Talk) -> None:
    """Not even a header."""
    talk.wait_until_gone()


def cut(talk: Talk) -> None:
    talk.start()
    chunk(talk, {"content": "Half an"})
    talk.cut()


def cut_clean(talk: Talk) -> None:
    """The stream ends as if all were well, but the answer was not at its end."""
    talk.start()
    chunk(talk, {"content": "Half an"})
    talk.end()


def sends(text: str) -> Callable[[Talk], None]:
    def model(talk: Talk) -> None:
        talk.start()
        chunk(talk, {"content": "Half an"})
        talk.raw(text)
        talk.end()

    return model


def refuses(status: int, error: dict[str, Any], **headers: str) -> Callable[[Talk], None]:
    def model(talk: Talk) -> None:
        talk.answer(status, {"error": error}, **headers)

    return model


def unauthorized(talk: Talk) -> None:
    """Echoes the key, as some do."""
    key = talk.headers.get("authorization", "")
    message = f"Incorrect API key provided: {key}."
    talk.answer(401, {"error": {"message": message, "code": "invalid_api_key"}})


def limited_until(talk: Talk) -> None:
    when = talk.in_seconds(60)
    talk.answer(429, {"error": {"message": "Too many requests"}}, retry_after=when)


MODELS: dict[str, Callable[[Talk], None]] = {
    "well": well,
    "slow": slow,
    "tools": tools,
    "bad-arguments": bad_arguments,
    "thinking": thinking,
    "long": ends("length"),
    "filtered": ends("content_filter"),
    "stall": stall,
    "silent": silent,
    "cut": cut,
    "cut-clean": cut_clean,
    "malformed": sends("data: {not json\n\n"),
    "misshaped": sends('data: {"choices": [{"delta": 7}]}\n\n'),
    "breaks": sends('data: {"error": {"message": "The server had an error", "code": 500}}\n\n'),
    "unauthorized": unauthorized,
    "forbidden": refuses(403, {"message": "No."}),
    "limited": refuses(429, {"message": "Too many requests"}, retry_after="7"),
    "limited-until": limited_until,
    "no-credit": refuses(429, {"message": "You have no credit", "code": "insufficient_quota"}),
    "overloaded": refuses(529, {"message": "Overloaded"}),
    "down": refuses(503, {"message": "Down"}, retry_after="2"),
    "broken": refuses(500, {"message": "Oops"}),
    "too-long": refuses(
        400, {"message": "Too long for this model.", "code": "context_length_exceeded"}
    ),
    "too-long-local": refuses(
        400, {"message": "the request exceeds the available context size, try increasing it"}
    ),
    "wrong": refuses(400, {"message": "messages: at least one is needed; key sk-abcdef123456"}),
    "policy": refuses(400, {"message": "Flagged.", "code": "content_policy_violation"}),
}
