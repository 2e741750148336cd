"""The credentials door: what there is of tokens, and the tokens themselves for who may send them.

Tokens leave this door in one way only: `Credentials.bearer`, in this process, for
a server and a generation that the McpAuthActor has granted.  No outcome holds one.
"""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from tenure.messages.base import Outcome
from tenure.messages.mcp_auth import Credential, McpServer, Signed, Unsigned
from tenure.messages.mcp_auth_effects import (
    CredentialNotRead,
    CredentialRead,
    CredentialRefreshDone,
    CredentialsListed,
    ListCredentials,
    NoteScopes,
    ReadCredential,
    RefreshCredential,
    RemoveCredential,
    ScopesNoted,
    ScopesNotNoted,
    SweepCredentials,
)
from tenure.runtime.doors.claims import Claims, HeldClaim
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.mcp.credential_file import (
    ClientRecord,
    CredentialFiles,
    CredentialRecord,
    CredentialUnreadable,
    Endpoints,
    TokenSecret,
    TokensRecord,
    name_of,
    view_of,
)
from tenure.runtime.doors.mcp.holding import Holding
from tenure.runtime.doors.mcp.refreshing import Refreshing, why
from tenure.runtime.doors.mcp.removing import Removing
from tenure.runtime.doors.mcp.token_requests import NewTokens, TokenRequests
from tenure.runtime.doors.mcp.urls import canonical
from tenure.runtime.doors.secrets import SecretStores

T = TypeVar("T")
Change = Callable[[CredentialRecord], CredentialRecord]

READ_AGAIN_MAX = 3
"""Another process may replace the tokens between our look at the record and at the secret."""


class Gained(msgspec.Struct, frozen=True, kw_only=True):
    """What a sign-in brought.  Secret: never in a message."""

    endpoints: Endpoints
    client: ClientRecord
    client_secret: str
    resource: str
    requested: tuple[str, ...]
    tokens: NewTokens
    sent_at_ms: int


class Credentials:
    """The tokens of this user, as one host uses them.

    Args:
        root: the workspace; an absolute path.
    """

    def __init__(self, leaves: Leaves, root: str, claims: Claims) -> None:
        self._leaves = leaves
        self._root = root
        self.stores = SecretStores(
            leaves.files, leaves.entropy, leaves.keyring, f"{leaves.user_data}/secrets"
        )
        self._files = CredentialFiles(leaves.files, self.stores, f"{leaves.user_data}/credentials")
        self._holding = Holding(leaves, claims, self._files)
        self.requests = TokenRequests(leaves.web)
        self._refreshing = Refreshing(leaves, self._files, self._holding, self.requests)
        self._removing = Removing(leaves, root, self._files, self._holding, self.requests)
        self._bearers: dict[str, TokenSecret] = {}
        """The newest durable tokens of each credential that was read here."""

    def bearer(self, server: McpServer, generation: int) -> str | None:
        """The access token of this generation, or of a later one; None where there is none.

        For the `Authorization` header of a request to this server, and for nothing else.
        """
        found = self._bearers.get(name_of(server.server_id, server.url))
        if found is None or found.generation < generation:
            return None
        return found.access_token

    # --- reading -------------------------------------------------------------------------

    async def read(self, effect: ReadCredential, context: Context) -> Outcome:
        """What there is now, and its tokens at hand for `bearer`."""
        server = effect.server
        try:
            found = await self._leaves.workers.run(self._read, server)
        except (OSError, ValueError) as error:
            return CredentialNotRead(server_id=server.server_id, reason=why(error))
        return CredentialRead(server_id=server.server_id, credential=found)

    def _read(self, server: McpServer) -> Credential:
        name = name_of(server.server_id, server.url)
        for again in range(READ_AGAIN_MAX):
            record = self._files.load(name)
            if record is None or canonical(record.url) != canonical(server.url):  # guard: AUTH-7
                self._bearers.pop(name, None)
                return Unsigned(server_id=server.server_id, url=server.url)
            if record.tokens is None or self._have(name, record):
                return view_of(record)
            if again + 1 == READ_AGAIN_MAX:
                return self._lost_secret(record)
        raise AssertionError("the last look returns")

    def _have(self, name: str, record: CredentialRecord) -> bool:
        known = self._bearers.get(name)
        if known is not None and known.generation == record.generation:
            return True
        found = self._files.saved_secret(name, record, record.generation)
        if found is not None:
            self._bearers[name] = found
        return found is not None

    def _lost_secret(self, record: CredentialRecord) -> Unsigned:
        where = "keyring" if record.store == "keyring" else self.stores.folder
        return Unsigned(
            server_id=record.server_id,
            url=record.url,
            pending=record.pending,
            reason=f"its tokens are not in the {where} any more",
        )

    async def list(self, effect: ListCredentials, context: Context) -> Outcome:
        """Every credential, damaged ones by their problem."""
        found, problems = await self._leaves.workers.run(self._list)
        return CredentialsListed(asker=effect.asker, credentials=found, problems=problems)

    def _list(self) -> tuple[tuple[Credential, ...], tuple[str, ...]]:
        found: list[Credential] = []
        problems: list[str] = []
        for name in self._files.names():
            try:
                record = self._files.load(name)
            except OSError as error:
                problems.append(why(error))
                continue
            if record is not None:
                found.append(view_of(record))
        return tuple(found), tuple(problems)

    # --- changing ------------------------------------------------------------------------

    async def refresh(self, effect: RefreshCredential, context: Context) -> Outcome:
        """One refresh in all processes; it ends although its owner ends."""
        outcome = await self._holding.whole(self._refreshing.refresh(effect))
        if isinstance(outcome, CredentialRefreshDone):
            # The new tokens are at hand before anybody is told of them.
            await self._leaves.workers.run(self._read, effect.server)
        return outcome

    async def note(self, effect: NoteScopes, context: Context) -> Outcome:
        """Keep scopes for the next sign-in."""
        server_id = effect.server.server_id

        def change(record: CredentialRecord) -> CredentialRecord:
            return replace(record, pending=effect.scopes)

        try:
            await self._holding.whole(self._change(effect.server, change))
        except (OSError, ValueError) as error:
            return ScopesNotNoted(server_id=server_id, reason=why(error))
        return ScopesNoted(server_id=server_id)

    async def _change(self, server: McpServer, change: Change) -> None:
        name = name_of(server.server_id, server.url)
        async with self._holding.of(name):
            await self._leaves.workers.run(self._apply, name, change)

    def _apply(self, name: str, change: Change) -> None:
        record = self._files.load(name)
        if record is not None:
            self._files.save(name, change(record))

    async def install(self, server: McpServer, gained: Gained) -> Signed:
        """Keep what a sign-in brought; durable when this returns.

        Raises:
            OSError: it is not kept.
        """
        return await self._holding.whole(self._install(server, gained))

    async def _install(self, server: McpServer, gained: Gained) -> Signed:
        name = name_of(server.server_id, server.url)
        async with self._holding.of(name) as claim:
            return await self._leaves.workers.run(self._put, name, server, gained, claim)

    def _put(self, name: str, server: McpServer, gained: Gained, claim: HeldClaim) -> Signed:
        before = self._load_or_none(name)
        store = self.stores.preferred()
        generation = self._holding.next_generation(claim, before.generation if before else 0)
        secret = _secret_of(gained, generation)
        client = gained.client
        if gained.client_secret:
            client = replace(client, secret=f"{name}.client.{generation}")
            self._files.save_client_secret(store, client.secret, gained.client_secret)
        self._files.save_secret(name, store, secret)
        record = CredentialRecord(
            server_id=server.server_id,
            url=server.url,
            generation=generation,
            store=store,
            resource=gained.resource,
            endpoints=gained.endpoints,
            client=client,
            requested=gained.requested,
            step_ups=_step_ups(before, gained),
            used_by=_with(before.used_by if before else (), self._root),
            tokens=secret.record,
        )
        self._files.save(name, record)
        self._bearers[name] = secret
        if before is not None:
            self._drop_secrets(name, before)
        view = view_of(record)
        assert isinstance(view, Signed)
        return view

    def client_of(self, server: McpServer) -> tuple[CredentialRecord, str] | None:
        """What an earlier sign-in left to be used again, and the client's secret.  Blocks."""
        name = name_of(server.server_id, server.url)
        record = self._load_or_none(name)
        if record is None:
            return None
        try:
            return record, self._files.client_secret(record)
        except OSError:
            return replace(record, client=replace(record.client, refused=True)), ""

    # --- removing ------------------------------------------------------------------------

    async def remove(self, effect: RemoveCredential, context: Context) -> Outcome:
        """Under the claim; it ends although its owner ends."""
        self._bearers.pop(name_of(effect.server.server_id, effect.server.url), None)
        return await self._removing.remove(effect)

    async def sweep(self, effect: SweepCredentials, context: Context) -> Outcome:
        """What this root does not use any more, and nobody else does, goes."""
        return await self._removing.sweep(effect)

    async def whole(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it to its end, also when the caller is cancelled meanwhile."""
        return await self._holding.whole(work)

    async def close(self) -> None:
        """Wait for what is under way; what nobody could save is tried a last time."""
        await self._holding.close()

    # --- pieces --------------------------------------------------------------------------

    def _load_or_none(self, name: str) -> CredentialRecord | None:
        try:
            return self._files.load(name)
        except CredentialUnreadable:
            return None

    def _drop_secrets(self, name: str, before: CredentialRecord) -> None:
        with suppress(OSError):  # what stays is of no use to anybody
            self._files.drop_secret(name, before.store, before.generation)
            self._files.drop_client_secret(before)


def _secret_of(gained: Gained, generation: int) -> TokenSecret:
    tokens = gained.tokens
    expires_at_ms = gained.sent_at_ms + tokens.expires_s * 1000 if tokens.expires_s else 0
    return TokenSecret(
        generation=generation,
        access_token=tokens.access_token,
        refresh_token=tokens.refresh_token,
        record=TokensRecord(
            expires_at_ms=expires_at_ms,
            renewable=bool(tokens.refresh_token),
            granted=tokens.scopes or gained.requested,
        ),
    )


def _step_ups(before: CredentialRecord | None, gained: Gained) -> int:
    """Scopes that were added by a server's demand count; a first sign-in begins anew."""
    if before is None or not before.pending:
        return 0
    return before.step_ups + 1


def _with(roots: tuple[str, ...], root: str) -> tuple[str, ...]:
    return roots if root in roots else (*roots, root)
