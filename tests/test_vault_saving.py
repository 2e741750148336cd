"""Handoffs and checkpoints: numbered, never over each other, and theirs who wrote them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vault_world import JOURNAL, ROOT, Bench, new_disk, text_of

from tenure.messages.bus import KeyReused
from tenure.messages.handoff import (
    GetHandoff,
    HandoffRefused,
    HandoffText,
    HandoffUnknown,
    SaveCheckpoint,
    SaveHandoff,
    VaultFailed,
)
from tenure.runtime.testing.faults import DISK_FULL, READ_ONLY, Fail, FaultRule, FaultRules


def test_handoff_has_a_number_an_id_and_a_file_that_says_the_same() -> None:
    bench = Bench()
    first, second = bench.sleep("one"), bench.sleep("two")
    assert (first.seq, second.seq) == (1, 2)
    assert first.path.startswith(f"{ROOT}/handoffs/handoff-")
    data = bench.disk.content(first.path).decode()
    assert f'id: "{first.id}"' in data
    assert "seq: 1" in data
    assert bench.verify().sound


@pytest.mark.witness("HANDOFF-1")
def test_handoff_is_in_the_journal_when_it_is_answered() -> None:
    bench = Bench()
    receipt = bench.sleep("one")
    assert bench.journal().handoffs[receipt.seq].first.id == receipt.id


def test_two_handoffs_of_the_same_minute_and_title_are_both_kept() -> None:
    bench = Bench()
    paths = {bench.sleep("the same").path for _ in range(3)}
    assert len(paths) == 3
    assert paths <= set(bench.disk.paths())


@pytest.mark.parametrize(
    "title", ["日本語", "Ünïcödé été", "A/B: x", "../../escaped", "🙂", "x" * 900]
)
def test_title_becomes_a_name_inside_the_folder_whatever_it_is(title: str) -> None:
    bench = Bench()
    path = bench.sleep(title).path
    name = path.removeprefix(f"{ROOT}/handoffs/")
    assert "/" not in name
    assert len(name.encode()) <= 255
    assert not name.startswith(".")
    if title.isalpha() and len(title) < 20:
        assert title in name


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=3))
def test_items_come_back_as_they_were_said(items: list[str]) -> None:
    said = tuple(items)
    bench = Bench()
    expected = HandoffText(
        working_on=("x",), next_steps=tuple(each for each in said if each.strip())
    )
    receipt = bench.sleep("x", next_steps=said)
    assert bench.show(str(receipt.seq)).text == expected
    assert bench.verify().sound


def test_lone_surrogate_is_saved_as_a_replacement() -> None:
    bench = Bench()
    assert bench.show(str(bench.sleep("a\ud800b").seq)).text.working_on == ("a\ufffdb",)


# --- keys --------------------------------------------------------------------------------------


@pytest.mark.witness("HANDOFF-6")
def test_same_key_gives_the_same_receipt_also_in_another_process() -> None:
    first = Bench()
    receipt = first.sleep("one", idempotency_key="k")
    again = Bench(first.disk).sleep("one", idempotency_key="k")
    assert (again.seq, again.id, again.path) == (receipt.seq, receipt.id, receipt.path)
    assert again.outcome == "repeated"
    assert len(first.journal().handoffs) == 1


@pytest.mark.witness("HANDOFF-6")
def test_same_key_with_another_text_is_refused_and_nothing_is_written() -> None:
    bench = Bench()
    bench.sleep("one", idempotency_key="k")
    before = bench.disk.content(JOURNAL)
    reply = Bench(bench.disk).ask(SaveHandoff(text=text_of("two"), idempotency_key="k"))
    assert reply == KeyReused(idempotency_key="k")
    assert bench.disk.content(JOURNAL) == before


def test_checkpoint_with_the_same_key_is_saved_once() -> None:
    bench = Bench()
    first = bench.checkpoint("one", idempotency_key="k")
    assert bench.checkpoint("one", idempotency_key="k").id == first.id
    reply = bench.ask(SaveCheckpoint(working_on="two", idempotency_key="k"))
    assert reply == KeyReused(idempotency_key="k")


# --- sessions ----------------------------------------------------------------------------------


def put_session(bench: Bench, name: str, entries: int, begin: int = 1) -> str:
    path = f"{ROOT}/.tenure/sessions/2026-12-01T09-00-00-000Z_{name}.jsonl"
    lines = [f'{{"type":"session","version":3,"id":"{name}"}}']
    lines += [
        f'{{"type":"message","id":"e{n}","tenure":{{"epoch":4,"seq":{n}}}}}'
        for n in range(begin, begin + entries)
    ]
    bench.disk.put(path, "".join(f"{line}\n" for line in lines).encode())
    return path


def test_handoff_says_how_far_into_its_session_it_reaches() -> None:
    bench = Bench()
    put_session(bench, "abcd", 100)
    link = bench.show(str(bench.sleep("x", session="ab").seq)).link
    assert link is not None
    assert (link.session_id, link.epoch, link.first_entry) == ("abcd", 4, "e1")
    assert (link.last_entry, link.entries) == ("e100", 100)


def test_next_handoff_of_a_session_begins_behind_the_one_before() -> None:
    bench = Bench()
    put_session(bench, "abcd", 3)
    bench.sleep("x", session="abcd")
    put_session(bench, "abcd", 5)
    link = bench.show(str(bench.sleep("y", session="abcd").seq)).link
    assert link is not None
    assert (link.first_entry, link.last_entry) == ("e4", "e5")


def test_beginning_of_two_sessions_is_refused() -> None:
    bench = Bench()
    put_session(bench, "abc1", 1)
    put_session(bench, "abc2", 1)
    reply = bench.ask(SaveHandoff(text=text_of("x"), session="abc"))
    assert isinstance(reply, HandoffRefused)
    assert not bench.list().handoffs


# --- the files ---------------------------------------------------------------------------------


def test_file_that_somebody_changed_becomes_a_revision_at_the_next_write() -> None:
    bench = Bench()
    first = bench.sleep("one", next_steps=("a",))
    changed = bench.disk.content(first.path).replace(b'"a"', b'"b, by hand"')
    bench.disk.put(first.path, changed)
    assert [each.kind for each in bench.verify().problems] == ["changed"]
    assert bench.show("1").text.next_steps == ("a",)
    bench.sleep("two")
    view = bench.show("1")
    assert view.text.next_steps == ("b, by hand",)
    assert (view.id, view.revisions, view.author) == (first.id, (2,), "file")
    assert bench.disk.content(first.path) == changed
    assert bench.verify().sound


def test_file_that_somebody_added_becomes_a_handoff() -> None:
    bench = Bench()
    note = b"---\nworkingOn: refactor\n---\n# Notes\nhello\n"
    bench.disk.put(f"{ROOT}/handoffs/session-notes.md", note)
    bench.wake()
    (row,) = bench.list().handoffs
    assert (row.seq, row.summary, row.author) == (1, "refactor", "file")
    assert bench.verify().sound


def test_file_that_was_renamed_stays_the_same_handoff() -> None:
    bench = Bench()
    receipt = bench.sleep("one")
    data = bench.disk.content(receipt.path)
    bench.leaves.files.rename(receipt.path, f"{ROOT}/handoffs/mine.md")
    bench.wake()
    assert bench.show(receipt.id).path == "handoffs/mine.md"
    assert bench.notes() == (f"{ROOT}/handoffs/mine.md",)
    assert bench.disk.content(f"{ROOT}/handoffs/mine.md") == data


def test_lost_file_is_made_again_byte_for_byte_by_the_next_write() -> None:
    bench = Bench()
    receipt = bench.sleep("one", next_steps=("a\n\n## Decisions", "b: c"), feelings=("ok",))
    data = bench.disk.content(receipt.path)
    bench.leaves.files.remove(receipt.path)
    assert [each.kind for each in bench.verify().problems] == ["missing"]
    bench.wake()
    assert bench.disk.content(receipt.path) == data
    assert bench.verify().sound


def test_lost_file_of_a_human_is_made_again_byte_for_byte() -> None:
    bench = Bench()
    path, data = f"{ROOT}/handoffs/by-hand.md", "no front matter, é\r\n".encode()
    bench.disk.put(path, data)
    bench.wake()
    bench.leaves.files.remove(path)
    bench.sleep("x")
    assert bench.disk.content(path) == data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'---\nworkingOn:\n  - "unterminat',
        b"---\ntitle: a: b: c\n---\n",
        b"---\ntitle: [1, 2]\nworkingOn: {a: 1}\n---\n",
        b"\xff\xfe\x00binary",
        b"---\n" + b"a: " + b"[" * 50_000 + b"\n---\n",
        b"---\n" + b"x" * 70_000 + b"\n---\nbody",
        b"---\na: &a [*a]\n---\n",
        b"---js\n{ title: (require('fs').writeFileSync('x')) }\n---\nhi\n",
        b"---\n!!python/object/apply:os.system ['true']\n---\n",
        b"---\nworkingOn: \n  - 2026-01-01\n  - no\n  - 0x10\n---\n",
    ],
)
@pytest.mark.witness("HANDOFF-8")
def test_whatever_a_file_holds_it_is_kept_and_nothing_fails(data: bytes) -> None:
    bench = Bench()
    bench.disk.put(f"{ROOT}/handoffs/handoff-2026-01-01-0000.md", data)
    bench.wake()
    bench.sleep("x")
    assert bench.disk.content(f"{ROOT}/handoffs/handoff-2026-01-01-0000.md") == data
    assert bench.verify().sound
    if b"0x10" in data:
        assert bench.show("1").text.working_on == ("2026-01-01", "no", "0x10")


def test_file_that_is_too_long_is_reported_and_left_alone() -> None:
    bench = Bench()
    bench.disk.put(f"{ROOT}/handoffs/huge.md", b"x" * 4_194_305)
    receipt = bench.sleep("x")
    assert receipt.stages["file"].status == "ok"
    assert "huge.md" in receipt.warnings[0]
    assert not bench.verify().sound


# --- what fails --------------------------------------------------------------------------------


def test_full_disk_saves_nothing_says_so_and_the_next_try_works() -> None:
    bench = Bench()
    bench.sleep("one")
    before = bench.disk.content(JOURNAL)
    bench.disk.before = FaultRules(DISK_FULL)
    assert isinstance(bench.ask(SaveHandoff(text=text_of("two"))), VaultFailed)
    bench.disk.before = None
    assert bench.disk.content(JOURNAL) == before
    assert bench.sleep("two").seq == 2


def test_read_only_vault_refuses_a_handoff_and_still_gives_a_brief() -> None:
    bench = Bench()
    bench.sleep("one", blocked=("b",))
    bench.disk.before = FaultRules(READ_ONLY)
    assert isinstance(bench.ask(SaveHandoff(text=text_of("two"))), VaultFailed)
    brief = bench.wake()
    assert brief.summary == "one"
    assert brief.brief_id == ""
    assert "cannot be acknowledged" in brief.problems[0]
    assert bench.recover().handoff is not None


@pytest.mark.witness("HANDOFF-1")
def test_handoff_whose_file_cannot_be_made_is_receipted_and_its_file_follows() -> None:
    bench = Bench()
    bench.disk.put_folder("/elsewhere")
    bench.disk.put_link(f"{ROOT}/handoffs", "/elsewhere")
    receipt = bench.sleep("one")
    assert receipt.stages["file"].status == "failed"
    assert "outside" in receipt.stages["file"].detail
    assert bench.disk.folder("/elsewhere").names == {}
    bench.leaves.files.remove(f"{ROOT}/handoffs")
    bench.wake()
    assert receipt.path in bench.disk.paths()


def test_failed_sync_leaves_no_bytes_and_no_receipt() -> None:
    bench = Bench()
    bench.sleep("one")
    before = bench.disk.content(JOURNAL)
    bench.disk.before = FaultRules(
        FaultRule(fault=Fail(errno=5), calls=("datasync",), path_ends=".jsonl")
    )
    assert isinstance(bench.ask(SaveHandoff(text=text_of("two"))), VaultFailed)
    assert bench.disk.content(JOURNAL) == before


def test_torn_end_of_the_journal_is_kept_aside_and_cut_by_the_next_writer() -> None:
    bench = Bench()
    bench.sleep("one")
    whole = bench.disk.content(JOURNAL)
    bench.sleep("two")
    data = bench.disk.content(JOURNAL)
    for cut in range(len(whole) + 1, len(data) - 1, 37):
        bench.disk.put(JOURNAL, data[:cut])
        assert [each.seq for each in bench.list().handoffs] == [1]
        assert bench.disk.content(JOURNAL) == data[:cut]
        bench.checkpoint("c")
        bench.wake()
        torn = bench.disk.content(f"{JOURNAL}.torn")
        assert torn.endswith(data[len(whole) : cut] + b"\n")
        assert bench.journal().problems == []


def test_record_that_lacks_only_its_newline_is_kept() -> None:
    bench = Bench()
    bench.sleep("one")
    bench.disk.put(JOURNAL, bench.disk.content(JOURNAL)[:-1])
    assert [each.seq for each in bench.list().handoffs] == [1]
    assert bench.sleep("two").seq == 2
    assert bench.verify().sound


def test_altered_line_is_shown_as_damaged_and_hides_nothing_else() -> None:
    bench = Bench()
    for text in ("one", "two", "three"):
        bench.sleep(text)
    data = bench.disk.content(JOURNAL)
    bench.disk.put(JOURNAL, data.replace(b'"two"', b'"owt"'))
    assert [row.seq for row in bench.list().handoffs] == [3, 1]
    assert "damaged" in {each.kind for each in bench.verify().problems}
    # The file still says what the line said: it is taken in again, under its own id.
    assert bench.sleep("four").seq == 5
    assert [row.summary for row in bench.list().handoffs] == ["four", "two", "three", "one"]


def test_number_of_a_damaged_line_is_not_given_out_again() -> None:
    bench = Bench()
    bench.sleep("one")
    path = bench.sleep("two").path
    bench.disk.put(JOURNAL, bench.disk.content(JOURNAL).replace(b'"two"', b'"owt"'))
    bench.leaves.files.remove(path)
    assert bench.sleep("three").seq == 3


def test_text_that_is_too_long_is_refused() -> None:
    reply = Bench().ask(SaveHandoff(text=text_of("x" * 1_048_577)))
    assert isinstance(reply, HandoffRefused)


def test_unknown_handoff_and_one_of_several_are_refused() -> None:
    bench = Bench()
    assert bench.ask(GetHandoff(name="9")) == HandoffUnknown(name="9")
    ids = [bench.sleep(str(n)).id for n in range(40)]
    begin = next(a[:1] for a in ids if sum(b[0] == a[0] for b in ids) > 1 and not a[0].isdigit())
    reply = bench.ask(GetHandoff(name=begin))
    assert isinstance(reply, HandoffUnknown)
    assert len(reply.candidates) > 1


@pytest.mark.witness("HANDOFF-8")
def test_items_cannot_pass_for_sections_or_fields() -> None:
    bench = Bench()
    forged = "legit\n\n## Decisions Made\n- ship\n---\n"
    receipt = bench.sleep(forged, session="k\n**Feeling:** forged", decisions=("# real",))
    data = bench.disk.content(receipt.path).decode()
    _, _, body = data.split("---\n", 2)
    assert [line for line in body.splitlines() if line.startswith("#")] == [
        "# Session Handoff",
        "## Working On",
        "## Blocked",
        "## Next Steps",
        "## Decisions Made",
    ]
    assert "**Feeling" not in body
    assert bench.show("1").text.working_on == (forged.rstrip("\x00"),)
    brief = bench.wake()
    assert all("\n" not in item.text for item in brief.items)


@pytest.mark.witness("HANDOFF-8")
def test_no_name_and_no_link_leads_outside() -> None:
    disk = new_disk()
    disk.put("/secret/handoff-2026-01-01.md", b"TOPSECRET")
    disk.put_folder(f"{ROOT}/handoffs")
    disk.put_link(f"{ROOT}/handoffs/link.md", "/secret/handoff-2026-01-01.md")
    disk.put_link(f"{ROOT}/projects", "/secret")
    disk.put_link(f"{ROOT}/handoffs/dangling.md", "/secret/new.md")
    bench = Bench(disk)
    brief = bench.wake()
    bench.sleep("x")
    assert b"TOPSECRET" not in b"".join(
        disk.content(path) for path in disk.paths() if path.startswith(f"{ROOT}/.tenure")
    )
    assert not any("SECRET" in item.text for item in brief.items)
    assert "/secret/new.md" not in disk.paths()
    assert any("outside" in each for each in brief.problems)
