"""The TurnActor's vocabulary: one turn of the agent loop, and how it is stopped."""

from typing import Any, Literal, Self

import msgspec

from tenure.messages.base import Command, Event, Query, Refusal, Reply
from tenure.messages.content import (
    ImageBlock,
    Usage,
)
from tenure.messages.limits import Overrides
from tenure.messages.queue import Delivery, QueuedPrompt, QueuedText
from tenure.messages.tokens import CallId, QueueItemId, SessionToken, TurnId

StopCause = Literal[
    "user", "approval", "budget", "swap", "handover", "shutdown", "loop_guard", "redirect"
]

WhenBusy = Literal["refuse", "queue", "steer", "follow_up", "redirect"]
"""What becomes of a start while a turn runs: `refuse` says no, the others wait."""

INTERRUPTING: frozenset[StopCause] = frozenset({"swap", "handover", "shutdown"})
"""A turn that was stopped for one of these is shown as interrupted, and can be resumed."""

TURN_ENTRY = "tenure/turn"
"""The `customType` of the entries that say how a turn was left, where its messages do not."""

TurnStopReason = Literal["end_turn", "max_tokens", "stopped", "error", "session_lost", "owner_lost"]
"""Why a turn ended.  `stopped` comes with a cause; `error` with an error."""

# --- commands --------------------------------------------------------------------------


class RunTurn(Command, frozen=True, kw_only=True):
    """The SessionActor checked the token, minted the id, and hands on the start."""

    turn_id: TurnId
    token: SessionToken
    text: str
    images: tuple[ImageBlock, ...]
    model: str
    when_busy: WhenBusy
    overrides: Overrides = Overrides()
    ask_deadline_s = None


class StopTurn(Command, frozen=True, kw_only=True):
    """Stop the turn that it names, and no other.  It overtakes everything.

    Answered at once with `TurnStopping`; the end is the event `TurnEnded`.  A stop
    for a turn that has not started yet is remembered and answers its start.
    """

    turn_id: TurnId
    cause: StopCause = "user"
    control = True


class StopActiveTurn(Command, frozen=True, kw_only=True):
    """The SessionActor hands on a cancel without an id, in the lane of the starts."""

    cause: StopCause


class DrainTurn(Command, frozen=True, kw_only=True):
    """Before a swap or the end: stop what runs, hold the queue.  Answered `TurnDrained`.

    What is held starts again at `AbandonDrain` and is gone at `AttachSession`.
    """

    cause: StopCause = "swap"
    ask_deadline_s = None


class AbandonDrain(Command, frozen=True, kw_only=True):
    """The swap did not happen: the queue is live again."""


class AttachSession(Command, frozen=True, kw_only=True):
    """The seat has this session now.  A drain is over; what it held was given back."""

    token: SessionToken
    last_turn: int
    """The number of the session's last turn: stops at or below it come too late."""
    queue: tuple[QueuedPrompt, ...] = ()
    """What waits in the session, as its transcript says."""
    returned: tuple[QueueItemId, ...] = ()
    """What the swap gave back."""


class GetTurn(Query, frozen=True, kw_only=True):
    """Answered `TurnView`."""


# --- replies ---------------------------------------------------------------------------


class TurnAccepted(Reply, frozen=True, kw_only=True):
    """The prompt is durable and the turn runs."""

    turn_id: TurnId
    token: SessionToken


class TurnQueued(Reply, frozen=True, kw_only=True):
    """The prompt waits, and is durable."""

    turn_id: TurnId
    """The turn that it will start, where it starts one."""
    position: int
    """1 is next."""
    item_id: QueueItemId
    delivery: Delivery
    """When it is delivered."""


class TurnStopping(Reply, frozen=True, kw_only=True):
    """The stop is under way; nothing that waited will start."""

    turn_id: TurnId
    dropped: tuple[str, ...] = ()
    """The texts that waited, given back."""


class TurnDrained(Reply, frozen=True, kw_only=True):
    """Nothing runs, and nothing starts until the swap or the handover is decided."""

    queued: tuple[QueuedText, ...] = ()
    """What waits, and is given back if the session changes."""


class TurnView(Reply, frozen=True, kw_only=True):
    state: str
    turn_id: TurnId | None
    queued: tuple[str, ...]
    """The texts that start when they are due."""
    usage: Usage
    held: tuple[str, ...] = ()
    """The texts that start only when the queue is released."""
    calls: tuple[CallId, ...] = ()
    """The tool calls that run now."""


# --- refusals --------------------------------------------------------------------------


class TurnBusy(Refusal, frozen=True, kw_only=True):
    turn_id: TurnId

    @property
    def remedy(self) -> str:
        return f"turn {self.turn_id} still runs; wait for it, stop it, or queue this prompt"


class TurnNotRunning(Refusal, frozen=True, kw_only=True):
    """The turn that the stop names is over, or nothing runs."""

    turn_id: TurnId | None
    """The turn that runs, if any: it was not touched."""

    @property
    def remedy(self) -> str:
        return "that turn is over; nothing was stopped"


class TurnNotStarted(Refusal, frozen=True, kw_only=True):
    """The turn was stopped before it began: nothing was written."""

    turn_id: TurnId
    cause: StopCause

    @property
    def remedy(self) -> str:
        return f"the turn was stopped ({self.cause}) before it began; nothing was written"


class PromptEmpty(Refusal, frozen=True, kw_only=True):
    @property
    def remedy(self) -> str:
        return "the prompt is empty; say something"


class PromptTooLarge(Refusal, frozen=True, kw_only=True):
    bytes_given: int
    bytes_max: int

    @property
    def remedy(self) -> str:
        return (
            f"the prompt has {self.bytes_given} bytes, more than {self.bytes_max}; "
            "put the text in a file and name the file"
        )


class ModelUnavailable(Refusal, frozen=True, kw_only=True):
    """The model string is unknown, or its key or package is missing.  Nothing was written."""

    model: str
    reason: str

    @property
    def remedy(self) -> str:
        return self.reason


# --- events ----------------------------------------------------------------------------


class TurnStarted(Event, frozen=True, kw_only=True):
    turn_id: TurnId
    token: SessionToken
    model: str


class TextDelta(Event, frozen=True, kw_only=True):
    """More of the answer."""

    turn_id: TurnId
    text: str

    def joined(self, later: Event) -> Self | None:
        if isinstance(later, TextDelta) and later.turn_id == self.turn_id:
            return msgspec.structs.replace(self, text=self.text + later.text)
        return None


class ThinkingDelta(Event, frozen=True, kw_only=True):
    turn_id: TurnId
    text: str

    def joined(self, later: Event) -> Self | None:
        if isinstance(later, ThinkingDelta) and later.turn_id == self.turn_id:
            return msgspec.structs.replace(self, text=self.text + later.text)
        return None


class ModelRetrying(Event, frozen=True, kw_only=True):
    """The model call failed and is made again; text of the failed call is void."""

    turn_id: TurnId
    attempt: int
    """The attempt that comes now, from 2."""
    delay_ms: int
    kind: str
    reason: str


class ModelFellBack(Event, frozen=True, kw_only=True):
    """A model was given up; the next one of the settings is called, for the rest of the turn."""

    turn_id: TurnId
    model: str
    """The model that is called now."""
    instead_of: str
    kind: str
    """Of the failure; see `messages/models.py`."""
    reason: str


class ModelAnswered(Event, frozen=True, kw_only=True):
    """One model call is over and its message is durable."""

    turn_id: TurnId
    text: str
    """The whole text of the message."""
    model: str
    usage: Usage


class ToolCallStarted(Event, frozen=True, kw_only=True):
    turn_id: TurnId
    call_id: CallId
    tool: str
    arguments: dict[str, Any]


class ToolCallFinished(Event, frozen=True, kw_only=True):
    """The call has a result, and it is durable."""

    turn_id: TurnId
    call_id: CallId
    tool: str
    is_error: bool
    text: str
    """The beginning of the result's text."""


class TurnEnded(Event, frozen=True, kw_only=True):
    """The last event of a turn."""

    turn_id: TurnId
    stop_reason: TurnStopReason
    cause: StopCause | None = None
    error: str = ""
    usage: Usage = Usage()
