"""What is printed: answers on stdout, everything about them on stderr; or JSON lines."""

import os
import sys
from typing import Any, Protocol

import click
import msgspec

from tenure.messages.base import Event, Refusal
from tenure.messages.bus import EventsMissed
from tenure.messages.compaction import Compacted, CompactionEnded, CompactionStarted
from tenure.messages.limits import PriceMissed
from tenure.messages.session import Damage, SessionOpened
from tenure.messages.turn import (
    ModelAnswered,
    ModelFellBack,
    ModelRetrying,
    TextDelta,
    ThinkingDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
)
from tenure.runtime.cli.terminal import visible
from tenure.runtime.doors.transcripts import SessionAmbiguous
from tenure.runtime.doors.transcripts.codec import portable

VALUE_CHARS_MAX = 80
RESULT_CHARS_MAX = 160


class NoEntry(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """No entry, or more than one, begins like this."""

    text: str
    candidates: tuple[str, ...] = ()

    @property
    def remedy(self) -> str:
        if self.candidates:
            return f"{self.text!r} may be any of {len(self.candidates)} entries; write more of it"
        return f"no entry begins with {self.text!r}; `tenure sessions tree` lists them"


No = Refusal | SessionAmbiguous | NoEntry
"""What says no, and has a `remedy`."""

_WHY_ENDED = {
    "max_tokens": "the answer was cut off by the model's length limit",
    "stopped": "stopped",
    "error": "the turn failed",
    "session_lost": "the turn ended: the session was lost",
    "owner_lost": "the turn ended: its owner failed",
}

_WHY_STOPPED = {
    "loop_guard": "stopped: the turn repeated itself",
    "budget": "stopped: the budget is used up",
}
"""Causes that nobody at the screen gave."""


class Screen(Protocol):
    """Where a command prints."""

    def event(self, event: Event) -> None: ...

    def refusal(self, no: No) -> None: ...

    def opened(self, reply: SessionOpened) -> None: ...

    def compacted(self, reply: Compacted) -> None: ...

    def note(self, text: str) -> None:
        """Something for people alone."""
        ...


class JsonScreen:
    """Each event and refusal as it is, one object a line."""

    def event(self, event: Event) -> None:
        print_json(event)

    def refusal(self, no: No) -> None:
        print_json(no)

    def opened(self, reply: SessionOpened) -> None:
        print_json(reply)

    def compacted(self, reply: Compacted) -> None:
        print_json(reply)

    def note(self, text: str) -> None:
        pass


class TextScreen:
    """The answer on stdout as it comes; tools, retries and ends on stderr."""

    def __init__(self) -> None:
        self._said = ""
        """The text of this model call that is on stdout."""
        self._thinking = False

    def event(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                self._say(text)
            case ThinkingDelta() if not self._thinking:
                self._thinking = True
                self.note("thinking …")
            case ModelAnswered(text=text):
                self._complete(text)
            case ModelRetrying():
                self._retry(event)
            case ModelFellBack(model=model, instead_of=before, reason=reason):
                self._void()
                self.note(f"{before} failed ({reason}); {model} is called instead")
            case PriceMissed(model=model):
                self.note(f"nobody knows the price of {model}: the budget of money cannot be kept")
            case ToolCallStarted(tool=tool, arguments=arguments):
                self.note(f"> {tool} {shortly(arguments)}")
            case ToolCallFinished(tool=tool, is_error=is_error, text=text):
                self.note(f"  {tool}{' failed' if is_error else ''}: {one_line(text)}")
            case CompactionStarted(messages=messages, tokens_before=tokens):
                self.note(f"compacting {messages} of the older messages ({tokens} tokens) …")
            case CompactionEnded():
                self._compacted(event)
            case EventsMissed(seq_first=first, seq_last=last):
                self.note(f"{last - first + 1} events came too fast to be shown")
            case TurnEnded():
                self._end(event)
            case _:
                pass

    def refusal(self, no: No) -> None:
        self.note(no.remedy)
        if isinstance(no, SessionAmbiguous | NoEntry):
            for candidate in no.candidates:
                self.note(f"  {candidate}")

    def opened(self, reply: SessionOpened) -> None:
        self.note(f"session {reply.token.session_id}, {reply.entries} entries")
        if reply.damage.count:
            self.note(damage_note(reply.damage, reply.path))
        for text in reply.dropped:
            self.note(f"not started: {one_line(text)}")

    def note(self, text: str) -> None:
        self._end_line()
        print_note(text)

    def compacted(self, reply: Compacted) -> None:
        who = reply.model if reply.summariser == "model" else "by rule"
        self.note(f"compacted: {reply.tokens_before} -> {reply.tokens_after} tokens, {who}")
        if reply.problem:
            self.note(f"the model could not summarise: {reply.problem}")

    def _compacted(self, event: CompactionEnded) -> None:
        if event.compacted is not None:
            self.compacted(event.compacted)
        else:
            why = f": {event.reason}" if event.reason else ""
            self.note(f"not compacted, {event.status}{why}")

    def _say(self, text: str) -> None:
        self._said += text
        print_text(text)

    def _complete(self, text: str) -> None:
        """The whole text is known: print what of it did not come, or came too fast."""
        if not text.startswith(self._said):
            self._end_line()
            self._said = ""
        self._say(text[len(self._said) :])
        self._end_line()
        self._thinking = False

    def _retry(self, event: ModelRetrying) -> None:
        self._void()
        seconds = event.delay_ms / 1000
        self.note(f"{event.kind}: {event.reason}; attempt {event.attempt} in {seconds:.1f} s")

    def _void(self) -> None:
        if self._said:
            self.note("the text above is void: its call failed")

    def _end(self, event: TurnEnded) -> None:
        self._end_line()
        why = _WHY_STOPPED.get(event.cause or "") or _WHY_ENDED.get(event.stop_reason)
        if why is not None:
            self.note(f"{why}: {event.error}" if event.error else why)

    def _end_line(self) -> None:
        if self._said and not self._said.endswith("\n"):
            print_text("\n")
        self._said = ""


def damage_note(damage: Damage, path: str) -> str:
    places = "1 damaged place" if damage.count == 1 else f"{damage.count} damaged places"
    return f"{places} in {path}; `tenure sessions show` marks what is damaged"


def print_text(text: str) -> None:
    """On stdout, at once.  A terminal is shown no control characters."""
    if not text:
        return
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def print_note(text: str, **style: Any) -> None:
    """A line on stderr."""
    shown = visible(text)
    if style and "NO_COLOR" not in os.environ:
        shown = click.style(shown, **style)
    click.echo(shown, err=True)


def print_prompt() -> None:
    """The sign that a line is waited for, where a person sees it."""
    if sys.stdin.isatty() and sys.stderr.isatty():
        click.echo("> ", nl=False, err=True)


def print_json(value: msgspec.Struct) -> None:
    """One object on a line of stdout, its class name as `type`."""
    sys.stdout.write(json_of(value) + "\n")
    sys.stdout.flush()


def json_of(value: msgspec.Struct) -> str:
    """The value as JSON, its class name as `type`; half surrogates become U+FFFD."""
    tagged = value.__struct_config__.tag is not None
    plain: Any = (
        value if tagged else {"type": type(value).__name__, **msgspec.structs.asdict(value)}
    )
    try:
        return msgspec.json.encode(plain).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(portable(msgspec.to_builtins(plain))).decode()


def shortly(arguments: dict[str, Any]) -> str:
    """The arguments of a call on one line, long values cut."""
    return " ".join(f"{name}={_value(value)}" for name, value in arguments.items())


def _value(value: Any) -> str:
    text = msgspec.json.encode(portable(value)).decode()
    return text if len(text) <= VALUE_CHARS_MAX else text[: VALUE_CHARS_MAX - 1] + "…"


def one_line(text: str) -> str:
    """The beginning of a text, on one line."""
    first, _, rest = text.strip().partition("\n")
    cut = len(first) > RESULT_CHARS_MAX
    lines = rest.count("\n") + 1 if rest else 0
    more = f" (+{lines} lines)" if lines else ""
    return first[:RESULT_CHARS_MAX] + ("…" if cut else "") + more


def screen_of(form: str) -> Screen:
    return JsonScreen() if form == "json" else TextScreen()
