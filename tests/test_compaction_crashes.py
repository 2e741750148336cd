"""Compaction on disks that fail, and in processes that die at any call of a pass."""

import errno

import pytest
from compaction_seat import WINDOW, Speaker, audit, balanced, compacting, fill, prompts, statuses
from compaction_world import of_tokens
from seat_world import Gate

from tenure.messages.compaction import Compact, Compacted, CompactionFailed
from tenure.messages.session import AppendUnknown, ContinueSession, SessionOpened
from tenure.messages.turn import TurnEnded
from tenure.runtime.testing.faults import (
    Fail,
    FaultRule,
    FaultRules,
    KillAfter,
    KillBefore,
    KillDuring,
    LoseAll,
)
from tenure.runtime.testing.world import ProcessEnded, simulate

PENDING = "the pending prompt "

APPENDS = range(1, 5)
"""The prompt, the start of the audit, the summary with its end, the answer."""


def covered(shown):
    """Whether the model is shown everything that was said, or a summary of it, without a hole."""
    if shown[0].startswith("<conversation-summary>"):
        return True
    told = [each for each in shown if each.startswith("prompt")]
    return [each[:8] for each in told] == [f"prompt {number}" for number in range(5)]


def durable(s, session_id):
    return any(each.startswith(PENDING) for each in prompts(s, session_id))


@pytest.mark.witness("COMPACT-5")
@pytest.mark.parametrize("nth", APPENDS)
@pytest.mark.parametrize(
    "fault",
    [KillBefore(), KillDuring(bytes_written=40), KillDuring(bytes_written=900), KillAfter()],
)
def test_a_process_that_dies_at_any_write_of_a_pass_leaves_no_hole_and_one_end(fault, nth):
    """C12: after a restart the old messages or the summary cover all that was said."""
    with compacting() as (s, model):
        fill(s, 5)
        session_id = s.seat.token.session_id
        rule = FaultRule(fault=fault, calls=("append",), path_ends=".jsonl", nth=nth)
        s.world.disk.before = FaultRules(rule)
        with pytest.raises(ProcessEnded):
            s.world.run(s.host.prompt(of_tokens(100, PENDING)))
        s.world.disk.before = None
        again = s.host.again()
        assert s.world.run(again.seat()).token.session_id == session_id
        assert balanced(s, session_id)
        kept = durable(s, session_id)
        assert kept or nth == 1
        s.world.run(again.prompt("and on"))
        assert covered(model.shown())
        assert any(each.startswith(PENDING) for each in model.shown()) == kept
        assert balanced(s, session_id)


@pytest.mark.parametrize("nth", [2, 3])
def test_power_that_fails_at_the_sync_of_a_pass_leaves_no_hole_and_one_end(nth):
    with compacting() as (s, model):
        fill(s, 5)
        session_id = s.seat.token.session_id
        rule = FaultRule(fault=KillBefore(), calls=("datasync",), path_ends=".jsonl", nth=nth)
        s.world.disk.before = FaultRules(rule)
        with pytest.raises(ProcessEnded):
            s.world.run(s.host.prompt(of_tokens(100, PENDING)))
        s.world.disk.before = None
        s.world.power_loss(LoseAll())
        again = s.host.again()
        s.world.run(again.seat())
        assert balanced(s, session_id)
        assert durable(s, session_id)
        s.world.run(again.prompt("and on"))
        assert covered(model.shown())


@pytest.mark.witness("COMPACT-1")
@pytest.mark.parametrize("nth", [2, 3])
def test_a_disk_that_is_full_in_a_pass_replaces_nothing_and_the_prompt_is_answered(nth):
    with compacting() as (s, model):
        fill(s, 5)
        fault = Fail(errno=errno.ENOSPC)
        rule = FaultRule(fault=fault, calls=("append",), path_ends=".jsonl", nth=nth)
        s.world.disk.before = FaultRules(rule)
        s.run(of_tokens(100, PENDING))
        assert s.ends()[-1] == ("end_turn", None)
        assert not any(line["type"] == "compaction" for line in s.lines())
        assert model.shown()[0].startswith("prompt 0")
        assert balanced(s)
        assert "compacted" not in statuses(s)


def test_a_wish_on_a_full_disk_fails_and_gives_its_instructions_back():
    with compacting(window=0) as (s, _):
        fill(s, 4)
        before = s.lines()
        fault = Fail(errno=errno.ENOSPC)
        rule = FaultRule(fault=fault, calls=("append",), path_ends=".jsonl", nth=2)
        s.world.disk.before = FaultRules(rule)
        reply = s.ask(Compact(instructions="keep X"))
        assert isinstance(reply, CompactionFailed)
        assert reply.instructions == "keep X"
        assert audit(s) == ["start", "end failed"]
        assert s.lines()[: len(before)] == before
        assert isinstance(s.ask(Compact(instructions="keep X")), Compacted)


def test_a_sync_that_fails_in_a_pass_claims_nothing_and_opening_again_closes_the_audit():
    with compacting(window=0) as (s, _):
        fill(s, 4)
        fault = Fail(errno=errno.EIO)
        rule = FaultRule(fault=fault, calls=("datasync",), path_ends=".jsonl", nth=2)
        s.world.disk.before = FaultRules(rule)
        assert isinstance(s.ask(Compact()), AppendUnknown)
        assert statuses(s) == ["session_lost"]
        s.world.disk.before = None
        assert isinstance(s.ask(ContinueSession()), SessionOpened)
        assert balanced(s)
        s.run("and on")
        assert s.ends()[-1] == ("end_turn", None)


def test_a_file_that_another_program_changes_in_a_pass_gets_no_summary_and_one_end():
    """The epoch moved, so what the pass would write is refused."""
    with compacting(window=0, watchers=()) as (s, model):
        fill(s, 4)
        model.gate = Gate()
        wish = s.world.tell(s.host, Compact())
        s.until(lambda: model.gate.reached == 1)
        session_id = s.seat.token.session_id
        path = next(each for each in s.world.disk.paths() if each.endswith(f"{session_id}.jsonl"))
        foreign = b'{"type":"label","id":"x1","parentId":null,"timestamp":"","targetId":"x"}\n'
        s.world.disk.put(path, s.world.disk.content(path) + foreign)
        model.gate.open()
        reply = s.world.run(wish)
        assert not isinstance(reply, Compacted)
        s.settle()
        s.run("and on")
        assert not any(line["type"] == "compaction" for line in s.lines())
        assert balanced(s)


def test_two_hosts_on_one_root_compact_the_session_that_each_of_them_has():
    model = Speaker()
    settings = {"compaction": {"window": WINDOW, "model": "same"}}
    with simulate(3) as world:
        hosts = [world.host(name, model=model, settings=settings) for name in ("a", "b")]
        for host in hosts:
            world.run(host.seat())
            for number in range(6):
                events = world.run(host.prompt(of_tokens(150, f"prompt {number} ")))
                assert isinstance(events[-1], TurnEnded)
                assert events[-1].stop_reason == "end_turn"
        assert len(model.summaries) == 2
