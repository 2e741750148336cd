"""What a run looked like, for people: one line for each step, event, accident and answer."""

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec

from tenure.messages.base import Command, Effect, Message, Outcome, Reply
from tenure.messages.bus import Answered, Published
from tenure.messages.tokens import ProcessName
from tenure.runtime.step import Ask, Cancel, Forward, Mail, Step, Taken, Tell
from tenure.runtime.testing.faults import DiskCall
from tenure.runtime.testing.loop import START_MS
from tenure.runtime.testing.watch import Watcher

FIELD_CHARS_MAX = 60


class Tracer(Watcher):
    """Keeps a readable line of everything that happens.

    Args:
        say: gets each line at the moment itself.
    """

    def __init__(self, say: Callable[[str], None] | None = None) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._told = say

    @property
    def digest(self) -> str:
        """Of the whole run: two runs with one digest were equal."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()

    def _say(self, host: str, text: str) -> None:
        line = f"{self.disk.clock.now_ms() - START_MS:>9} {host:<6} {text}"
        self.lines.append(line)
        if self._told is not None:
            self._told(line)

    def host_started(self, host: str, process: ProcessName) -> None:
        self._say(host, f"process {process.pid} starts")

    def host_closed(self, host: str) -> None:
        self._say(host, "closed")

    def asked(self, host: str, number: int, seat: str, command: Command) -> None:
        self._say(host, f"client asks #{number} {seat}: {brief(command)}")

    def answered(self, host: str, number: int, reply: Reply) -> None:
        self._say(host, f"client #{number} is answered {brief(reply)}")

    def abandoned(self, host: str, number: int) -> None:
        self._say(host, f"client #{number} gets no answer")

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        self._say(host, f"{owner}: {brief(message)} -> {type(step.state).__name__}")
        for asker, reply in step.replies:
            self._say(host, f"    answers {asker}: {brief(reply)}")
        for event in step.events:
            self._say(host, f"    emits {brief(event)}")
        for mail in step.mail:
            self._say(host, f"    {_mail(mail)}")

    def raised(self, host: str, owner: str, message: Message, error: Exception) -> None:
        self._say(host, f"{owner}: {brief(message)} RAISED {type(error).__name__}: {error}")

    def published(self, host: str, published: Published) -> None:
        if published.event.__class__.__module__.endswith(".bus"):
            self._say(host, f"published {brief(published.event)}")

    def effect_started(self, host: str, owner: str, number: int, effect: Effect) -> None:
        self._say(host, f"    {owner} wants {number}: {brief(effect)}")

    def effect_ended(self, host: str, owner: str, number: int, outcome: Outcome) -> None:
        self._say(host, f"effect {number} of {owner} ended: {brief(outcome)}")

    def disk_called(self, call: DiskCall) -> None:
        if call.name not in ("read_at", "stat", "lstat", "real_path", "list", "close"):
            self._say(str(call.process.pid), f"disk {call.name} {call.path} {call.target}".rstrip())

    def edited(self, path: str) -> None:
        self._say("", f"another program changes {path}")


def brief(message: object) -> str:
    """A message on one line, long fields cut."""
    if isinstance(message, Answered):
        return f"Answered({brief(message.re)}, {brief(message.reply)})"
    if not isinstance(message, msgspec.Struct):
        return _cut(repr(message))
    fields = ", ".join(
        f"{name}={_cut(repr(getattr(message, name)))}"
        for name in message.__struct_fields__
        if getattr(message, name) not in ("", None, ())
    )
    return f"{type(message).__name__}({fields})"


def _cut(text: str) -> str:
    return text if len(text) <= FIELD_CHARS_MAX else f"{text[:FIELD_CHARS_MAX]}…"


def _mail(mail: Mail) -> str:
    match mail:
        case Tell(to, message):
            return f"tells {to} {brief(message)}"
        case Ask(to, message, re):
            return f"asks {to} {brief(message)} re {brief(re)}"
        case Forward(to, message, asker):
            return f"forwards to {to} {brief(message)} for {asker}"
        case Cancel(key):
            return f"cancels {key!r}"
