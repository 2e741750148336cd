"""A session changes hands: how a seat gives its session to another process.

The SessionActor takes the command; the TurnActor is told when it is done.
"""

from tenure.messages.base import Command, Effect, Event, Outcome, Refusal, Reply
from tenure.messages.tokens import CallId, SessionId, SessionToken

# --- commands --------------------------------------------------------------------------


class HandOverSession(Command, frozen=True, kw_only=True):
    """Another process wants the session: stop the turn, write what is owed, let go of it.

    Answered `HandedOver` once the claim is free, or `HandoverPending` while a tool
    that was told to stop still runs; the handover then goes on by itself.
    """

    session_id: SessionId
    ask_deadline_s = 120.0


class DetachSession(Command, frozen=True, kw_only=True):
    """The seat has no session any more.  A drain is over; what it held was given back."""


# --- replies ---------------------------------------------------------------------------


class HandedOver(Reply, frozen=True, kw_only=True):
    """The seat has let go of the session: whoever opens it first has it."""

    token: SessionToken
    """As it was here; the next holder counts on from it."""
    dropped: tuple[str, ...] = ()
    """Texts that waited in the session's queue, given back."""


class HandoverPending(Refusal, frozen=True, kw_only=True):
    """The turn was stopped, and tools of it still run: nothing can be handed over yet."""

    session_id: SessionId
    calls: tuple[CallId, ...]

    @property
    def remedy(self) -> str:
        count = len(self.calls)
        tools = "1 tool call has" if count == 1 else f"{count} tool calls have"
        return (
            f"{tools} been told to stop and still run; session {self.session_id} is let go of "
            "when they end: ask again"
        )


# --- events ----------------------------------------------------------------------------


class SessionHandedOver(Event, frozen=True, kw_only=True):
    """The seat gave its session away, because another process asked for it; it has none now."""

    token: SessionToken
    dropped: tuple[str, ...]
    """Texts that waited in the session's queue."""


# --- effects and their outcomes ----------------------------------------------------------


class ForgetSeat(Effect, frozen=True, kw_only=True):
    """The seat has no session any more: a restart must not open it again."""

    def failed(self, reason: str) -> Outcome:
        return SeatForgotten(reason=reason)


class SeatForgotten(Outcome, frozen=True, kw_only=True):
    reason: str = ""
    """Why the record may still be there; empty where it is gone."""
