"""Swaps: load, drain, flush, commit, attach, let go; and what a failure on the way leaves."""

from collections.abc import Callable

import pytest
from steps import A, B, DrivenSession, opened, token, waiting

from tenure.actors.session_state import Vacant
from tenure.messages.approval import EndSessionGrants
from tenure.messages.base import Command
from tenure.messages.bus import DeadlinePassed, OwnerStopped
from tenure.messages.session import (
    Appended,
    CallsSettled,
    CancelTurn,
    ChangedOutside,
    ContinueSession,
    GetSession,
    NoSession,
    OpenNewSession,
    OpenSession,
    ParkSeat,
    SessionChanged,
    SessionOpened,
    SessionView,
    SettleCalls,
    Stale,
    StartTurn,
    StorageFailed,
)
from tenure.messages.tokens import SessionId, turn_id, turn_number
from tenure.messages.transcripts import (
    Again,
    AppendRecords,
    ById,
    CloseTranscript,
    Fresh,
    Newest,
    NoteSeat,
    OpenTranscript,
    RecordsRefused,
    RecordsUncertain,
    SeatNotNoted,
    SettleTranscript,
    TranscriptChanged,
    TranscriptOpened,
    TranscriptSettled,
)
from tenure.messages.turn import (
    AbandonDrain,
    AttachSession,
    DrainTurn,
    RunTurn,
    StopActiveTurn,
)

C = SessionId("session-c")
SWAPS: tuple[Command, ...] = (OpenSession(session_id=B), OpenNewSession(name="new"))


def loading(session: DrivenSession) -> None:
    session.ask(OpenSession(session_id=B))


def draining(session: DrivenSession) -> None:
    loading(session)
    session.load()


def flushing(session: DrivenSession) -> None:
    draining(session)
    session.append("last words")
    session.drained()


def committing(session: DrivenSession) -> None:
    draining(session)
    session.drained()


POINTS: tuple[Callable[[DrivenSession], None], ...] = (loading, draining, flushing, committing)
at_each_point = pytest.mark.parametrize("reach", POINTS, ids=lambda point: point.__name__)


def go_on(session: DrivenSession) -> None:
    """The swap to session B that is under way comes to its good end."""
    done = len(session.said(SessionChanged))
    while len(session.said(SessionChanged)) == done:
        match session.name:
            case "Loading":
                session.load()
            case "Draining":
                session.drained()
            case "Flushing":
                session.written()
            case "Committing":
                session.noted()
            case name:
                raise AssertionError(f"no swap is under way: {name}")


# --- the order -------------------------------------------------------------------------------


@pytest.mark.witness("SESSION-4")
@pytest.mark.parametrize("command", SWAPS, ids=lambda each: type(each).__name__)
def test_swap_loads_then_drains_then_commits_then_lets_the_old_session_go(
    command: Command,
) -> None:
    session = DrivenSession()
    asker = session.ask(command)
    assert (session.sent(DrainTurn), session.wanted(NoteSeat)) == ([], [])
    session.load()
    assert (session.sent(DrainTurn), session.wanted(NoteSeat)) == ([DrainTurn()], [])
    session.drained("waited")
    assert session.wanted(NoteSeat) == [NoteSeat(session_id=B)]
    assert session.here == token(A)
    assert session.reply_to(asker) is None
    session.noted()
    assert session.here == token(B)
    answer = session.reply_to(asker)
    assert isinstance(answer, SessionOpened)
    assert (answer.token, answer.dropped) == (token(B), ("waited",))
    back = tuple(each.item_id for each in waiting("waited"))
    assert session.wanted(CloseTranscript) == [CloseTranscript(session_id=A, returned=back)]
    assert [type(effect) for effect in session.effects] == [
        OpenTranscript,
        NoteSeat,
        CloseTranscript,
    ]


@pytest.mark.witness("APPROVE-6")
def test_commit_tells_the_turn_its_session_and_ends_the_grants_of_the_old_one() -> None:
    session = DrivenSession()
    session.ask(OpenSession(session_id=B))
    session.load(last_turn=12)
    session.drained()
    session.noted()
    assert session.sent(AttachSession) == [AttachSession(token=token(B), last_turn=12)]
    assert session.said(SessionChanged)[-1].token == token(B)
    assert session.sent(EndSessionGrants) == [EndSessionGrants(session_id=A)]
    assert session.name == "Live"


def test_turn_numbers_go_on_where_the_opened_session_had_come() -> None:
    session = DrivenSession()
    session.ask(OpenSession(session_id=B))
    session.load(last_turn=12)
    session.drained()
    session.noted()
    session.ask(StartTurn(text="go"))
    assert session.sent(RunTurn)[0].turn_id == turn_id(B, 13)


@pytest.mark.parametrize(
    ("command", "target"),
    [
        (OpenSession(session_id=B), ById(session_id=B)),
        (OpenNewSession(name="n"), Fresh(name="n")),
        (ContinueSession(), Newest()),
    ],
    ids=["open", "new", "continue"],
)
def test_vacant_seat_is_filled_without_a_drain(command: Command, target: object) -> None:
    session = DrivenSession(Vacant())
    asker = session.ask(command)
    assert session.wanted(OpenTranscript)[0].target == target
    session.load()
    session.noted()
    assert isinstance(session.reply_to(asker), SessionOpened)
    assert (session.sent(DrainTurn), session.wanted(CloseTranscript)) == ([], [])


@pytest.mark.parametrize(
    "command", [ContinueSession(), OpenSession(session_id=A)], ids=["continue", "open"]
)
def test_session_that_the_seat_has_is_given_at_once_and_nothing_is_disturbed(
    command: Command,
) -> None:
    session = DrivenSession()
    before = session.state
    answer = session.reply_to(session.ask(command))
    assert isinstance(answer, SessionOpened)
    assert answer.token == token()
    assert (session.state, session.mail, session.effects) == (before, [], [])


# --- a failure before the commit ---------------------------------------------------------------


@pytest.mark.witness("SESSION-4")
def test_target_that_cannot_be_loaded_leaves_the_old_session_as_it_was() -> None:
    session = DrivenSession()
    before = session.state
    asker = session.ask(OpenSession(session_id=B))
    refusal = session.not_loaded()
    assert session.reply_to(asker) == refusal
    assert (session.state, session.mail) == (before, [])
    append = session.append("still here")
    session.written()
    assert isinstance(session.reply_to(append), Appended)


@pytest.mark.witness("SESSION-4")
def test_commit_that_fails_arms_the_queue_again_and_lets_the_target_go() -> None:
    session = DrivenSession()
    asker = session.ask(OpenSession(session_id=B))
    session.load()
    session.drained("waits")
    session.tell(SeatNotNoted(reason="no space left"))
    refusal = session.reply_to(asker)
    assert isinstance(refusal, StorageFailed)
    assert refusal.reason == "no space left"
    assert session.here == token(A)
    assert session.sent(AbandonDrain) == [AbandonDrain()]
    assert session.wanted(CloseTranscript) == [CloseTranscript(session_id=B)]
    assert session.sent(AttachSession) == []


def test_commit_that_fails_leaves_a_vacant_seat_vacant() -> None:
    session = DrivenSession(Vacant("no session yet"))
    asker = session.ask(OpenSession(session_id=B))
    session.load()
    session.tell(SeatNotNoted(reason="no space left"))
    assert isinstance(session.reply_to(asker), StorageFailed)
    assert session.reply_to(session.ask(GetSession())) == NoSession(reason="no session yet")
    assert session.wanted(CloseTranscript) == [CloseTranscript(session_id=B)]


def test_next_swap_runs_after_one_that_failed() -> None:
    session = DrivenSession()
    first = session.ask(OpenSession(session_id=B))
    second = session.ask(OpenSession(session_id=C))
    session.not_loaded()
    session.load(session_id=C)
    session.drained()
    session.noted()
    assert not isinstance(session.reply_to(first), SessionOpened)
    assert isinstance(session.reply_to(second), SessionOpened)
    assert session.here == token(C)


@pytest.mark.parametrize(
    "reply", [OwnerStopped(begun=True), DeadlinePassed(begun=True)], ids=["stopped", "deadline"]
)
def test_turn_owner_that_died_is_drained(reply: OwnerStopped | DeadlinePassed) -> None:
    session = DrivenSession()
    draining(session)
    session.answer(DrainTurn, reply)
    assert session.wanted(NoteSeat) == [NoteSeat(session_id=B)]


# --- appends under a swap --------------------------------------------------------------------


@pytest.mark.witness("SESSION-5")
def test_append_in_flight_lands_in_the_old_session_and_is_receipted_so() -> None:
    session = DrivenSession()
    append = session.append("a")
    session.ask(OpenSession(session_id=B))
    session.load()
    session.drained()
    assert session.wanted(NoteSeat) == []
    session.written()
    receipt = session.reply_to(append)
    assert isinstance(receipt, Appended)
    assert receipt.token == token(A)
    assert session.wanted(NoteSeat) == [NoteSeat(session_id=B)]


@pytest.mark.witness("SESSION-5")
def test_appends_that_wait_behind_one_in_flight_are_all_written_before_the_commit() -> None:
    session = DrivenSession()
    askers = [session.append(text) for text in ("a", "b")]
    draining(session)
    askers.append(session.append("c"))
    session.drained()
    session.written()
    assert session.batch() == ["b", "c"]
    assert session.wanted(NoteSeat) == []
    session.written()
    session.noted()
    assert all(session.reply_to(asker).token == token(A) for asker in askers)  # type: ignore[union-attr]
    assert {append.token for append in session.wanted(AppendRecords)} == {token(A)}


def test_appends_that_came_while_the_target_loaded_are_written_first_and_in_order() -> None:
    session = DrivenSession()
    loading(session)
    askers = [session.append(text) for text in ("a", "b", "c")]
    assert session.wanted(AppendRecords) == []
    session.load()
    assert session.batch() == ["a"]
    session.written()
    assert session.batch() == ["b", "c"]
    session.drained()
    session.written()
    session.noted()
    assert all(isinstance(session.reply_to(asker), Appended) for asker in askers)


@pytest.mark.witness("SESSION-2")
def test_append_after_the_commit_is_stale_and_lands_nowhere() -> None:
    session = DrivenSession()
    committing(session)
    late = session.append("late")
    assert session.reply_to(late) is None
    session.noted()
    assert session.reply_to(late) == Stale(current=token(B))
    assert session.wanted(AppendRecords) == []


def test_append_that_met_a_commit_which_failed_is_written() -> None:
    session = DrivenSession()
    committing(session)
    late = session.append("late")
    session.tell(SeatNotNoted(reason="no space left"))
    session.written()
    assert isinstance(session.reply_to(late), Appended)


@pytest.mark.parametrize(
    "outcome",
    [RecordsRefused(session_id=A, reason="full"), RecordsUncertain(session_id=A, reason="eio")],
    ids=["refused", "uncertain"],
)
@pytest.mark.parametrize("reach", [loading, draining, flushing], ids=lambda each: each.__name__)
def test_write_that_fails_under_a_swap_is_told_and_does_not_stop_it(
    reach: Callable[[DrivenSession], None], outcome: RecordsRefused | RecordsUncertain
) -> None:
    session = DrivenSession()
    append = session.append("a")
    reach(session)
    session.tell(outcome)
    assert session.reply_to(append) is not None
    go_on(session)
    assert session.here == token(B)


def test_file_changed_outside_under_a_swap_that_fails_is_opened_again_after_it() -> None:
    session = DrivenSession()
    append = session.append("a")
    asker = session.ask(OpenSession(session_id=B))
    session.tell(TranscriptChanged(session_id=A, path="a.jsonl"))
    assert session.reply_to(append) == ChangedOutside(path="a.jsonl")
    late = session.append("b")
    session.not_loaded()
    assert session.reply_to(asker) is not None
    assert session.name == "Reopening"
    assert session.wanted(OpenTranscript)[-1].target == Again(session_id=A)
    session.load(session_id=A, epoch=2)
    assert session.reply_to(late) == Stale(current=token(epoch=2))


def test_turn_that_is_drained_may_settle_its_calls_although_the_seat_is_swapping() -> None:
    """A restarted TurnActor answers its drain only behind this: to hold it would be a deadlock."""
    session = DrivenSession()
    loading(session)
    early = session.ask(SettleCalls())
    session.load()
    assert len(session.wanted(SettleTranscript)) == 1
    late = session.ask(SettleCalls())
    session.tell(TranscriptSettled(opened=opened(leaf="s", seq=1, entries=1, settled=1)))
    session.tell(TranscriptSettled(opened=opened(leaf="s", seq=1, entries=1)))
    assert isinstance(session.reply_to(early), CallsSettled)
    assert isinstance(session.reply_to(late), CallsSettled)
    session.drained()
    session.noted()
    assert session.here == token(B)


# --- what waits ------------------------------------------------------------------------------


@pytest.mark.witness("SESSION-1")
@at_each_point
def test_swaps_run_one_after_the_other_in_the_order_in_which_they_came(
    reach: Callable[[DrivenSession], None],
) -> None:
    session = DrivenSession()
    reach(session)
    opening, back = (
        session.ask(OpenSession(session_id=C)),
        session.ask(OpenSession(session_id=A)),
    )
    assert len(session.wanted(OpenTranscript)) == 1
    go_on(session)
    for session_id in (C, A):
        assert session.wanted(OpenTranscript)[-1].target == ById(session_id=session_id)
        session.load(session_id=session_id)
        session.drained()
        session.noted()
    assert [each.token.session_id for each in session.said(SessionChanged)] == [B, C, A]
    assert session.reply_to(opening).token == token(C)  # type: ignore[union-attr]
    assert session.reply_to(back).token == token(A)  # type: ignore[union-attr]
    closed = [effect.session_id for effect in session.wanted(CloseTranscript)]
    assert closed == [A, B, C]


@pytest.mark.witness("SESSION-1")
@at_each_point
def test_start_under_a_swap_waits_and_runs_in_the_session_that_the_seat_has_then(
    reach: Callable[[DrivenSession], None],
) -> None:
    session = DrivenSession()
    reach(session)
    free = session.ask(StartTurn(text="go"))
    bound = session.ask(StartTurn(text="go", token=token(A)))
    cancel = session.ask(CancelTurn())
    assert session.sent(RunTurn) == []
    go_on(session)
    assert session.forwarded(RunTurn)[0][0].token == token(B)
    assert session.forwarded(RunTurn)[0][1] == free
    assert session.reply_to(bound) == Stale(current=token(B))
    assert session.forwarded(StopActiveTurn)[0][1] == cancel


@at_each_point
def test_looking_at_the_seat_never_waits(reach: Callable[[DrivenSession], None]) -> None:
    session = DrivenSession()
    reach(session)
    view = session.reply_to(session.ask(GetSession()))
    assert isinstance(view, SessionView)
    assert (view.state, view.token) == ("swapping", token(A))


def test_everything_that_waited_is_taken_in_order_through_several_swaps() -> None:
    session = DrivenSession()
    session.ask(OpenSession(session_id=B))
    session.ask(StartTurn(text="in b"))
    session.ask(OpenSession(session_id=C))
    session.ask(StartTurn(text="in c"))
    parked = session.ask(ParkSeat())
    session.load(session_id=B)
    session.drained()
    session.noted()
    assert [run.token for run in session.sent(RunTurn)] == [token(B)]
    session.load(session_id=C)
    session.drained()
    session.noted()
    runs = [(run.text, run.token) for run in session.sent(RunTurn)]
    assert runs == [("in b", token(B)), ("in c", token(C))]
    assert session.name == "Parking"
    assert session.reply_to(parked) is None


def test_transcript_that_nobody_waits_for_is_let_go() -> None:
    session = DrivenSession()
    session.tell(TranscriptOpened(opened=opened(B)))
    assert session.wanted(CloseTranscript) == [CloseTranscript(session_id=B)]
    assert session.here == token(A)


def test_swap_to_the_seats_own_closed_session_opens_it_at_its_next_epoch() -> None:
    session = DrivenSession()
    session.ask(StartTurn(text="one"))
    session.append("a")
    session.tell(RecordsUncertain(session_id=A, reason="eio"))
    asker = session.ask(OpenSession(session_id=A))
    assert session.wanted(OpenTranscript)[-1].target == Again(session_id=A)
    session.load(session_id=A, epoch=2)
    session.drained()
    session.noted()
    assert session.reply_to(asker).token == token(epoch=2)  # type: ignore[union-attr]
    assert session.wanted(CloseTranscript) == []
    # The number of a turn that wrote nothing is not given out again.
    session.ask(StartTurn(text="two"))
    assert turn_number(session.sent(RunTurn)[-1].turn_id) > 1
