"""Conformance of the transcript door: where a SessionActor's session lives.

The effects are those of `messages/transcripts.py`; the door says what became of each.
For a store of your own (a database, another format): what the kit asks is what a
host relies on, and not how a file looks.
"""

from typing import Protocol

from tenure.messages.content import (
    ChatMessage,
    ToolResultMessage,
)
from tenure.messages.entries import EntryBody
from tenure.messages.session import SessionInUse, SessionNotFound
from tenure.messages.tokens import EntryId, SessionId
from tenure.messages.transcripts import (
    ById,
    Fresh,
    Newest,
    NoteSeat,
    ReadSeat,
    RecordsAppended,
    RecordsRefused,
    SeatNoted,
    SeatRemembered,
    SeatVacant,
    TranscriptClosed,
)
from tenure.runtime.testing.conformance.checks import Kit, holds, same
from tenure.runtime.testing.conformance.transcript_seat import (
    SeatOnTest,
    TranscriptDoor,
    calls,
    result,
    shown,
    user,
)


class TranscriptsUnderTest(Protocol):
    """One empty storage, and what can happen to the hosts on it."""

    def host(self) -> TranscriptDoor:
        """The door of a new host: as in a new process."""
        ...

    def kill(self, door: TranscriptDoor) -> None:
        """That host dies as by kill -9: nothing of it runs on, what it wrote stays."""
        ...

    def lose_power(self) -> None:
        """Every host dies, and what was not made durable is gone."""
        ...

    def tear(self, path: str, bytes_cut: int) -> None:
        """Cut the end of what `Opened.path` names, as a crash in a write leaves it."""
        ...


TRANSCRIPTS: Kit[TranscriptsUnderTest] = Kit("transcripts")
_check = TRANSCRIPTS.check


async def _session(at: TranscriptsUnderTest, *bodies: EntryBody) -> tuple[SeatOnTest, SessionId]:
    """A seat of a new host with a session that has these entries."""
    seat = SeatOnTest(at.host())
    await seat.open(Fresh())
    if bodies:
        await seat.append(*bodies)
    return seat, seat.token.session_id


# --- opening --------------------------------------------------------------------------------


@_check
async def a_new_session_is_empty_and_has_an_epoch(at: TranscriptsUnderTest) -> None:
    """The first token of a session counts from 1."""
    seat, _ = await _session(at)
    opened = seat.opened
    assert opened is not None
    same("leaf, seq and entries", (opened.leaf, opened.seq, opened.entries), (None, 0, 0))
    holds(opened.token.epoch >= 1, f"the epoch is {opened.token.epoch}")
    same("what a model is shown", seat.messages, ())


@_check
async def what_was_appended_is_there_for_the_next_host(at: TranscriptsUnderTest) -> None:
    """The same entries in the same order, with the same leaf."""
    seat, session_id = await _session(at, user("one"), user("two"))
    await seat.append(user("three"))
    await seat.close()
    other = SeatOnTest(at.host())
    opened = await other.open(ById(session_id=session_id))
    same("the texts", other.texts, ["one", "two", "three"])
    same("the leaf", opened.leaf, seat.leaf)
    same("seq and entries", (opened.seq, opened.entries), (3, 3))


@_check
async def a_session_that_nobody_made_is_not_found(at: TranscriptsUnderTest) -> None:
    """It is refused, and not made."""
    nobody = ById(session_id=SessionId("0b54cc8e-6f8b-4a5e-9d51-5e5a1f9f6a01"))
    for _ in range(2):
        refusal = await SeatOnTest(at.host()).refused(nobody)
        holds(isinstance(refusal, SessionNotFound), f"refused with {shown(refusal)}")


@_check
async def the_newest_session_that_is_free_is_the_one_to_continue(at: TranscriptsUnderTest) -> None:
    """One that another host has open is passed over; where none is free a new one begins."""
    busy, busy_id = await _session(at, user("busy"))
    opened = await SeatOnTest(at.host()).open(Newest())
    holds(opened.token.session_id != busy_id, "a session that another host has open was opened")
    await busy.close()
    again = await SeatOnTest(at.host()).open(Newest())
    same("the session once it is free", again.token.session_id, busy_id)


# --- claims ---------------------------------------------------------------------------------


@_check
async def a_session_is_live_in_one_seat_of_one_host(at: TranscriptsUnderTest) -> None:
    """A second host is refused, and so is a second seat of the same."""
    seat, session_id = await _session(at, user("one"))
    target = ById(session_id=session_id)
    for who, other in (("host", SeatOnTest(at.host())), ("seat", SeatOnTest(seat.door, "second"))):
        refusal = await other.refused(target)
        holds(isinstance(refusal, SessionInUse), f"a second {who}: {shown(refusal)}")


@_check
async def a_dead_holders_session_is_free_at_a_higher_epoch(at: TranscriptsUnderTest) -> None:
    """Its old token is stale for ever."""
    seat, session_id = await _session(at, user("one"))
    at.kill(seat.door)
    opened = await SeatOnTest(at.host()).open(ById(session_id=session_id))
    before = seat.token.epoch
    holds(opened.token.epoch > before, f"epoch {opened.token.epoch} after {before}")


@_check
async def every_change_of_hands_has_an_epoch_of_its_own(at: TranscriptsUnderTest) -> None:
    """Also in order, and never the same twice."""
    seat, session_id = await _session(at, user("one"))
    epochs = [seat.token.epoch]
    for _ in range(3):
        await seat.close()
        seat = SeatOnTest(at.host())
        epochs.append((await seat.open(ById(session_id=session_id))).token.epoch)
    same("the epochs, sorted and without repeats", sorted(set(epochs)), epochs)


@_check
async def a_released_seat_lets_go_of_everything(at: TranscriptsUnderTest) -> None:
    """A restarted owner's sessions must be free to be opened again."""
    seat, session_id = await _session(at, user("one"))
    await seat.door.release_seat("main")
    await SeatOnTest(at.host()).open(ById(session_id=session_id))


@_check
async def closing_what_is_not_open_is_harmless(at: TranscriptsUnderTest) -> None:
    """A close that is repeated after a crash must not fail."""
    seat, _ = await _session(at, user("one"))
    for _ in range(2):
        outcome = await seat.close()
        holds(isinstance(outcome, TranscriptClosed), f"a close ended in {shown(outcome)}")


# --- appending ------------------------------------------------------------------------------


@_check
async def an_append_behind_another_entry_is_refused_and_leaves_nothing(
    at: TranscriptsUnderTest,
) -> None:
    """Compare and append: two writers never make two chains."""
    seat, session_id = await _session(at, user("one"), user("two"))
    leaf = seat.leaf
    for after in (None, EntryId("00000000deadbeef")):
        outcome = await seat.try_append(user("astray"), after=after)
        holds(isinstance(outcome, RecordsRefused), f"an append after {after}: {shown(outcome)}")
    same("the texts after the refusal", seat.texts, ["one", "two"])
    outcome = await seat.try_append(user("three"), after=leaf)
    holds(isinstance(outcome, RecordsAppended), f"the right append then: {shown(outcome)}")
    await seat.close()
    other = SeatOnTest(at.host())
    await other.open(ById(session_id=session_id))
    same("the texts on the storage", other.texts, ["one", "two", "three"])


@_check
async def an_append_to_a_session_of_another_seat_is_refused(at: TranscriptsUnderTest) -> None:
    """Only the seat that has it open writes it."""
    seat, _ = await _session(at, user("one"))
    other = SeatOnTest(seat.door, "second")
    other.opened, other.seq = seat.opened, seat.seq
    outcome = await other.try_append(user("foreign"), after=seat.leaf)
    holds(isinstance(outcome, RecordsRefused), f"it ended in {shown(outcome)}")
    same("the texts", seat.texts, ["one"])


@_check
async def a_receipt_is_given_when_it_is_durable(at: TranscriptsUnderTest) -> None:
    """After a power loss everything is there that was receipted, in a new session too."""
    seat, session_id = await _session(at, user("one"))
    await seat.append(user("two"), user("three"))
    at.lose_power()
    other = SeatOnTest(at.host())
    await other.open(ById(session_id=session_id))
    same("the texts after the power loss", other.texts, ["one", "two", "three"])


@_check
async def idempotency_keys_are_kept_with_their_entries(at: TranscriptsUnderTest) -> None:
    """A repeat after a crash must get the first answer."""
    seat, session_id = await _session(at)
    await seat.append(user("one"), key="key-1")
    entry = seat.leaf
    at.kill(seat.door)
    opened = await SeatOnTest(at.host()).open(ById(session_id=session_id))
    same("the keys of the session", opened.keys, (("key-1", (entry,), 1),))


# --- damage and mending -----------------------------------------------------------------------


@_check
async def a_torn_end_loses_no_whole_entry_and_is_never_served(at: TranscriptsUnderTest) -> None:
    """A crash in a write leaves half a record; the session goes on behind the last whole one."""
    seat, session_id = await _session(at, user("one"))
    assert seat.opened is not None
    path = seat.opened.path
    await seat.append(user("two"))
    at.kill(seat.door)
    at.tear(path, 5)
    other = SeatOnTest(at.host())
    opened = await other.open(ById(session_id=session_id))
    same("the texts behind the tear", other.texts, ["one"])
    holds(opened.damage.count > 0, "the damage is not counted, so nobody is told")
    await other.append(user("three"))
    same("the texts after the next append", other.texts, ["one", "three"])


@_check
async def a_call_without_a_result_gets_one_when_opened_again(at: TranscriptsUnderTest) -> None:
    """A provider refuses a conversation with an open call; it is settled once, not twice."""
    seat, session_id = await _session(at, user("go"), calls("c1", "c2"), result("c1"))
    at.kill(seat.door)
    for expected in (1, 0):
        other = SeatOnTest(at.host())
        opened = await other.open(ById(session_id=session_id))
        same("calls that were settled while opening", opened.settled, expected)
        same("calls with a result", _settled(other.messages), ["c1", "c2"])
        at.kill(other.door)


@_check
async def a_live_session_is_settled_when_asked(at: TranscriptsUnderTest) -> None:
    """A turn that lost an append has its open calls settled before anything else starts."""
    seat, _ = await _session(at, user("go"), calls("c1", "c2"))
    opened = await seat.settle()
    same("calls that were settled", opened.settled, 2)
    same("calls with a result", _settled(seat.messages), ["c1", "c2"])
    same("epoch", opened.token, seat.token)
    await seat.append(user("on"))


def _settled(messages: tuple[ChatMessage, ...]) -> list[str]:
    return [each.tool_call_id for each in messages if isinstance(each, ToolResultMessage)]


# --- seats ------------------------------------------------------------------------------------


@_check
async def a_seat_is_remembered_within_its_host_and_by_no_other(at: TranscriptsUnderTest) -> None:
    """A restarted owner finds its session; a new host starts with empty seats."""
    seat, session_id = await _session(at, user("one"))
    before = await seat.door.read_seat(ReadSeat(), seat.context)
    holds(isinstance(before, SeatVacant), f"before it was noted: {shown(before)}")
    noted = await seat.door.note_seat(NoteSeat(session_id=session_id), seat.context)
    holds(isinstance(noted, SeatNoted), f"the note ended in {shown(noted)}")
    read = await seat.door.read_seat(ReadSeat(), seat.context)
    same("the seat's session", read, SeatRemembered(session_id=session_id))
    other = await at.host().read_seat(ReadSeat(), seat.context)
    holds(isinstance(other, SeatVacant), f"another host's seat of this name: {shown(other)}")
