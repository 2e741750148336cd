"""Toy owners with a vocabulary of their own, and the machinery around them on a manual clock."""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, ParamSpec

import msgspec

from tenure.messages.base import Command, Effect, Event, Message, Outcome, Reply
from tenure.messages.bus import Answered, OwnerStarted, OwnerStopped, Published, Unhandled
from tenure.messages.tokens import Role
from tenure.runtime.bus import Bus
from tenure.runtime.doors.context import Context
from tenure.runtime.effects import Handlers
from tenure.runtime.events import Subscription
from tenure.runtime.observer import Observer
from tenure.runtime.owner import DRAIN_MAX, Owner
from tenure.runtime.step import AskId, Step, Taken
from tenure.runtime.streams import OpenStreams, StreamRule
from tenure.runtime.supervisor import OwnerSpec, Supervisor
from tenure.runtime.testing.clock import ManualClock
from tenure.runtime.testing.leaves import memory_leaves

P = ParamSpec("P")

# --- commands ----------------------------------------------------------------------------


class Note(Command, frozen=True, kw_only=True):
    """Answered `Noted`, with what was noted before."""

    text: str
    idempotency_key: str = ""


class NoteUrgently(Command, frozen=True, kw_only=True):
    text: str
    control = True


class KeepAsker(Command, frozen=True, kw_only=True):
    """Answered when `AnswerKept` comes."""

    text: str
    idempotency_key: str = ""
    ask_deadline_s = 10.0


class AnswerKept(Command, frozen=True, kw_only=True):
    """Answers all that were kept, and then the one who asks this."""


class AnswerTwice(Command, frozen=True, kw_only=True):
    pass


class Break(Command, frozen=True, kw_only=True):
    """Its step raises, after it has decided everything else."""

    reason: str = "broken"


class AnswerNothing(Command, frozen=True, kw_only=True):
    """Its step gives None."""


class SetState(Command, frozen=True, kw_only=True):
    """Passes a value into the state of the owner that is lost by a restart."""

    text: str


class RelayAsk(Command, frozen=True, kw_only=True):
    """Asks another owner and answers `Relayed` with the reply."""

    to: Role
    message: Command


class RelayTell(Command, frozen=True, kw_only=True):
    to: Role
    message: Command


class RelayForward(Command, frozen=True, kw_only=True):
    to: Role
    message: Command


class DoWork(Command, frozen=True, kw_only=True):
    """Has one effect for each text carried out, in order; each answers as it ends."""

    texts: tuple[str, ...]


class DoBeside(Command, frozen=True, kw_only=True):
    """Has one concurrent effect for each text carried out."""

    texts: tuple[str, ...]


class CancelBeside(Command, frozen=True, kw_only=True):
    text: str


class BeginStream(Command, frozen=True, kw_only=True):
    name: str


class EndStream(Command, frozen=True, kw_only=True):
    name: str


class Say(Command, frozen=True, kw_only=True):
    """Emits one `Said` for each text."""

    name: str
    texts: tuple[str, ...]


# --- replies, events, effects, outcomes --------------------------------------------------


class Noted(Reply, frozen=True, kw_only=True):
    before: tuple[str, ...]
    incarnation: int


class Kept(Reply, frozen=True, kw_only=True):
    text: str


class Relayed(Reply, frozen=True, kw_only=True):
    reply: Reply


class StreamBegan(Event, frozen=True, kw_only=True):
    name: str


class Said(Event, frozen=True, kw_only=True):
    name: str
    text: str

    def joined(self, later: Event) -> "Said | None":
        if isinstance(later, Said) and later.name == self.name:
            return Said(name=self.name, text=self.text + later.text)
        return None


class StreamEnded(Event, frozen=True, kw_only=True):
    name: str
    how: str


class Work(Effect, frozen=True, kw_only=True):
    text: str

    def failed(self, reason: str) -> Outcome:
        return WorkFailed(text=self.text, reason=reason)


class WorkBeside(Effect, frozen=True, kw_only=True):
    text: str
    concurrent = True

    @property
    def key(self) -> str:
        return f"work {self.text}"

    def failed(self, reason: str) -> Outcome:
        return WorkFailed(text=self.text, reason=reason)


class WorkDone(Outcome, frozen=True, kw_only=True):
    text: str


class WorkFailed(Outcome, frozen=True, kw_only=True):
    text: str
    reason: str


class WorkMoved(Outcome, frozen=True, kw_only=True):
    """Progress."""

    text: str

    def joined(self, later: Outcome) -> "WorkMoved | None":
        if isinstance(later, WorkMoved):
            return WorkMoved(text=self.text + later.text)
        return None


# --- the owner ---------------------------------------------------------------------------


class RelayedFor(msgspec.Struct, frozen=True):
    asker: AskId | None


class Toy(msgspec.Struct, frozen=True):
    """Everything that it was told since its incarnation started."""

    incarnation: int = 0
    noted: tuple[str, ...] = ()
    kept: tuple[tuple[AskId | None, str], ...] = ()

    def noting(self, text: str) -> "Toy":
        return msgspec.structs.replace(self, noted=(*self.noted, text))


def toy_step(state: Toy, message: Message, taken: Taken) -> Step[Toy]:
    match message:
        case OwnerStarted(incarnation=incarnation):
            return Step(msgspec.structs.replace(state, incarnation=incarnation))
        case Note(text=text) | NoteUrgently(text=text):
            noted = Noted(before=state.noted, incarnation=state.incarnation)
            return Step(state.noting(text)).answer(taken.asker, noted)
        case KeepAsker(text=text):
            kept = (*state.kept, (taken.asker, text))
            return Step(msgspec.structs.replace(state, kept=kept))
        case AnswerKept():
            step = Step(msgspec.structs.replace(state, kept=()))
            for asker, text in state.kept:
                step = step.answer(asker, Kept(text=text))
            return step.answer(taken.asker, Kept(text=""))
        case AnswerTwice():
            first, second = Kept(text="first"), Kept(text="second")
            return Step(state).answer(taken.asker, first).answer(taken.asker, second)
        case Break(reason=reason):
            raise RuntimeError(reason)
        case AnswerNothing():
            return None  # type: ignore[return-value]
        case _:
            return _send_on(state, message, taken)


def _send_on(state: Toy, message: Message, taken: Taken) -> Step[Toy]:
    step = Step(state)
    match message:
        case RelayAsk(to=to, message=further):
            return step.ask(to, further, re=RelayedFor(taken.asker))
        case Answered(re=RelayedFor(asker=asker), reply=reply):
            return step.answer(asker, Relayed(reply=reply))
        case RelayTell(to=to, message=further):
            return step.tell(to, further).answer(taken.asker, Kept(text="told"))
        case RelayForward(to=to, message=further):
            return step.forward(to, further, taken.asker)
        case DoWork(texts=texts):
            works = [Work(text=text) for text in texts]
            return step.do(*works).answer(taken.asker, Kept(text="begun"))
        case DoBeside(texts=texts):
            beside = [WorkBeside(text=text) for text in texts]
            return step.do(*beside).answer(taken.asker, Kept(text="begun"))
        case CancelBeside(text=text):
            return step.cancel(f"work {text}").answer(taken.asker, Kept(text="cancelled"))
        case WorkDone(text=text):
            return Step(state.noting(f"done {text}"))
        case WorkFailed(text=text, reason=reason):
            return Step(state.noting(f"failed {text}: {reason}"))
        case WorkMoved(text=text):
            return Step(state.noting(f"moved {text}"))
        case _:
            return _emit(step, message, taken)


def _emit(step: Step[Toy], message: Message, taken: Taken) -> Step[Toy]:
    match message:
        case BeginStream(name=name):
            return step.emit(StreamBegan(name=name)).answer(taken.asker, Kept(text=name))
        case EndStream(name=name):
            ended = StreamEnded(name=name, how="in order")
            return step.emit(ended).answer(taken.asker, Kept(text=name))
        case Say(name=name, texts=texts):
            said = [Said(name=name, text=text) for text in texts]
            return step.emit(*said).answer(taken.asker, Kept(text=name))
        case Event():
            return Step(step.state.noting(type(message).__name__))
        case _:
            return step.answer(taken.asker, Unhandled(message=type(message).__name__))


class ToyActor(Owner):
    step = staticmethod(toy_step)
    first = Toy


def _name_of(event: Event) -> str:
    assert isinstance(event, StreamBegan | StreamEnded)
    return event.name


TOY_STREAMS = (
    StreamRule(
        opens=StreamBegan,
        ends=StreamEnded,
        key=_name_of,
        lost=lambda name: StreamEnded(name=name, how="lost"),
    ),
)


# --- the door and the machinery ----------------------------------------------------------


class Bench:
    """The handler of the toys' effects; a test plans what happens to each text."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.plans: dict[str, Callable[[Context], Awaitable[Any]]] = {}
        self.gates: dict[str, asyncio.Event] = {}

    def hold(self, text: str) -> asyncio.Event:
        """Work on this text goes on when the event is set."""
        return self.gates.setdefault(text, asyncio.Event())

    async def work(self, effect: Work | WorkBeside, context: Context) -> Outcome:
        self.begun.append(effect.text)
        try:
            if effect.text in self.gates:
                await self.gates[effect.text].wait()
            if effect.text in self.plans:
                outcome: Outcome = await self.plans[effect.text](context)
                return outcome
            return WorkDone(text=effect.text)
        finally:
            self.ended.append(effect.text)

    @property
    def handlers(self) -> Handlers:
        return {Work: self.work, WorkBeside: self.work}


class Machine:
    """A bus and a supervisor with toy owners; seat `main` has a session and a turn."""

    def __init__(
        self,
        *,
        owners: Mapping[Role, type[Owner]] | None = None,
        let_go: Callable[[str], Awaitable[None]] | None = None,
        observers: tuple[Observer, ...] = (),
        drain_max: int = DRAIN_MAX,
        routes: Mapping[type[Event], Role] | None = None,
    ) -> None:
        leaves = memory_leaves()
        assert isinstance(leaves.clock, ManualClock)
        self.clock = leaves.clock
        self.bench = Bench()
        self.bus = Bus(leaves.clock, "run-1")
        self.supervisor = Supervisor(
            leaves,
            self.bus,
            self.bench.handlers,
            streams=OpenStreams(TOY_STREAMS),
            routes=routes or {},
            observers=observers,
            drain_max=drain_max,
        )
        self.events = self.bus.subscribe()
        self._owners = owners or {"session": ToyActor, "turn": ToyActor}
        self._let_go = let_go
        self.add_seat("main")

    def add_seat(self, seat: str) -> None:
        for role, owner in self._owners.items():
            self.supervisor.add(seat, OwnerSpec(role=role, owner=owner, let_go=self._let_go))

    async def ask(self, command: Command, to: str = "main/session") -> Reply:
        return await self.bus.ask(to, command)

    def asking(self, command: Command, to: str = "main/session") -> "asyncio.Task[Reply]":
        """Ask beside what the test does next."""
        return asyncio.get_running_loop().create_task(self.bus.ask(to, command))

    async def noted(self, to: str = "main/session") -> tuple[str, ...]:
        """What the owner at this address has noted since it started."""
        reply = await self.ask(Note(text="look"), to)
        assert isinstance(reply, Noted), reply
        return tuple(text for text in reply.before if text != "look")

    async def away(self, to: str = "main/session") -> None:
        """Make the owner at this address fail; it is away until its restart."""
        assert isinstance(await self.ask(Break(), to), OwnerStopped)

    async def advance(self, seconds: float) -> None:
        """Let time pass, and everything happen that it brings."""
        await settle()
        self.clock.advance(seconds)
        await settle()

    async def restarted(self, seconds: float = 1.0) -> None:
        """Let the time of a restart pass, backoff included."""
        await self.advance(seconds)

    def dead(self) -> list[tuple[str, str]]:
        """Dead letters: message and cause."""
        return [(letter.message, letter.cause) for letter in self.bus.dead_letters]


def spec(role: Role) -> OwnerSpec:
    """A toy owner in this role."""
    return OwnerSpec(role=role, owner=ToyActor)


def waiting_in(subscription: Subscription) -> list[Event]:
    """What a reader would get now; it stays there."""
    return [published.event for published in subscription.waiting]


def of_kind(events: Subscription, kind: type[Event]) -> list[Event]:
    return [event for event in waiting_in(events) if isinstance(event, kind)]


async def read(subscription: Subscription, count: int) -> list[Published]:
    return [await anext(subscription) for _ in range(count)]


async def settle() -> None:
    """Let everything happen that needs no time."""
    for _ in range(60):
        await asyncio.sleep(0)


def asynchronous(
    test: Callable[P, Coroutine[Any, Any, None]],
) -> Callable[P, None]:
    """Run an async test on a loop of its own; what the loop is told of is a failure."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def watched() -> None:
            told: list[dict[str, Any]] = []
            asyncio.get_running_loop().set_exception_handler(lambda _, what: told.append(what))
            await test(*args, **kwargs)
            assert told == [], told

        asyncio.run(watched())

    return run
