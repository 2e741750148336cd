"""One refresh, from the claim to durable tokens.

    lock -> read again -> adopt a winner's tokens, or persist the intent -> send
         -> persist the new tokens -> show them -> unlock

A refresh token that rotates can be used once, and a server that sees it twice
takes the whole sign-in away.  So it is sent by one process at a time, never after
somebody else had an answer, and at most once more after an answer that nobody saw.
"""

from contextlib import suppress

import msgspec
from msgspec.structs import replace

from tenure.messages.base import Outcome
from tenure.messages.mcp_auth import Signed
from tenure.messages.mcp_auth_effects import (
    CredentialNotRefreshed,
    CredentialRefreshDone,
    CredentialRefreshRefused,
    RefreshCredential,
)
from tenure.messages.tokens import ServerId
from tenure.runtime.doors.claims import HeldClaim
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.mcp.credential_file import (
    CredentialFiles,
    CredentialRecord,
    Intent,
    TokenSecret,
    TokensRecord,
    name_of,
    view_of,
    with_new_tokens,
    without_tokens,
)
from tenure.runtime.doors.mcp.holding import Holding
from tenure.runtime.doors.mcp.token_requests import (
    ClientIdentity,
    NewTokens,
    TokenAnswer,
    TokenRefused,
    TokenRequests,
    TokenUnanswered,
    TokenUnsent,
)

UNANSWERED_MAX = 2
"""A refresh token whose answer was missed so often is never sent again."""
SAVE_PAUSES_S = (0.1, 0.5)
"""Before the second and the third attempt to save new tokens."""
DEAD_TOKEN = frozenset({"invalid_grant", "invalid_token"})
DEAD_CLIENT = frozenset({"invalid_client", "unauthorized_client"})


class Sending(msgspec.Struct, frozen=True):
    """The intent is durable: the refresh token may be sent.  Secret: never in a message."""

    name: str
    record: CredentialRecord
    """With the intent."""
    before: Intent | None
    secret: TokenSecret
    client: ClientIdentity
    sent_at_ms: int


class Refreshing:
    """Carries out `RefreshCredential`, one at a time for each credential in all processes."""

    def __init__(
        self, leaves: Leaves, files: CredentialFiles, holding: Holding, requests: TokenRequests
    ) -> None:
        self._leaves = leaves
        self._files = files
        self._holding = holding
        self._requests = requests

    async def refresh(self, effect: RefreshCredential) -> Outcome:
        """To be run inside `Holding.whole`: who waits for it may go."""
        server_id = effect.server.server_id
        try:
            name = name_of(server_id, effect.server.url)
            async with self._holding.of(name) as claim:
                begun = await self._leaves.workers.run(self._begin, name, effect, claim)
                if not isinstance(begun, Sending):
                    return begun
                omitted = effect.server.resource_on_refresh == "omit"
                answer = await self._requests.refresh(
                    begun.record.endpoints.token,
                    begun.client,
                    begun.secret.refresh_token,
                    "" if omitted else begun.record.resource,
                )
                return await self._settle(begun, claim, answer)
        except (OSError, ValueError) as error:
            return CredentialNotRefreshed(server_id=server_id, reason=why(error))

    def _begin(self, name: str, effect: RefreshCredential, claim: HeldClaim) -> Outcome | Sending:
        """Under the claim everything is read again: what was known before is only a hint."""
        record = self._files.load(name)
        if record is None or record.tokens is None or not record.tokens.renewable:
            lost = record.lost if record is not None and record.lost else "not signed in"
            return CredentialRefreshRefused(server_id=effect.server.server_id, reason=lost)
        if record.generation > effect.generation:  # guard: AUTH-1
            return _done(record)
        found = self._answered_before(name, record)
        if found is not None:
            return self._commit(name, record, found)
        unanswered = record.intent.unanswered if record.intent is not None else 0
        if unanswered >= UNANSWERED_MAX:  # guard: AUTH-5
            reason = "twice no answer to a refresh was seen, and a third try could do harm"
            return CredentialRefreshRefused(server_id=record.server_id, reason=reason)
        secret = self._files.secret(name, record)
        client = ClientIdentity(
            client_id=record.client.client_id,
            auth_method=record.client.auth_method,
            client_secret=self._files.client_secret(record),
        )
        generation = self._holding.next_generation(claim, record.generation)
        intent = Intent(generation=generation, unanswered=unanswered + 1)
        intended = replace(record, intent=intent)
        self._files.save(name, intended)
        return Sending(name, intended, record.intent, secret, client, self._leaves.clock.now_ms())

    def _answered_before(self, name: str, record: CredentialRecord) -> TokenSecret | None:
        """Tokens that a process had saved when it died, before it could say so."""
        if record.intent is None:
            return None
        return self._files.saved_secret(name, record, record.intent.generation)

    def _commit(self, name: str, record: CredentialRecord, secret: TokenSecret) -> Outcome:
        after = with_new_tokens(record, secret)
        self._files.save(name, after)
        with suppress(OSError):  # what stays is of no use to anybody
            self._files.drop_secret(name, record.store, record.generation)
        return _done(after)

    async def _settle(self, sent: Sending, claim: HeldClaim, answer: TokenAnswer) -> Outcome:
        run = self._leaves.workers.run
        server_id = sent.record.server_id
        match answer:
            case NewTokens():
                return await self._install(sent, claim, answer)
            case TokenRefused(error=error, reason=reason) if error in DEAD_TOKEN:
                return await run(self._lose, sent, reason)
            case TokenRefused(error=error, reason=reason) if error in DEAD_CLIENT:
                await run(self._note_dead_client, sent)
                return CredentialRefreshRefused(server_id=server_id, reason=reason)
            case TokenRefused(reason=reason) | TokenUnsent(reason=reason):
                await run(self._withdraw, sent)
                return CredentialNotRefreshed(server_id=server_id, reason=reason)
            case TokenUnanswered(reason=reason):
                # The intent stays: the token may be spent.
                return CredentialNotRefreshed(server_id=server_id, reason=reason)

    async def _install(self, sent: Sending, claim: HeldClaim, tokens: NewTokens) -> Outcome:
        secret = self._secret_of(sent, tokens)

        def save(claim: HeldClaim) -> Outcome:
            return self._save(sent, secret)

        for pause_s in (*SAVE_PAUSES_S, None):
            try:
                return await self._leaves.workers.run(save, claim)
            except OSError as error:
                if pause_s is None:
                    self._holding.keep_unsaved(sent.name, claim, save)
                    reason = f"new tokens cannot be saved ({error.strerror or error})"
                    return CredentialNotRefreshed(server_id=sent.record.server_id, reason=reason)
                await self._leaves.clock.sleep(pause_s)
        raise AssertionError("the last attempt returns")

    def _secret_of(self, sent: Sending, tokens: NewTokens) -> TokenSecret:
        assert sent.record.intent is not None
        assert sent.record.tokens is not None
        refresh_token = tokens.refresh_token or sent.secret.refresh_token
        expires_at_ms = sent.sent_at_ms + tokens.expires_s * 1000 if tokens.expires_s else 0
        return TokenSecret(
            generation=sent.record.intent.generation,
            access_token=tokens.access_token,
            refresh_token=refresh_token,
            record=TokensRecord(
                expires_at_ms=expires_at_ms,
                renewable=True,
                granted=tokens.scopes or sent.record.tokens.granted,
            ),
        )

    def _save(self, sent: Sending, secret: TokenSecret) -> Outcome:
        """Persist, then show: nobody ever has a token that a crash would take back."""
        newer = self._newer(sent)
        if newer is not None:
            return newer
        self._files.save_secret(sent.name, sent.record.store, secret)
        return self._commit(sent.name, self._present(sent), secret)

    def _present(self, sent: Sending) -> CredentialRecord:
        """The record as it lies there: scopes may have been noted by somebody meanwhile."""
        found = self._files.load(sent.name)
        return sent.record if found is None else found

    def _newer(self, sent: Sending) -> Outcome | None:
        """What somebody installed meanwhile who does not see our claim; None where nobody did."""
        now = self._files.load(sent.name)
        if now is None or now.generation == sent.record.generation:
            return None
        return _done(now) if now.tokens is not None else _refused(now)

    def _lose(self, sent: Sending, reason: str) -> Outcome:
        """The server wants this refresh token no more: remove it, and only it."""
        newer = self._newer(sent)
        if newer is not None:  # guard: AUTH-4
            return newer
        record = self._present(sent)
        self._files.save(sent.name, without_tokens(record, reason))
        with suppress(OSError):
            self._files.drop_secret(sent.name, record.store, record.generation)
        return CredentialRefreshRefused(server_id=record.server_id, reason=reason)

    def _withdraw(self, sent: Sending) -> None:
        """The token was not used: as if it had not been sent."""
        with suppress(OSError):  # then one retry less is left, and no harm done
            if self._newer(sent) is None:
                self._files.save(sent.name, replace(self._present(sent), intent=sent.before))

    def _note_dead_client(self, sent: Sending) -> None:
        with suppress(OSError):
            if self._newer(sent) is None:
                record = self._present(sent)
                client = replace(record.client, refused=True)
                self._files.save(sent.name, replace(record, client=client, intent=sent.before))


def _done(record: CredentialRecord) -> Outcome:
    view = view_of(record)
    if not isinstance(view, Signed):
        return _refused(record)
    return CredentialRefreshDone(server_id=record.server_id, credential=view)


def _refused(record: CredentialRecord) -> Outcome:
    server_id: ServerId = record.server_id
    return CredentialRefreshRefused(server_id=server_id, reason=record.lost or "not signed in")


def why(error: Exception) -> str:
    """What went wrong, for people."""
    strerror = getattr(error, "strerror", None)
    return strerror if isinstance(strerror, str) and strerror else str(error)
