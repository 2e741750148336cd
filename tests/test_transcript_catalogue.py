"""Looking at sessions: what lists and readers show, and that they touch nothing."""

import errno
import json

import pytest
from transcript_world import ROOT, SESSIONS, Machine, answer, result, user

from tenure.messages.entries import SessionInfoEntry
from tenure.messages.session import SessionNotFound
from tenure.messages.transcripts import ById, Fresh
from tenure.runtime.doors.transcripts import (
    Catalogue,
    SessionAmbiguous,
    SessionFound,
    Unreadable,
    find_session,
    list_sessions,
    read_session,
)
from tenure.runtime.doors.transcripts.codec import encode_header
from tenure.runtime.testing.faults import WRITING_CALLS, Fail, FaultRule, FaultRules
from tenure.runtime.testing.leaves import memory_leaves


@pytest.fixture
def machine():
    return Machine()


@pytest.fixture
def reader(machine):
    return memory_leaves(machine.disk)


@pytest.fixture
def seat(machine):
    """A named session of four entries, open in its seat."""
    seat = machine.seat()
    seat.open(Fresh(name="Pricing"))
    seat.append(user("What did we\n decide?"), answer("Look", "c1"), result("c1"))
    return seat


def spoken(name, moment):
    message = {"role": "user", "content": name, "timestamp": moment}
    return json.dumps({"type": "message", "id": "m", "parentId": None, "message": message}).encode()


# --- lists ---


def test_summary_tells_what_a_person_looks_for(machine, reader, seat):
    (summary,) = list_sessions(reader, ROOT)
    assert summary.id == seat.id
    assert summary.path == seat.opened.path
    assert summary.name == "Pricing"
    assert summary.first_text == "What did we decide?"
    assert summary.messages == 3
    assert summary.bytes == len(machine.content(seat.opened.path))
    assert summary.created_ms == seat.leaves.clock.now_ms()
    assert summary.updated_ms == 1_700_000_000_000
    assert (summary.damage, summary.problem) == (0, "")


def test_last_name_counts_and_an_empty_one_clears_it(reader, seat):
    seat.append(SessionInfoEntry(name="Other\nname "))
    assert list_sessions(reader, ROOT)[0].name == "Other name"
    seat.append(SessionInfoEntry(name=""))
    assert list_sessions(reader, ROOT)[0].name == ""


def test_long_first_text_is_shortened(reader, seat, machine):
    other = machine.seat("other")
    other.open(Fresh())
    other.append(user("\U0001f600" * 500))
    texts = sorted(len(summary.first_text) for summary in list_sessions(reader, ROOT))
    assert texts == [19, 200]


def test_newest_session_is_first(machine, reader):
    for name, moment in (("b", 2000), ("c", 3000), ("a", 1000)):
        machine.put_session(name, encode_header(name, 5, "/")[:-1], spoken(name, moment))
    assert [summary.id for summary in list_sessions(reader, ROOT)] == ["c", "b", "a"]


def test_list_of_a_root_without_sessions_is_empty(reader):
    assert list_sessions(reader, ROOT) == ()
    assert list_sessions(reader, "/nowhere") == ()


def test_damaged_session_is_listed_with_its_damage(machine, reader):
    machine.put_session("d", encode_header("d", 0, "/")[:-1], b"junk", spoken("x", 1))
    (summary,) = list_sessions(reader, ROOT)
    assert (summary.damage, summary.messages) == (1, 1)


def test_unreadable_file_is_listed_with_its_problem_and_hides_no_other(machine, reader, seat):
    machine.put_session("bad", b"junk")
    machine.disk.put_folder(f"{SESSIONS}/folder.jsonl")
    machine.disk.put(f"{SESSIONS}/notes.txt", b"not mine")
    problems = {summary.path.rpartition("/")[2]: summary for summary in list_sessions(reader, ROOT)}
    assert len(problems) == 3
    bad = problems["2026-01-01T00-00-00-000Z_bad.jsonl"]
    assert bad.problem == "its first line is not a session header"
    assert bad.id == ""
    assert problems["folder.jsonl"].problem == "it is a folder"


@pytest.mark.parametrize("moment", [b"1e999", b"NaN", b"-1e999", b"1e300", b'"x"', b"null"])
def test_time_that_is_none_does_not_break_the_list(machine, reader, moment):
    entry = spoken("x", 1).replace(b'"timestamp": 1', b'"timestamp": %b' % moment)
    path = machine.put_session("odd", encode_header("odd", 5, "/")[:-1], entry)
    (summary,) = list_sessions(reader, ROOT)
    assert (summary.first_text, summary.problem) == ("x", "")
    assert len(read_session(reader, path).messages) == 1


def test_file_that_cannot_be_opened_is_listed_with_its_problem(machine, reader, seat):
    machine.disk.before = FaultRules(
        FaultRule(fault=Fail(errno=errno.EACCES), calls=("open",), path_ends=".jsonl")
    )
    assert list_sessions(reader, ROOT)[0].problem == "permission denied"


def test_catalogue_reads_a_file_again_only_when_it_changed(machine, reader, seat):
    machine.put_session("other", encode_header("other", 0, "/")[:-1])
    catalogue = Catalogue(reader, ROOT)
    first = catalogue.sessions()
    machine.disk.calls.clear()
    assert catalogue.sessions() == first
    assert not [call for call in machine.disk.calls if call.name == "read_at"]
    seat.append(user("more"))
    machine.disk.calls.clear()
    assert {summary.messages for summary in catalogue.sessions()} == {0, 4}
    read = [call.path for call in machine.disk.calls if call.name == "read_at"]
    assert read == [seat.opened.path]


def test_catalogue_forgets_removed_sessions(machine, reader, seat):
    catalogue = Catalogue(reader, ROOT)
    catalogue.sessions()
    seat.leaves.files.remove(seat.opened.path)
    assert catalogue.sessions() == ()


def test_search_looks_into_name_first_text_and_id_whatever_the_case(reader, seat):
    catalogue = Catalogue(reader, ROOT)
    for text in ("PRICING", "we decide", seat.id[:6].upper()):
        assert [summary.id for summary in catalogue.search(text)] == [seat.id], text
    assert catalogue.search("nothing of it") == ()


# --- reads ---


def test_snapshot_marks_every_line_that_is_not_whole(machine, reader, seat):
    path = seat.opened.path
    lines = machine.lines(path)
    lines[2] = lines[2].replace(b"decide", b"DECIDE")
    lines.insert(3, b"junk \xff")
    lines.append(spoken("foreign", 1))
    machine.disk.put(path, b"\n".join(lines) + b'\n{"type":')
    snapshot = read_session(reader, path)
    assert [(entry.line, entry.state) for entry in snapshot.entries] == [
        (2, "intact"),
        (3, "altered"),
        (4, "unreadable"),
        (5, "intact"),
        (6, "intact"),
        (7, "unverified"),
    ]
    assert snapshot.damage.count == 3
    assert snapshot.damage.torn_bytes == 8
    assert snapshot.entries[1].text.encode() == lines[2]
    assert snapshot.entries[2].text == "junk \ufffd"
    assert snapshot.entries[3].parent_id == snapshot.entries[0].id
    assert snapshot.leaf == "m"
    assert snapshot.summary.damage == 2


def test_reader_leaves_out_the_unfinished_line_of_a_live_writer(machine, reader, seat):
    path = seat.opened.path
    whole = read_session(reader, path)
    data = machine.content(path)
    for length in range(1, 60):
        machine.disk.put(path, data + machine.lines(path)[1][:length])
        snapshot = read_session(reader, path)
        assert snapshot.entries == whole.entries
        assert snapshot.summary.damage == 0


def test_reader_follows_a_replaced_file(machine, reader, seat):
    path = seat.opened.path
    assert len(read_session(reader, path).messages) == 3
    machine.disk.put(f"{path}.new", b"\n".join(machine.lines(path)[:3]) + b"\n")
    seat.leaves.files.rename(f"{path}.new", path)
    assert len(read_session(reader, path).messages) == 1


def test_session_in_use_can_be_read(reader, seat):
    snapshot = read_session(reader, seat.opened.path)
    assert snapshot.messages == seat.door.context(seat.id)


def test_reading_what_is_no_transcript_says_why(machine, reader):
    path = machine.put_session("bad", b"junk")
    with pytest.raises(Unreadable, match="not a session header"):
        read_session(reader, path)
    with pytest.raises(FileNotFoundError):
        read_session(reader, f"{SESSIONS}/gone.jsonl")


@pytest.mark.witness("SESSION-8")
def test_reads_never_write_and_never_lock(machine, reader, seat):
    """Not a torn tail, not a missing newline, not an older dialect makes a reader write."""
    machine.put_session("torn", encode_header("torn", 0, "/")[:-1], end=b"\n{torn")
    machine.put_session("bare", encode_header("bare", 0, "/")[:-1], spoken("x", 1), end=b"")
    machine.put_session("old", b'{"type":"session","version":1,"id":"old"}', spoken("x", 1))
    machine.put_session("bad", b"junk")
    before = {path: machine.content(path) for path in machine.disk.paths()}
    machine.disk.calls.clear()
    summaries = list_sessions(reader, ROOT)
    for summary in summaries:
        if not summary.problem:
            read_session(reader, summary.path)
    find_session(reader, ROOT, "torn")
    assert len(summaries) == 5
    assert not [call for call in machine.disk.calls if call.name in WRITING_CALLS]
    assert {path: machine.content(path) for path in machine.disk.paths()} == before


@pytest.mark.witness("SESSION-8")
def test_older_dialect_is_shown_without_being_converted(machine, reader):
    path = machine.put_session(
        "old", b'{"type":"session","id":"old"}', b'{"type":"message","message":{"role":"user"}}'
    )
    assert read_session(reader, path).entries[0].id == "00000002"
    assert machine.lines(path)[0] == b'{"type":"session","id":"old"}'


# --- finding ---


def test_session_is_found_by_its_id_or_the_beginning_of_it(machine, reader):
    for name in ("abc1", "abd2", "abc"):
        machine.put_session(name, encode_header(name, 0, "/")[:-1])
    machine.disk.put(f"{SESSIONS}/own-name.jsonl", encode_header("xyz", 0, "/"))
    assert find_session(reader, ROOT, "abc").session_id == "abc"
    assert find_session(reader, ROOT, "abd").session_id == "abd2"
    found = find_session(reader, ROOT, "x")
    assert found == SessionFound(session_id="xyz", path=f"{SESSIONS}/own-name.jsonl")
    ambiguous = find_session(reader, ROOT, "ab")
    assert isinstance(ambiguous, SessionAmbiguous)
    assert ambiguous.candidates == ("abc", "abc1", "abd2")


@pytest.mark.parametrize("text", ["nobody", "", "../x"])
def test_session_of_nobody_is_not_found(machine, reader, text):
    machine.put_session("abc", encode_header("abc", 0, "/")[:-1])
    found = find_session(reader, ROOT, text)
    assert found == SessionNotFound(session_id=text, searched=SESSIONS)


def test_lookup_stays_in_its_root(machine, reader, seat):
    machine.disk.put_folder("/elsewhere")
    assert isinstance(find_session(reader, "/elsewhere", seat.id), SessionNotFound)


def test_found_session_can_be_opened(machine, reader, seat):
    seat.close()
    found = find_session(reader, ROOT, seat.id[:10])
    assert machine.seat("b").open(ById(session_id=found.session_id)).path == found.path
