"""Every order of start, stop, swap and approve: the owners' own steps, explored to the end."""

from collections.abc import Sequence

import pytest

from tenure.actors.approval import Gate, Open, approval_step
from tenure.actors.compaction import compaction_step
from tenure.actors.compaction_state import Idle as NotCompacting
from tenure.actors.session import session_step
from tenure.actors.session_state import Live, Quiet, Session
from tenure.actors.settings import Ready, settings_step
from tenure.actors.turn import turn_step
from tenure.actors.turn_state import Drained, Idle, Ledger
from tenure.messages.approval import Allow, AnswerApproval, ApprovalRequested, AskUser, UserNotAsked
from tenure.messages.base import Command, Effect, Event, Outcome
from tenure.messages.content import AssistantMessage, TextBlock, ToolCallBlock
from tenure.messages.entries import CustomEntry
from tenure.messages.handover import ForgetSeat, HandOverSession, SeatForgotten
from tenure.messages.models import ToolSpec
from tenure.messages.session import (
    AppendEntries,
    Damage,
    OpenSession,
    SessionChanged,
    SessionNotFound,
    StartTurn,
)
from tenure.messages.settings import Policy, ReadSettings, Settings, SettingsRead
from tenure.messages.tokens import SessionId, SessionToken, turn_id
from tenure.messages.transcripts import (
    AppendRecords,
    CloseTranscript,
    NoteSeat,
    Opened,
    OpenTranscript,
    RecordsAppended,
    SeatNoted,
    TranscriptClosed,
    TranscriptNotOpened,
    TranscriptOpened,
)
from tenure.messages.turn import StopTurn, TurnEnded, TurnStarted
from tenure.messages.turn_effects import (
    CallModel,
    ModelCallDone,
    PrepareTurn,
    RunTool,
    ToolCallDone,
    TurnPrepared,
)
from tenure.runtime.testing.explore import Client, Done, Explored, Explorer, Moment

A, B = SessionId("session-a"), SessionId("session-b")
TOKEN = SessionToken(session_id=A, epoch=1)
FIRST = turn_id(A, 1)
POLICY = Policy(version="1")
WRITE = ToolSpec(name="write", description="", parameters={}, sequential=True)


def model_answer(effect: CallModel) -> AssistantMessage:
    """The first call wants a tool, the second ends the turn."""
    if effect.call == 1:
        call = ToolCallBlock(id="c1", name="write", arguments={})
        return AssistantMessage(content=(call,), stop_reason="toolUse")
    return AssistantMessage(content=(TextBlock(text="done"),))


def doors(effect: Effect, cancelled: bool) -> Sequence[Outcome]:
    """Every way in which an effect of this protocol may end."""
    failed = (effect.failed("cancelled"),) if cancelled else ()
    match effect:
        case PrepareTurn():
            prepared = TurnPrepared(turn_id=effect.turn_id, model="m", system="", tools=(WRITE,))
            return (prepared, *failed)
        case CallModel():
            message = model_answer(effect)
            done = ModelCallDone(turn_id=effect.turn_id, call=effect.call, message=message)
            return (done, *failed)
        case RunTool():
            done_tool = ToolCallDone(turn_id=effect.turn_id, call_id=effect.call_id, content=())
            return (done_tool, *failed)
        case AskUser():
            asked = UserNotAsked(request_id=effect.request.request_id, reason="")
            return (asked,)
        case AppendRecords():
            return (RecordsAppended(session_id=effect.token.session_id),)
        case OpenTranscript():
            missing = SessionNotFound(session_id=B, searched="")
            return (TranscriptOpened(opened=opened(B)), TranscriptNotOpened(refusal=missing))
        case NoteSeat():
            return (SeatNoted(), effect.failed("no space"))
        case ForgetSeat():
            return (SeatForgotten(),)
        case CloseTranscript():
            return (TranscriptClosed(session_id=effect.session_id),)
        case ReadSettings():
            return (SettingsRead(settings=Settings(path="", policy=POLICY)),)
        case _:
            raise AssertionError(f"no model for {type(effect).__name__}")


def opened(session_id: SessionId) -> Opened:
    return Opened(
        token=SessionToken(session_id=session_id, epoch=1),
        path=session_id,
        leaf=None,
        seq=0,
        entries=0,
        last_turn=0,
        keys=(),
        damage=Damage(),
        settled=0,
    )


def live(session_id: SessionId) -> Live:
    token = SessionToken(session_id=session_id, epoch=1)
    return Live(Session(token, session_id, None, 0, 0, 0, (), Damage()), Quiet())


def says(command: Command) -> Client:
    role = "turn" if isinstance(command, StopTurn) else "session"
    return Client(type(command).__name__, ((role, lambda events: command),))


def approves(events: tuple[Event, ...]) -> Command | None:
    for event in events:
        if isinstance(event, ApprovalRequested):
            return AnswerApproval(request_id=event.request.request_id, choice=Allow())
    return None


APPROVER = Client("Approver", (("approval", approves),))


# --- what must hold ------------------------------------------------------------------------


def nobody_is_answered_twice(moment: Moment, done: Done | None) -> str:
    names = [name for name, _ in moment.answers]
    if "nobody" in names or len(names) != len(set(names)):
        return "BUS-1: somebody was answered twice"
    return ""


def everybody_is_answered(moment: Moment, done: Done | None) -> str:
    # A user who never answers may keep a turn waiting: that is what an approval is.
    asked = any(isinstance(stage, Open) for stage in moment.box("approval").state.stages)
    if done is None and moment.asks and not asked:
        return f"BUS-1: nothing more can happen and {moment.asks} still wait"
    return ""


def no_turn_lives_through_a_swap(moment: Moment, done: Done | None) -> str:
    if done is None or done.step is None:
        return ""
    if any(isinstance(event, SessionChanged) for event in done.step.events):
        turn = moment.box("turn").state
        if not isinstance(turn, Idle | Drained):
            return f"SESSION-5: the session changed under a turn that is {type(turn).__name__}"
    return ""


def appends_stay_in_their_session(moment: Moment, done: Done | None) -> str:
    if done is None or done.step is None:
        return ""
    for effect in done.step.effects:
        if isinstance(effect, AppendRecords) and effect.token.session_id != A:
            return "SESSION-2: a turn of session A was written elsewhere"
    return ""


def a_started_turn_ends_once(moment: Moment, done: Done | None) -> str:
    started = [event.turn_id for event in moment.events if isinstance(event, TurnStarted)]
    ended = [event.turn_id for event in moment.events if isinstance(event, TurnEnded)]
    if len(started) != len(set(started)) or len(ended) != len(set(ended)):
        return "TURN-1: a turn started or ended twice"
    asked = any(isinstance(stage, Open) for stage in moment.box("approval").state.stages)
    if done is None and set(started) - set(ended) and not asked:
        return "BUS-1: a turn never ended"
    return ""


def tools_run_only_when_allowed(moment: Moment, done: Done | None) -> str:
    if done is None or done.step is None:
        return ""
    running = any(isinstance(effect, RunTool) for effect in done.step.effects)
    answered = any(name.startswith("Approver") for name, _ in moment.answers)
    waiting = any(each.client.startswith("Approver") for _, each in moment.asks)
    if running and not (answered or waiting):
        return "APPROVE-4: a tool ran that nobody had allowed"
    return ""


CHECKS = (
    nobody_is_answered_twice,
    everybody_is_answered,
    no_turn_lives_through_a_swap,
    appends_stay_in_their_session,
    a_started_turn_ends_once,
    tools_run_only_when_allowed,
)
STEPS = {
    "session": session_step,
    "turn": turn_step,
    "approval": approval_step,
    "compaction": compaction_step,
    "settings": settings_step,
}


def explored(*clients: Client) -> Explored:
    first = {
        "session": live(A),
        "turn": Idle(Ledger(session_id=A)),
        "approval": Gate(),
        "compaction": NotCompacting(),
        "settings": Ready(POLICY),
    }
    return Explorer(STEPS, first, doors, clients, CHECKS).explore()


NOTE = CustomEntry(custom_type="test/note", data={})
APPEND = Client(
    "Appender", 2 * (("session", lambda events: AppendEntries(token=TOKEN, entries=(NOTE,))),)
)
START = says(StartTurn(text="go", token=TOKEN))
STOP = says(StopTurn(turn_id=FIRST))
SWAP = says(OpenSession(session_id=B))


@pytest.mark.parametrize(
    "clients",
    [
        pytest.param((START, STOP), id="start-stop"),
        pytest.param((START, SWAP), id="start-swap"),
        pytest.param((START, APPROVER), id="start-approve"),
        pytest.param((START, STOP, APPROVER), id="start-stop-approve"),
        pytest.param((START, STOP, SWAP), id="start-stop-swap"),
        pytest.param(
            (START, STOP, SWAP, APPROVER),
            id="start-stop-swap-approve",
            marks=pytest.mark.timeout(300),
        ),
    ],
)
def test_every_order_of_a_small_protocol_keeps_the_invariants(clients: tuple[Client, ...]) -> None:
    result = explored(*clients)
    assert result.findings == ()
    assert result.schedules >= result.ends > 0


@pytest.mark.witness("SESSION-5")
def test_every_order_of_two_appends_under_a_swap_is_receipted_before_the_pointer_moves() -> None:
    result = explored(APPEND, SWAP)
    assert result.findings == ()
    assert result.schedules > 50_000


@pytest.mark.witness("SESSION-5")
def test_every_order_of_two_appends_under_a_handover_is_receipted_before_the_claim_goes() -> None:
    result = explored(APPEND, says(HandOverSession(session_id=A)))
    assert result.findings == ()
    assert result.schedules > 10_000
