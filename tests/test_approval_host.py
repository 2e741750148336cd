"""Approvals on a whole host: who is asked, what an answer reaches, and when a question is over."""

import asyncio
from itertools import permutations
from typing import Any

import pytest
from seat_world import Counted, Gate, Seated, crash, seated, use

from tenure.messages.approval import (
    Allow,
    Applied,
    ApprovalRequest,
    ApprovalRequested,
    ApprovalResolved,
    Choice,
    Deny,
    Expired,
    GetApprovals,
    Stop,
    Superseded,
)
from tenure.messages.base import Reply
from tenure.messages.bus import OwnerStopped
from tenure.messages.session import OpenNewSession, OpenSession
from tenure.messages.settings import SetMode, SettingsSaved, SetToolPolicy
from tenure.messages.tokens import RequestId
from tenure.messages.turn import StopTurn, ToolCallFinished, ToolCallStarted
from tenure.runtime.doors.models.scripted import Scripted
from tenure.runtime.testing.faults import DiskCall, Fail, Fault

SEEDS = range(6)
SETTINGS = "/work/.tenure/settings.toml"


def asked(s: Seated) -> list[ApprovalRequest]:
    return [event.request for event in s.said(ApprovalRequested)]


def answer(s: Seated, place: int, choice: Choice) -> Reply:
    """Answer the question with this number."""
    return s.do(s.seat.answer(asked(s)[place].request_id, choice))


def results(s: Seated) -> dict[str, str]:
    """The text of every result on the disk, by its call."""
    messages = [line["message"] for line in s.lines() if "message" in line]
    return {
        each["toolCallId"]: each["content"][0]["text"]
        for each in messages
        if each["role"] == "toolResult"
    }


def open_now(s: Seated) -> list[str]:
    return [request.call_id for request in s.do(s.seat.approvals())]


# --- allow, deny, stop -------------------------------------------------------------------------


def test_allowed_call_runs_once_and_whoever_allowed_it_is_told() -> None:
    count = Counted()
    with seated([use("c1")], "done", tools=[count.tool]) as s:
        turn = s.prompt()
        s.until(lambda: bool(asked(s)))
        assert count.runs == []
        assert answer(s, 0, Allow()) == Applied(request_id=asked(s)[0].request_id)
        s.world.run(turn)
        assert count.runs == ["c1"]
        assert s.ends() == [("end_turn", None)]


@pytest.mark.witness("APPROVE-3")
@pytest.mark.parametrize("reason", ["not this one", "stop", "the user stopped the turn"])
def test_denied_call_is_told_to_the_model_and_the_turn_goes_on(reason: str) -> None:
    count = Counted()
    model = Scripted([[use("c1")], "something else"])
    with seated(model=model, tools=[count.tool]) as s:
        turn = s.prompt()
        s.until(lambda: bool(asked(s)))
        assert isinstance(answer(s, 0, Deny(reason=reason)), Applied)
        s.world.run(turn)
        assert count.runs == []
        assert results(s) == {"c1": f"Denied: {reason}"}
        assert s.ends() == [("end_turn", None)]
        assert len(model.requests) == 2


@pytest.mark.witness("APPROVE-2")
@pytest.mark.parametrize("seed", SEEDS)
def test_stop_at_a_question_ends_the_turn_and_is_told_to_have_been_applied(seed: int) -> None:
    count = Counted()
    with seated([use("c1"), use("c2")], "next", tools=[count.tool], seed=seed) as s:
        turn = s.prompt()
        s.until(lambda: len(asked(s)) == 2)
        first = next(n for n, request in enumerate(asked(s)) if request.call_id == "c1")
        reply = answer(s, first, Stop())
        s.world.run(turn)
        assert reply == Applied(request_id=asked(s)[first].request_id)
        assert s.ends() == [("stopped", "approval")]
        assert count.runs == []
        assert sorted(results(s)) == ["c1", "c2"]
        assert sorted(event.outcome for event in s.said(ApprovalResolved)) == ["revoked", "stopped"]
        assert open_now(s) == []


@pytest.mark.parametrize(
    ("choice", "reason"), [(Allow(), "end_turn"), (Deny(), "end_turn"), (Stop(), "stopped")]
)
def test_approver_of_the_host_is_asked_for_every_call_of_a_batch(
    choice: Choice, reason: str
) -> None:
    seen: list[str] = []

    async def approve(request: ApprovalRequest) -> Any:
        seen.append(request.call_id)
        return choice

    count = Counted()
    with seated([use("c1"), use("c2")], "done", tools=[count.tool], approve=approve) as s:
        s.run()
        assert seen[:1] == ["c1"]
        assert [each for each, _ in s.ends()] == [reason]
        assert count.runs == (["c1", "c2"] if isinstance(choice, Allow) else [])


def test_approver_that_fails_leaves_the_question_open_for_another_answer() -> None:
    async def approve(request: ApprovalRequest) -> Any:
        raise RuntimeError("the window is gone")

    count = Counted()
    with seated([use("c1")], "done", tools=[count.tool], approve=approve) as s:
        turn = s.prompt()
        s.until(lambda: bool(asked(s)))
        s.world.settle(1)
        assert isinstance(answer(s, 0, Allow()), Applied)
        s.world.run(turn)
        assert count.runs == ["c1"]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_batch_of_gated_calls_is_decided_in_any_order_and_each_runs_once(
    order: tuple[int, ...],
) -> None:
    count = Counted()
    batch = [use("c0"), use("c1"), use("c2")]
    with seated(batch, "done", tools=[count.tool]) as s:
        turn = s.prompt()
        s.until(lambda: len(asked(s)) == 3)
        for place in order:
            assert count.runs == []
            assert isinstance(answer(s, place, Allow()), Applied)
        s.world.run(turn)
        assert sorted(count.runs) == ["c0", "c1", "c2"]
        assert len(asked(s)) == 3
        assert s.told()[2:5] == ["result c0", "result c1", "result c2"]


def test_nothing_of_a_batch_runs_before_its_gated_call_is_decided() -> None:
    gated, free = Counted("gated"), Counted("free", mutating=False)
    batch = [use("c1", "gated"), use("c2", "free")]
    with seated(batch, "done", tools=[gated.tool, free.tool]) as s:
        turn = s.prompt()
        s.until(lambda: bool(asked(s)))
        s.world.settle(1)
        assert (gated.runs, free.runs) == ([], [])
        answer(s, 0, Deny(reason="no"))
        s.world.run(turn)
        assert (gated.runs, free.runs) == ([], ["c2"])


# --- answers that come twice, late, or to the wrong place --------------------------------------


@pytest.mark.witness("APPROVE-4")
@pytest.mark.parametrize("seed", SEEDS)
def test_of_two_answers_at_once_one_counts(seed: int) -> None:
    count = Counted()
    with seated([use("c1")], "done", tools=[count.tool], seed=seed) as s:
        turn = s.prompt()
        s.until(lambda: bool(asked(s)))
        request_id = asked(s)[0].request_id

        async def both() -> list[Reply]:
            asks = [s.seat.answer(request_id, choice) for choice in (Allow(), Deny(reason="no"))]
            return list(await asyncio.gather(*asks))

        replies = s.do(both())
        s.world.run(turn)
        assert sorted(type(reply).__name__ for reply in replies) == ["Applied", "Superseded"]
        assert count.runs == (["c1"] if isinstance(replies[0], Applied) else [])
        assert len(s.said(ApprovalResolved)) == 1


@pytest.mark.witness("APPROVE-4", "APPROVE-6")
@pytest.mark.parametrize("seed", SEEDS)
def test_answer_and_stop_at_once_never_run_what_was_stopped_first(seed: int) -> None:
    gate = Gate()
    count = Counted("count", gate)
    with seated([use("c1")], "done", tools=[count.tool], seed=seed) as s:
        s.prompt()
        s.until(lambda: bool(asked(s)))
        allow = s.world.loop.create_task(
            s.world.inside(s.host.process, _awaited(s.seat.answer(asked(s)[0].request_id, Allow())))
        )
        stop = s.world.tell(s.host, StopTurn(turn_id=s.turn(1)))
        s.world.run(asyncio.wait([allow, stop]))
        s.settle()
        assert s.ends() == [("stopped", "user")]
        if isinstance(allow.result(), Applied):
            # It took effect before the stop came: the tool was started, and was cancelled.
            assert count.runs in ([], ["c1"])
        else:
            assert isinstance(allow.result(), Superseded)
            assert count.runs == []
            assert s.said(ToolCallStarted) == []
        assert list(results(s)) == ["c1"]
        assert len(s.said(ApprovalResolved)) == 1
        assert open_now(s) == []


async def _awaited(work: Any) -> Any:
    return await work


@pytest.mark.witness("APPROVE-6")
def test_answer_long_after_its_turn_runs_nothing() -> None:
    count = Counted()
    with seated([use("c1"), use("c2")], "next", tools=[count.tool]) as s:
        s.prompt()
        s.until(lambda: len(asked(s)) == 2)
        s.ask(StopTurn(turn_id=s.turn(1)))
        s.settle()
        s.world.loop.wall_offset_ms = 3 * 24 * 3_600_000
        for place in range(2):
            reply = answer(s, place, Allow(scope="always"))
            assert reply == Superseded(request_id=asked(s)[place].request_id)
        s.run("next")
        assert count.runs == []
        assert open_now(s) == []
        assert SETTINGS not in s.world.disk.paths()


def test_answer_in_another_seat_reaches_nothing() -> None:
    count = Counted()
    with seated([use("c1")], "done", tools=[count.tool]) as s:
        other = s.world.run(s.host.seat("other"))
        turn = s.prompt()
        s.until(lambda: bool(asked(s)))
        request_id = asked(s)[0].request_id
        assert s.do(other.answer(request_id, Allow())) == Expired(request_id=request_id)
        nobody = RequestId("nobody's")
        assert s.do(s.seat.answer(nobody, Allow())) == Expired(request_id=nobody)
        assert count.runs == []
        answer(s, 0, Deny())
        s.world.run(turn)


@pytest.mark.witness("APPROVE-6")
@pytest.mark.parametrize("seed", SEEDS)
def test_question_of_a_session_that_was_swapped_out_is_over_and_never_runs(seed: int) -> None:
    count = Counted()
    with seated([use("c1")], "new", tools=[count.tool], seed=seed) as s:
        old = s.seat.token.session_id
        turn = s.prompt()
        s.until(lambda: bool(asked(s)))
        s.ask(OpenNewSession())
        s.world.run(turn)
        assert isinstance(answer(s, 0, Allow()), Superseded)
        assert count.runs == []
        assert [event.outcome for event in s.said(ApprovalResolved)] == ["revoked"]
        assert s.told(old) == ["user", "assistant c1", "result c1"]


# --- what is remembered --------------------------------------------------------------------------


@pytest.mark.witness("APPROVE-4")
def test_grant_for_a_session_holds_in_it_and_dies_with_it() -> None:
    count = Counted()
    # Each session that the model talks to begins the script anew.
    model = Scripted([[use("c1")], "done", [use("c2")], "done", [use("c3")], "done"])
    with seated(model=model, tools=[count.tool]) as s:
        first = s.seat.token.session_id
        turn = s.prompt("one")
        s.until(lambda: bool(asked(s)))
        answer(s, 0, Allow(scope="session"))
        s.world.run(turn)
        s.run("two")
        assert (count.runs, len(asked(s))) == (["c1", "c2"], 1)

        s.ask(OpenNewSession())
        elsewhere = s.prompt("three")
        s.until(lambda: len(asked(s)) == 2)
        answer(s, 1, Deny())
        s.world.run(elsewhere)

        s.ask(OpenSession(session_id=first))
        again = s.prompt("four")
        s.until(lambda: len(asked(s)) == 3)
        answer(s, 2, Deny())
        s.world.run(again)
        assert count.runs == ["c1", "c2"]


@pytest.mark.witness("APPROVE-5")
def test_choice_for_always_is_in_the_settings_file_once_it_took_effect() -> None:
    count = Counted()
    with seated([use("c1")], "done", [use("c2")], "done", tools=[count.tool]) as s:
        turn = s.prompt("one")
        s.until(lambda: bool(asked(s)))
        assert SETTINGS not in s.world.disk.paths()
        reply = answer(s, 0, Allow(scope="always"))
        assert reply == Applied(request_id=asked(s)[0].request_id, remembered=True)
        assert b'count = "allow"' in s.world.disk.content(SETTINGS)
        s.world.run(turn)
        s.run("two")
        assert (count.runs, len(asked(s))) == (["c1", "c2"], 1)


def test_choice_for_always_decides_the_other_open_questions_about_the_tool() -> None:
    count = Counted()
    with seated([use("c1"), use("c2")], "done", tools=[count.tool]) as s:
        turn = s.prompt()
        s.until(lambda: len(asked(s)) == 2)
        answer(s, 0, Allow(scope="always"))
        s.world.run(turn)
        assert sorted(count.runs) == ["c1", "c2"]


# --- the policy changes --------------------------------------------------------------------------


@pytest.mark.witness("APPROVE-4")
@pytest.mark.parametrize(
    ("command", "runs"),
    [
        (SetToolPolicy(tool="count", rule="allow"), ["c1"]),
        (SetMode(mode="yolo"), ["c1"]),
        (SetToolPolicy(tool="count", rule="deny"), []),
        (SetMode(mode="plan"), []),
    ],
    ids=["allow", "yolo", "deny", "plan"],
)
def test_change_of_the_policy_decides_what_is_open(
    command: SetToolPolicy | SetMode, runs: list[str]
) -> None:
    count = Counted()
    with seated([use("c1")], "done", tools=[count.tool]) as s:
        turn = s.prompt()
        s.until(lambda: bool(asked(s)))
        assert isinstance(s.ask(command, seat=""), SettingsSaved)
        s.world.run(turn)
        assert count.runs == runs
        assert isinstance(answer(s, 0, Allow()), Superseded)


def test_policy_that_still_asks_leaves_the_question_open() -> None:
    count = Counted()
    with seated([use("c1")], "done", tools=[count.tool]) as s:
        turn = s.prompt()
        s.until(lambda: bool(asked(s)))
        s.ask(SetToolPolicy(tool="another", rule="deny"), seat="")
        assert open_now(s) == ["c1"]
        answer(s, 0, Allow())
        s.world.run(turn)
        assert (count.runs, len(asked(s))) == (["c1"], 1)


@pytest.mark.witness("APPROVE-4")
def test_allowance_is_void_when_another_process_has_denied_the_tool_meanwhile() -> None:
    count = Counted()
    with seated([use("c1")], "done", tools=[count.tool]) as s:
        turn = s.prompt()
        s.until(lambda: bool(asked(s)))
        s.world.disk.put(SETTINGS, b'[approval.tools]\ncount = "deny"\n')
        assert isinstance(answer(s, 0, Allow(scope="always")), Superseded)
        s.world.run(turn)
        assert count.runs == []
        assert "denies" in results(s)["c1"]
        assert s.world.disk.content(SETTINGS) == b'[approval.tools]\ncount = "deny"\n'


@pytest.mark.parametrize("mode", ["safe", "yolo"])
def test_settings_that_cannot_be_read_let_nothing_change_and_reading_goes_on(mode: str) -> None:
    writes, reads = Counted("writes"), Counted("reads", mutating=False)
    batch = [use("c1", "writes"), use("c2", "reads")]
    with seated(batch, "done", tools=[writes.tool, reads.tool]) as s:
        s.world.disk.put(SETTINGS, f'[approval]\nmode = "{mode}"\n'.encode())

        def unreadable(call: DiskCall) -> Fault | None:
            return Fail(errno=5) if call.path == SETTINGS else None

        s.world.disk.before = unreadable
        s.run()
        s.world.disk.before = None
        assert (writes.runs, reads.runs) == ([], ["c2"])
        assert asked(s) == []


# --- owners that fail ----------------------------------------------------------------------------


@pytest.mark.witness("APPROVE-6")
@pytest.mark.parametrize("seed", SEEDS)
def test_question_of_a_turn_whose_owner_failed_is_over_and_its_call_has_a_result(
    seed: int,
) -> None:
    count = Counted()
    with seated([use("c1")], "next", tools=[count.tool], seed=seed) as s:
        turn = s.prompt()
        s.until(lambda: bool(asked(s)))
        crash(s, "turn")
        poke = s.world.tell(s.host, StopTurn(turn_id=s.turn(1)))
        s.world.run(asyncio.wait([turn, poke]))
        s.settle()
        assert open_now(s) == []
        assert isinstance(answer(s, 0, Allow()), Superseded)
        assert count.runs == []
        assert list(results(s)) == ["c1"]
        s.run("next")
        assert s.ends()[-1] == ("end_turn", None)


@pytest.mark.parametrize("seed", SEEDS)
def test_call_whose_approval_owner_failed_is_not_run_and_the_turn_goes_on(seed: int) -> None:
    count = Counted()
    with seated([use("c1")], "next", tools=[count.tool], seed=seed) as s:
        turn = s.prompt()
        s.until(lambda: bool(asked(s)))
        crash(s, "approval")
        poke = s.world.tell(s.host, GetApprovals())
        s.world.run(asyncio.wait([turn, poke]))
        assert isinstance(poke.result(), OwnerStopped)
        assert s.ends() == [("end_turn", None)]
        assert count.runs == []
        assert [event.is_error for event in s.said(ToolCallFinished)] == [True]
        assert isinstance(answer(s, 0, Allow()), Expired)


def test_call_whose_policy_cannot_be_had_is_denied_and_the_next_one_is_decided() -> None:
    count = Counted()
    with seated([use("c1")], "one", [use("c2")], "two", tools=[count.tool]) as s:
        crash(s, "settings")
        s.run("first")
        assert (count.runs, asked(s)) == ([], [])
        assert results(s) == {"c1": "Denied: the policy could not be read"}
        turn = s.prompt("second")
        s.until(lambda: bool(asked(s)))
        answer(s, 0, Allow())
        s.world.run(turn)
        assert count.runs == ["c2"]


def test_question_of_a_host_that_was_killed_is_not_open_in_the_next_one() -> None:
    count = Counted()
    with seated([use("c1")], "next", tools=[count.tool]) as s:
        session_id = s.seat.token.session_id
        s.prompt()
        s.until(lambda: bool(asked(s)))
        s.host.kill()
        second = s.world.host("b", model=Scripted(["next"]), tools=[count.tool])
        seat = s.world.run(second.seat("main", session_id))
        assert s.world.run(s.world.inside(second.process, _awaited(seat.approvals()))) == ()
        assert s.told(session_id) == ["user", "assistant c1", "result c1"]
        assert count.runs == []
