"""Opening a transcript: a new one, who gets it at which epoch, and what a seat remembers."""

import json

import pytest
from transcript_world import Machine, beside, user

from tenure.messages.entries import Record
from tenure.messages.session import SessionInUse
from tenure.messages.transcripts import Again, ById, Fresh, SeatRemembered, SeatVacant
from tenure.runtime.doors.transcripts.codec import encode_header, encode_record
from tenure.runtime.testing.faults import DISK_FULL, FaultRules


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
    assert seat.open(Again(session_id=seat.id, epoch=1)) == first
    seat.append(user("one"))
    assert len(machine.lines(first.path)) == 3


def test_new_session_whose_seat_forgot_its_epoch_moves_to_the_next(machine):
    seat = machine.seat()
    path = seat.open(Fresh(name="Plans")).path
    seat.close()
    assert seat.open(Again(session_id=seat.id)).token.epoch == 2
    seat.append(user("one"))
    assert len(machine.lines(path)) == 3
    seat.close()
    assert seat.open(ById(session_id=seat.id)).token.epoch == 3


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
    assert seat.open(Again(session_id=seat.id, epoch=1)).token.epoch == 1
    seat.append(user("two"))
    seat.close()
    assert seat.open(Again(session_id=seat.id, epoch=1)).token.epoch == 1
    seat.close()
    assert seat.open(Again(session_id=seat.id)).token.epoch == 2


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
    assert seat.open(Again(session_id=seat.id, epoch=1)).token.epoch == 2


def test_parked_session_moves_its_epoch_when_another_had_it(machine):
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(user("one"))
    seat.close()
    other = machine.seat("other")
    assert other.open(ById(session_id=seat.id)).token.epoch == 2
    other.close()
    # The other has parked it as it found it: its epoch is not ours to take.
    assert seat.open(Again(session_id=seat.id, epoch=1)).token.epoch == 3


def test_session_of_a_holder_that_did_not_park_moves_its_epoch(machine):
    seat = written(machine, user("one"))
    other = machine.seat()
    assert other.open(Again(session_id=seat.id, epoch=1)).token.epoch == 2


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


@pytest.mark.witness("SESSION-5")
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


@pytest.mark.witness("SESSION-5")
def test_session_is_live_in_one_seat_only_and_the_refusal_names_the_seat(machine):
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(user("one"))
    refusal = beside(seat, "second").refused(ById(session_id=seat.id))
    assert isinstance(refusal, SessionInUse)
    assert refusal.seat == "main"
    assert "main" in refusal.remedy


@pytest.mark.witness("SESSION-5")
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
