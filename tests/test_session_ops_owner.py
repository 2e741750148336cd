"""Step tests of the SessionActor: names, labels, forks, rewinds, rewrites, deletions."""

from typing import Any

import pytest
from msgspec.structs import replace
from steps import A, B, DrivenSession, opened, token

from tenure.actors.session_state import Live, Quiet, Vacant, session_of
from tenure.messages.approval import EndSessionGrants
from tenure.messages.base import Command
from tenure.messages.entries import LabelEntry, SessionInfoEntry
from tenure.messages.session import (
    Appended,
    AppendUnknown,
    ChangedOutside,
    NoSession,
    OpenSession,
    SessionChanged,
    Stale,
    StorageFailed,
)
from tenure.messages.session_ops import (
    ClearSessions,
    DeleteSession,
    EntryNotFound,
    ForkSession,
    Redact,
    RenameSession,
    RewindSession,
    RewriteSession,
    SessionDeleted,
    SessionForked,
    SessionRewound,
    SessionRewritten,
    SessionsCleared,
    SetLabel,
    Vacuum,
)
from tenure.messages.tokens import EntryId, SessionToken
from tenure.messages.transcripts import (
    AlterTranscript,
    AppendRecords,
    Changed,
    ChangeStored,
    CloseTranscript,
    Discard,
    DiscardAll,
    EntryFound,
    EntryMissing,
    FindEntry,
    ForkAt,
    Fresh,
    NoteSeat,
    OpenTranscript,
    RenameTo,
    Rewind,
    RewriteWith,
    StoredChanged,
    StoredNotChanged,
    TranscriptAltered,
    TranscriptNotAltered,
    TranscriptNotOpened,
)
from tenure.messages.turn import AbandonDrain, AttachSession, DrainTurn

ENTRY = EntryId("entry")
LATER = SessionToken(session_id=A, epoch=9)
NEW = SessionToken(session_id=B, epoch=1)
REWIND = RewindSession(entry_id=ENTRY)
REDACT = RewriteSession(rewrite=Redact(patterns=("x",)))
ALTERING: tuple[Command, ...] = (REWIND, REDACT, RewriteSession(rewrite=Vacuum()))
OWN: tuple[Command, ...] = (*ALTERING, RenameSession(name="n"), SetLabel(entry_id=ENTRY, label="l"))


def stored(session: DrivenSession) -> Any:
    """The newest wish for a session that the seat does not have."""
    return session.wanted(ChangeStored)[-1]


def altered(session: DrivenSession, reply: Any = None) -> None:
    """The door moved the leaf or replaced the file, at the next epoch."""
    reply = reply or SessionRewound(token=LATER, leaf=ENTRY)
    session.tell(TranscriptAltered(opened=replace(opened(A), token=LATER), reply=reply))


def to_commit(session: DrivenSession, command: Command, *queued: str) -> Any:
    asker = session.ask(command)
    session.load(session_id=A)
    session.drained(*queued)
    return asker


# --- names and labels ------------------------------------------------------------------------


def test_name_of_the_seats_session_is_an_entry_like_any_other() -> None:
    session = DrivenSession()
    asker = session.ask(RenameSession(name=" My\n name "))
    (record,) = session.wanted(AppendRecords)[-1].records
    assert record.body == SessionInfoEntry(name="My name")
    assert session.reply_to(asker) is None
    session.written()
    assert isinstance(session.reply_to(asker), Appended)


def test_name_of_another_session_is_written_by_the_door_for_whoever_asked() -> None:
    session = DrivenSession()
    asker = session.ask(RenameSession(name="n", session_id=B))
    assert stored(session).change == RenameTo(session_id=B, name="n")
    reply = Appended(token=NEW, entry_ids=(ENTRY,), seq=1)
    session.tell(StoredChanged(asker=stored(session).asker, reply=reply))
    assert session.reply_to(asker) == reply


def test_label_is_appended_once_its_target_is_found() -> None:
    session = DrivenSession()
    asker = session.ask(SetLabel(entry_id=ENTRY, label="good"))
    assert session.wanted(AppendRecords) == []
    find = session.wanted(FindEntry)[-1]
    session.tell(EntryFound(asker=find.asker, token=find.token, entry_id=ENTRY, label="good"))
    (record,) = session.wanted(AppendRecords)[-1].records
    assert record.body == LabelEntry(target_id=ENTRY, label="good")
    session.written()
    assert isinstance(session.reply_to(asker), Appended)


def test_label_of_an_unknown_entry_is_refused_and_writes_nothing() -> None:
    session = DrivenSession()
    asker = session.ask(SetLabel(entry_id=ENTRY, label="good"))
    refusal = EntryNotFound(session_id=A, entry_id=ENTRY)
    session.tell(EntryMissing(asker=session.wanted(FindEntry)[-1].asker, refusal=refusal))
    assert session.reply_to(asker) == refusal
    assert session.wanted(AppendRecords) == []


def test_label_whose_session_was_swapped_meanwhile_is_stale() -> None:
    session = DrivenSession()
    asker = session.ask(SetLabel(entry_id=ENTRY, label="good"))
    find = session.wanted(FindEntry)[-1]
    session.swap_to(B)
    session.tell(EntryFound(asker=find.asker, token=find.token, entry_id=ENTRY, label="good"))
    assert isinstance(session.reply_to(asker), Stale)
    assert session.wanted(AppendRecords) == []


@pytest.mark.witness("SESSION-2")
@pytest.mark.parametrize("command", OWN, ids=lambda each: type(each).__name__)
def test_command_with_another_token_changes_nothing_and_is_told_the_current(command: Any) -> None:
    session = DrivenSession()
    asker = session.ask(replace(command, token=token(B)))
    assert session.reply_to(asker) == Stale(current=token())
    assert (session.effects, session.mail) == ([], [])


# --- rewind and rewrite -----------------------------------------------------------------------


@pytest.mark.witness("SESSION-1")
@pytest.mark.parametrize("command", ALTERING, ids=lambda each: type(each).__name__)
def test_change_of_the_seats_session_goes_the_way_of_a_swap(command: Command) -> None:
    session = DrivenSession()
    session.ask(command)
    target = session.wanted(OpenTranscript)[-1].target
    assert isinstance(target, Changed)
    assert session.open_asks(DrainTurn) == []
    session.load(session_id=A)
    assert len(session.open_asks(DrainTurn)) == 1
    assert session.wanted(AlterTranscript) == []
    session.append("the turn's last words")
    session.drained()
    assert session.wanted(AlterTranscript) == []
    session.written()
    (alter,) = session.wanted(AlterTranscript)
    assert (alter.token.session_id, alter.change) == (A, target.change)
    assert session.wanted(NoteSeat) == []


def test_rewind_moves_the_token_and_gives_what_waited_back() -> None:
    session = DrivenSession()
    asker = to_commit(session, REWIND, "queued")
    altered(session)
    reply = session.reply_to(asker)
    assert reply == SessionRewound(token=LATER, leaf=ENTRY, dropped=("queued",))
    assert session.here == LATER
    assert session.said(SessionChanged)[-1].token == LATER
    assert session.sent(AttachSession)[-1].token == LATER
    assert session.sent(EndSessionGrants)[-1].session_id == A
    assert session.wanted(CloseTranscript) == []


def test_token_from_before_a_rewind_appends_nothing_behind_it() -> None:
    session = DrivenSession()
    to_commit(session, REWIND)
    altered(session)
    late = session.append("late")
    assert session.reply_to(late) == Stale(current=LATER)


def test_what_is_asked_under_a_rewind_waits_and_meets_the_new_leaf() -> None:
    session = DrivenSession()
    to_commit(session, REWIND)
    waiting = session.ask(RenameSession(name="n"))
    assert session.wanted(AppendRecords) == []
    altered(session)
    assert session.wanted(AppendRecords)[-1].token == LATER
    session.written()
    assert isinstance(session.reply_to(waiting), Appended)


@pytest.mark.witness("SESSION-4")
def test_entry_of_another_session_disturbs_nothing_and_stops_no_turn() -> None:
    session = DrivenSession()
    asker = session.ask(REWIND)
    refusal = EntryNotFound(session_id=A, entry_id=ENTRY)
    session.tell(TranscriptNotOpened(refusal=refusal))
    assert session.reply_to(asker) == refusal
    assert (session.name, session.here) == ("Live", token())
    assert session.sent(DrainTurn) == []


@pytest.mark.witness("SESSION-4")
def test_change_that_fails_leaves_the_session_and_arms_the_queue_again() -> None:
    session = DrivenSession()
    asker = to_commit(session, REDACT)
    refusal = StorageFailed(path="p", reason="full")
    session.tell(TranscriptNotAltered(refusal=refusal))
    assert session.reply_to(asker) == refusal
    assert (session.name, session.here) == ("Live", token())
    assert len(session.sent(AbandonDrain)) == 1


def test_change_that_nobody_can_vouch_for_closes_the_session_for_writing() -> None:
    session = DrivenSession()
    asker = to_commit(session, REDACT)
    session.tell(TranscriptNotAltered(refusal=AppendUnknown(reason="sync failed")))
    assert session.reply_to(asker) == AppendUnknown(reason="sync failed")
    late = session.append("more")
    assert session.reply_to(late) == AppendUnknown(reason="sync failed")


def test_file_that_another_program_changed_is_opened_again_after_a_change_was_refused() -> None:
    session = DrivenSession()
    asker = to_commit(session, REWIND)
    session.tell(TranscriptNotAltered(refusal=ChangedOutside(path="p")))
    assert session.reply_to(asker) == ChangedOutside(path="p")
    assert session.name == "Reopening"


def test_rewrite_of_another_session_does_not_stop_the_turn_here() -> None:
    session = DrivenSession()
    asker = session.ask(RewriteSession(rewrite=Vacuum(), session_id=B))
    assert stored(session).change == RewriteWith(session_id=B, rewrite=Vacuum())
    reply = SessionRewritten(
        token=NEW, path="p", changed=1, bytes_before=2, bytes_after=1, backup="b"
    )
    session.tell(StoredChanged(asker=stored(session).asker, reply=reply))
    assert session.reply_to(asker) == reply
    assert session.sent(DrainTurn) == []


# --- forks -------------------------------------------------------------------------------------


def test_two_forks_at_once_are_two_wishes_and_each_asker_gets_its_own() -> None:
    session = DrivenSession()
    askers = [session.ask(ForkSession(entry_id=ENTRY, name=name)) for name in ("one", "two")]
    wishes = session.wanted(ChangeStored)
    assert [wish.change for wish in wishes] == [
        ForkAt(session_id=A, entry_id=ENTRY, position="at", name=name) for name in ("one", "two")
    ]
    forks = [SessionForked(session_id=B, path=f"{n}", entries=1, source=A) for n in range(2)]
    for wish, reply in zip(reversed(wishes), reversed(forks), strict=True):
        session.tell(StoredChanged(asker=wish.asker, reply=reply))
    assert [session.reply_to(asker) for asker in askers] == forks
    assert session.here == token()


# --- deletion ----------------------------------------------------------------------------------


def test_deleting_the_active_session_opens_a_new_one_first_and_answers_when_it_is_gone() -> None:
    session = DrivenSession()
    asker = session.ask(DeleteSession(session_id=A))
    assert session.wanted(OpenTranscript)[-1].target == Fresh()
    session.load(session_id=B)
    session.drained("queued")
    session.noted()
    assert session.here.session_id == B
    assert session.reply_to(asker) is None
    kinds = [type(each).__name__ for each in session.effects]
    assert kinds.index("CloseTranscript") < kinds.index("ChangeStored")
    wish = stored(session)
    assert wish.change == Discard(session_id=A, current=session.here)
    done = SessionDeleted(session_id=A, kept_at="trash", current=session.here)
    session.tell(StoredChanged(asker=wish.asker, reply=done))
    assert session.reply_to(asker) == done


def test_deleting_another_session_leaves_the_seat_alone() -> None:
    session = DrivenSession()
    asker = session.ask(DeleteSession(session_id=B))
    assert stored(session).change == Discard(session_id=B, current=None)
    refusal = StorageFailed(path="p", reason="no")
    session.tell(StoredNotChanged(asker=stored(session).asker, refusal=refusal))
    assert session.reply_to(asker) == refusal
    assert (session.name, session.here, session.sent(DrainTurn)) == ("Live", token(), [])


def test_clearing_makes_exactly_one_replacement() -> None:
    session = DrivenSession(Live(_session(entries=3), _quiet()))
    asker = session.ask(ClearSessions())
    session.load(session_id=B)
    session.drained()
    session.noted()
    assert stored(session).change == DiscardAll(current=session.here)
    done = SessionsCleared(deleted=(A,), kept_at="t", in_use=(), failed=(), current=session.here)
    session.tell(StoredChanged(asker=stored(session).asker, reply=done))
    assert session.reply_to(asker) == done
    assert len(session.said(SessionChanged)) == 1


def test_clearing_with_an_empty_session_keeps_it() -> None:
    session = DrivenSession(Live(_session(entries=0), _quiet()))
    session.ask(ClearSessions())
    assert stored(session).change == DiscardAll(current=session.here)
    assert session.wanted(OpenTranscript) == []


def test_deletion_under_a_swap_waits_for_it_and_meets_the_session_that_is_there_then() -> None:
    session = DrivenSession()
    session.ask(OpenSession(session_id=B))
    session.ask(DeleteSession(session_id=A))
    assert session.wanted(ChangeStored) == []
    session.load(session_id=B)
    session.drained()
    session.noted()
    assert stored(session).change == Discard(session_id=A, current=None)


# --- a seat without a session ---------------------------------------------------------------


def test_vacant_seat_changes_sessions_that_are_named_and_no_others() -> None:
    session = DrivenSession(Vacant())
    session.ask(DeleteSession(session_id=B))
    assert stored(session).change == Discard(session_id=B, current=None)
    session.ask(ForkSession(session_id=B))
    assert isinstance(stored(session).change, ForkAt)
    session.ask(ClearSessions())
    assert stored(session).change == DiscardAll(current=None)
    for command in (ForkSession(), RenameSession(name="n"), REWIND, *OWN):
        assert isinstance(session.reply_to(session.ask(command)), NoSession)


def test_answer_of_the_door_reaches_its_asker_whatever_the_seat_has_then() -> None:
    session = DrivenSession()
    asker = session.ask(ForkSession())
    wish = stored(session)
    session.ask(OpenSession(session_id=B))
    fork = SessionForked(session_id=B, path="p", entries=1, source=A)
    session.tell(StoredChanged(asker=wish.asker, reply=fork))
    assert session.reply_to(asker) == fork
    assert session.name == "Loading"


def test_rewind_names_its_entry_and_position() -> None:
    session = DrivenSession()
    session.ask(RewindSession(entry_id=None, position="before"))
    target = session.wanted(OpenTranscript)[-1].target
    assert target == Changed(session_id=A, change=Rewind(entry_id=None, position="before"))


def _session(entries: int) -> Any:
    return replace(session_of(opened(), 0), entries=entries)


def _quiet() -> Any:
    return Quiet()
