"""A model that speaks OpenAI's responses interface, for provider.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from provider import Talk

USAGE = {
    "input_tokens": 30,
    "input_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 0},
    "output_tokens": 6,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 36,
}


def response(talk: Talk, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "model": talk.model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": USAGE if status == "completed" else None,
    }


class Stream:
    """Numbers the events, as the interface wants them."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._number = 0
        talk.start()

    def send(self, kind: str, **fields: Any) -> None:
        event = {"type": kind, "sequence_number": self._number, **fields}
        self._talk.event(event, kind)
        self._number += 1

    def item(self, index: int, item: dict[str, Any]) -> None:
        self.send("response.output_item.done", output_index=index, item=item)


def reasoner(talk: Talk) -> None:
    """A thought that only the provider can read, a sentence, and a call."""
    thought = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Thinking."}],
        "encrypted_content": "opaque",
    }
    part = {"type": "output_text", "text": "Reading it.", "annotations": []}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    call = {
        "id": "fc_1",
        "type": "function_call",
        "call_id": "call_1",
        "name": "read",
        "arguments": '{"path": "a.md"}',
        "status": "completed",
    }
    stream = Stream(talk)
    stream.send("response.created", response=response(talk, "in_progress", []))
    begun = {"id": "rs_1", "type": "reasoning", "summary": []}
    stream.send("response.output_item.added", output_index=0, item=begun)
    summary = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    stream.send(
        "response.reasoning_summary_part.added",
        **summary,
        part={"type": "summary_text", "text": ""},
    )
    stream.send("response.reasoning_summary_text.delta", **summary, delta="Thinking.")
    stream.item(0, thought)
    begun = {**message, "status": "in_progress", "content": []}
    stream.send("response.output_item.added", output_index=1, item=begun)
    place = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    stream.send("response.content_part.added", **place, part={**part, "text": ""})
    for piece in ("Reading ", "it."):
        stream.send("response.output_text.delta", **place, delta=piece, logprobs=[])
    stream.send("response.output_text.done", **place, text="Reading it.", logprobs=[])
    stream.item(1, message)
    begun = {**call, "status": "in_progress", "arguments": ""}
    stream.send("response.output_item.added", output_index=2, item=begun)
    stream.send(
        "response.function_call_arguments.delta",
        item_id="fc_1",
        output_index=2,
        delta=call["arguments"],
    )
    stream.item(2, call)
    output = [thought, message, call]
    stream.send("response.completed", response=response(talk, "completed", output))
    talk.end()


def cut_clean(talk: Talk) -> None:
    stream = Stream(talk)
    stream.send("response.created", response=response(talk, "in_progress", []))
    talk.end()


MODELS: dict[str, Callable[[Talk], None]] = {
    "gpt-5": reasoner,
    "reasoner": reasoner,
    "cut-clean": cut_clean,
}
