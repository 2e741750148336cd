"""The McpAuthActor's state: a flight for each server that something is done about."""

from typing import Literal

import msgspec
from msgspec.structs import replace

from tenure.messages.mcp_auth import Challenge, McpServer, Signed
from tenure.messages.tokens import ServerId
from tenure.runtime.step import AskId

SKEW_MS = 60_000
"""A token that is good for less than this is refreshed before it is used."""
STEP_UPS_MAX = 3
"""How often a server may ask for further scopes after the first sign-in."""
SCOPES_MAX = 64
"""How many scopes a sign-in asks for at most."""

# --- who wants what ------------------------------------------------------------------------


class WantsAccess(msgspec.Struct, frozen=True):
    asker: AskId | None
    server: McpServer


class WantsRenewal(msgspec.Struct, frozen=True):
    """The token of this generation was refused."""

    asker: AskId | None
    server: McpServer
    generation: int
    challenge: Challenge


class WantsRemoval(msgspec.Struct, frozen=True):
    asker: AskId | None
    server: McpServer
    what: Literal["tokens", "everything"]


Want = WantsAccess | WantsRenewal | WantsRemoval
AccessWant = WantsAccess | WantsRenewal

# --- flights ---------------------------------------------------------------------------------


class Reading(msgspec.Struct, frozen=True):
    """What there is now is being read."""

    server: McpServer
    wants: tuple[AccessWant, ...]
    later: tuple[Want, ...] = ()


class Refreshing(msgspec.Struct, frozen=True):
    """The tokens of this generation are being replaced; everybody gets the new ones."""

    server: McpServer
    before: Signed
    wants: tuple[AccessWant, ...]
    later: tuple[Want, ...] = ()


class Noting(msgspec.Struct, frozen=True):
    """A server asked for further scopes; they are being kept for the next sign-in."""

    server: McpServer
    scopes: tuple[str, ...]
    wants: tuple[AccessWant, ...]
    later: tuple[Want, ...] = ()


class Removing(msgspec.Struct, frozen=True):
    server: McpServer
    asker: AskId | None
    later: tuple[Want, ...] = ()


Flight = Reading | Refreshing | Noting | Removing


class SigningIn(msgspec.Struct, frozen=True):
    """The user is signing in.  The tokens that are there stay in use meanwhile."""

    server: McpServer
    sign_in_id: str
    asker: AskId | None


class Serving(msgspec.Struct, frozen=True):
    """The owner's one state."""

    flights: tuple[Flight, ...] = ()
    sign_ins: tuple[SigningIn, ...] = ()


# --- pure helpers ------------------------------------------------------------------------


def flight_of(state: Serving, server_id: ServerId) -> Flight | None:
    """The flight of a server, by its stable id: servers are loaded anew, and are then others."""
    return next((each for each in state.flights if each.server.server_id == server_id), None)


def with_flight(state: Serving, flight: Flight) -> Serving:
    """This flight, in the place of the server's present one."""
    return replace(without_flight(state, flight.server.server_id), flights=_put(state, flight))


def without_flight(state: Serving, server_id: ServerId) -> Serving:
    flights = tuple(each for each in state.flights if each.server.server_id != server_id)
    return replace(state, flights=flights)


def _put(state: Serving, flight: Flight) -> tuple[Flight, ...]:
    rest = without_flight(state, flight.server.server_id).flights
    return (*rest, flight)


def sign_in_of(state: Serving, sign_in_id: str) -> SigningIn | None:
    return next((each for each in state.sign_ins if each.sign_in_id == sign_in_id), None)


def without_sign_in(state: Serving, sign_in_id: str) -> Serving:
    sign_ins = tuple(each for each in state.sign_ins if each.sign_in_id != sign_in_id)
    return replace(state, sign_ins=sign_ins)


def fresh_enough(credential: Signed, now_ms: int) -> bool:
    """Whether a token can be used without refreshing it first."""
    return not credential.expires_at_ms or credential.expires_at_ms > now_ms + SKEW_MS


def still_good(credential: Signed, now_ms: int) -> bool:
    return not credential.expires_at_ms or credential.expires_at_ms > now_ms


def union(*scopes: tuple[str, ...]) -> tuple[str, ...]:
    """All of them once, in the order in which they came; bounded."""
    return tuple(dict.fromkeys(each for some in scopes for each in some))[:SCOPES_MAX]
