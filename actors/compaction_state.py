"""The states of a seat's compaction, one struct each: a field exists only where it means something.

`waiting` are the passes that come after this one, in order.
"""

from typing import Literal

import msgspec

from tenure.messages.base import Reply
from tenure.messages.compaction import (
    CompactionPlan,
    CompactionStatus,
    PassId,
    Summary,
    Trigger,
)
from tenure.messages.tokens import SessionToken, TurnId
from tenure.runtime.step import AskId


class Request(msgspec.Struct, frozen=True):
    """Somebody wants a pass."""

    pass_id: PassId
    token: SessionToken
    """From before the summary: everything that the pass writes carries it."""
    trigger: Trigger
    turn_id: TurnId | None
    model: str
    window: int
    instructions: str
    when_busy: Literal["refuse", "queue"]
    asker: AskId | None


class Pass(msgspec.Struct, frozen=True):
    """A pass whose cut is known."""

    request: Request
    plan: CompactionPlan

    @property
    def pass_id(self) -> PassId:
        return self.request.pass_id


class Ending(msgspec.Struct, frozen=True):
    """How a pass ends, and what its asker is told."""

    status: CompactionStatus
    reason: str
    reply: Reply


# --- states ------------------------------------------------------------------------------------


class Idle(msgspec.Struct, frozen=True):
    pass


class Recovering(msgspec.Struct, frozen=True):
    """After a restart: the pass of the dead incarnation gets its end in the audit."""

    waiting: tuple[Request, ...] = ()


class Planning(msgspec.Struct, frozen=True):
    """Is there anything to do?  Nothing is written yet."""

    request: Request
    waiting: tuple[Request, ...] = ()


class StoppingPlan(msgspec.Struct, frozen=True):
    """Stopped before anything was written; the door's last word is awaited."""

    request: Request
    waiting: tuple[Request, ...]


class SavingStart(msgspec.Struct, frozen=True):
    """The start of the audit is on its way; whether the token is current shows here."""

    run: Pass
    waiting: tuple[Request, ...]


class StoppingStart(msgspec.Struct, frozen=True):
    run: Pass
    waiting: tuple[Request, ...]


class Summarising(msgspec.Struct, frozen=True):
    run: Pass
    waiting: tuple[Request, ...]


class StoppingSummary(msgspec.Struct, frozen=True):
    """The summary was cancelled; its last word is awaited."""

    run: Pass
    waiting: tuple[Request, ...]


class SavingSummary(msgspec.Struct, frozen=True):
    """The entry and the end of the audit are on their way: too late for a stop."""

    run: Pass
    summary: Summary
    waiting: tuple[Request, ...]


class SavingEnd(msgspec.Struct, frozen=True):
    """Nothing is replaced; the end of the audit is on its way."""

    request: Request
    ending: Ending
    waiting: tuple[Request, ...]


Stoppable = Planning | SavingStart | Summarising
Stopping = StoppingPlan | StoppingStart | StoppingSummary
Busy = Stoppable | Stopping | SavingSummary | SavingEnd
State = Idle | Recovering | Busy


def request_of(state: Busy) -> Request:
    """The request of the pass that is under way."""
    match state:
        case Planning(request) | StoppingPlan(request) | SavingEnd(request):
            return request
        case _:
            return state.run.request


# --- what the owner wrote on its asks ------------------------------------------------------------


class StartSaved(msgspec.Struct, frozen=True):
    pass_id: PassId


class SummarySaved(msgspec.Struct, frozen=True):
    pass_id: PassId


class EndSaved(msgspec.Struct, frozen=True):
    pass_id: PassId


class PassesWereSettled(msgspec.Struct, frozen=True):
    pass
