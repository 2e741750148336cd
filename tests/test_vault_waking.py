"""Waking: who died is told until it is acknowledged, and what does not fit is counted."""

import json

import pytest
from test_vault_saving import put_session
from vault_world import ROOT, Bench, new_disk, texts

from tenure.messages.handoff import AcknowledgeBrief, BriefUnknown
from tenure.runtime.doors.claims import ClaimRecord, Claims
from tenure.runtime.doors.vault.drafting import cited_only
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.faults import Fail, FaultRule, FaultRules

FLAG = f"{ROOT}/.clawvault/dirty-death.flag"


def go_back(bench: Bench, *, days: int) -> None:
    """Somebody sets the wall clock back."""
    clock = bench.disk.clock
    clock.set_now_ms(clock.now_ms() - days * 86_400_000)


# --- notices -----------------------------------------------------------------------------------


@pytest.mark.witness("HANDOFF-2")
def test_death_is_told_again_and_again_until_its_brief_is_acknowledged() -> None:
    bench = Bench()
    bench.checkpoint("the parser", blocked="a key")
    first, second = bench.wake(), bench.wake()
    assert first.died
    assert second.died
    assert first.brief_id
    assert "the parser" in texts(first, "notice")[0]
    assert "may be lost" in first.notices[0].warning
    assert [notice.state for notice in second.notices] == ["delivered"]
    reply = bench.ack(second.brief_id)
    assert reply.cleared == (first.notices[0].id,)
    assert not bench.wake().died
    assert not bench.recover().died


def test_brief_that_says_the_same_comes_with_the_same_id_and_is_counted() -> None:
    bench = Bench()
    bench.sleep("x")
    first, second, third = bench.wake(), bench.wake(), bench.wake()
    assert first.brief_id == second.brief_id == third.brief_id
    assert (first.delivered, third.delivered) == (1, 3)
    assert third.open == ()


def test_other_deliveries_that_are_open_are_shown() -> None:
    bench = Bench()
    first = bench.wake()
    bench.sleep("x")
    second = bench.wake()
    assert second.brief_id != first.brief_id
    assert [each.brief_id for each in second.open] == [first.brief_id]
    bench.ack(first.brief_id)
    assert bench.wake().open == ()


@pytest.mark.witness("HANDOFF-2")
def test_acknowledgement_clears_what_its_brief_named_and_nothing_newer() -> None:
    bench = Bench()
    bench.checkpoint("first", session="s")
    brief = bench.wake()
    bench.checkpoint("second", session="s")
    bench.ack(brief.brief_id)
    after = bench.wake()
    assert [each.checkpoint.working_on for each in after.notices if each.checkpoint] == ["second"]


def test_acknowledging_twice_says_the_same() -> None:
    bench = Bench()
    bench.checkpoint()
    brief = bench.wake()
    first, second = bench.ack(brief.brief_id), Bench(bench.disk).ack(brief.brief_id)
    assert first.cleared == second.cleared != ()
    assert (first.outcome, second.outcome) == ("acknowledged", "already")


def test_brief_that_was_never_delivered_cannot_be_acknowledged() -> None:
    reply = Bench().ask(AcknowledgeBrief(brief_id="nope"))
    assert reply == BriefUnknown(brief_id="nope")


@pytest.mark.witness("HANDOFF-2")
def test_brief_that_fails_to_be_recorded_clears_nothing() -> None:
    bench = Bench()
    bench.checkpoint()
    bench.disk.before = FaultRules(
        FaultRule(fault=Fail(errno=28), calls=("append",), path_ends=".jsonl", hits="lasting")
    )
    assert bench.wake().died
    bench.disk.before = None
    assert bench.wake().died


def test_sleep_closes_its_own_sessions_mark_and_no_other() -> None:
    bench = Bench()
    bench.checkpoint("mine", session="a")
    bench.checkpoint("theirs", session="b")
    bench.sleep("x", session="a")
    assert [each.session for each in bench.wake().notices] == ["b"]


def test_checkpoint_of_a_new_session_with_the_same_name_keeps_the_dead_ones() -> None:
    bench = Bench()
    bench.checkpoint("before the crash", session="default")
    bench.wake()
    bench.checkpoint("after it", session="default")
    told = {each.checkpoint.working_on for each in bench.recover().notices if each.checkpoint}
    assert told == {"before the crash", "after it"}
    bench.sleep("x", session="default")
    left = [each.checkpoint.working_on for each in bench.recover().notices if each.checkpoint]
    assert left == ["before the crash"]


def seat_of_a_host(disk: MemoryDisk, host_id: str, session: str) -> Bench:
    """A host with a live session, as the transcript door leaves it on the disk."""
    bench = Bench(disk)
    put_session(bench, session, 3)
    record = json.dumps({"sessionId": session}).encode()
    disk.put(f"{ROOT}/.tenure/hosts/{host_id}/seats/main.json", record)
    holder = Claims(bench.leaves, host_id).me()
    claim = json.dumps(
        {
            "epoch": 1,
            "holder": {
                "host_id": host_id,
                "process": {"pid": holder.process.pid, "started": holder.process.started},
                "since_ms": holder.since_ms,
            },
        }
    )
    disk.put(f"{ROOT}/.tenure/claims/sessions/{session}.claim", claim.encode())
    return bench


def test_session_that_died_before_its_first_checkpoint_is_seen() -> None:
    disk = new_disk()
    dying = seat_of_a_host(disk, "h1", "abcd")
    assert not Bench(disk).wake().died
    disk.processes.kill(dying.leaves.processes.me())
    brief = Bench(disk).wake()
    assert [(each.kind, each.session) for each in brief.notices] == [("seat", "abcd")]
    Bench(disk).ack(brief.brief_id)
    assert not Bench(disk).wake().died


def test_session_that_died_after_its_handoff_is_no_death_unless_it_went_on() -> None:
    disk = new_disk()
    dying = seat_of_a_host(disk, "h1", "abcd")
    dying.sleep("x", session="abcd")
    disk.processes.kill(dying.leaves.processes.me())
    assert not Bench(disk).wake().died
    put_session(Bench(disk), "abcd", 9)
    assert Bench(disk).wake().died


def test_session_that_another_host_took_over_or_that_was_parked_is_no_death() -> None:
    disk = new_disk()
    dying = seat_of_a_host(disk, "h1", "abcd")
    disk.processes.kill(dying.leaves.processes.me())
    path = f"{ROOT}/.tenure/claims/sessions/abcd.claim"
    disk.put(path, disk.content(path).replace(b'"h1"', b'"h2"'))
    assert not Bench(disk).wake().died
    assert ClaimRecord.__struct_fields__[2] == "parked"


# --- ClawVault's own marks -----------------------------------------------------------------------


def clawvault(checkpoint: bytes = b"") -> Bench:
    bench = Bench()
    bench.disk.put(FLAG, b"2026-12-01T09:00:00.000Z")
    folder = f"{ROOT}/.clawvault"
    old = {"timestamp": "2026-12-01T08:00:00.000Z", "workingOn": "from the history"}
    bench.disk.put(f"{folder}/checkpoints/2026-12-01T08-00-00-000Z.json", json.dumps(old).encode())
    if checkpoint:
        bench.disk.put(f"{folder}/last-checkpoint.json", checkpoint)
    return bench


def test_flag_of_clawvault_is_told_and_removed_by_the_acknowledgement() -> None:
    bench = clawvault(b'{"timestamp": "t", "workingOn": "the last"}')
    brief = bench.wake()
    assert "the last" in texts(brief, "notice")[0]
    assert FLAG in bench.disk.paths()
    bench.ack(brief.brief_id)
    assert FLAG not in bench.disk.paths()
    assert f"{ROOT}/.clawvault/last-checkpoint.json" in bench.disk.paths()


@pytest.mark.witness("HANDOFF-2")
def test_flag_of_clawvault_that_was_written_anew_is_left_and_told_again() -> None:
    bench = clawvault()
    brief = bench.wake()
    bench.disk.put(FLAG, b"2026-12-01T10:00:00.000Z")
    assert bench.ack(brief.brief_id).kept == ("clawvault",)
    assert bench.disk.content(FLAG) == b"2026-12-01T10:00:00.000Z"
    assert bench.wake().died


@pytest.mark.witness("HANDOFF-2")
def test_flag_that_changes_while_it_is_removed_is_left() -> None:
    bench = clawvault()
    brief = bench.wake()
    bench.ack(brief.brief_id)
    bench.disk.put(FLAG, b"again")
    bench.ack(brief.brief_id)
    assert bench.disk.content(FLAG) == b"again"


@pytest.mark.parametrize(
    "damaged", [b"", b"{", b"[1]", b'"text"', b'{"workingOn": {"a": 1}}', b"\xff\xfe", b"[" * 9_999]
)
def test_damaged_checkpoint_of_clawvault_is_passed_over_and_named(damaged: bytes) -> None:
    bench = clawvault(damaged or b" ")
    found = bench.recover()
    assert found.checkpoint is not None
    assert found.checkpoint.working_on == "from the history"
    assert any("last-checkpoint.json" in each for each in found.skipped)
    bench.wake()
    assert bench.disk.content(f"{ROOT}/.clawvault/last-checkpoint.json") == (damaged or b" ")


# --- checkpoints -------------------------------------------------------------------------------


def test_checkpoint_that_is_cut_anywhere_is_kept_and_the_one_before_it_is_found() -> None:
    bench = Bench()
    bench.checkpoint("one")
    path = bench.checkpoint("two").path
    data = bench.disk.content(path)
    for cut in range(0, len(data) - 1, 7):
        bench.disk.put(path, data[:cut])
        found = bench.recover()
        assert found.checkpoint is not None
        assert found.checkpoint.working_on == "one"
        assert any(path in each for each in found.skipped)
    newer = bench.checkpoint("three")
    assert newer.path != path
    assert bench.disk.content(path) == data[:cut]
    found = bench.recover()
    assert found.checkpoint is not None
    assert found.checkpoint.working_on == "three"


def test_old_checkpoints_are_removed_and_fifty_stay_whatever_their_age() -> None:
    bench = Bench()
    for n in range(55):
        bench.checkpoint(f"{n}")
    folder = bench.disk.folder(f"{ROOT}/.tenure/checkpoints")
    assert len(folder.names) == 55
    bench.disk.clock.advance(8 * 86_400)
    assert bench.checkpoint("last").pruned == 6
    assert len(folder.names) == 50
    assert bench.checkpoint("more").seq == 57


def test_clock_that_goes_back_changes_no_order() -> None:
    bench = Bench()
    bench.disk.clock.advance(10 * 86_400)
    bench.checkpoint("earlier")
    bench.sleep("earlier")
    go_back(bench, days=20)
    bench.checkpoint("later")
    bench.sleep("later")
    found = bench.recover()
    assert found.checkpoint is not None
    assert found.checkpoint.working_on == "later"
    assert found.handoff is not None
    assert found.handoff.text.working_on == ("later",)


# --- which handoff -------------------------------------------------------------------------------


@pytest.mark.witness("HANDOFF-3")
def test_newest_handoff_is_the_last_in_the_journal_for_recovery_recap_and_list_alike() -> None:
    bench = Bench()
    bench.disk.clock.advance(400 * 86_400)
    bench.sleep("first, with the greatest name")
    go_back(bench, days=300)
    second = bench.sleep("second")
    bench.disk.put(second.path, bench.disk.content(second.path))
    found = bench.recover()
    assert found.handoff is not None
    assert found.handoff.seq == 2
    brief = bench.wake()
    assert brief.summary == "second"
    assert texts(brief, "working_on")[0] == "second"
    assert bench.list().handoffs[0].seq == 2


def test_touching_a_file_changes_no_order() -> None:
    bench = Bench()
    first = bench.sleep("first")
    bench.sleep("second")
    bench.disk.clock.advance(86_400)
    bench.disk.put(first.path, bench.disk.content(first.path))
    assert bench.wake().summary == "second"


def test_handoff_that_its_session_outgrew_is_shown_with_the_gap() -> None:
    bench = Bench()
    put_session(bench, "abcd", 100)
    bench.sleep("x", session="abcd")
    assert texts(bench.wake(), "gap") == []
    put_session(bench, "abcd", 140)
    assert "40 records" in texts(bench.wake(), "gap")[0]


def test_gap_is_counted_from_the_covered_entry_where_the_file_was_written_anew() -> None:
    bench = Bench()
    path = put_session(bench, "abcd", 100)
    bench.sleep("x", session="abcd")
    put_session(bench, "abcd", 110, begin=51)
    assert "60 records" in texts(bench.wake(), "gap")[0]
    bench.disk.put(path, b'{"type":"session","version":3,"id":"abcd"}\n')
    assert "not the record any more" in texts(bench.wake(), "gap")[0]


# --- the brief -----------------------------------------------------------------------------------


def test_every_item_is_told_or_counted_with_the_command_that_shows_it() -> None:
    bench = Bench()
    many = tuple(f"item {n}" for n in range(9))
    bench.sleep(*many, next_steps=many, blocked=many)
    brief = bench.wake()
    assert len(texts(brief, "working_on")) == 5
    assert [(each.kind, each.count) for each in brief.omitted] == [
        ("working_on", 4),
        ("blocked", 4),
        ("next_step", 4),
    ]
    assert {each.fetch for each in brief.omitted} == {"tenure handoffs show 1"}
    assert brief.summary == "item 0 | item 1 +7 more"
    full = bench.wake(detail="full")
    assert len(texts(full, "next_step")) == 9
    assert full.omitted == ()


def test_brief_keeps_to_its_budget_and_counts_what_does_not_fit() -> None:
    bench = Bench()
    for _ in range(5):
        bench.sleep("x" * 100_000, next_steps=("y" * 400,) * 5)
    brief = bench.wake(chars_max=2_000)
    assert sum(len(item.text) for item in brief.items) <= 2_000
    assert "characters: tenure handoffs show 5" in brief.items[0].text
    told = sum(item.kind == "next_step" for item in brief.items)
    left = sum(each.count for each in brief.omitted if each.kind == "next_step")
    assert told + left == 15


def test_no_handoffs_wanted_is_none_told_and_all_counted() -> None:
    bench = Bench()
    bench.sleep("x")
    brief = bench.wake(handoffs_max=0)
    assert texts(brief, "working_on") == []
    assert [each.count for each in brief.omitted] == [1]


@pytest.mark.parametrize("status", ["done", "Done", "completed", "ARCHIVED", "cancelled"])
def test_commitment_in_an_end_state_is_over_however_it_is_written(status: str) -> None:
    bench = Bench()
    bench.disk.put(f"{ROOT}/commitments/a.md", f"---\ntitle: A\nstatus: {status}\n---\n".encode())
    bench.disk.put(f"{ROOT}/commitments/b.md", b"---\ntitle: 2026-01-01\nstatus: open\n---\n")
    assert texts(bench.wake(), "commitment") == ["2026-01-01"]


def test_list_of_a_day_is_no_project() -> None:
    bench = Bench()
    bench.disk.put(f"{ROOT}/projects/2026-11-30.md", b"- observed\n")
    bench.disk.put(f"{ROOT}/projects/parser.md", b"# The parser\n")
    assert texts(bench.wake(), "project") == ["The parser"]


def test_note_that_cannot_be_read_is_named_and_hides_nothing() -> None:
    bench = Bench()
    bench.disk.put(f"{ROOT}/projects/bad.md", b"---\ntitle: a: b: c\n---\n")
    bench.disk.put(f"{ROOT}/projects/list.md", b"---\ntitle: [1, 2]\n---\n")
    bench.disk.put(f"{ROOT}/lessons/good.md", b"---\ntitle: Good\n---\n")
    bench.disk.put_link(f"{ROOT}/lessons/dangling.md", "/nope")
    brief = bench.wake()
    assert texts(brief, "lesson") == ["Good"]
    assert any("bad.md" in each for each in brief.problems)
    assert any("dangling.md" in each for each in brief.problems)


def test_observations_of_the_last_days_are_told_the_weightiest_first() -> None:
    bench = Bench()
    bench.disk.clock.set_now_ms(1_796_083_200_000)
    day = "## 2026-12-01\n- [decision|c=0.9|i=0.95] weighty\n- [fact|c=0.9|i=0.2] light\n"
    day += "- [insight|c=0.9|i=.5] of a kind of its own\n"
    bench.disk.put(f"{ROOT}/ledger/observations/2026/12/01.md", day.encode())
    bench.disk.put(f"{ROOT}/observations/2026-11-20.md", b"- [decision|c=1|i=1] too old\n")
    assert texts(bench.wake(), "observation") == [
        "[decision] weighty",
        "[insight] of a kind of its own",
    ]


# --- what a model says ---------------------------------------------------------------------------


@pytest.mark.witness("HANDOFF-7")
def test_sentences_that_cite_nothing_are_dropped_and_counted() -> None:
    bench = Bench()
    bench.sleep("fix v1.2 of the parser", blocked=("a key",))
    brief = bench.wake()
    said = (
        "All clear, nothing blocked. The parser v1.2 is being fixed [h1.working_on.1]. "
        "Deadline was met [h9.decision.1]. It waits for a key. [h1.blocked.1]"
    )
    generated = cited_only(said, brief, "m")
    assert "All clear" not in generated.text
    assert "Deadline" not in generated.text
    assert "v1.2 is being fixed [h1.working_on.1]." in generated.text
    assert generated.dropped == 2
    assert set(generated.cited) == {"h1.working_on.1", "h1.blocked.1"}


def test_model_that_says_nothing_with_a_source_has_failed() -> None:
    bench = Bench()
    bench.sleep("x")
    generated = cited_only("All clear.", bench.wake(), "m")
    assert (generated.status, generated.text) == ("failed", "")
