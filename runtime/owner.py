"""The shell around a step: the one subclass of `pykka.Actor`.

pykka gives the actor's identity, its start and stop, its hooks and the rule that
one actor handles one message at a time.  What pykka leaves to its threads is
done here on the host's event loop: an owner is drained while it has mail, and
gives the loop back after `Shell.drain_max` messages.

An owner's ref is never handed out: asking goes through the bus, which knows
deadlines, restarts and dead letters.
"""

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, Protocol

import pykka

from tenure.messages.base import Effect, Event, Message, Reply
from tenure.runtime.mailbox import Delivery, Mailbox
from tenure.runtime.observer import Observer
from tenure.runtime.step import AskId, Mail, Step, Taken

DRAIN_MAX = 64
"""The usual `Shell.drain_max`."""


class Shell(Protocol):
    """What an owner needs of the runtime; `runtime/supervisor.py` gives it."""

    drain_max: int
    """How many messages an owner handles before others have their turn."""
    observers: list[Observer]
    """Who sees every step; mostly nobody."""

    def now_ms(self) -> int: ...
    def fresh(self) -> str: ...
    def begin(self, asker: AskId, /) -> bool: ...
    def answer(self, asker: AskId, reply: Reply, /) -> None: ...
    def publish(self, owner: "Owner", event: Event) -> None: ...
    def send(self, owner: "Owner", mail: Mail) -> None: ...
    def start(self, owner: "Owner", effect: Effect) -> None: ...
    def stepped(self, owner: "Owner", message: Message, taken: Taken, step: Step[Any]) -> None: ...
    def failed(self, owner: "Owner", delivery: Delivery, error: Exception) -> None: ...


class _Stopped:
    """pykka wants a `threading.Event`; one loop needs no lock, and an idle seat its memory."""

    __slots__ = ("_set",)

    def __init__(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True


class _PrivateInbox:
    """Stands where pykka expects an inbox: nobody asks an owner behind the bus's back."""

    __slots__ = ()

    def put(self, envelope: object, /) -> NoReturn:
        raise TypeError("owners are asked through the bus: it keeps deadlines and dead letters")

    def get(self) -> NoReturn:
        raise TypeError("an owner takes its mail from its address")

    def empty(self) -> bool:
        return True


_PRIVATE_INBOX = _PrivateInbox()


class Owner(pykka.Actor):
    """One incarnation of an owner: its state, and the loop that steps it.

    A subclass names its `step` and its `first` state, and nothing else.
    """

    first: ClassVar[Callable[[], Any]]

    @staticmethod
    def step(state: Any, message: Message, taken: Taken) -> Step[Any]:
        """Decide one message; a subclass names its own."""
        raise NotImplementedError

    def __init__(self, address: str, incarnation: int, mailbox: Mailbox, shell: Shell) -> None:
        super().__init__()
        self.actor_stopped = _Stopped()  # type: ignore[assignment]
        self.actor_ref.actor_stopped = self.actor_stopped
        self.address = address
        self.incarnation = incarnation
        self.state: Any = type(self).first()
        self._mailbox = mailbox
        self._shell = shell
        self._scheduled = False

    @staticmethod
    def _create_actor_inbox() -> Any:
        return _PRIVATE_INBOX

    @staticmethod
    def _create_future() -> NoReturn:
        raise TypeError("owners are asked through the bus: it keeps deadlines and dead letters")

    def _start_actor_loop(self) -> None:
        self.schedule()

    def begin_life(self) -> None:
        """Start without pykka's registry: it is a list, and one for the whole process."""
        self._start_actor_loop()

    def end_life(self) -> None:
        """Handle nothing more.  Waiting mail stays with the address."""
        self.actor_stopped.set()

    def schedule(self) -> None:
        """Have the mailbox drained soon; harmless when that is already so."""
        if not self._scheduled and not self.actor_stopped.is_set():
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._drain)

    def _drain(self) -> None:
        self._scheduled = False
        mailbox = self._mailbox
        try:
            for _ in range(self._shell.drain_max):
                if self.actor_stopped.is_set():
                    return
                delivery = mailbox.take()
                if delivery is None:
                    mailbox.fold()
                    return
                self.on_receive(delivery)
        except BaseException:
            # An observer raised.  Whoever waits behind this message must not wait for ever.
            self.schedule()
            raise
        self.schedule()

    def on_receive(self, message: Delivery) -> None:
        """Take one message through the step, and send what the step decided."""
        delivery, shell = message, self._shell
        asker, content = delivery.asker, delivery.message
        if asker is not None and not shell.begin(asker):
            return
        taken = Taken(asker, shell.now_ms(), shell.fresh())
        try:
            step = type(self).step(self.state, content, taken)
            if not isinstance(step, Step):
                raise TypeError(f"the step gave a {type(step).__name__}, not a Step")
        except Exception as error:
            shell.failed(self, delivery, error)
            return
        self.state = step.state
        if shell.observers:
            shell.stepped(self, content, taken, step)
        for asked, reply in step.replies:
            shell.answer(asked, reply)
        for event in step.events:
            shell.publish(self, event)
        for mail in step.mail:
            shell.send(self, mail)
        for effect in step.effects:
            shell.start(self, effect)
