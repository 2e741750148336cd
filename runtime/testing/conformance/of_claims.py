"""Conformance of claims: who may change a file that two processes could write.

`tenure.runtime.doors.claims.Claims` is built on files and locks.  This kit is for
a port of your own to another kind of storage, and for your own files and locks
through ours.
"""

from dataclasses import dataclass
from typing import Protocol

from tenure.messages.tokens import Holder
from tenure.runtime.doors.claims import ClaimBusy, ClaimLost, ClaimRecord
from tenure.runtime.testing.conformance.checks import Kit, fail, holds, same


class ClaimInHand(Protocol):
    """What a take gives."""

    @property
    def record(self) -> ClaimRecord | None: ...
    def in_place(self) -> bool: ...
    def write(self, record: ClaimRecord) -> None: ...
    def release(self) -> None: ...


class TakesClaims(Protocol):
    """The claims of one host."""

    def me(self) -> Holder: ...
    def take(self, path: str) -> ClaimInHand | ClaimBusy: ...
    def peek(self, path: str) -> ClaimRecord | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimsUnderTest:
    """Two hosts on one storage."""

    one: TakesClaims
    other: TakesClaims
    path: str
    """A file that need not exist, in a folder that need not exist."""


CLAIMS: Kit[ClaimsUnderTest] = Kit("claims")
_check = CLAIMS.check


def _taken(what: str, claims: TakesClaims, path: str) -> ClaimInHand:
    got = claims.take(path)
    if isinstance(got, ClaimBusy):
        fail(f"{what}: it is said to be busy, held by {got.holder}")
    return got


@_check
def a_claim_excludes_the_other_host_and_names_its_holder(at: ClaimsUnderTest) -> None:
    """Who is refused must be able to say by whom."""
    held = _taken("the first take", at.one, at.path)
    me = at.one.me()
    held.write(ClaimRecord(epoch=1, holder=me))
    refused = at.other.take(at.path)
    if not isinstance(refused, ClaimBusy):
        fail("two hosts hold the claim of one file")
    holds(refused.holder is not None, "the refused one is not told who holds it")
    same("the host that is named", getattr(refused.holder, "host_id", ""), me.host_id)
    held.release()


@_check
def a_claim_excludes_a_second_take_of_the_same_host(at: ClaimsUnderTest) -> None:
    """Two seats of one process are two hands."""
    held = _taken("the first take", at.one, at.path)
    holds(isinstance(at.one.take(at.path), ClaimBusy), "one host took one claim twice")
    held.release()


@_check
def a_released_claim_is_free_and_its_record_stays(at: ClaimsUnderTest) -> None:
    """The next holder counts on from its epoch."""
    held = _taken("the first take", at.one, at.path)
    record = ClaimRecord(epoch=7, holder=at.one.me())
    held.write(record)
    held.release()
    held.release()
    holds(not held.in_place(), "a released claim is said to be in place")
    same("the record as it lies there", at.other.peek(at.path), record)
    again = _taken("a take after the release", at.other, at.path)
    same("the record that the next holder finds", again.record, record)
    again.release()


@_check
def an_epoch_never_goes_back(at: ClaimsUnderTest) -> None:
    """It is what tells an old writer from the current one."""
    held = _taken("the first take", at.one, at.path)
    held.write(ClaimRecord(epoch=3, holder=at.one.me()))
    try:
        held.write(ClaimRecord(epoch=2, holder=at.one.me()))
    except ValueError:
        pass
    else:
        fail("epoch 2 was written over epoch 3")
    same("the epoch that lies there", getattr(at.one.peek(at.path), "epoch", None), 3)
    held.release()


@_check
def a_released_claim_writes_nothing(at: ClaimsUnderTest) -> None:
    """Whoever has let go must not change what is another's now."""
    held = _taken("the first take", at.one, at.path)
    held.write(ClaimRecord(epoch=1, holder=at.one.me()))
    held.release()
    try:
        held.write(ClaimRecord(epoch=2, holder=at.one.me()))
    except ClaimLost:
        pass
    else:
        fail("a claim was written after it had been released")
    same("the epoch that lies there", getattr(at.one.peek(at.path), "epoch", None), 1)


@_check
def a_file_nobody_claimed_has_no_record(at: ClaimsUnderTest) -> None:
    """Looking makes nothing."""
    same("the record of an unclaimed file", at.one.peek(at.path), None)
    held = _taken("the first take", at.one, at.path)
    same("the record that the first holder finds", held.record, None)
    held.release()
