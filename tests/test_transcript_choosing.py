"""Which session is opened, and what is refused because it is none."""

import errno
import json

import pytest
from transcript_world import SESSIONS, Machine, beside

from tenure.messages.entries import Record
from tenure.messages.session import SessionNotFound, SessionUnreadable, StorageFailed
from tenure.messages.transcripts import ById, Fresh, Newest
from tenure.runtime.doors.transcripts import SessionFound, find_session
from tenure.runtime.doors.transcripts.codec import encode_header, encode_record
from tenure.runtime.doors.transcripts.discarding import discard_all
from tenure.runtime.testing.faults import Fail, FaultRule, FaultRules


@pytest.fixture
def machine():
    return Machine()


def written(machine, *bodies, host="host"):
    """A session with these entries whose host died; its seat."""
    seat = machine.seat(host)
    seat.open(Fresh())
    seat.append(*bodies)
    machine.kill(seat)
    return seat


def sealed(number, body, *, epoch=1, parent=None):
    record = Record(
        id=f"e{number}", parent_id=parent, timestamp_ms=0, seq=number, turn=0, key="", body=body
    )
    return encode_record(record, epoch)[:-1]


HEADER = encode_header("s1", 0, "/work")[:-1]

# --- which session -----------------------------------------------------------------------


def test_unknown_session_is_not_found_and_leaves_no_trace(machine):
    before = machine.disk.paths()
    refusal = machine.seat().refused(ById(session_id="nobody"))
    assert isinstance(refusal, SessionNotFound)
    assert refusal.searched == SESSIONS
    assert machine.disk.paths() == before


@pytest.mark.parametrize("name", ["../../etc/passwd", "..", "/etc/passwd", "a\0b", "x" * 5000, ""])
def test_session_name_that_leads_elsewhere_is_only_not_found(machine, name):
    assert isinstance(machine.seat().refused(ById(session_id=name)), SessionNotFound)


def test_session_id_that_ends_like_another_is_not_mistaken_for_it(machine):
    machine.put_session("a_b", encode_header("a_b", 0, "/")[:-1])
    assert isinstance(machine.seat().refused(ById(session_id="b")), SessionNotFound)
    assert machine.seat("x").open(ById(session_id="a_b")).token.session_id == "a_b"


def test_file_with_a_name_of_its_own_is_found_by_its_header(machine):
    machine.disk.put(f"{SESSIONS}/imported.jsonl", HEADER + b"\n")
    assert machine.seat().open(ById(session_id="s1")).path == f"{SESSIONS}/imported.jsonl"


def test_renamed_file_is_found_and_opened_by_the_id_in_its_header(machine):
    path = machine.put_session("renamed", HEADER)
    machine.put_session("other", encode_header("other", 0, "/")[:-1])
    seat = machine.seat()
    for text in ("s1", "s"):
        assert find_session(seat.leaves, "/work", text) == SessionFound(session_id="s1", path=path)
    assert isinstance(find_session(seat.leaves, "/elsewhere", "s1"), SessionNotFound)
    assert seat.open(ById(session_id="s1")).path == path


def test_session_is_found_by_its_file_name_without_a_look_into_any_file(machine):
    machine.put_session("s1", HEADER)
    machine.put_session("other", encode_header("other", 0, "/")[:-1])
    seat = machine.seat()
    machine.disk.calls.clear()
    assert isinstance(find_session(seat.leaves, "/work", "s1"), SessionFound)
    assert not [call for call in machine.disk.calls if call.name == "read_at"]


def test_renamed_file_that_somebody_has_open_is_not_cleared_away(machine):
    path = machine.put_session("renamed", HEADER)
    machine.seat().open(ById(session_id="s1"))
    cleared = discard_all(machine.seat("b").door.ground)
    assert (cleared.in_use, cleared.deleted) == (("s1",), ())
    assert path in machine.disk.paths()


def test_file_whose_header_names_another_session_is_not_opened(machine):
    machine.put_session("other", HEADER)
    refusal = machine.seat().refused(ById(session_id="other"))
    assert isinstance(refusal, SessionUnreadable)
    assert refusal.reason == "its header names the session 's1'"


def test_newest_is_the_session_with_the_last_message(machine):
    for number, name in enumerate(["old", "new", "middle"]):
        moment = {"old": 1000, "new": 3000, "middle": 2000}[name]
        entry = json.dumps(
            {
                "type": "message",
                "id": "m",
                "parentId": None,
                "message": {"role": "user", "content": name, "timestamp": moment},
            }
        ).encode()
        machine.put_session(name, encode_header(name, number, "/")[:-1], entry)
    seat = machine.seat()
    assert seat.open(Newest()).token.session_id == "new"
    other = machine.seat("b")
    assert other.open(Newest()).token.session_id == "middle"
    assert beside(other, "second").open(Newest()).token.session_id == "old"


def test_newest_reads_no_more_files_than_it_must(machine):
    for number in range(20):
        machine.disk.clock.advance(1)
        moment = machine.disk.clock.now_ms()
        name = f"s{number}"
        machine.put_session(name, encode_header(name, moment, "/")[:-1])
    seat = machine.seat()
    machine.disk.calls.clear()
    assert seat.open(Newest()).token.session_id == "s19"
    read = {call.path for call in machine.disk.calls if call.name == "read_at"}
    assert sum("/sessions/2026" in path for path in read) <= 2


def test_newest_passes_over_what_cannot_be_read(machine):
    machine.put_session("good", encode_header("good", 0, "/")[:-1])
    machine.disk.clock.advance(10)
    machine.put_session("bad", b"junk")
    assert machine.seat().open(Newest()).token.session_id == "good"


def test_newest_is_refused_where_the_folder_cannot_be_read(machine):
    machine.put_session("good", encode_header("good", 0, "/")[:-1])
    machine.disk.before = FaultRules(FaultRule(fault=Fail(errno=errno.EACCES), calls=("list",)))
    refusal = machine.seat().refused(Newest())
    assert refusal == StorageFailed(path=SESSIONS, reason="permission denied")


@pytest.mark.parametrize(
    ("number", "words"), [(errno.EROFS, "read-only"), (errno.ENOSPC, "no space left")]
)
def test_newest_is_refused_where_the_disk_lets_nobody_claim_it(machine, number, words):
    path = machine.put_session("good", HEADER.replace(b"s1", b"good"))
    fail = FaultRule(fault=Fail(errno=number), calls=("lock", "make_folder"), hits="lasting")
    machine.disk.before = FaultRules(fail)
    refusal = machine.seat().refused(Newest())
    assert isinstance(refusal, StorageFailed)
    assert refusal.path.startswith("/work/.tenure/")
    assert words in refusal.reason
    machine.disk.before = None
    assert machine.seat("b").open(Newest()).path == path


def test_newest_is_a_new_session_where_there_is_none(machine):
    opened = machine.seat().open(Newest())
    assert (opened.entries, opened.token.epoch) == (0, 1)


# --- what cannot be opened ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"junk\n", "its first line is not a session header"),
        (b"\x7fELF\0\0\n", "it is not a text file"),
        (
            b'{"type":"session","version":9,"id":"s1"}\n',
            "it was written in version 9 of the dialect, and this program reads up to 3; "
            "update tenure",
        ),
    ],
)
def test_unreadable_file_is_refused_untouched_and_its_claim_is_free(machine, data, reason):
    path = machine.put_session("s1", data, end=b"")
    refusal = machine.seat().refused(ById(session_id="s1"))
    assert refusal == SessionUnreadable(path=path, reason=reason)
    assert machine.content(path) == data
    machine.disk.put(path, HEADER + b"\n")
    assert machine.seat("b").open(ById(session_id="s1")).token.epoch == 1


def test_folder_in_the_place_of_a_transcript_is_refused(machine):
    path = f"{SESSIONS}/2026-01-01T00-00-00-000Z_s1.jsonl"
    machine.disk.put_folder(path)
    refusal = machine.seat().refused(ById(session_id="s1"))
    assert refusal == SessionUnreadable(path=path, reason="it is a folder")


def test_file_that_may_not_be_written_is_refused(machine):
    path = machine.put_session("s1", HEADER)
    machine.disk.before = FaultRules(
        FaultRule(fault=Fail(errno=errno.EACCES), calls=("open",), path_ends=".jsonl")
    )
    refusal = machine.seat().refused(ById(session_id="s1"))
    reason = "it cannot be opened for writing: permission denied"
    assert refusal == SessionUnreadable(path=path, reason=reason)


def test_session_that_cannot_be_locked_is_refused(machine):
    machine.put_session("s1", HEADER)
    machine.disk.before = FaultRules(FaultRule(fault=Fail(errno=errno.ENOLCK), calls=("lock",)))
    refusal = machine.seat().refused(ById(session_id="s1"))
    assert isinstance(refusal, StorageFailed)
    assert "no locks available" in refusal.reason
    assert refusal.path.startswith("/work/.tenure/claims/sessions/s1")
