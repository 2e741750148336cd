"""McpAuthActor: who may use an MCP server with which tokens.  It never sees a token.

A server has one flight at a time, any number of servers side by side:

    Reading -> gone                        the tokens are good, or there are none
    Reading -> Refreshing -> gone          one exchange for everybody who waits
    Reading -> Noting -> gone              a server wants more scopes: the user must sign in
    Removing -> gone                       a sign-out

A sign-in runs beside it, and its tokens take effect when they are durable.

ARCHITECTURE.md, section McpAuthActor.
"""

from msgspec.structs import replace

from tenure.actors.mcp_auth_access import (
    on_not_read,
    on_not_refreshed,
    on_noted,
    on_read,
    on_refresh_refused,
    on_refreshed,
    on_removal_failed,
    on_removed,
    on_want,
)
from tenure.actors.mcp_auth_state import (
    Serving,
    SigningIn,
    WantsAccess,
    WantsRemoval,
    WantsRenewal,
    sign_in_of,
    union,
    without_sign_in,
)
from tenure.messages.base import Message
from tenure.messages.bus import OwnerStarted, Unhandled
from tenure.messages.mcp_auth import (
    AuthStatus,
    CancelSignIn,
    CredentialsReconciled,
    ForgetServer,
    GetAuthStatus,
    NoSignIn,
    NotSignedIn,
    ObtainAccess,
    ReconcileCredentials,
    RenewAccess,
    SignedIn,
    SignInBegun,
    SignInBusy,
    SignInEnded,
    SignInProgressed,
    SignInServer,
    SignInStopping,
    SignOutServer,
)
from tenure.messages.mcp_auth_effects import (
    AuthorizeServer,
    CredentialGone,
    CredentialNotGone,
    CredentialNotRead,
    CredentialNotRefreshed,
    CredentialRead,
    CredentialRefreshDone,
    CredentialRefreshRefused,
    CredentialsListed,
    CredentialsSwept,
    ListCredentials,
    ScopesNoted,
    ScopesNotNoted,
    ServerAuthorized,
    ServerNotAuthorized,
    ServerProgressed,
    SweepCredentials,
)
from tenure.runtime.owner import Owner
from tenure.runtime.step import AskId, Step, Taken

__all__ = ["McpAuthActor", "Serving", "mcp_auth_step"]


def mcp_auth_step(state: Serving, message: Message, taken: Taken) -> Step[Serving]:
    """Decide one message."""
    match message:
        case ObtainAccess(server=server):
            return on_want(state, WantsAccess(taken.asker, server))
        case RenewAccess(server=server, generation=generation, challenge=challenge):
            return on_want(state, WantsRenewal(taken.asker, server, generation, challenge))
        case SignOutServer(server=server):
            return on_want(state, WantsRemoval(taken.asker, server, "tokens"))
        case ForgetServer(server=server):
            return on_want(state, WantsRemoval(taken.asker, server, "everything"))
        case SignInServer():
            return on_sign_in(state, message, taken.asker)
        case CancelSignIn(sign_in_id=sign_in_id):
            return on_cancel(state, sign_in_id, taken.asker)
        case GetAuthStatus():
            return Step(state).do(ListCredentials(asker=taken.asker))
        case ReconcileCredentials(servers=servers, retained=retained):
            sweep = SweepCredentials(asker=taken.asker, servers=servers, retained=retained)
            return Step(state).do(sweep)
        case OwnerStarted():
            return Step(state)
        case _:
            return on_outcome(state, message, taken)


def on_outcome(state: Serving, message: Message, taken: Taken) -> Step[Serving]:
    """How something outside went."""
    match message:
        case CredentialRead(server_id=server_id, credential=credential):
            return on_read(state, server_id, credential, taken.now_ms)
        case CredentialNotRead(server_id=server_id, reason=reason):
            return on_not_read(state, server_id, reason)
        case CredentialRefreshDone(server_id=server_id, credential=credential):
            return on_refreshed(state, server_id, credential)
        case CredentialRefreshRefused(server_id=server_id, reason=reason):
            return on_refresh_refused(state, server_id, reason)
        case CredentialNotRefreshed(server_id=server_id, reason=reason):
            return on_not_refreshed(state, server_id, reason, taken.now_ms)
        case ScopesNoted(server_id=server_id) | ScopesNotNoted(server_id=server_id):
            return on_noted(state, server_id)
        case CredentialGone(server_id=server_id, revoked=revoked):
            return on_removed(state, server_id, revoked)
        case CredentialNotGone(server_id=server_id, reason=reason):
            return on_removal_failed(state, server_id, reason)
        case ServerProgressed() | ServerAuthorized() | ServerNotAuthorized():
            return on_authorization(state, message)
        case CredentialsListed() | CredentialsSwept():
            return on_listed(state, message)
        case _:
            return Step(state).answer(taken.asker, Unhandled(message=type(message).__name__))


# --- sign-in -----------------------------------------------------------------------------


def on_sign_in(state: Serving, message: SignInServer, asker: AskId | None) -> Step[Serving]:
    """One sign-in for a server in this host; each has a receiver and a verifier of its own."""
    server = message.server
    for other in state.sign_ins:
        if other.server.server_id == server.server_id:  # guard: AUTH-6
            busy = SignInBusy(server_id=server.server_id, sign_in_id=other.sign_in_id)
            return Step(state).answer(asker, busy)
    begun = SigningIn(server, message.sign_in_id, asker)
    step = Step(replace(state, sign_ins=(*state.sign_ins, begun)))
    authorize = AuthorizeServer(
        server=server, sign_in_id=message.sign_in_id, scopes=union(message.scopes)
    )
    event = SignInBegun(server_id=server.server_id, sign_in_id=message.sign_in_id)
    return step.emit(event).do(authorize)


def on_cancel(state: Serving, sign_in_id: str, asker: AskId | None) -> Step[Serving]:
    """The end comes as the sign-in's own outcome: it may have succeeded meanwhile."""
    if sign_in_of(state, sign_in_id) is None:
        return Step(state).answer(asker, NoSignIn(sign_in_id=sign_in_id))
    stopping = SignInStopping(sign_in_id=sign_in_id)
    return Step(state).answer(asker, stopping).cancel(f"sign-in/{sign_in_id}")


def on_authorization(
    state: Serving, message: ServerProgressed | ServerAuthorized | ServerNotAuthorized
) -> Step[Serving]:
    """How far a sign-in is, or how it ended."""
    server_id, sign_in_id = message.server_id, message.sign_in_id
    begun = sign_in_of(state, sign_in_id)
    if begun is None:
        return Step(state)
    over = without_sign_in(state, sign_in_id)
    match message:
        case ServerProgressed(stage=stage):
            progressed = SignInProgressed(server_id=server_id, sign_in_id=sign_in_id, stage=stage)
            return Step(state).emit(progressed)
        case ServerAuthorized(credential=credential):
            ended = SignInEnded(server_id=server_id, sign_in_id=sign_in_id, status="signed_in")
            return Step(over).answer(begun.asker, SignedIn(credential=credential)).emit(ended)
        case ServerNotAuthorized(stage=stage, reason=reason):
            ended = SignInEnded(server_id=server_id, sign_in_id=sign_in_id, status="failed")
            refusal = NotSignedIn(server_id=server_id, stage=stage, reason=reason)
            return Step(over).answer(begun.asker, refusal).emit(ended)


def on_listed(state: Serving, message: CredentialsListed | CredentialsSwept) -> Step[Serving]:
    asker = AskId(message.asker) if message.asker is not None else None
    if isinstance(message, CredentialsSwept):
        swept = CredentialsReconciled(removed=message.removed, problems=message.problems)
        return Step(state).answer(asker, swept)
    status = AuthStatus(
        credentials=message.credentials,
        signing_in=tuple(each.server.server_id for each in state.sign_ins),
        problems=message.problems,
    )
    return Step(state).answer(asker, status)


class McpAuthActor(Owner):
    step = staticmethod(mcp_auth_step)
    first = Serving
