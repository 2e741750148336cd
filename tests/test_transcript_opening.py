"""Opening a transcript: who gets it, at which epoch, what is repaired, what is refused."""

import errno
import json

import pytest
from transcript_world import SESSIONS, Machine, answer, beside, result, user

from tenure.messages.entries import Record
from tenure.messages.session import (
    Again,
    ById,
    Fresh,
    Newest,
    SeatRemembered,
    SeatVacant,
    SessionInUse,
    SessionNotFound,
    SessionUnreadable,
    StorageFailed,
)
from tenure.runtime.doors.transcripts.codec import encode_header, encode_record
from tenure.runtime.testing.faults import DISK_FULL, Fail, FaultRule, FaultRules


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

# --- a new session -----------------------------------------------------------------------


def test_nothing_is_made_before_the_first_entry(machine):
    before = machine.disk.paths()
    seat = machine.seat()
    opened = seat.open(Fresh())
    seat.note()
    assert seat.settle().opened.settled == 0
    assert machine.disk.paths() == before
    assert (opened.leaf, opened.entries, opened.token.epoch) == (None, 0, 1)


def test_first_append_makes_the_file_with_header_and_entries(machine):
    seat = machine.seat()
    path = seat.open(Fresh()).path
    seat.append(user("one"), user("two"))
    header, *entries = (json.loads(line) for line in machine.lines(path))
    assert (header["type"], header["version"], header["id"]) == ("session", 3, seat.id)
    assert header["cwd"] == "/work"
    assert [entry["message"]["content"] for entry in entries] == ["one", "two"]
    assert [entry["parentId"] for entry in entries] == [None, entries[0]["id"]]
    assert path.endswith(f"Z_{seat.id}.jsonl")
    assert ":" not in path


def test_name_of_a_new_session_is_its_first_entry(machine):
    seat = machine.seat()
    opened = seat.open(Fresh(name="Plans"))
    seat.append(user("one"))
    _, name, entry = (json.loads(line) for line in machine.lines(opened.path))
    assert (name["type"], name["name"]) == ("session_info", "Plans")
    assert entry["parentId"] == name["id"] == opened.leaf


def test_new_session_that_was_closed_unwritten_is_the_same_again(machine):
    seat = machine.seat()
    first = seat.open(Fresh(name="Plans"))
    seat.close()
    assert seat.open(Again(session_id=first.token.session_id)) == first
    seat.append(user("one"))
    assert len(machine.lines(first.path)) == 3


# --- epochs and claims -------------------------------------------------------------------


def test_every_opening_moves_the_epoch(machine):
    seat = written(machine, user("one"))
    for epoch in (2, 3, 4):
        other = machine.seat()
        assert other.open(ById(session_id=seat.id)).token.epoch == epoch
        machine.kill(other)


def test_parked_session_keeps_its_epoch_when_nothing_was_touched(machine):
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(user("one"))
    seat.close()
    assert seat.open(Again(session_id=seat.id)).token.epoch == 1
    seat.append(user("two"))
    seat.close()
    assert seat.open(Again(session_id=seat.id)).token.epoch == 1


@pytest.mark.parametrize("change", ["grown", "shortened", "replaced"])
def test_parked_session_moves_its_epoch_when_its_file_changed(machine, change):
    seat = machine.seat()
    path = seat.open(Fresh()).path
    seat.append(user("one"), user("two"))
    seat.close()
    data = machine.content(path)
    match change:
        case "grown":
            machine.disk.put(path, data + b"\n")
        case "shortened":
            machine.disk.put(path, data[: data[:-1].rfind(b"\n") + 1])
        case "replaced":
            machine.disk.put(f"{path}.copy", data)
            seat.leaves.files.rename(f"{path}.copy", path)
    assert seat.open(Again(session_id=seat.id)).token.epoch == 2


def test_parked_session_moves_its_epoch_when_another_had_it(machine):
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(user("one"))
    seat.close()
    other = machine.seat("other")
    other.open(ById(session_id=seat.id))
    other.close()
    assert seat.open(Again(session_id=seat.id)).token.epoch == 2


def test_session_of_a_holder_that_did_not_park_moves_its_epoch(machine):
    seat = written(machine, user("one"))
    other = machine.seat()
    assert other.open(Again(session_id=seat.id)).token.epoch == 2


def test_lost_claim_record_costs_no_epoch(machine):
    seat = written(machine, user("one"))
    second = machine.seat()
    second.open(ById(session_id=seat.id))
    second.append(user("two"))
    machine.kill(second)
    third = machine.seat()
    third.leaves.files.remove(f"/work/.tenure/claims/sessions/{seat.id}.claim")
    assert third.open(ById(session_id=seat.id)).token.epoch == 3


def test_epoch_is_durable_before_the_file_is_touched(machine):
    path = machine.put_session("s1", HEADER, sealed(1, user("one")), end=b"\n{torn")
    seat = machine.seat()
    machine.disk.calls.clear()
    seat.open(ById(session_id="s1"))
    calls = [(call.name, call.path.rpartition(".")[2]) for call in machine.disk.calls]
    claimed = calls.index(("rename", "tmp"))
    assert calls[claimed + 1] == ("sync_folder", "tenure/claims/sessions")
    touched = [
        place
        for place, call in enumerate(machine.disk.calls)
        if call.path.startswith(path) and call.name in ("append", "truncate", "create", "rename")
    ]
    assert touched
    assert min(touched) > claimed + 1


def test_session_is_live_in_one_process_only(machine):
    seat = machine.seat("first")
    seat.open(Fresh())
    seat.append(user("one"))
    other = machine.seat("second")
    refusal = other.refused(ById(session_id=seat.id))
    assert isinstance(refusal, SessionInUse)
    assert refusal.seat == ""
    assert refusal.holder.host_id == "first"
    assert refusal.holder.process == seat.leaves.processes.me()
    machine.kill(seat)
    assert other.open(ById(session_id=seat.id)).token.epoch == 2


def test_session_is_live_in_one_seat_only_and_the_refusal_names_the_seat(machine):
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(user("one"))
    refusal = beside(seat, "second").refused(ById(session_id=seat.id))
    assert isinstance(refusal, SessionInUse)
    assert refusal.seat == "main"
    assert "main" in refusal.remedy


def test_unwritten_session_is_nobody_elses(machine):
    seat = machine.seat()
    seat.open(Fresh())
    refusal = beside(seat, "second").refused(ById(session_id=seat.id))
    assert isinstance(refusal, SessionInUse)


def test_stopped_process_keeps_its_session(machine):
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(user("one"))
    machine.disk.processes.stop(seat.leaves.processes.me())
    assert isinstance(machine.seat("b").refused(ById(session_id=seat.id)), SessionInUse)


def test_released_seat_lets_go_of_all_its_sessions_and_of_no_other(machine):
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(user("one"))
    first = seat.id
    seat.open(Fresh())
    seat.append(user("two"))
    second = seat.id
    neighbour = beside(seat, "neighbour")
    neighbour.open(Fresh())
    neighbour.append(user("three"))
    seat.release()
    other = machine.seat("other")
    assert other.open(ById(session_id=first)).token.epoch == 2
    assert other.open(ById(session_id=second)).token.epoch == 2
    assert isinstance(other.refused(ById(session_id=neighbour.id)), SessionInUse)


def test_restarted_owner_takes_its_session_anew(machine):
    """The dead owner's hold is let go, and its epoch is over."""
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(user("one"))
    opened = seat.open(Again(session_id=seat.id))
    assert opened.token.epoch == 2
    assert seat.append(user("two")).session_id == seat.id


def test_close_is_harmless_where_nothing_is_open(machine):
    seat = machine.seat()
    seat.open(Fresh())
    assert seat.close().reason == ""
    assert seat.close().reason == ""


def test_close_lets_go_even_where_the_mark_cannot_be_written(machine):
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(user("one"))
    machine.disk.before = FaultRules(DISK_FULL)
    assert seat.close().reason == "no space left on device"
    machine.disk.before = None
    assert machine.seat("b").open(ById(session_id=seat.id)).token.epoch == 2


# --- the tail ----------------------------------------------------------------------------


def test_torn_tail_is_kept_aside_and_cut_at_every_byte():
    """A record that was cut at byte k never fuses with the next one."""
    whole = HEADER + b"\n" + sealed(1, user("one")) + b"\n"
    last = sealed(2, user("cut é here"), parent="e1")
    for length in range(len(last) + 1):
        machine = Machine()
        path = machine.put_session("s1", whole + last[:length], end=b"")
        seat = machine.seat()
        opened = seat.open(ById(session_id="s1"))
        torn = 0 < length < len(last)
        assert opened.damage.torn_bytes == (length if torn else 0)
        assert opened.entries == (2 if length == len(last) else 1)
        if torn:
            assert machine.content(f"{path}.torn") == last[:length]
        else:
            assert f"{path}.torn" not in machine.disk.paths()
        seat.append(user("after"))
        machine.kill(seat)
        again = machine.seat()
        assert again.open(ById(session_id="s1")).damage.count == 0
        assert again.texts()[0] == "user: one"
        assert again.texts()[-1] == "user: after"
        assert len(again.texts()) == opened.entries + 1


def test_second_torn_tail_is_kept_behind_the_first(machine):
    path = machine.put_session("s1", HEADER, end=b"\n{first")
    first = machine.seat("a")
    first.open(ById(session_id="s1"))
    machine.kill(first)
    machine.disk.put(path, machine.content(path) + b"{second")
    machine.seat("b").open(ById(session_id="s1"))
    assert machine.content(f"{path}.torn") == b"{first{second"


def test_torn_tail_is_durable_aside_before_it_is_cut(machine):
    path = machine.put_session("s1", HEADER, end=b"\n{torn")
    seat = machine.seat()
    machine.disk.calls.clear()
    seat.open(ById(session_id="s1"))
    calls = [
        (call.name, call.path.removeprefix(path))
        for call in machine.disk.calls
        if call.path.startswith(path) or call.path == SESSIONS
    ]
    wanted = [
        ("create", ".torn"),
        ("append", ".torn"),
        ("sync", ".torn"),
        ("close", ".torn"),
        ("sync_folder", SESSIONS),
        ("truncate", ""),
        ("sync", ""),
    ]
    begin = calls.index(wanted[0])
    assert calls[begin : begin + len(wanted)] == wanted


def test_session_whose_tail_cannot_be_kept_is_not_opened_and_not_cut(machine):
    path = machine.put_session("s1", HEADER, end=b"\n{torn")
    machine.disk.before = FaultRules(
        FaultRule(fault=Fail(errno=errno.ENOSPC), calls=("append",), path_ends=".torn")
    )
    refusal = machine.seat().refused(ById(session_id="s1"))
    assert isinstance(refusal, StorageFailed)
    assert machine.content(path).endswith(b"\n{torn")
    machine.disk.before = None
    assert machine.seat("b").open(ById(session_id="s1")).damage.torn_bytes == 5


def test_damage_in_the_middle_stays_in_the_file(machine):
    path = machine.put_session("s1", HEADER, sealed(1, user("one")), b"junk", end=b"\n")
    before = machine.content(path)
    seat = machine.seat()
    opened = seat.open(ById(session_id="s1"))
    assert opened.damage.unreadable_lines == 1
    seat.append(user("two"))
    assert machine.content(path).startswith(before)


# --- calls without a result --------------------------------------------------------------


def test_open_calls_get_one_result_each_when_the_session_is_opened(machine):
    seat = written(machine, user("go"), answer("", "c1", "c2", "c3"), result("c2"))
    other = machine.seat()
    opened = other.open(ById(session_id=seat.id))
    assert opened.settled == 2
    assert opened.seq == 5
    entries = [json.loads(line) for line in machine.lines(opened.path)[-2:]]
    assert [entry["message"]["toolCallId"] for entry in entries] == ["c1", "c3"]
    assert all(entry["message"]["isError"] for entry in entries)
    assert "side effects are unknown" in entries[0]["message"]["content"][0]["text"]
    assert entries[1]["parentId"] == entries[0]["id"]
    assert entries[1]["id"] == opened.leaf
    assert entries[1]["tenure"]["epoch"] == opened.token.epoch
    machine.kill(other)
    assert machine.seat("c").open(ById(session_id=seat.id)).settled == 0


def test_settled_results_bear_the_turn_of_their_call(machine):
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(answer("", "c1"), turn=4)
    machine.kill(seat)
    opened = machine.seat().open(ById(session_id=seat.id))
    assert opened.last_turn == 4
    assert json.loads(machine.lines(opened.path)[-1])["tenure"]["turn"] == 4


def test_call_on_another_branch_is_not_settled(machine):
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(user("one"))
    root = seat.leaf
    seat.append(answer("", "c1"))
    aside = seat.records(user("instead"))[0]
    moved = Record(
        id=aside.id,
        parent_id=root,
        timestamp_ms=0,
        seq=aside.seq,
        turn=0,
        key="",
        body=aside.body,
    )
    seat.append_records((moved,), after=seat.leaf)
    machine.kill(seat)
    assert machine.seat().open(ById(session_id=seat.id)).settled == 0


def test_settling_an_open_session_answers_with_its_new_leaf(machine):
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(answer("", "c1"))
    before = seat.token
    outcome = seat.settle()
    assert (outcome.opened.settled, outcome.opened.token) == (1, before)
    assert seat.append(user("go on")).session_id == seat.id
    assert seat.settle().opened.settled == 0


def test_session_is_not_opened_where_its_calls_cannot_be_settled(machine):
    seat = written(machine, answer("", "c1"))
    machine.disk.before = FaultRules(
        FaultRule(fault=Fail(errno=errno.ENOSPC), calls=("append",), path_ends=".jsonl")
    )
    other = machine.seat()
    refusal = other.refused(ById(session_id=seat.id))
    assert isinstance(refusal, StorageFailed)
    assert refusal.reason == "no space left on device"
    machine.disk.before = None
    assert machine.seat("c").open(ById(session_id=seat.id)).settled == 1


# --- counters ----------------------------------------------------------------------------


def test_counters_and_keys_come_back_from_the_file(machine):
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(user("one"), user("two"), key="k1", turn=3)
    ids = tuple(record["id"] for record in map(json.loads, machine.lines(seat.opened.path)[1:]))
    machine.kill(seat)
    opened = machine.seat().open(ById(session_id=seat.id))
    assert (opened.seq, opened.last_turn, opened.entries) == (2, 3, 2)
    assert opened.keys == (("k1", ids, 2),)
    assert opened.leaf == ids[-1]


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


# --- older dialects ----------------------------------------------------------------------


def test_older_dialect_is_replaced_and_its_bytes_are_kept_beside_it(machine):
    old = [
        b'{"type":"session","version":1,"id":"s1","projectId":"p"}',
        b'{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"hi"}}',
        b'{"type":"plan_tracker","id":"b","parentId":"a","state":{"x":1}}',
        b"junk",
    ]
    path = machine.put_session("s1", *old, end=b"\n{torn")
    before = machine.content(path)
    seat = machine.seat()
    opened = seat.open(ById(session_id="s1"))
    assert machine.content(f"{path}.v1.bak") == before
    header, *rest = machine.lines(path)
    assert json.loads(header)["version"] == 3
    assert rest == old[1:]
    assert (opened.entries, opened.leaf) == (2, "b")
    seat.append(user("more"))
    machine.kill(seat)
    again = machine.seat()
    again.open(ById(session_id="s1"))
    assert again.texts() == ["user: hi", "user: more"]
    assert machine.content(f"{path}.v1.bak") == before


def test_older_backup_is_never_replaced(machine):
    path = machine.put_session("s1", b'{"type":"session","version":2,"id":"s1"}')
    machine.disk.put(f"{path}.v2.bak", b"mine")
    machine.seat().open(ById(session_id="s1"))
    assert machine.content(f"{path}.v2.bak") == b"mine"
    assert machine.content(f"{path}.v2.bak-2").startswith(b'{"type":"session","version":2')


# --- seat records ------------------------------------------------------------------------


def test_seat_is_remembered_within_its_host(machine):
    seat = machine.seat()
    assert isinstance(seat.remembered(), SeatVacant)
    seat.open(Fresh())
    seat.note()
    assert seat.remembered() == SeatRemembered(session_id=seat.id)
    seat.append(user("one"))
    assert seat.remembered() == SeatRemembered(session_id=seat.id)
    assert "/work/.tenure/hosts/host/seats/main.json" in machine.disk.paths()
    assert isinstance(beside(seat, "second").remembered(), SeatVacant)
    assert isinstance(machine.seat("other").remembered(), SeatVacant)


def test_seat_record_follows_the_seat(machine):
    seat = machine.seat()
    for text in ("one", "two"):
        seat.open(Fresh())
        seat.note()
        seat.append(user(text))
    assert seat.remembered() == SeatRemembered(session_id=seat.id)


def test_damaged_seat_record_makes_a_vacant_seat(machine):
    machine.disk.put("/work/.tenure/hosts/host/seats/main.json", b"{\xff")
    vacant = machine.seat().remembered()
    assert isinstance(vacant, SeatVacant)
    assert vacant.reason == "its seat record is damaged"


def test_seat_name_stays_inside_its_folder(machine):
    seat = machine.seat(name="../../../x")
    seat.open(Fresh())
    seat.note()
    seat.append(user("one"))
    record = [path for path in machine.files() if path.endswith(".json")]
    assert record == ["/work/.tenure/hosts/host/seats/%2E.%2F..%2F..%2Fx.json"]
    assert seat.remembered() == SeatRemembered(session_id=seat.id)


def test_seat_that_cannot_be_noted_says_so(machine):
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(user("one"))
    machine.disk.before = FaultRules(DISK_FULL)
    assert "no space left" in seat.note().reason
