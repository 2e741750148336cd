"""Search, tree, export and check: what they show, and that nothing is written by looking."""

import json

import pytest
from ops_world import branched, closed_session, ground_of
from transcript_world import ROOT, SESSIONS, Machine, answer, result, user

from tenure.messages.content import TextBlock, ToolResultMessage
from tenure.messages.entries import MessageEntry
from tenure.messages.transcripts import Fresh
from tenure.runtime.doors.transcripts import (
    Catalogue,
    Exported,
    NothingToExport,
    SessionAmbiguous,
    SessionFound,
    export_session,
    find_session,
    read_session,
    search_sessions,
    tree_of,
    verify_session,
)
from tenure.runtime.doors.transcripts.cache import forget_rows, read_rows, write_rows
from tenure.runtime.doors.transcripts.layout import Layout
from tenure.runtime.testing.faults import WRITING_CALLS
from tenure.runtime.testing.leaves import memory_leaves

NOW_MS = 1_790_000_000_000
CACHE = Layout(ROOT).cache


@pytest.fixture
def machine():
    return Machine()


def search(machine, text, scope="everything"):
    leaves = memory_leaves(machine.disk)
    return search_sessions(Catalogue(leaves, ROOT), leaves.files, text, scope)


def exported(machine, path, form="markdown"):
    return export_session(read_session(memory_leaves(machine.disk), path), form, NOW_MS)


# --- search --------------------------------------------------------------------------------


def test_search_finds_names_and_first_words_whatever_the_case(machine):
    one, _ = closed_session(machine, "What did we decide?", name="Pricing")
    two, _ = closed_session(machine, "PRICING, again")
    closed_session(machine, "other things")
    found = {match.session.id: match.place for match in search(machine, "pricing", "titles")}
    assert found == {one: "name", two: "first_text"}


def test_search_finds_what_was_said_anywhere_and_shows_where(machine):
    one, path = closed_session(machine, "hello", "the heron stands in the reeds", "and Heron too")
    closed_session(machine, "hello", "nothing here")
    (match,) = search(machine, "HERON")
    assert (match.session.id, match.place, match.entries) == (one, "entry", 2)
    assert match.entry_id == json.loads(machine.lines(path)[2])["id"]
    assert "the heron stands" in match.snippet
    assert search(machine, "heron", "titles") == ()


def test_search_finds_text_that_another_program_wrote_as_escapes(machine):
    header = {"type": "session", "version": 3, "id": "s", "timestamp": "", "cwd": "/"}
    message = {"role": "assistant", "content": [{"type": "text", "text": "Grüße, Ångström"}]}
    entry = {"type": "message", "id": "a", "parentId": None, "message": message}
    machine.put_session("s", json.dumps(header).encode(), json.dumps(entry).encode())
    assert [match.session.id for match in search(machine, "GRÜSSE")] == ["s"]
    assert [match.session.id for match in search(machine, "ångström")] == ["s"]


def test_empty_search_gives_all_sessions_and_an_unknown_word_none(machine):
    for text in ("one", "two"):
        closed_session(machine, text)
    assert len(search(machine, "")) == 2
    assert search(machine, "never said") == ()


def test_session_is_found_by_its_whole_name_and_by_nothing_less(machine):
    one, path = closed_session(machine, "hi", name="MAIN")
    leaves = memory_leaves(machine.disk)
    assert find_session(leaves, ROOT, "main") == SessionFound(session_id=one, path=path)
    assert not isinstance(find_session(leaves, ROOT, "mai"), SessionFound)
    two, _ = closed_session(machine, "ho", name="main")
    both = find_session(leaves, ROOT, "MAIN")
    assert isinstance(both, SessionAmbiguous)
    assert set(both.candidates) == {one, two}


# --- the cache -----------------------------------------------------------------------------


def cached(machine):
    """What a catalogue lists, and how many transcripts it had to read for that."""
    leaves = memory_leaves(machine.disk)
    machine.disk.calls.clear()
    rows = Catalogue(leaves, ROOT).sessions()
    opened = [
        call for call in machine.disk.calls if call.name == "open" and call.path.endswith(".jsonl")
    ]
    return rows, len(opened)


def write_cache(machine):
    ground = ground_of(machine.disk)
    catalogue = Catalogue(ground.leaves, ROOT)
    catalogue.sessions()
    write_rows(ground.leaves.files, ground.claims, CACHE, catalogue.rows)


def test_cache_spares_reading_and_gives_the_same_list(machine):
    for text in ("one", "two", "three"):
        closed_session(machine, text)
    without, read = cached(machine)
    assert read == 3
    write_cache(machine)
    assert cached(machine) == (without, 0)


def test_cache_is_never_believed_against_the_file(machine):
    _, path = closed_session(machine, "one")
    write_cache(machine)
    before, _ = cached(machine)
    other = b'{"type":"message","id":"x","parentId":null,"message":{"role":"user","content":"two"}}'
    machine.disk.put(path, machine.lines(path)[0] + b"\n" + other + b"\n")
    after, read = cached(machine)
    assert (before[0].first_text, after[0].first_text, read) == ("one", "two", 1)


@pytest.mark.parametrize(
    "damage", [b"", b"{", b'{"version":99,"rows":[]}', b"\xff\xfe", b"[" * 5000]
)
def test_damaged_or_missing_cache_changes_nothing(machine, damage):
    closed_session(machine, "one")
    without, _ = cached(machine)
    write_cache(machine)
    machine.disk.put(CACHE, damage)
    assert cached(machine) == (without, 1)


@pytest.mark.witness("CLAIM-1")
def test_cache_that_another_process_writes_is_left_to_it(machine):
    closed_session(machine, "one")
    ground = ground_of(machine.disk, "first")
    held = ground.claims.take(CACHE)
    write_cache(machine)
    assert CACHE not in machine.files()
    held.release()
    write_cache(machine)
    assert CACHE in machine.files()


def test_forgotten_cache_is_gone_and_can_be_forgotten_twice(machine):
    closed_session(machine, "one")
    write_cache(machine)
    ground = ground_of(machine.disk)
    for _ in range(2):
        forget_rows(ground.leaves.files, ground.claims, CACHE)
        assert read_rows(ground.leaves.files, CACHE) == {}


# --- tree and export -----------------------------------------------------------------------


def test_tree_shows_branches_labels_the_path_and_the_leaf(machine):
    seat, ids = branched(machine)
    path = seat.opened.path
    side = {"type": "message", "id": "side", "parentId": ids[0]}
    side["message"] = {"role": "user", "content": "aside"}
    lines = machine.lines(path)
    machine.disk.put(path, b"\n".join([*lines[:3], json.dumps(side).encode(), *lines[3:], b""]))
    tree = tree_of(read_session(memory_leaves(machine.disk), path))
    nodes = {node.id: node for node in tree.nodes}
    assert tree.leaf == seat.leaf
    assert [nodes[each].on_path for each in (ids[0], ids[1], "side")] == [True, True, False]
    assert [nodes[each].depth for each in (ids[0], ids[1], ids[3], "side")] == [0, 1, 1, 1]
    assert nodes[ids[1]].label == "good"
    assert (nodes["side"].kind, nodes["side"].text) == ("user", "aside")
    assert nodes[ids[1]].text == "two > read"


def test_markdown_names_who_spoke_lists_calls_and_flags_the_failed_one(machine):
    seat = machine.seat()
    path = seat.open(Fresh(name='A "quoted": name\u2028#1')).path
    failed = ToolResultMessage(
        tool_call_id="c2", tool_name="read", content=(TextBlock(text="no"),), is_error=True
    )
    seat.append(user("<context>\nnotes\n</context>\n\nwhere is it?"), answer("Look", "c1", "c2"))
    seat.append(result("c1"), MessageEntry(message=failed), answer("There."))
    document = exported(machine, path)
    assert isinstance(document, Exported)
    head, _, body = document.text.partition("\n---\n")
    assert 'title: "A \\"quoted\\": name' in head
    assert head.count("\n") == 4
    assert "notes" not in body
    assert "where is it?" in body
    assert '- `read` `path="c1"`' in body
    assert '- `read` (failed) `path="c2"`' in body
    assert body.index("## You") < body.index("## Assistant") < body.index("There.")


def test_export_is_named_by_title_and_time_in_utc(machine):
    _, path = closed_session(machine, "What/about: *this*?", "so")
    assert exported(machine, path).file_name == "What about this 2026-09-21 14-13-20Z.md"
    assert exported(machine, path, "json").file_name.endswith("Z.json")


def test_json_export_holds_messages_and_the_entries_of_the_path(machine):
    seat, ids = branched(machine)
    document = json.loads(exported(machine, seat.opened.path, "json").text)
    assert [entry["id"] for entry in document["entries"]][:4] == ids
    assert [message["role"] for message in document["messages"]] == [
        "user",
        "assistant",
        "toolResult",
        "user",
    ]


def test_session_in_which_nothing_was_said_is_not_exported(machine):
    header = b'{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/"}'
    path = machine.put_session("s", header)
    refused = exported(machine, path)
    assert refused == NothingToExport(path=path)
    assert path in refused.remedy


# --- verify --------------------------------------------------------------------------------


def problems_of(machine, path):
    report = verify_session(memory_leaves(machine.disk), path)
    return {(problem.line, problem.kind) for problem in report.problems}


def test_what_we_wrote_is_sound(machine):
    seat, _ = branched(machine)
    report = verify_session(memory_leaves(machine.disk), seat.opened.path)
    assert report.sound
    assert (report.sealed, report.foreign, report.calls) == (6, 0, 1)
    assert report.session_id == seat.id


def test_check_names_the_line_of_everything_that_is_wrong(machine):
    seat, _ids = branched(machine)
    path = seat.opened.path
    lines = machine.lines(path)
    assert problems_of(machine, path) == set()
    cases = {
        (2, "sum"): [lines[0], lines[1].replace(b"one", b"eno"), *lines[2:]],
        (3, "line"): [*lines[:2], b"no json", *lines[3:]],
        (8, "id"): [*lines, lines[1]],
        (3, "epoch"): [*lines[:2], _stamped(lines[2], epoch=0), *lines[3:]],
        (4, "seq"): [*lines[:3], _stamped(lines[3], seq=1), *lines[4:]],
        (1, "header"): [b'{"type":"session","version":9,"id":"s"}', *lines[1:]],
    }
    for expected, changed in cases.items():
        machine.disk.put(path, b"\n".join(changed) + b"\n")
        assert expected in problems_of(machine, path)
    machine.disk.put(path, b"\n".join([*lines[:3], *lines[4:]]) + b"\n")
    assert (4, "parent") in problems_of(machine, path)
    machine.disk.put(path, b"\n".join([*lines, b'{"half']))
    assert (8, "tail") in problems_of(machine, path)


def test_check_tells_a_call_without_its_result(machine):
    seat = machine.seat()
    path = seat.open(Fresh()).path
    seat.append(user("go"), answer("look", "c1"))
    assert problems_of(machine, path) == {(3, "calls")}


def _stamped(line, **stamp):
    """The record with another stamp, and the sum that fits it."""
    from zlib import crc32

    entry = json.loads(line)
    entry["tenure"] |= stamp
    del entry["tenure"]["sum"]
    body = json.dumps(entry, separators=(",", ":")).encode()[:-2]
    return b'%b,"sum":"%08x"}}' % (body, crc32(body))


# --- reads never write ---------------------------------------------------------------------


@pytest.mark.witness("SESSION-8")
def test_listing_searching_exporting_and_checking_write_nothing(machine):
    seat, _ = branched(machine)
    _, path = closed_session(machine, "one", "two")
    machine.disk.put(f"{SESSIONS}/broken.jsonl", b"nothing")
    write_cache(machine)
    machine.disk.put(path, machine.content(path) + b'{"torn')  # makes its row outdated
    machine.disk.calls.clear()
    leaves = memory_leaves(machine.disk)
    Catalogue(leaves, ROOT).sessions()
    search(machine, "two")
    find_session(leaves, ROOT, "Trip")
    tree_of(read_session(leaves, path))
    exported(machine, path)
    verify_session(leaves, path)
    assert [call for call in machine.disk.calls if call.name in (*WRITING_CALLS, "sync")] == []
    assert seat.opened is not None
