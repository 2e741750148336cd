"""A trace, stepped again: do the owners still decide what they decided then?

    lines = trace.read_bytes().splitlines()
    result = replay(lines)
    assert result.ok, str(result)

Each owner's messages go through its step function again, from its first state.
What the step decides now (the class of its state, replies, events, mail, effects)
is compared with what the trace says; the first difference of each owner is shown.
No door is opened and no time passes.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from tenure.messages.base import Message
from tenure.messages.bus import Answered, OwnerStarted
from tenure.runtime import system
from tenure.runtime.owner import Owner
from tenure.runtime.step import Taken
from tenure.runtime.trace import decided

SHOWN_CHARS_MAX = 400


class NoTrace(Exception):
    """A line is no line of a trace; the text says which and why."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """The first step of an owner that decides otherwise now."""

    line: int
    """From 1."""
    owner: str
    message: str
    """The class name of what it took."""
    where: str
    """What differs: `events[0].stop_reason`."""
    recorded: str
    """As JSON."""
    now: str

    def __str__(self) -> str:
        return (
            f"line {self.line}: {self.owner} takes {self.message} and decides otherwise\n"
            f"  {self.where}\n"
            f"    recorded  {_cut(self.recorded)}\n"
            f"    now       {_cut(self.now)}"
        )


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """How a replay went."""

    steps: int
    """Steps that decided what they had decided."""
    owners: tuple[str, ...]
    differences: tuple[Difference, ...]
    """The first of each owner; its later steps are not tried."""
    left_out: tuple[str, ...]
    """What could not be stepped again, and why."""

    @property
    def ok(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        lines = [str(difference) for difference in self.differences]
        lines += [f"left out: {reason}" for reason in self.left_out]
        lines.append(
            f"{self.steps} steps of {len(self.owners)} owners as recorded, "
            f"{len(self.differences)} owners decide otherwise"
        )
        return "\n".join(lines)


def replay(
    lines: Iterable[bytes | str], owners: Mapping[str, type[Owner]] | None = None
) -> Replayed:
    """Step a trace again.

    Args:
        lines: of the trace, in their order.
        owners: by role; those of this package where none are given.

    Raises:
        NoTrace: there is no line, or one that is not JSON, or that names an owner or a
            message that is not known.
    """
    replaying = _Replaying(owners_by_role() if owners is None else owners)
    taken = 0
    for number, line in enumerate(lines, 1):
        if line.strip():
            replaying.take(number, line)
            taken += 1
    if not taken:
        raise NoTrace("it is empty")
    return replaying.result()


def owners_by_role() -> dict[str, type[Owner]]:
    """The owners that `runtime/system.py` wires, by their modules: `turn` has `TurnActor`."""
    modules = {module for module in sys.modules if module.startswith("tenure.actors.")}
    assert system.TAKEN_BY, "importing the wiring loads every owner"
    return {
        owner.__module__.rpartition(".")[2]: owner
        for owner in Owner.__subclasses__()
        if owner.__module__ in modules
    }


class _Replaying:
    def __init__(self, owners: Mapping[str, type[Owner]]) -> None:
        self._owners = owners
        self._messages = {each.__name__: each for each in _subclasses(Message)}
        self._encoder = msgspec.json.Encoder(enc_hook=str)
        self._states: dict[str, Any] = {}
        """By address: those that are still in step with the trace."""
        self._seen: dict[str, None] = {}
        self._steps = 0
        self._differences: list[Difference] = []
        self._left_out: list[str] = []

    def take(self, number: int, line: bytes | str) -> None:
        where = f"line {number}"
        try:
            record = msgspec.json.decode(line)
            address = record["owner"]
        except (msgspec.DecodeError, TypeError, KeyError) as error:
            raise NoTrace(f"{where} is no line of a trace: {error}") from error
        if "unencodable" in record or "raised" in record:
            why = "its step raised" if "raised" in record else "it holds text that is no Unicode"
            self._leave(address, f"{where}: {address}: {why}; not stepped again from here")
            return
        owner = self._owners.get(address.rpartition("/")[2])
        if owner is None:
            raise NoTrace(f"{where}: there is no owner {address!r} in this version")
        message = self._message(record["message"], owner, where)
        if isinstance(message, OwnerStarted):
            self._states[address] = owner.first()
        elif address not in self._seen:
            self._left_out.append(f"{where}: {address}: its beginning is not in the trace")
        self._seen[address] = None
        if address in self._states:
            self._step(number, address, owner, message, record)

    def result(self) -> Replayed:
        return Replayed(
            steps=self._steps,
            owners=tuple(self._seen),
            differences=tuple(self._differences),
            left_out=tuple(self._left_out),
        )

    def _leave(self, address: str, why: str) -> None:
        if self._states.pop(address, None) is not None:
            self._left_out.append(why)

    def _step(
        self, number: int, address: str, owner: type[Owner], message: Message, record: Any
    ) -> None:
        taken = msgspec.convert(record["taken"], Taken)
        try:
            step = owner.step(self._states[address], message, taken)
            now = msgspec.json.decode(self._encoder.encode(decided(step)))
        except Exception as error:
            now = {"raised": f"{type(error).__name__}: {error}"}
        recorded = {name: record.get(name) for name in now} if "raised" not in now else {}
        different = next(_differences(recorded, now, ""), None)
        if different is None:
            self._states[address] = step.state
            self._steps += 1
            return
        del self._states[address]
        where, before, after = different
        self._differences.append(
            Difference(
                line=number,
                owner=address,
                message=type(message).__name__,
                where=where,
                recorded=before,
                now=after,
            )
        )

    # --- decoding --------------------------------------------------------------------------------

    def _message(self, fields: Any, owner: type[Owner], where: str) -> Message:
        kind = self._messages.get(fields.get("type", ""))
        if kind is None:
            raise NoTrace(f"{where}: there is no message {fields.get('type')!r} in this version")
        try:
            if kind is Answered:
                re = _wrote(owner, fields["re"])
                return Answered(re=re, reply=self._message(fields["reply"], owner, where))  # type: ignore[arg-type]
            return msgspec.convert(fields, kind)
        except (msgspec.ValidationError, LookupError, ValueError) as error:
            raise NoTrace(f"{where}: {kind.__name__} does not fit this version: {error}") from error


def _wrote(owner: type[Owner], named: Any) -> msgspec.Struct:
    """What an owner wrote on an ask: a struct of its own modules, `turn` and `turn_*`."""
    name, fields = named
    for module_name, module in tuple(sys.modules.items()):
        if module_name == owner.__module__ or module_name.startswith(f"{owner.__module__}_"):
            found = vars(module).get(name)
            if isinstance(found, type) and issubclass(found, msgspec.Struct):
                return msgspec.convert(fields, found)
    raise LookupError(f"{owner.__name__} has no {name}")


def _subclasses(kind: type[Message]) -> Iterator[type[Message]]:
    for each in kind.__subclasses__():
        if each.__module__.startswith("tenure."):
            yield each
            yield from _subclasses(each)


# --- what differs ------------------------------------------------------------------------------


def _differences(recorded: Any, now: Any, where: str) -> Iterator[tuple[str, str, str]]:
    """The places where two JSON values differ, the deepest that says it."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        same_kind = recorded.get("type") == now.get("type")
        if same_kind:
            for name in [*recorded, *(name for name in now if name not in recorded)]:
                inner = f"{where}.{name}" if where else name
                yield from _differences(recorded.get(name), now.get(name), inner)
            return
    if isinstance(recorded, list) and isinstance(now, list) and len(recorded) == len(now):
        for place, (one, other) in enumerate(zip(recorded, now, strict=True)):
            yield from _differences(one, other, f"{where}[{place}]")
        return
    if recorded != now:
        yield where, _shown(recorded), _shown(now)


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}..."
