"""A lease store with a time to live, as several machines could share it: for tests."""

import errno

import msgspec

from tenure.messages.tokens import Holder
from tenure.runtime.doors.clock import Clock
from tenure.runtime.doors.search.leases import HeldLease, LeaseBusy


class _Record(msgspec.Struct):
    fence: int
    holder: Holder
    ends_s: float
    released: bool = False


class TtlStore:
    """The records that all holders share."""

    def __init__(self, clock: Clock, ttl_s: float = 30.0) -> None:
        self.clock = clock
        self.ttl_s = ttl_s
        self.available = True
        self._records: dict[str, _Record] = {}

    def record(self, path: str) -> _Record | None:
        """What is stored of a path.  `OSError` while the store is not available."""
        if not self.available:
            raise OSError(errno.ECONNREFUSED, "the lease store does not answer")
        return self._records.get(path)

    def live(self, path: str) -> _Record | None:
        """The same, where it has not run out."""
        found = self.record(path)
        if found is None or found.released or found.ends_s <= self.clock.monotonic_s():
            return None
        return found

    def put(self, path: str, record: _Record) -> None:
        """Store it."""
        self._records[path] = record

    def expire(self) -> None:
        """Every lease runs out now."""
        for record in self._records.values():
            record.ends_s = self.clock.monotonic_s()


class TtlLeases:
    """The `Leases` of one process over such a store."""

    def __init__(self, store: TtlStore, holder: Holder) -> None:
        self._store = store
        self._holder = holder

    def take(self, path: str) -> HeldLease | LeaseBusy:
        """See `Leases`."""
        held = self._store.live(path)
        if held is not None:
            return LeaseBusy(holder=held.holder)
        before = self._store.record(path)
        fence = before.fence + 1 if before is not None else 1
        ends_s = self._store.clock.monotonic_s() + self._store.ttl_s
        self._store.put(path, _Record(fence, self._holder, ends_s))
        return _TtlLease(self._store, path, fence, self._holder)

    def live(self, path: str) -> Holder | None:
        """See `Leases`."""
        found = self._store.live(path)
        return found.holder if found is not None else None


class _TtlLease:
    def __init__(self, store: TtlStore, path: str, fence: int, holder: Holder) -> None:
        self._store = store
        self._path = path
        self.fence = fence
        self.holder = holder

    def renew(self) -> bool:
        record = self._store.live(self._path)
        if record is None or record.fence != self.fence:
            return False
        record.ends_s = self._store.clock.monotonic_s() + self._store.ttl_s
        return True

    def release(self) -> None:
        if not self._store.available:
            return
        record = self._store.record(self._path)
        if record is not None and record.fence == self.fence:
            record.released = True
