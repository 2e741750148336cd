"""The trace: every message that was taken and what its step decided, as JSON lines.

One line a step: `{"owner", "incarnation", "message", "taken", "state", "replies",
"events", "mail", "effects"}`; a step that raised has `"raised"` instead of what
it decided.  What an owner wrote on an ask stands as `[class name, fields]`, because
it is no message and has no tag.  Traces hold what was said; they hold no keys,
because messages do not.  A line with `"unencodable"` can be read but is not exact:
JSON has no lone surrogates.  `runtime/testing/replay.py` reads traces.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from tenure.messages.base import Effect, Message, Outcome
from tenure.messages.bus import Answered, Published
from tenure.runtime.step import Ask, Cancel, Forward, Mail, Step, Taken, Tell

Write = Callable[[bytes], None]
"""Takes one whole line, its newline included, and must not block."""


class Trace:
    """An observer that encodes steps and hands the lines on."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._encoder = msgspec.json.Encoder(enc_hook=str)

    def stepped(
        self, owner: str, incarnation: int, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        self._line(
            owner=owner,
            incarnation=incarnation,
            message=_named(message),
            taken=taken,
            **decided(step),
        )

    def raised(self, owner: str, incarnation: int, message: Message, error: Exception) -> None:
        self._line(
            owner=owner,
            incarnation=incarnation,
            message=_named(message),
            raised=f"{type(error).__name__}: {error}",
        )

    def published(self, published: Published) -> None:
        """Events stand in the steps that emitted them."""

    def effect_started(self, owner: str, number: int, effect: Effect) -> None:
        """Effects stand in the steps that wanted them."""

    def effect_ended(self, owner: str, number: int, outcome: Outcome) -> None:
        """Outcomes stand in the steps that took them."""

    def _line(self, **fields: object) -> None:
        try:
            line = self._encoder.encode(fields)
        except Exception:
            # No owner is disturbed by what an embedder's own tool, or a model, let in.
            line = self._encoder.encode(_encodable(fields))
        self._write(line + b"\n")


def decided(step: Step[Any]) -> dict[str, object]:
    """What a step decided, as a line of the trace has it."""
    return {
        "state": type(step.state).__name__,
        "replies": step.replies,
        "events": step.events,
        "mail": [_readable(mail) for mail in step.mail],
        "effects": step.effects,
    }


def _named(message: Message) -> object:
    """What an answer is about gets its class name beside it."""
    if isinstance(message, Answered):
        re = [type(message.re).__name__, message.re]
        return {"type": "Answered", "re": re, "reply": message.reply}
    return message


def _encodable(fields: dict[str, object]) -> object:
    """The same with lone surrogates escaped; else as text; else the names alone."""
    try:
        marked = {**fields, "unencodable": "lone surrogates are escaped"}
        escaped = _escaped(msgspec.to_builtins(marked, enc_hook=str))
        msgspec.json.encode(escaped)
        return escaped
    except Exception:
        rest = {name: value for name, value in fields.items() if name != "owner"}
        try:
            shown = ascii(rest)
        except Exception:
            shown = ", ".join(f"{name}: {type(value).__name__}" for name, value in rest.items())
        return {"owner": fields["owner"], "unencodable": shown}


def _escaped(value: object) -> object:
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case list() | tuple():
            return [_escaped(each) for each in value]
        case dict():
            return {_escaped(name): _escaped(each) for name, each in value.items()}
        case _:
            return value


def _readable(mail: Mail) -> dict[str, object]:
    match mail:
        case Tell(to, message):
            return {"tell": to, "message": message}
        case Ask(to, message, re):
            return {"ask": to, "message": message, "re": [type(re).__name__, re]}
        case Forward(to, message, asker):
            return {"forward": to, "message": message, "asker": asker}
        case Cancel(key):
            return {"cancel": key}
