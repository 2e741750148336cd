"""The host's one stream of events: numbered, kept for late readers, bounded for slow ones."""

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from tenure.messages.base import Event
from tenure.messages.bus import EventsMissed, Published

EVENTS_KEPT_MAX = 4_096
"""How far back a reader can begin."""

EVENTS_WAITING_MAX = 1_024
"""How many events wait for one reader before the oldest are missed."""

JOINED_MAX = 256
"""How many deltas become one for a slow reader, so that joining costs no more as it goes on."""

T = TypeVar("T")

Wanted = Callable[[Published], bool]


class Subscription:
    """One reader.  `async for published in subscription` ends when it, or the host, is closed."""

    def __init__(
        self, end: Callable[["Subscription"], None], host_run: str, seat: str | None
    ) -> None:
        self._waiting: deque[Published] = deque()
        self._waiting_max = EVENTS_WAITING_MAX
        self._joined = 0
        """How many deltas the last event that waits is made of."""
        self._wanted: Wanted = _everything
        self._missed: Published | None = None
        self._wake: asyncio.Future[None] | None = None
        self._closed = False
        self._end = end
        self._host_run = host_run
        self.seat = seat
        """Whose events it reads; None for all."""

    def only(self, wanted: Wanted) -> None:
        """Read from now on, and of what waits, nothing but this; the rest is not missed."""
        self._wanted = wanted
        self._waiting = deque(published for published in self._waiting if wanted(published))
        self._joined = JOINED_MAX

    def replay(self, kept: Iterable[Published]) -> None:
        """Put what was kept before what comes; none of it is missed, however much it is."""
        self._waiting_max = sys.maxsize
        for published in kept:
            self.offer(published)
        self._waiting_max = max(EVENTS_WAITING_MAX, len(self._waiting))

    def offer(self, published: Published) -> None:
        """Called by the stream for every event; joins deltas, and never blocks."""
        if not self._wanted(published):
            return
        waiting = self._waiting
        if waiting:
            last = waiting[-1]
            if self._joined < JOINED_MAX:
                joined = last.event.joined(published.event)
                if joined is not None:
                    self._joined += 1
                    waiting[-1] = msgspec.structs.replace(
                        last, seq_last=published.seq_last, event=joined
                    )
                    return
            if len(waiting) >= self._waiting_max:  # guard: BUS-2
                self.miss(waiting[0].seq_first, waiting[0].seq_last)
                waiting.popleft()
        self._joined = 1
        waiting.append(published)
        if self._wake is not None:
            self._wake_up()

    @property
    def waiting(self) -> tuple[Published, ...]:
        """What came and was not read."""
        return tuple(self._waiting)

    def miss(self, seq_first: int, seq_last: int) -> None:
        """Say that these events will not come."""
        if self._missed is not None:
            seq_first = min(seq_first, self._missed.seq_first)
        missed = EventsMissed(seq_first=seq_first, seq_last=seq_last)
        self._missed = Published(
            host_run=self._host_run,
            seq_first=seq_first,
            seq_last=seq_last,
            seat="",
            event=missed,
        )

    def close(self) -> None:
        """End the reading; harmless when closed."""
        if not self._closed:
            self._closed = True
            self._end(self)
            self._wake_up()

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> Published:
        while (published := self._next()) is None:
            await self._come()
        return published

    def _next(self) -> Published | None:
        """What is to be read now; None where the reader has to wait."""
        if self._missed is not None:
            missed, self._missed = self._missed, None
            return missed
        if self._waiting:
            return self._waiting.popleft()
        if self._closed:
            raise StopAsyncIteration
        return None

    async def _come(self) -> None:
        if self._wake is not None:
            raise RuntimeError("a subscription has one reader; subscribe once more")
        self._wake = asyncio.get_running_loop().create_future()
        try:
            await self._wake
        finally:
            self._wake = None

    def _wake_up(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


def _everything(published: Published) -> bool:
    return True


class EventStream:
    """Numbers events `(host_run, seq)` from 1 and hands them to every reader."""

    def __init__(self, host_run: str) -> None:
        self.host_run = host_run
        self.seq = 0
        self._kept: deque[Published] = deque(maxlen=EVENTS_KEPT_MAX)
        self._readers: list[Subscription] = []
        self._seats: dict[str, _SeatReaders] = {}
        self._observers: list[Callable[[Published], None]] = []

    def publish(self, seat: str, event: Event) -> Published:
        self.seq += 1
        published = Published(
            host_run=self.host_run, seq_first=self.seq, seq_last=self.seq, seat=seat, event=event
        )
        self._kept.append(published)
        for observe in self._observers:
            observe(published)
        for reader in self._readers:
            reader.offer(published)
        mine = self._seats.get(seat)
        if mine is not None:
            mine.offer(published)
        return published

    def observe(self, see: Callable[[Published], None]) -> None:
        """Call `see` at once for every event, before any reader has it; it must be quick."""
        self._observers.append(see)

    def follow(self, seat: str, see: Callable[[Published], None]) -> Callable[[], None]:
        """Call `see` at once for every event of a seat; it must be quick.  Gives what ends it."""
        mine = self._seats.setdefault(seat, _SeatReaders())
        mine.followers.append(see)
        return lambda: self._leave(seat, mine.followers, see)

    def subscribe(self, after: int | None = None, seat: str | None = None) -> Subscription:
        """Read from now on, or every event after the sequence number `after`.

        What is no longer kept is named by a first `EventsMissed`.

        Args:
            seat: only the events of this seat.
        """
        reader = Subscription(self._unsubscribe, self.host_run, seat)
        if after is not None:
            after = max(after, 0)
            if after + 1 < self.first_kept:
                reader.miss(after + 1, self.first_kept - 1)
            reader.replay(
                published
                for published in self._kept
                if published.seq_first > after and seat in (None, published.seat)
            )
        if seat is None:
            self._readers.append(reader)
        else:
            self._seats.setdefault(seat, _SeatReaders()).readers.append(reader)
        return reader

    @property
    def first_kept(self) -> int:
        """The number of the oldest event that a reader can still have."""
        return self._kept[0].seq_first if self._kept else self.seq + 1

    def close_seat(self, seat: str) -> None:
        """The seat is gone: its readers end when they have read what waits for them."""
        mine = self._seats.get(seat)
        for reader in list(mine.readers) if mine is not None else ():
            reader.close()

    def close(self) -> None:
        of_seats = [reader for mine in self._seats.values() for reader in mine.readers]
        for reader in [*self._readers, *of_seats]:
            reader.close()

    def _unsubscribe(self, reader: Subscription) -> None:
        if reader.seat is None:
            self._readers.remove(reader)
        else:
            self._leave(reader.seat, self._seats[reader.seat].readers, reader)

    def _leave(self, seat: str, among: list[T], member: T) -> None:
        among.remove(member)
        mine = self._seats.get(seat)
        if mine is not None and not mine.readers and not mine.followers:
            del self._seats[seat]


class _SeatReaders:
    """Who reads one seat: ten thousand seats do not look at each other's events."""

    __slots__ = ("followers", "readers")

    def __init__(self) -> None:
        self.readers: list[Subscription] = []
        self.followers: list[Callable[[Published], None]] = []

    def offer(self, published: Published) -> None:
        for follower in self.followers:
            follower(published)
        for reader in self.readers:
            reader.offer(published)
