"""A seat: one conversation place of a host."""

import weakref
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Literal, Protocol

from tenure.messages.base import Command, Event, Reply
from tenure.messages.bus import EventsMissed, OwnerLost, OwnerRestarted, Published
from tenure.messages.compaction import (
    Compact,
    Compacted,
    CompactionQueued,
    PassId,
    StopCompaction,
    Uncompact,
    Uncompacted,
)
from tenure.messages.content import ImageBlock
from tenure.messages.handover import SessionHandedOver
from tenure.messages.limits import Budget, GetSpending, Overrides, Spending
from tenure.messages.models import Thinking
from tenure.messages.questions import (
    Answer,
    AnswerQuestion,
    GetQuestions,
    QuestionRequest,
    QuestionsOpen,
)
from tenure.messages.queue import RedirectTurn, ResumeTurn
from tenure.messages.session import (
    CancelTurn,
    GetSession,
    OpenNewSession,
    OpenSession,
    ParkSeat,
    SeatParked,
    SessionChanged,
    SessionOpened,
    SessionView,
    StartTurn,
)
from tenure.messages.tokens import (
    RequestId,
    SessionId,
    SessionToken,
    TurnId,
    turn_number,
    turn_session,
)
from tenure.messages.turn import (
    GetTurn,
    StopCause,
    StopTurn,
    TurnAccepted,
    TurnEnded,
    TurnQueued,
    TurnView,
)
from tenure.runtime.bus import Bus
from tenure.runtime.errors import HostClosed
from tenure.runtime.events import Subscription
from tenure.runtime.seat_approvals import ApprovalCommands
from tenure.runtime.seat_queue import SeatQueue
from tenure.runtime.seat_sessions import SessionCommands, refused
from tenure.runtime.seat_steering import SteeringCommands

NO_BUDGET = Budget()
IDLE_MAY_FOLLOW = (TurnEnded, OwnerLost, OwnerRestarted, EventsMissed)


class AskHost(Protocol):
    """`Host.ask`, as a seat needs it."""

    def __call__(self, command: Command, seat: str = "") -> Awaitable[Reply]: ...


class Seat(ApprovalCommands, SessionCommands, SteeringCommands):
    """One active session, one turn at a time.  Made by `Host.seat`."""

    def __init__(self, name: str, ask_host: AskHost, bus: Bus) -> None:
        self.name = name
        self._ask_host = ask_host
        self._bus = bus
        self.closing = False
        """Set by the host when it begins to close the seat."""
        self.queue = SeatQueue(self.ask)
        """What waits in this seat."""
        self._token: SessionToken | None = None
        self._end_follow = bus.stream.follow(name, self._seen)

    @property
    def token(self) -> SessionToken:
        """The current session and epoch.  Pass it on to refuse what comes too late."""
        if self._token is None:
            raise HostClosed(f"seat {self.name!r} has no session")
        return self._token

    async def ask(self, command: Command) -> Reply:
        """Ask the owner of this seat that takes this command.  Refusals are replies, too."""
        return await self._ask_host(command, seat=self.name)

    # --- turns -------------------------------------------------------------------------------

    def prompt(
        self,
        text: str,
        *,
        token: SessionToken | None = None,
        model: str = "",
        thinking: Thinking = "default",
        budget: Budget = NO_BUDGET,
        images: Sequence[ImageBlock] = (),
        when_busy: Literal["refuse", "queue"] = "refuse",
        idempotency_key: str = "",
    ) -> AsyncIterator[Event]:
        """Start a turn and give its events; the last is `TurnEnded`.

        Leaving the loop does not stop the turn.

        Args:
            token: refuse the start unless this is still the session; None takes
                the current one.
            model: a model string for this turn alone.
            thinking: how much the model is to think in this turn; a model that lacks
                the level takes the nearest that it has.
            budget: bounds for this turn; what it leaves at 0 is as in the settings.
            when_busy: what to do while another turn runs.

        Raises:
            Refused: the turn was not started (`TurnBusy`, `Stale`, `ModelUnavailable`, ...).
        """
        command = StartTurn(
            text=text,
            images=tuple(images),
            token=token,
            model=model,
            overrides=Overrides(thinking=thinking, budget=budget),
            when_busy=when_busy,
            idempotency_key=idempotency_key,
        )
        return self._turn(command, idempotency_key)

    async def _turn(
        self, command: StartTurn | RedirectTurn | ResumeTurn, idempotency_key: str
    ) -> AsyncIterator[Event]:
        """Start what the command wants and give its events."""
        subscription = self._bus.subscribe(seat=self.name)
        try:
            reply = await self.ask(command)
            if not isinstance(reply, TurnAccepted | TurnQueued):
                raise refused(reply)
            if idempotency_key:
                # A repeat may be of a turn that began, or is over: its events are read again.
                subscription.close()
                after = self._bus.stream.first_kept - 1
                subscription = self._bus.subscribe(after, seat=self.name)
            # Only its own events can wait here, so its last one is never pushed out.
            subscription.only(lambda published: _concerns(published.event, reply.turn_id))
            if idempotency_key and await self._is_forgotten(reply.turn_id, subscription):
                yield _forgotten(reply.turn_id)
                return
            async for event in self._to_the_end(subscription, reply):
                yield event
        finally:
            subscription.close()

    async def _to_the_end(
        self, subscription: Subscription, reply: TurnAccepted | TurnQueued
    ) -> AsyncIterator[Event]:
        """The events of a turn, the last of them a `TurnEnded` in every case."""
        async for published in subscription:
            event = published.event
            if isinstance(event, OwnerLost | OwnerRestarted):
                if self._owner_gone(event, reply):
                    break
                continue
            yield event
            if isinstance(event, TurnEnded):
                return
        yield self._ended_with_owner(reply.turn_id)

    async def stop(self, turn_id: TurnId | None = None, cause: StopCause = "user") -> Reply:
        """Stop the turn with this id, and no other; without an id the one that runs now.

        Answered at once: `TurnStopping` with the texts that waited, or `TurnNotRunning`.
        """
        if turn_id is not None:
            return await self.ask(StopTurn(turn_id=turn_id, cause=cause))
        return await self.ask(CancelTurn())

    async def wait_idle(self) -> None:
        """Return when no turn runs and none waits."""
        subscription = self._bus.subscribe(seat=self.name)
        try:
            while not await self._is_idle():
                async for published in subscription:
                    if isinstance(published.event, IDLE_MAY_FOLLOW):
                        break
                else:
                    return
        finally:
            subscription.close()

    def until_idle(self) -> AsyncIterator[Event]:
        """The events of this seat from this call on, until no turn runs and none waits."""
        subscription = self._bus.subscribe(seat=self.name)
        events = self._read_until_idle(subscription)
        # An iterator that nobody ever reads runs no `finally` of its own.
        weakref.finalize(events, subscription.close).atexit = False
        return events

    async def _read_until_idle(self, subscription: Subscription) -> AsyncIterator[Event]:
        try:
            while subscription.waiting or not await self._is_idle() or subscription.waiting:
                async for published in subscription:
                    yield published.event
                    break
                else:
                    return
        finally:
            subscription.close()

    # --- questions -----------------------------------------------------------------------------

    async def questions(self) -> tuple[QuestionRequest, ...]:
        """The questions of tools that wait for an answer."""
        reply = await self.ask(GetQuestions())
        if isinstance(reply, QuestionsOpen):
            return reply.requests
        raise refused(reply)

    async def reply(self, request_id: RequestId, answer: Answer) -> Reply:
        """Answer one question: `AnswerTaken`, or `Superseded` or `Expired` where it is over."""
        return await self.ask(AnswerQuestion(request_id=request_id, answer=answer))

    # --- compaction ----------------------------------------------------------------------------

    async def compact(
        self,
        instructions: str = "",
        *,
        token: SessionToken | None = None,
        when_busy: Literal["refuse", "queue"] = "refuse",
    ) -> Compacted | CompactionQueued:
        """Put a summary in the place of the old messages; they stay in the file.

        Args:
            instructions: what the summary should keep, in your words.
            when_busy: what to do while another compaction is under way.  One that is
                queued ends with the event `CompactionEnded`.

        Raises:
            Refused: nothing was changed (`NothingToCompact`, `CompactionBusy`, `Stale`, ...).
        """
        command = Compact(instructions=instructions, token=token, when_busy=when_busy)
        reply = await self.ask(command)
        if isinstance(reply, Compacted | CompactionQueued):
            return reply
        raise refused(reply)

    async def stop_compaction(self, pass_id: PassId) -> Reply:
        """Stop the compaction with this id: `CompactionStopping`, or `CompactionNotRunning`."""
        return await self.ask(StopCompaction(pass_id=pass_id))

    async def uncompact(self, *, token: SessionToken | None = None) -> Uncompacted:
        """Take the last compaction back, while nothing follows it.  The token changes.

        Raises:
            Refused: nothing was changed (`WouldDrop`, `NothingToUncompact`, `SeatBusy`, ...).
        """
        reply = await self.ask(Uncompact(token=token))
        if isinstance(reply, Uncompacted):
            return reply
        raise refused(reply)

    # --- sessions ------------------------------------------------------------------------------

    async def open(self, session_id: str) -> SessionOpened:
        """Swap to a session that exists.

        Raises:
            Refused: it cannot be opened; the seat has what it had.
        """
        return await self._swap(OpenSession(session_id=SessionId(session_id)))

    async def new(self, name: str = "") -> SessionOpened:
        """Swap to a new, empty session."""
        return await self._swap(OpenNewSession(name=name))

    async def session(self) -> SessionView:
        """What the seat has now.

        Raises:
            Refused: it has no session.
        """
        reply = await self.ask(GetSession())
        if isinstance(reply, SessionView):
            return reply
        raise refused(reply)

    async def usage(self) -> Spending:
        """What the session has used since its beginning, compacted or not, by model.

        Raises:
            Refused: there is no session, or its file cannot be read.
        """
        reply = await self.ask(GetSpending())
        if isinstance(reply, Spending):
            return reply
        raise refused(reply)

    async def park(self) -> SeatParked:
        """Give up claim and files of an idle seat; its next command takes them again.

        Raises:
            Refused: the seat is busy.
        """
        reply = await self.ask(ParkSeat())
        if isinstance(reply, SeatParked):
            return reply
        raise refused(reply)

    def close(self) -> None:
        """Called by the host when the seat is gone."""
        self.closing = True
        self._end_follow()
        self._bus.stream.close_seat(self.name)

    # --- inside --------------------------------------------------------------------------------

    async def _swap(self, command: OpenSession | OpenNewSession) -> SessionOpened:
        reply = await self.ask(command)
        if isinstance(reply, SessionOpened):
            return reply
        raise refused(reply)

    async def _is_idle(self) -> bool:
        reply = await self.ask(GetTurn())
        return not (isinstance(reply, TurnView) and (reply.turn_id or reply.queued))

    def _seen(self, published: Published) -> None:
        match published.event:
            case SessionChanged(token=token):
                self._token = token
            case SessionHandedOver():
                self._token = None

    def _owner_gone(self, event: OwnerLost | OwnerRestarted, reply: Reply) -> bool:
        """A queued turn dies with its owner before it has a stream to end."""
        return isinstance(reply, TurnQueued) and event.owner == f"{self.name}/turn"

    def _ended_with_owner(self, turn_id: TurnId) -> TurnEnded:
        if self.closing:
            return TurnEnded(turn_id=turn_id, stop_reason="stopped", cause="shutdown")
        return TurnEnded(turn_id=turn_id, stop_reason="owner_lost")

    async def _is_forgotten(self, turn_id: TurnId, subscription: Subscription) -> bool:
        """Whether the turn is over, and so long ago that its end is not kept."""
        view = await self.ask(GetTurn())
        if any(isinstance(published.event, TurnEnded) for published in subscription.waiting):
            return False
        if not isinstance(view, TurnView):
            return True
        if view.turn_id is None:
            return not view.queued
        same_session = turn_session(view.turn_id) == turn_session(turn_id)
        return not same_session or turn_number(view.turn_id) > turn_number(turn_id)


def _concerns(event: Event, turn_id: TurnId) -> bool:
    turn = getattr(event, "turn_id", None)
    if turn is None:
        turn = getattr(getattr(event, "request", None), "turn_id", None)
    return turn == turn_id or isinstance(event, OwnerLost | OwnerRestarted)


def _forgotten(turn_id: TurnId) -> TurnEnded:
    return TurnEnded(
        turn_id=turn_id,
        stop_reason="error",
        error="this turn ended before, and its events are no longer kept; read the session",
    )


__all__ = ["AskHost", "Seat", "refused"]
