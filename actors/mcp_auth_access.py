"""Access to a server: one flight for everybody who wants it at the same time."""

from typing import Literal

from msgspec.structs import replace

from tenure.actors.mcp_auth_state import (
    STEP_UPS_MAX,
    AccessWant,
    Flight,
    Noting,
    Reading,
    Refreshing,
    Removing,
    Serving,
    Want,
    WantsAccess,
    WantsRemoval,
    WantsRenewal,
    flight_of,
    fresh_enough,
    still_good,
    union,
    with_flight,
    without_flight,
)
from tenure.messages.base import Reply
from tenure.messages.mcp_auth import (
    AccessGranted,
    AccessLost,
    AccessRenewed,
    AccessUnavailable,
    Credential,
    CredentialKept,
    CredentialRemoved,
    ScopesRefused,
    Signed,
    SignInNeeded,
    Unsigned,
)
from tenure.messages.mcp_auth_effects import (
    NoteScopes,
    ReadCredential,
    RefreshCredential,
    RemoveCredential,
)
from tenure.messages.tokens import ServerId
from tenure.runtime.step import Step

# --- wants -------------------------------------------------------------------------------


def on_want(state: Serving, want: Want) -> Step[Serving]:
    """Join the server's flight where it serves this want too, else wait behind it."""
    flight = flight_of(state, want.server.server_id)
    if flight is None:
        return _begin(state, want)
    if isinstance(want, WantsRemoval) or isinstance(flight, Removing):
        return Step(with_flight(state, replace(flight, later=(*flight.later, want))))
    if _joins(flight, want):
        return Step(with_flight(state, replace(flight, wants=(*flight.wants, want))))
    return Step(with_flight(state, replace(flight, later=(*flight.later, want))))


def _joins(flight: Flight, want: AccessWant) -> bool:
    """Only wants of the same place join: a server that moved has other tokens."""
    match flight, want:
        case Reading(server, _, later), WantsAccess() | WantsRenewal():
            return not later and server == want.server
        case Refreshing(server, before, _, later), WantsAccess():
            return not later and server == want.server and before.url == server.url
        case Refreshing(server, before, _, later), WantsRenewal(_, _, generation, challenge):
            same = not later and server == want.server and generation <= before.generation
            return same and challenge.status == 401
        case _:
            return False


def _begin(state: Serving, want: Want, later: tuple[Want, ...] = ()) -> Step[Serving]:
    server = want.server
    if isinstance(want, WantsRemoval):
        removing = Removing(server, want.asker, later)
        remove = RemoveCredential(server=server, what=want.what)
        return Step(with_flight(state, removing)).do(remove)
    reading = Reading(server, (want,))
    step = Step(with_flight(state, reading)).do(ReadCredential(server=server))
    for each in later:
        further = on_want(step.state, each)
        step = replace(step, state=further.state)  # it joins or waits, and sends nothing
    return step


def _next(step: Step[Serving], server_id: ServerId, later: tuple[Want, ...]) -> Step[Serving]:
    """The flight is over: what waited behind it begins."""
    free = without_flight(step.state, server_id)
    if not later:
        return step.to(free)
    begun = _begin(free, later[0], later[1:])
    return replace(step, state=begun.state, effects=step.effects + begun.effects)


# --- reading -----------------------------------------------------------------------------


def on_read(
    state: Serving, server_id: ServerId, credential: Credential, now_ms: int
) -> Step[Serving]:
    """What there is now, whoever changed it: grant, refresh, or send to the user."""
    flight = flight_of(state, server_id)
    if not isinstance(flight, Reading):
        return Step(state)
    if isinstance(credential, Unsigned):
        step = Step(state)
        for want in flight.wants:
            step = step.answer(want.asker, _unsigned(credential, want))
        return _next(step, server_id, flight.later)
    return _on_signed(state, flight, credential, now_ms)


def _on_signed(state: Serving, flight: Reading, credential: Signed, now_ms: int) -> Step[Serving]:
    step = Step(state)
    refreshing: list[AccessWant] = []
    more: list[WantsRenewal] = []
    for want in flight.wants:
        if isinstance(want, WantsRenewal) and _wants_scopes(want, credential):
            more.append(want)
        elif _can_use(want, credential, now_ms):
            step = step.answer(want.asker, granted(credential))
        elif credential.renewable:
            refreshing.append(want)
        else:
            refusal = SignInNeeded(server_id=flight.server.server_id, reason="the access ran out")
            step = step.answer(want.asker, refusal)
    if refreshing:
        later = (*more, *flight.later)
        going = Refreshing(flight.server, credential, tuple(refreshing), later)
        refresh = RefreshCredential(server=flight.server, generation=credential.generation)
        return step.to(with_flight(state, going)).do(refresh)
    if more:
        return _step_up(step, flight, credential, more)
    return _next(step, flight.server.server_id, flight.later)


def _can_use(want: AccessWant, credential: Signed, now_ms: int) -> bool:
    if isinstance(want, WantsRenewal):
        return credential.generation > want.generation
    return fresh_enough(credential, now_ms) or (
        not credential.renewable and still_good(credential, now_ms)
    )


def _wants_scopes(want: WantsRenewal, credential: Signed) -> bool:
    """A refused right is no matter of a fresher token, unless a newer sign-in has it."""
    if want.challenge.status != 403:
        return False
    asked_since = set(want.challenge.scopes) <= set(credential.requested)
    return not (credential.generation > want.generation and asked_since)


def on_not_read(state: Serving, server_id: ServerId, reason: str) -> Step[Serving]:
    flight = flight_of(state, server_id)
    if not isinstance(flight, Reading):
        return Step(state)
    return _unavailable(state, flight, reason)


# --- refreshing --------------------------------------------------------------------------


def on_refreshed(state: Serving, server_id: ServerId, credential: Signed) -> Step[Serving]:
    """The new tokens are durable: everybody who waited gets them."""
    flight = flight_of(state, server_id)
    if not isinstance(flight, Refreshing):
        return Step(state)
    step = Step(state).emit(AccessRenewed(server_id=server_id, generation=credential.generation))
    for want in flight.wants:
        step = step.answer(want.asker, granted(credential))
    return _next(step, server_id, flight.later)


def on_refresh_refused(state: Serving, server_id: ServerId, reason: str) -> Step[Serving]:
    flight = flight_of(state, server_id)
    if not isinstance(flight, Refreshing):
        return Step(state)
    step = Step(state).emit(AccessLost(server_id=server_id, reason=reason))
    for want in flight.wants:
        needed = SignInNeeded(server_id=server_id, reason=reason, scopes=flight.before.requested)
        step = step.answer(want.asker, needed)
    return _next(step, server_id, flight.later)


def on_not_refreshed(
    state: Serving, server_id: ServerId, reason: str, now_ms: int
) -> Step[Serving]:
    """A token that is good for some seconds yet is better than none."""
    flight = flight_of(state, server_id)
    if not isinstance(flight, Refreshing):
        return Step(state)
    step = Step(state)
    for want in flight.wants:
        reply: Reply = AccessUnavailable(server_id=server_id, reason=reason)
        if isinstance(want, WantsAccess) and still_good(flight.before, now_ms):
            reply = granted(flight.before)
        step = step.answer(want.asker, reply)
    return _next(step, server_id, flight.later)


# --- further scopes ----------------------------------------------------------------------


def _step_up(
    step: Step[Serving], flight: Reading, credential: Signed, wants: list[WantsRenewal]
) -> Step[Serving]:
    """The union of what was and what is asked for, a bounded number of times."""
    asked = union(*(want.challenge.scopes for want in wants))
    wanted = union(credential.requested, credential.pending, asked)
    known = set(credential.requested)
    if credential.step_ups >= STEP_UPS_MAX or set(wanted) <= known:
        for want in wants:
            refused = ScopesRefused(server_id=flight.server.server_id, scopes=want.challenge.scopes)
            step = step.answer(want.asker, refused)
        return _next(step, flight.server.server_id, flight.later)
    noting = Noting(flight.server, wanted, tuple(wants), flight.later)
    note = NoteScopes(server=flight.server, scopes=wanted)
    return step.to(with_flight(step.state, noting)).do(note)


def on_noted(state: Serving, server_id: ServerId) -> Step[Serving]:
    """Kept or not, the user is told which scopes to ask for."""
    flight = flight_of(state, server_id)
    if not isinstance(flight, Noting):
        return Step(state)
    step = Step(state)
    for want in flight.wants:
        needed = SignInNeeded(
            server_id=server_id, reason="the server asks for more rights", scopes=flight.scopes
        )
        step = step.answer(want.asker, needed)
    return _next(step, server_id, flight.later)


# --- removal -----------------------------------------------------------------------------


def on_removed(
    state: Serving, server_id: ServerId, revoked: Literal["revoked", "not_revoked", "nothing"]
) -> Step[Serving]:
    flight = flight_of(state, server_id)
    if not isinstance(flight, Removing):
        return Step(state)
    removed = CredentialRemoved(server_id=server_id, revoked=revoked)
    step = Step(state).answer(flight.asker, removed)
    if revoked != "nothing":
        step = step.emit(AccessLost(server_id=server_id, reason="signed out"))
    return _next(step, server_id, flight.later)


def on_removal_failed(state: Serving, server_id: ServerId, reason: str) -> Step[Serving]:
    flight = flight_of(state, server_id)
    if not isinstance(flight, Removing):
        return Step(state)
    kept = CredentialKept(server_id=server_id, reason=reason)
    return _next(Step(state).answer(flight.asker, kept), server_id, flight.later)


# --- pure helpers ------------------------------------------------------------------------


def granted(credential: Signed) -> AccessGranted:
    return AccessGranted(
        server_id=credential.server_id,
        generation=credential.generation,
        resource=credential.resource,
        expires_at_ms=credential.expires_at_ms,
    )


def _unsigned(credential: Unsigned, want: AccessWant) -> SignInNeeded:
    asked = want.challenge.scopes if isinstance(want, WantsRenewal) else ()
    return SignInNeeded(
        server_id=credential.server_id,
        reason=credential.reason,
        scopes=union(credential.pending, asked),
    )


def _unavailable(state: Serving, flight: Reading, reason: str) -> Step[Serving]:
    server_id = flight.server.server_id
    step = Step(state)
    for want in flight.wants:
        step = step.answer(want.asker, AccessUnavailable(server_id=server_id, reason=reason))
    return _next(step, server_id, flight.later)
