"""Holding a credential's claim while a server is asked, and tokens that could not be saved.

New tokens that no disk would take are a danger: the old ones are spent, and
another process that got the claim would send them.  So the claim stays with us
for as long as such tokens are only in our memory.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from tenure.runtime.doors.claims import ClaimBusy, ClaimRecord, Claims, HeldClaim
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.mcp.credential_file import CredentialFiles

CLAIM_WAIT_MAX_S = 60.0
"""Longer than a token request takes: whoever has the claim is asking."""
CLAIM_RETRY_S = 0.05
CLOSE_S_MAX = 10.0
"""How long a host that closes waits for a request that is under way."""

T = TypeVar("T")
Save = Callable[[HeldClaim], Any]
"""Writes tokens under a claim.  Blocks.  Raises `OSError` where it cannot."""

_log = logging.getLogger("tenure.mcp")


class ClaimNotTaken(OSError):
    """Somebody else has the credential for too long, or our last tokens are not saved yet."""


class _Unsaved(msgspec.Struct):
    claim: HeldClaim
    save: Save


class Holding:
    """The claims of one host on credentials, and the work that nobody may cut short."""

    def __init__(self, leaves: Leaves, claims: Claims, files: CredentialFiles) -> None:
        self._leaves = leaves
        self._claims = claims
        self._files = files
        self._tasks: set[asyncio.Task[Any]] = set()
        self._unsaved: dict[str, _Unsaved] = {}

    async def whole(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it to its end in a task of its own, also when the caller is cancelled meanwhile."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    @asynccontextmanager
    async def of(self, name: str) -> AsyncIterator[HeldClaim]:
        """The claim of a credential; waits `CLAIM_WAIT_MAX_S` at most.  Only inside `whole`.

        Raises:
            ClaimNotTaken: another process keeps it, or tokens of ours wait to be saved.
            OSError: it cannot be locked here.
        """
        await self._save_first(name)
        claim = await self._taken(name)
        try:
            yield claim
        finally:
            if name not in self._unsaved:  # guard: AUTH-5 keeps
                claim.release()

    def next_generation(self, claim: HeldClaim, present: int) -> int:
        """A number that no tokens of this credential ever had, durably.  Blocks."""
        known = claim.record.epoch if claim.record is not None else 0
        generation = max(known, present) + 1
        claim.write(ClaimRecord(epoch=generation, holder=self._claims.me()))
        return generation

    def keep_unsaved(self, name: str, claim: HeldClaim, save: Save) -> None:
        """Tokens could not be saved: keep the claim, and save them before anything else."""
        self._unsaved[name] = _Unsaved(claim, save)

    async def close(self) -> None:
        """Wait for what is under way, for `CLOSE_S_MAX`; then save what is unsaved, if possible."""
        pending = set(self._tasks)
        if pending:
            timer = asyncio.ensure_future(self._leaves.clock.sleep(CLOSE_S_MAX))
            try:
                while pending and not timer.done():
                    done, _ = await asyncio.wait(
                        {*pending, timer}, return_when=asyncio.FIRST_COMPLETED
                    )
                    pending -= done
            finally:
                timer.cancel()
            for task in pending:
                task.cancel()
            if pending:
                await asyncio.wait(pending)
        for name in list(self._unsaved):
            try:
                await self._save_first(name)
            except OSError as error:
                _log.error("new tokens are lost, sign in again: %s", error)
                self._unsaved.pop(name).claim.release()

    async def _save_first(self, name: str) -> None:
        unsaved = self._unsaved.get(name)
        if unsaved is None:
            return
        try:
            await self._leaves.workers.run(self._save_now, name, unsaved)
        except OSError as error:
            why = f"{name}: new tokens cannot be saved ({error.strerror or error})"
            raise ClaimNotTaken(why) from None
        if self._unsaved.pop(name, None) is not None:
            unsaved.claim.release()

    def _save_now(self, name: str, unsaved: _Unsaved) -> None:
        if not unsaved.claim.in_place():
            claim = self._claims.take(self._files.path(name))
            if isinstance(claim, ClaimBusy):
                raise ClaimNotTaken(_busy(name, claim))
            unsaved.claim.release()
            unsaved.claim = claim
        unsaved.save(unsaved.claim)

    async def _taken(self, name: str) -> HeldClaim:
        clock, path = self._leaves.clock, self._files.path(name)
        ends_s = clock.monotonic_s() + CLAIM_WAIT_MAX_S
        while True:
            claim = await self._leaves.workers.run(self._claims.take, path)
            if not isinstance(claim, ClaimBusy):
                return claim
            if clock.monotonic_s() >= ends_s:
                raise ClaimNotTaken(_busy(name, claim))
            await clock.sleep(CLAIM_RETRY_S)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waits has it; nobody else needs to be told


def _busy(name: str, busy: ClaimBusy) -> str:
    who = "another process"
    if busy.holder is not None:
        who = f"another process ({busy.holder.process.pid})"
    return f"{name}: {who} is busy with it"
