"""The mailbox of one address: three lanes, served in a fixed order.

    control   a stop that names its turn, watch, shutdown
    owner     outcomes, deltas and mail between owners: in order, never refused
    command   from outside: first in, first out, bounded

Lanes are served in this order, with one command at least every 64 messages, so
that a flood of deltas cannot starve the people who wait.
"""

from collections import deque

import msgspec

from tenure.messages.base import Message, Outcome
from tenure.messages.bus import Answered
from tenure.runtime.step import AskId

COMMANDS_MAX = 1_000
"""Commands that wait in one mailbox; a further one is refused with `Overloaded`."""

OTHERS_RUN_MAX = 63
"""Messages of the first two lanes in a row while a command waits."""


class Delivery(msgspec.Struct, frozen=True):
    """A message on its way, and who waits for its answer."""

    message: Message
    asker: AskId | None = None


class Mailbox:
    """Belongs to the address, so waiting mail outlives a restart of the owner."""

    __slots__ = ("_commands", "_control", "_owner", "_run")

    def __init__(self) -> None:
        # An idle seat pays for no lane: a deque alone is 760 bytes.
        self._control: deque[Delivery] | None = None
        self._owner: deque[Delivery] | None = None
        self._commands: deque[Delivery] | None = None
        self._run = 0

    def __len__(self) -> int:
        return sum(len(lane) for lane in (self._control, self._owner, self._commands) if lane)

    @property
    def commands_waiting(self) -> int:
        return len(self._commands) if self._commands else 0

    def put_control(self, delivery: Delivery) -> None:
        if self._control is None:
            self._control = deque()
        self._control.append(delivery)

    def put_owner_mail(self, delivery: Delivery) -> None:
        """Never refused.  Progress that the owner has not seen yet is joined."""
        lane = self._owner
        if lane is None:
            lane = self._owner = deque()
        elif lane and isinstance(delivery.message, Outcome):
            last = lane[-1].message
            if isinstance(last, Outcome):
                joined = last.joined(delivery.message)
                if joined is not None:
                    lane[-1] = Delivery(joined)
                    return
        lane.append(delivery)

    def put_command(self, delivery: Delivery) -> int:
        """0 when taken; else how many wait already, and nothing was taken."""
        if self._commands is None:
            self._commands = deque()
        waiting = len(self._commands)
        if waiting >= COMMANDS_MAX:  # guard: BUS-2
            return waiting
        self._commands.append(delivery)
        return 0

    def take(self) -> Delivery | None:
        """The next message, or None where nothing waits."""
        lane = self._control or self._owner
        commands = self._commands
        if commands:
            if lane and self._run < OTHERS_RUN_MAX:  # guard: BUS-2
                self._run += 1
                return lane.popleft()
            self._run = 0
            return commands.popleft()
        return lane.popleft() if lane else None

    def take_all(self) -> list[Delivery]:
        """Everything that waits, in the order of service; the mailbox is then empty."""
        rest = []
        while (delivery := self.take()) is not None:
            rest.append(delivery)
        return rest

    def take_answers(self) -> list[Message]:
        """Take out what was meant for one incarnation: answers to its asks, and outcomes."""
        private: list[Message] = []
        kept: deque[Delivery] = deque()
        for delivery in self._owner or ():
            if isinstance(delivery.message, Answered | Outcome):
                private.append(delivery.message)
            else:
                kept.append(delivery)
        self._owner = kept
        return private

    def fold(self) -> None:
        """Give back the memory of the lanes; the mailbox must be empty."""
        self._control = self._owner = self._commands = None
