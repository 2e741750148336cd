"""The trace: every message that was taken and what its step decided, as JSON lines.

One line a step: `{"owner", "incarnation", "message", "taken", "state", "replies",
"events", "mail", "effects"}`; a step that raised has `"raised"` instead of what
it decided.  What an owner wrote on an ask stands as `[class name, fields]`, because
it is no message and has no tag.  Traces hold what was said; they hold no keys,
because messages do not.  `runtime/testing/replay.py` reads them.
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
            # A lone surrogate on its way in, or a value of an embedder's own tool that
            # JSON cannot hold: it is shown as text, and no owner is disturbed by it.
            shown = ascii({name: value for name, value in fields.items() if name != "owner"})
            line = self._encoder.encode({"owner": fields["owner"], "unencodable": shown})
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
