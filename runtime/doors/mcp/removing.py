"""Signing out, forgetting, and clearing away what no root uses any more."""

from msgspec.structs import replace

from tenure.messages.base import Outcome
from tenure.messages.mcp_auth_effects import (
    CredentialGone,
    CredentialNotGone,
    CredentialsSwept,
    RemoveCredential,
    SweepCredentials,
)
from tenure.messages.tokens import ServerId
from tenure.runtime.doors.claims import HeldClaim
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.mcp.credential_file import (
    CredentialFiles,
    CredentialRecord,
    CredentialUnreadable,
    name_of,
    without_tokens,
)
from tenure.runtime.doors.mcp.holding import Holding
from tenure.runtime.doors.mcp.refreshing import why
from tenure.runtime.doors.mcp.token_requests import ClientIdentity, TokenRequests


class Removing:
    """Carries out `RemoveCredential` and `SweepCredentials`."""

    def __init__(
        self,
        leaves: Leaves,
        root: str,
        files: CredentialFiles,
        holding: Holding,
        requests: TokenRequests,
    ) -> None:
        self._leaves = leaves
        self._root = root
        self._files = files
        self._holding = holding
        self._requests = requests

    async def remove(self, effect: RemoveCredential) -> Outcome:
        """Tell the authorization server, then remove; what it says does not hold us up."""
        server_id = effect.server.server_id
        try:
            return await self._holding.whole(self._remove(effect))
        except (OSError, ValueError) as error:
            return CredentialNotGone(server_id=server_id, reason=why(error))

    async def _remove(self, effect: RemoveCredential) -> Outcome:
        server = effect.server
        name = name_of(server.server_id, server.url)
        run = self._leaves.workers.run
        async with self._holding.of(name) as claim:
            try:
                record = await run(self._files.load, name)
            except CredentialUnreadable:
                if effect.what == "tokens":
                    raise
                record = None
            revoked = await self._revoke(name, record)
            await run(self._drop, name, record, effect.what, claim)
        return CredentialGone(
            server_id=server.server_id,
            revoked="nothing"
            if record is None or record.tokens is None
            else ("revoked" if revoked else "not_revoked"),
        )

    async def _revoke(self, name: str, record: CredentialRecord | None) -> bool:
        if record is None or record.tokens is None or not record.endpoints.revocation:
            return False
        try:
            secret = await self._leaves.workers.run(self._files.secret, name, record)
            client = ClientIdentity(
                client_id=record.client.client_id,
                auth_method=record.client.auth_method,
                client_secret=await self._leaves.workers.run(self._files.client_secret, record),
            )
        except OSError:
            return False
        kind = "refresh_token" if secret.refresh_token else "access_token"
        token = secret.refresh_token or secret.access_token
        return await self._requests.revoke(record.endpoints.revocation, client, token, kind)

    def _drop(
        self, name: str, record: CredentialRecord | None, what: str, claim: HeldClaim
    ) -> None:
        if record is not None:
            # Nobody who still has the old generation in his hands takes the next one for it.
            self._holding.next_generation(claim, record.generation)
        if what == "everything" or record is None:
            self._files.drop(name)
        else:
            self._files.save(name, without_tokens(record, "signed out"))
        if record is not None:
            self._files.drop_secret(name, record.store, record.generation)
            if what == "everything":
                self._files.drop_client_secret(record)

    async def sweep(self, effect: SweepCredentials) -> Outcome:
        """What this root does not use any more, and nobody else does, goes."""
        try:
            wanted = {name_of(each.server_id, each.url) for each in effect.servers}
            retained = {name_of(each.server_id, each.url) for each in effect.retained}
        except ValueError as error:
            return CredentialsSwept(asker=effect.asker, removed=(), problems=(why(error),))
        removed: list[ServerId] = []
        problems: list[str] = []
        for name in await self._leaves.workers.run(self._files.names):
            try:
                gone = await self._holding.whole(self._sweep_one(name, wanted, retained))
            except OSError as error:
                problems.append(why(error))
                continue
            if gone is not None:
                removed.append(gone)
        return CredentialsSwept(
            asker=effect.asker, removed=tuple(removed), problems=tuple(problems)
        )

    async def _sweep_one(self, name: str, wanted: set[str], retained: set[str]) -> ServerId | None:
        run = self._leaves.workers.run
        record = await run(self._files.load, name)
        if record is None or (name in wanted) == (self._root in record.used_by):
            return None  # as it should be: nothing is locked and nothing written
        if name in retained and name not in wanted:
            return None
        async with self._holding.of(name) as claim:
            return await run(self._use, name, name in wanted, claim)

    def _use(self, name: str, wanted: bool, claim: HeldClaim) -> ServerId | None:
        record = self._files.load(name)
        if record is None:
            return None
        others = tuple(each for each in record.used_by if each != self._root)
        used_by = (*others, self._root) if wanted else others
        if used_by:
            self._files.save(name, replace(record, used_by=used_by))
            return None
        self._drop(name, record, "everything", claim)
        return record.server_id
