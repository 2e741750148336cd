"""A credential on disk: what is known of a server's tokens, and where the tokens are.

`<data of the user>/credentials/<server id>-<digest of the URL>.json` holds no
secret.  The tokens of generation 7 are the secret `<same name>.7`, so that new
ones never overwrite those that they replace: the record names the generation that
counts, and it changes in one move.

    persist the intent -> send -> persist the secret -> persist the record -> drop the old secret

Who finds an intent looks for the secret that it names first: if it is there, the
process that died had the answer in its hands, and only the record is missing.

Everything here blocks and is called under the credential's claim, but for `load`.
"""

import hashlib
import re

import msgspec
from msgspec.structs import replace

from tenure.messages.mcp_auth import Credential, Signed, Unsigned
from tenure.messages.tokens import ServerId
from tenure.runtime.doors.claims import make_folders_durably, replace_durably
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.mcp.token_requests import AuthMethod
from tenure.runtime.doors.mcp.urls import canonical
from tenure.runtime.doors.secrets import SecretStores, StoreName

RECORD_BYTES_MAX = 262_144
SUFFIX = ".json"
_SERVER_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}")


class CredentialUnreadable(OSError):
    """The record or its secret is damaged; the text says which file, and what to do."""


class ClientRecord(msgspec.Struct, frozen=True, kw_only=True):
    """As whom we are known to the authorization server."""

    client_id: str
    auth_method: AuthMethod = "none"
    origin: str = "registered"
    """`given`, `document` or `registered`."""
    redirect_uri: str = ""
    secret: str = ""
    """The name of its secret in the store; empty where it has none."""
    refused: bool = False
    """The server does not know it any more: the next sign-in registers anew."""


class Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    """The authorization server, as it was at the sign-in.  Tokens go nowhere else."""

    issuer: str
    authorization: str
    token: str
    registration: str = ""
    revocation: str = ""


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """A refresh token is about to be sent, or was sent and its answer was never seen."""

    generation: int
    """Of the tokens that will come."""
    unanswered: int
    """How often the refresh token may have been sent with no answer seen."""


class TokensRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What may be known of tokens."""

    expires_at_ms: int = 0
    renewable: bool = False
    granted: tuple[str, ...] = ()


class CredentialRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The file."""

    version: int = 1
    server_id: ServerId
    url: str
    generation: int
    store: StoreName
    resource: str
    endpoints: Endpoints
    client: ClientRecord
    requested: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    step_ups: int = 0
    used_by: tuple[str, ...] = ()
    """The roots whose settings name this server."""
    tokens: TokensRecord | None = None
    """None: signed out, or lost."""
    lost: str = ""
    """Why there are none, where they were lost."""
    intent: Intent | None = None


class TokenSecret(msgspec.Struct, frozen=True, kw_only=True):
    """The secret text of one generation, as JSON; with what its record will say."""

    generation: int
    access_token: str
    refresh_token: str = ""
    record: TokensRecord


def name_of(server_id: ServerId, url: str) -> str:
    """One name for one server at one address: a server that moved has another.

    Raises:
        ValueError: the id is none, or the URL is none.
    """
    if not _SERVER_ID.fullmatch(server_id):
        raise ValueError(f"{server_id!r} is no name of a server: letters, digits, `_`, `-`, `.`")
    digest = hashlib.sha256(canonical(url).encode()).hexdigest()[:16]
    return f"{server_id}-{digest}"


def view_of(record: CredentialRecord) -> Credential:
    """What owners may know of a record."""
    if record.tokens is None:
        return Unsigned(
            server_id=record.server_id,
            url=record.url,
            pending=record.pending,
            reason=record.lost or "not signed in",
        )
    return Signed(
        server_id=record.server_id,
        url=record.url,
        generation=record.generation,
        issuer=record.endpoints.issuer,
        resource=record.resource,
        requested=record.requested,
        granted=record.tokens.granted,
        expires_at_ms=record.tokens.expires_at_ms,
        renewable=record.tokens.renewable,
        pending=record.pending,
        step_ups=record.step_ups,
        store=record.store,
        unanswered=record.intent.unanswered if record.intent else 0,
    )


class CredentialFiles:
    """Reads and writes the records of one user, and their secrets."""

    def __init__(self, files: Files, stores: SecretStores, folder: str) -> None:
        self._files = files
        self._stores = stores
        self.folder = folder

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}{SUFFIX}"

    def names(self) -> tuple[str, ...]:
        """Every record that lies there."""
        try:
            found = self._files.list(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        return tuple(
            name.removesuffix(SUFFIX)
            for name, kind in found
            if kind == "file" and name.endswith(SUFFIX)
        )

    def load(self, name: str) -> CredentialRecord | None:
        """The record; None where there is none.

        Raises:
            CredentialUnreadable: it is damaged, or of a later version.
        """
        path = self.path(name)
        try:
            file = self._files.open(path, "read")
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            data = file.read_at(0, RECORD_BYTES_MAX)
        finally:
            file.close()
        try:
            record = msgspec.json.decode(data, type=CredentialRecord)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise CredentialUnreadable(
                f"{path}: this cannot be read; remove it with `host.mcp.forget`"
            ) from None
        if record.version != 1:
            raise CredentialUnreadable(f"{path}: it was written by a later version of tenure")
        return record

    def save(self, name: str, record: CredentialRecord) -> None:
        """Durable when this returns."""
        make_folders_durably(self._files, self.folder)
        data = msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"
        replace_durably(self._files, self.path(name), data)

    def drop(self, name: str) -> None:
        """Remove the record.  Its claim stays: generations are never given out again."""
        try:
            self._files.remove(self.path(name))
        except FileNotFoundError:
            return
        self._files.sync_folder(self.folder)

    # --- secrets -------------------------------------------------------------------------

    def secret(self, name: str, record: CredentialRecord) -> TokenSecret:
        """The tokens that count now.

        Raises:
            CredentialUnreadable: they are gone, or damaged.
        """
        found = self.saved_secret(name, record, record.generation)
        if found is None:
            raise CredentialUnreadable(f"{name}: its tokens are not in the {record.store} any more")
        return found

    def saved_secret(
        self, name: str, record: CredentialRecord, generation: int
    ) -> TokenSecret | None:
        """The tokens of one generation; None where they are not there whole."""
        text = self._stores.of(record.store).read(f"{name}.{generation}")
        if text is None:
            return None
        try:
            found = msgspec.json.decode(text, type=TokenSecret)
        except (msgspec.DecodeError, RecursionError):
            return None
        return found if found.generation == generation else None

    def save_secret(self, name: str, store: StoreName, secret: TokenSecret) -> None:
        text = msgspec.json.encode(secret).decode()
        self._stores.of(store).write(f"{name}.{secret.generation}", text)

    def drop_secret(self, name: str, store: StoreName, generation: int) -> None:
        self._stores.of(store).remove(f"{name}.{generation}")

    def client_secret(self, record: CredentialRecord) -> str:
        """Empty where the client has none.  Raises `CredentialUnreadable`."""
        if not record.client.secret:
            return ""
        found = self._stores.of(record.store).read(record.client.secret)
        if found is None:
            raise CredentialUnreadable(f"{record.server_id}: its client's secret is gone")
        return found

    def save_client_secret(self, store: StoreName, secret_name: str, value: str) -> None:
        self._stores.of(store).write(secret_name, value)

    def drop_client_secret(self, record: CredentialRecord) -> None:
        if record.client.secret:
            self._stores.of(record.store).remove(record.client.secret)


def with_new_tokens(record: CredentialRecord, secret: TokenSecret) -> CredentialRecord:
    """The record once new tokens are durable."""
    return replace(record, generation=secret.generation, tokens=secret.record, intent=None, lost="")


def without_tokens(record: CredentialRecord, why: str) -> CredentialRecord:
    """The record once its tokens are of no use."""
    return replace(record, tokens=None, intent=None, lost=why)
