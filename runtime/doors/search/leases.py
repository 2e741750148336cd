"""The lease of an index path: who may write it, until when.

The default is the claim of the path (a kernel lock that dies with its process).  A store
with a time to live can take its place: the writer then renews its lease at every batch,
and a lease that expired, or that another has taken since, ends the run before the next
file is replaced.
"""

import logging
from typing import Protocol

import msgspec

from tenure.messages.tokens import Holder
from tenure.runtime.doors.claims import ClaimBusy, ClaimRecord, Claims, FileMark, HeldClaim
from tenure.runtime.doors.leaves import Leaves

_log = logging.getLogger("tenure.index")


class LeaseBusy(msgspec.Struct, frozen=True, kw_only=True):
    """Another has it."""

    holder: Holder | None


class HeldLease(Protocol):
    """A lease in this process's hands."""

    fence: int
    """Greater than that of every earlier holder of the path."""
    holder: Holder

    def renew(self) -> bool:
        """Whether it is still held, renewed where it would expire.

        `OSError` where the store cannot say: the caller takes that for no.
        """
        ...

    def release(self) -> None:
        """Let go; harmless when released or lost."""
        ...


class Leases(Protocol):
    """A lease store.  Its methods block: they run in a worker."""

    def take(self, path: str) -> HeldLease | LeaseBusy:
        """Take the lease of a path, without waiting.  `OSError`: the store is not available."""
        ...

    def live(self, path: str) -> Holder | None:
        """Who holds it now; None where nobody does.  Changes nothing."""
        ...


class ClaimLeases:
    """Leases by the claims door: they die with their process, and only with it."""

    def __init__(self, leaves: Leaves, claims: Claims) -> None:
        self._leaves = leaves
        self._claims = claims

    def take(self, path: str) -> HeldLease | LeaseBusy:
        claim = self._claims.take(path)
        if isinstance(claim, ClaimBusy):
            return LeaseBusy(holder=claim.holder)
        try:
            epoch = claim.record.epoch + 1 if claim.record is not None else 1
            claim.write(ClaimRecord(epoch=epoch, holder=self._claims.me()))
        except BaseException:
            claim.release()
            raise
        return _ClaimLease(claim, self._claims.me())

    def live(self, path: str) -> Holder | None:
        record = self._claims.peek(path)
        if record is None or record.parked is not None:
            return None
        return record.holder if self._leaves.processes.alive(record.holder.process) else None


class _ClaimLease:
    def __init__(self, claim: HeldClaim, holder: Holder) -> None:
        assert claim.record is not None
        self._claim = claim
        self.fence = claim.record.epoch
        self.holder = holder

    def renew(self) -> bool:
        return self._claim.in_place()

    def release(self) -> None:
        """The record says that it was let go, so that nobody takes a live host for a live run."""
        record = self._claim.record
        try:
            if record is not None and record.parked is None and self._claim.in_place():
                parked = FileMark(device=0, inode=0, size=0)
                self._claim.write(
                    ClaimRecord(epoch=record.epoch, holder=record.holder, parked=parked)
                )
        except OSError as refused:
            _log.warning("the lease record was not changed: %s", refused)
        finally:
            self._claim.release()
