"""All orders of a small protocol: the owners' own steps, explored to the end.

The owners are the production steps.  What they want of the doors is answered by
a `DoorModel`, which says every outcome that may come.  From each state the
explorer takes every next thing that could happen (a message is handled, an
effect ends in one of its outcomes, a client sends its next command) and visits
every state once.  The number of schedules, that is of different ways through
all of it, is counted exactly.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from tenure.messages.base import Command, Effect, Event, Message, Outcome, Reply
from tenure.messages.bus import Answered
from tenure.messages.tokens import Role
from tenure.runtime.step import Ask, AskId, Cancel, Forward, Mail, Step, StepFunction, Taken, Tell

DoorModel = Callable[[Effect, bool], Sequence[Outcome]]
"""`(effect, was_cancelled) -> outcomes`: every way in which the effect may end."""

Says = Callable[[tuple[Event, ...]], Command | None]
"""A client's next command, from the events so far; None while it has nothing to say yet."""


class Client(msgspec.Struct, frozen=True):
    """Says one thing after the other, each as soon as it can and whenever it is its turn."""

    name: str
    script: tuple[tuple[Role, Says], ...]


class Letter(msgspec.Struct, frozen=True):
    """A message in a mailbox."""

    message: Message
    asker: AskId | None


class Box(msgspec.Struct, frozen=True):
    """One owner: its state, its three lanes and its effects."""

    state: Any
    control: tuple[Letter, ...] = ()
    mail: tuple[Letter, ...] = ()
    commands: tuple[Letter, ...] = ()
    serial: tuple[Effect, ...] = ()
    beside: tuple[tuple[Effect, bool], ...] = ()
    """Concurrent effects, and whether each was cancelled."""
    events: tuple[Event, ...] = ()
    """What it has emitted."""
    handled: int = 0


class Waiting(msgspec.Struct, frozen=True):
    """An open ask: a client's, or an owner's with what it wrote on it."""

    client: str
    owner: str
    re: msgspec.Struct | None


class Moment(msgspec.Struct, frozen=True):
    """Everything at one moment."""

    boxes: tuple[tuple[Role, Box], ...]
    asks: tuple[tuple[AskId, Waiting], ...]
    said: tuple[int, ...]
    """How much of its script each client has said."""
    answers: tuple[tuple[str, Reply], ...] = ()
    """What clients were answered, by who asked."""

    @property
    def events(self) -> tuple[Event, ...]:
        """What was emitted, owner by owner: the order between owners makes no other state."""
        return tuple(event for _, box in self.boxes for event in box.events)

    def box(self, role: Role) -> Box:
        return next(box for name, box in self.boxes if name == role)


class Done(msgspec.Struct, frozen=True):
    """One thing that happened, for a readable schedule."""

    what: str
    role: str
    step: Step[Any] | None = None


class Finding(msgspec.Struct, frozen=True):
    """A state that must not be, and how one comes to it."""

    what: str
    schedule: tuple[str, ...]


class Explored(msgspec.Struct, frozen=True):
    """What there was to see."""

    states: int
    schedules: int
    """Different orders from the beginning to an end."""
    ends: int
    """States in which nothing more can happen."""
    findings: tuple[Finding, ...]


Check = Callable[[Moment, Done | None], str]
"""`(moment, what led to it) -> ""`, or what is wrong.  `None` asks about an end."""


class Explorer:
    """One protocol: owners, doors, clients, and what must hold."""

    def __init__(
        self,
        steps: Mapping[Role, StepFunction[Any]],
        first: Mapping[Role, Any],
        doors: DoorModel,
        clients: Sequence[Client],
        checks: Sequence[Check],
        *,
        states_max: int = 1_000_000,
        findings_max: int = 10,
    ) -> None:
        self._steps = steps
        self._doors = doors
        self._clients = tuple(clients)
        self._checks = tuple(checks)
        self._states_max = states_max
        self._findings_max = findings_max
        boxes = tuple((role, Box(state)) for role, state in first.items())
        self._roles = tuple(first)
        self._start = Moment(boxes, (), tuple(0 for _ in clients))

    def explore(self) -> Explored:
        """Visit every state.  Raises `OverflowError` where there are more than `states_max`."""
        walk = _Walk()
        self._enter(walk, self._start, _key(self._start))
        while walk.stack:
            key, following, visited = walk.stack[-1]
            if len(visited) == len(following):
                walk.leave(key, visited)
                continue
            done, moment = following[len(visited)]
            child = _key(moment)
            visited.append(child)
            walk.path.append(done.what)
            self._note(walk, moment, done)
            if child in walk.ways or len(walk.findings) >= self._findings_max:
                walk.ways.setdefault(child, 1)
                walk.path.pop()
            else:
                self._enter(walk, moment, child)
        return Explored(
            states=len(walk.ways),
            schedules=walk.ways[_key(self._start)],
            ends=walk.ends,
            findings=tuple(walk.findings),
        )

    def _enter(self, walk: "_Walk", moment: Moment, key: bytes) -> None:
        if len(walk.ways) + len(walk.stack) > self._states_max:
            raise OverflowError(f"more than {self._states_max} states")
        following = self._following(moment)
        if not following:
            walk.ends += 1
            self._note(walk, moment, None)
        walk.stack.append((key, following, []))

    def _note(self, walk: "_Walk", moment: Moment, done: Done | None) -> None:
        if len(walk.findings) >= self._findings_max:
            return
        for check in self._checks:
            wrong = check(moment, done)
            if wrong:
                walk.findings.append(Finding(wrong, tuple(walk.path)))

    # --- what can happen next ------------------------------------------------------------------

    def _following(self, moment: Moment) -> list[tuple[Done, Moment]]:
        following: list[tuple[Done, Moment]] = []
        for role, box in moment.boxes:
            if box.control or box.mail or box.commands:
                following.append(self._handle(moment, role, box))
            following.extend(self._ends_of_effects(moment, role, box))
        for number, client in enumerate(self._clients):
            said = self._say(moment, number, client)
            if said is not None:
                following.append(said)
        return following

    def _handle(self, moment: Moment, role: Role, box: Box) -> tuple[Done, Moment]:
        """The owner takes the next message of its lanes."""
        if box.control:
            taken_mail, box = box.control[0], _replace(box, control=box.control[1:])
        elif box.mail:
            taken_mail, box = box.mail[0], _replace(box, mail=box.mail[1:])
        else:
            taken_mail, box = box.commands[0], _replace(box, commands=box.commands[1:])
        taken = Taken(taken_mail.asker, 0, f"{role[:1]}{box.handled:015x}"[:16])
        step = self._steps[role](box.state, taken_mail.message, taken)
        box = _replace(
            box,
            state=step.state,
            handled=box.handled + 1,
            serial=box.serial + tuple(each for each in step.effects if not each.concurrent),
            beside=box.beside + tuple((each, False) for each in step.effects if each.concurrent),
            events=box.events + step.events,
        )
        after = _with_box(moment, role, box)
        for asker, reply in step.replies:
            after = _answer(after, asker, reply)
        for place, mail in enumerate(step.mail):
            ask_id = _name_ask(self._roles.index(role), box.handled, place)
            after = _send(after, role, mail, ask_id)
        what = f"{role} takes {type(taken_mail.message).__name__}"
        return Done(what, role, step), after

    def _ends_of_effects(self, moment: Moment, role: Role, box: Box) -> list[tuple[Done, Moment]]:
        ends: list[tuple[Done, Moment]] = []
        if box.serial:
            rest = _replace(box, serial=box.serial[1:])
            ends.extend(self._outcomes(moment, role, rest, box.serial[0], False))
        for place, (effect, cancelled) in enumerate(box.beside):
            rest = _replace(box, beside=box.beside[:place] + box.beside[place + 1 :])
            ends.extend(self._outcomes(moment, role, rest, effect, cancelled))
        return ends

    def _outcomes(
        self, moment: Moment, role: Role, box: Box, effect: Effect, cancelled: bool
    ) -> list[tuple[Done, Moment]]:
        found: list[tuple[Done, Moment]] = []
        for outcome in self._doors(effect, cancelled):
            delivered = _replace(box, mail=(*box.mail, Letter(outcome, None)))
            what = f"{type(effect).__name__} ends in {type(outcome).__name__}"
            found.append((Done(what, role), _with_box(moment, role, delivered)))
        return found

    def _say(self, moment: Moment, number: int, client: Client) -> tuple[Done, Moment] | None:
        said = moment.said[number]
        if said >= len(client.script):
            return None
        role, says = client.script[said]
        command = says(moment.events)
        if command is None:
            return None
        ask_id = _name_ask(len(self._roles) + number, said, 0)
        counts = (*moment.said[:number], said + 1, *moment.said[number + 1 :])
        after = _open(moment, ask_id, Waiting(f"{client.name}.{said}", "", None))
        after = _replace(after, said=counts)
        box = after.box(role)
        mail = Letter(command, ask_id)
        if command.control:
            box = _replace(box, control=(*box.control, mail))
        else:
            box = _replace(box, commands=(*box.commands, mail))
        what = f"{client.name} says {type(command).__name__}"
        return Done(what, role), _with_box(after, role, box)


class _Walk:
    """How far an exploration has come."""

    def __init__(self) -> None:
        self.ways: dict[bytes, int] = {}
        """How many schedules lead from a state to an end."""
        self.stack: list[tuple[bytes, list[tuple[Done, Moment]], list[bytes]]] = []
        """The states on the way to where we are, what follows each, and what was visited."""
        self.path: list[str] = []
        self.findings: list[Finding] = []
        self.ends = 0

    def leave(self, key: bytes, visited: list[bytes]) -> None:
        """All that follows a state has been seen: its schedules are the sum of theirs."""
        self.stack.pop()
        self.ways[key] = sum(self.ways[each] for each in visited) if visited else 1
        if self.path:
            self.path.pop()


# --- pure helpers --------------------------------------------------------------------------

_replace = msgspec.structs.replace


def _name_ask(who: int, count: int, place: int) -> AskId:
    """By who asks and when in its own life, so that the order of others makes no other state."""
    return AskId((who * 10_000 + count) * 100 + place)


def _open(moment: Moment, ask_id: AskId, waiting: Waiting) -> Moment:
    asks = tuple(sorted((*moment.asks, (ask_id, waiting)), key=lambda each: each[0]))
    return _replace(moment, asks=asks)


def _send(moment: Moment, sender: Role, mail: Mail, ask_id: AskId) -> Moment:
    match mail:
        case Tell(to, message):
            return _post(moment, to, Letter(message, None))
        case Forward(to, message, asker):
            return _post(moment, to, Letter(message, asker))
        case Ask(to, message, re):
            opened = _open(moment, ask_id, Waiting("", sender, re))
            return _post(opened, to, Letter(message, ask_id))
        case Cancel(key):
            box = moment.box(sender)
            beside = tuple(
                (effect, cancelled or effect.key == key) for effect, cancelled in box.beside
            )
            return _with_box(moment, sender, _replace(box, beside=beside))


def _key(moment: Moment) -> bytes:
    """Two moments with one key are equal in everything."""
    return blake2b(repr(moment).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _with_box(moment: Moment, role: Role, box: Box) -> Moment:
    boxes = tuple((name, box if name == role else each) for name, each in moment.boxes)
    return _replace(moment, boxes=boxes)


def _post(moment: Moment, to: Role, mail: Letter) -> Moment:
    box = moment.box(to)
    return _with_box(moment, to, _replace(box, mail=(*box.mail, mail)))


def _answer(moment: Moment, asker: AskId, reply: Reply) -> Moment:
    waiting = dict(moment.asks).get(asker)
    if waiting is None:
        # Nobody waits: a second answer.  A check finds it among the answers.
        return _answered(moment, "nobody", reply)
    asks = tuple(each for each in moment.asks if each[0] != asker)
    closed = _replace(moment, asks=asks)
    if waiting.re is None:
        return _answered(closed, waiting.client, reply)
    answered = Answered(re=waiting.re, reply=reply)
    owner: Any = waiting.owner
    return _post(closed, owner, Letter(answered, None))


def _answered(moment: Moment, client: str, reply: Reply) -> Moment:
    answers = sorted((*moment.answers, (client, reply)), key=lambda each: each[0])
    return _replace(moment, answers=tuple(answers))
