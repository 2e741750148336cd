"""Following a transcript that another process writes."""

import pytest

from tenure.messages.entries import Record, SessionInfoEntry
from tenure.messages.tokens import EntryId, SessionId
from tenure.runtime.doors.transcripts.codec import encode_header, encode_record
from tenure.runtime.doors.transcripts.following import READ_BYTES_MAX, Follower
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.leaves import memory_leaves

PATH = "/work/s.jsonl"
HEADER = encode_header(SessionId("s"), 0, "/work")


def entry(number: int, parent: int = 0, name: str = "") -> bytes:
    return encode_record(
        Record(
            id=EntryId(f"e{number}"),
            parent_id=EntryId(f"e{parent}") if parent else None,
            timestamp_ms=0,
            seq=number,
            turn=0,
            key="",
            body=SessionInfoEntry(name=name or f"n{number}"),
        ),
        1,
    )


class Written:
    """A file, and a reader that follows it."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.disk.put_folder("/work")
        self.leaves = memory_leaves(self.disk)
        self.disk.put(PATH, HEADER)
        self.follower = Follower(self.leaves.files, PATH)

    def append(self, data: bytes) -> None:
        file = self.leaves.files.open(PATH, "write")
        file.append(data)
        file.close()

    def replace(self, data: bytes) -> None:
        self.disk.put("/work/new", data)
        self.leaves.files.rename("/work/new", PATH)

    def look(self) -> list[tuple[str, str]]:
        return [(view.id, view.state) for view in self.follower.look()]


@pytest.fixture
def written() -> Written:
    return Written()


def test_entries_come_once_each_in_their_order(written: Written) -> None:
    assert written.look() == []
    written.append(entry(1) + entry(2, 1))
    assert written.look() == [("e1", "intact"), ("e2", "intact")]
    assert written.look() == []
    written.append(entry(3, 2))
    (view,) = written.follower.look()
    assert (view.id, view.parent_id, view.line) == ("e3", "e2", 4)


def test_unfinished_line_is_left_until_it_is_whole(written: Written) -> None:
    line = entry(1)
    for cut in (1, len(line) // 2, len(line) - 1):
        other = Written()
        other.append(line[:cut])
        assert other.look() == []
        other.append(line[cut:])
        assert other.look() == [("e1", "intact")]


def test_line_that_a_writer_cut_off_and_wrote_anew_comes_as_it_is_now(written: Written) -> None:
    written.append(entry(1) + entry(2, 1)[:20])
    assert written.look() == [("e1", "intact")]
    file = written.leaves.files.open(PATH, "write")
    file.truncate(len(HEADER) + len(entry(1)))
    file.close()
    written.append(entry(3, 1))
    assert written.look() == [("e3", "intact")]


def test_file_that_takes_the_place_of_the_old_one_is_followed(written: Written) -> None:
    written.append(entry(1) + entry(2, 1))
    assert len(written.look()) == 2
    written.replace(HEADER + entry(1) + entry(2, 1) + entry(4, 2))
    assert written.look() == [("e4", "intact")]
    written.append(entry(5, 4))
    assert written.look() == [("e5", "intact")]


def test_file_that_is_gone_for_a_moment_has_nothing_new(written: Written) -> None:
    written.append(entry(1))
    assert len(written.look()) == 1
    written.leaves.files.remove(PATH)
    assert written.look() == []
    written.disk.put(PATH, HEADER + entry(1) + entry(2, 1))
    assert written.look() == [("e2", "intact")]


def test_damage_is_shown_and_hides_nothing_behind_it(written: Written) -> None:
    altered = entry(2, 1).replace(b"n2", b"nX")
    written.append(entry(1) + altered + b"no json\n" + b"\n" + entry(3, 2))
    views = written.follower.look()
    assert [view.state for view in views] == ["intact", "altered", "unreadable", "intact"]
    assert views[-1].parent_id == "e1", "its own parent cannot be read"


def test_long_file_comes_in_several_looks_and_a_long_line_in_one(written: Written) -> None:
    long = entry(1, name="x" * (READ_BYTES_MAX + 1_000))
    written.append(long + entry(2, 1))
    seen: list[tuple[str, str]] = []
    while new := written.look():
        seen += new
    assert seen == [("e1", "intact"), ("e2", "intact")]
