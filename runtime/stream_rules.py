"""What the runtime is told of streams: which event opens one, which ends it, how it is lost."""

from tenure.messages.approval import (
    ApprovalRequested,
    ApprovalResolved,
)
from tenure.messages.base import Event
from tenure.messages.compaction import (
    CompactionEnded,
    CompactionStarted,
    PassId,
)
from tenure.messages.index import IndexBegun, IndexEnded
from tenure.messages.index_work import IndexRunId, RunFailed
from tenure.messages.mcp_auth import SignInBegun, SignInEnded
from tenure.messages.tokens import RequestId, ServerId, TurnId
from tenure.messages.turn import (
    TurnEnded,
    TurnStarted,
)
from tenure.runtime.streams import StreamRule


def _turn_of(event: Event) -> str:
    assert isinstance(event, TurnStarted | TurnEnded)
    return event.turn_id


def _turn_lost(turn_id: str) -> Event:
    return TurnEnded(
        turn_id=TurnId(turn_id),
        stop_reason="owner_lost",
        error="the owner of this turn failed; what was durable is in the transcript",
    )


def _pass_of(event: Event) -> str:
    assert isinstance(event, CompactionStarted | CompactionEnded)
    return event.pass_id


def _pass_lost(pass_id: str) -> Event:
    return CompactionEnded(
        pass_id=PassId(pass_id),
        token=None,
        status="owner_lost",
        reason="the owner of this compaction failed; the transcript says whether it was done",
    )


def _run_of(event: Event) -> str:
    assert isinstance(event, IndexBegun | IndexEnded)
    return event.run_id


def _run_lost(run_id: str) -> Event:
    return IndexEnded(
        run_id=IndexRunId(run_id),
        result=RunFailed(reason="the owner of this run failed; the last complete index is served"),
    )


def _request_of(event: Event) -> str:
    if isinstance(event, ApprovalRequested):
        return f"{event.request.turn_id} {event.request.request_id}"
    assert isinstance(event, ApprovalResolved)
    return f"{event.turn_id} {event.request_id}"


def _request_lost(key: str) -> Event:
    turn_id, _, request_id = key.rpartition(" ")
    return ApprovalResolved(
        request_id=RequestId(request_id), turn_id=TurnId(turn_id), outcome="owner_lost"
    )


def _sign_in_of(event: Event) -> str:
    assert isinstance(event, SignInBegun | SignInEnded)
    return f"{event.server_id}/{event.sign_in_id}"


def _sign_in_lost(key: str) -> Event:
    server_id, _, sign_in_id = key.rpartition("/")
    return SignInEnded(server_id=ServerId(server_id), sign_in_id=sign_in_id, status="owner_lost")


STREAMS = (
    StreamRule(opens=TurnStarted, ends=TurnEnded, key=_turn_of, lost=_turn_lost),
    StreamRule(opens=CompactionStarted, ends=CompactionEnded, key=_pass_of, lost=_pass_lost),
    StreamRule(opens=IndexBegun, ends=IndexEnded, key=_run_of, lost=_run_lost),
    StreamRule(opens=ApprovalRequested, ends=ApprovalResolved, key=_request_of, lost=_request_lost),
    StreamRule(opens=SignInBegun, ends=SignInEnded, key=_sign_in_of, lost=_sign_in_lost),
)
"""What began is ended, also when its owner dies: a turn, a compaction, a run of the index,
a request, a sign-in."""
