"""Two real processes and one session: handed over, pending, taken from the dead, kept by the
stopped."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from cli_world import (
    TENURE,
    assert_one_chain,
    assert_one_result_a_call,
    of_type,
    records,
    started,
    transcripts,
    wait_until,
)
from click.testing import CliRunner, Result
from holders import Holder, holding, sockets

from tenure import Host
from tenure.messages.handover import HandoverPending
from tenure.messages.session import SessionInUse
from tenure.runtime.cli.main import tenure as command
from tenure.runtime.errors import Refused

__all__ = ["sockets"]
pytestmark = [pytest.mark.real, pytest.mark.usefixtures("sockets")]

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def tenure(*args: str, root: Path) -> Result:
    """The command line, run in this process."""
    return CliRunner().invoke(command, [*args, "--root", str(root)])


async def take(holder: Holder, within_s: float = 20.0) -> tuple[int, list[str]]:
    """Take the session over; its epoch then, and what a turn of ours adds to the file."""
    async with Host.open(str(holder.root)) as host:
        seat = await host.take_over(holder.session, within_s=within_s)
        async for _ in seat.prompt("and now here"):
            pass
        return seat.token.epoch, [entry["id"] for entry in records(transcripts(holder.root)[0])]


def refusal(holder: Holder, within_s: float) -> object:
    with pytest.raises(Refused) as caught:
        run(take(holder, within_s))
    return caught.value.reply


def test_session_is_handed_over_in_the_middle_of_a_stream(tmp_path: Path) -> None:
    with holding(tmp_path, "stream") as holder:
        holder.until("TextDelta")
        epoch, _ = run(take(holder))
        seen = holder.until("SessionHandedOver")
    (ended,) = of_type("TurnEnded", seen)
    assert (ended["stop_reason"], ended["cause"]) == ("stopped", "handover")
    assert epoch == 2
    entries = records(transcripts(tmp_path)[0])
    assert_one_chain(entries)
    epochs = [entry["tenure"]["epoch"] for entry in entries]
    assert epochs == [1, 1] + [2] * (len(epochs) - 2)
    partial = entries[1]["message"]["content"][0]["text"]
    assert partial.startswith("word0 "), "what had been said is written before it is let go of"


def test_script_takes_a_session_over(tmp_path: Path) -> None:
    with (
        holding(tmp_path, "idle") as holder,
        Host.open_sync(str(tmp_path)) as host,
    ):
        assert host.take_over(holder.session).name == "main"
        holder.until("SessionHandedOver")


def test_tool_that_does_not_stop_makes_the_handover_pending_until_it_ends(tmp_path: Path) -> None:
    with holding(tmp_path, "tool") as holder:
        holder.until("ToolCallStarted")
        pending = refusal(holder, within_s=0.5)
        assert isinstance(pending, HandoverPending)
        assert pending.calls == ("c1",)
        holder.file.touch()
        run(take(holder))
    entries = records(transcripts(tmp_path)[0])
    assert_one_chain(entries)
    assert_one_result_a_call(entries)


def test_session_of_a_killed_holder_is_simply_taken(tmp_path: Path) -> None:
    with holding(tmp_path, "stream") as holder:
        holder.until("TextDelta")
        holder.process.kill()
        holder.process.wait()
        assert holder.socket.exists(), "nobody removed it"
        epoch, _ = run(take(holder))
        assert epoch == 2
        assert not holder.socket.exists(), "the next host removes what the dead left"


def test_stopped_holder_keeps_its_session_and_the_asker_is_shown_its_pid(tmp_path: Path) -> None:
    with holding(tmp_path, "stream") as holder:
        holder.until("TextDelta")
        os.kill(holder.pid, signal.SIGSTOP)
        try:
            in_use = refusal(holder, within_s=20.0)
            assert isinstance(in_use, SessionInUse)
            assert in_use.holder is not None
            assert in_use.holder.process.pid == holder.pid
            assert str(holder.pid) in in_use.remedy
            done = tenure("sessions", "handover", holder.session, "--json", root=tmp_path)
            assert done.exit_code == 3
            assert f'"pid":{holder.pid}' in done.stdout
        finally:
            os.kill(holder.pid, signal.SIGCONT)
        run(take(holder))


def test_command_line_has_a_session_handed_over(tmp_path: Path) -> None:
    with holding(tmp_path, "idle") as holder:
        done = tenure("sessions", "handover", holder.session[:8], root=tmp_path)
        assert (done.exit_code, done.stderr) == (0, "")
        assert holder.session in done.stdout
        holder.until("SessionHandedOver")
        again = tenure("sessions", "handover", holder.session, "--json", root=tmp_path)
        assert again.exit_code == 3
        assert '"type":"NoHost"' in again.stdout
        assert tenure("run", "hi", "--session", holder.session, root=tmp_path).exit_code == 0


def test_command_line_says_which_calls_hold_a_handover_up(tmp_path: Path) -> None:
    with holding(tmp_path, "tool") as holder:
        holder.until("ToolCallStarted")
        ask = ("sessions", "handover", holder.session, "--wait", "0", "--json")
        done = tenure(*ask, root=tmp_path)
        assert done.exit_code == 3
        assert '"type":"HandoverPending"' in done.stdout
        assert '"calls":["c1"]' in done.stdout
        holder.file.touch()
        holder.until("SessionHandedOver")


def test_command_line_stops_the_turn_of_another_process(tmp_path: Path) -> None:
    with holding(tmp_path, "stream") as holder:
        holder.until("TextDelta")
        done = tenure("stop", "--session", holder.session[:8], "--json", root=tmp_path)
        assert done.exit_code == 0
        assert '"type":"TurnStopping"' in done.stdout
        (ended,) = of_type("TurnEnded", holder.until("TurnEnded"))
        assert (ended["stop_reason"], ended["cause"]) == ("stopped", "user")
        late = tenure("stop", "--turn", ended["turn_id"], "--json", root=tmp_path)
        assert late.exit_code == 3
        assert '"type":"TurnNotRunning"' in late.stdout


def test_command_line_stops_the_only_turn_that_runs(tmp_path: Path) -> None:
    with holding(tmp_path, "idle"), holding(tmp_path, "stream") as holder:
        holder.until("TextDelta")
        done = tenure("stop", root=tmp_path)
        assert (done.exit_code, done.stdout) == (0, f"stopping {holder.session}/1\n")
        holder.until("TurnEnded")
        assert tenure("stop", root=tmp_path).exit_code == 3


def test_command_line_answers_a_request_of_another_process(tmp_path: Path) -> None:
    with holding(tmp_path, "ask") as holder:
        (asked,) = of_type("ApprovalRequested", holder.until("ApprovalRequested"))
        request = asked["request"]["request_id"]
        listed = tenure("approvals", "ls", root=tmp_path)
        assert request in listed.stdout
        assert "new.txt" in listed.stdout
        shown = tenure("approvals", "show", request, root=tmp_path)
        assert "+x" in shown.stderr, "who decides sees what would change"
        done = tenure("approve", request[:6], "--json", root=tmp_path)
        assert (done.exit_code, '"type":"Applied"' in done.stdout) == (0, True)
        holder.until("TurnEnded")
        assert (tmp_path / "new.txt").read_text() == "x\n"
        again = tenure("deny", request, "--json", root=tmp_path)
        assert again.exit_code == 3
        assert '"type":"Superseded"' in again.stdout


def test_command_line_denies_with_a_reason_that_the_model_is_told(tmp_path: Path) -> None:
    with holding(tmp_path, "ask") as holder:
        (asked,) = of_type("ApprovalRequested", holder.until("ApprovalRequested"))
        request = asked["request"]["request_id"]
        done = tenure("deny", request, "--reason", "not today", root=tmp_path)
        assert done.exit_code == 0
        (finished,) = of_type("ToolCallFinished", holder.until("ToolCallFinished"))
        assert "not today" in finished["text"]
    assert not (tmp_path / "new.txt").exists()


def test_command_line_lists_the_hosts_of_its_root_and_no_others(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    with holding(here, "idle") as one, holding(there, "idle"):
        listed = tenure("hosts", "--json", root=here)
        assert listed.stdout.count("\n") == 1
        assert f'"pid":{one.pid}' in listed.stdout


def test_session_is_followed_while_another_process_writes_it(tmp_path: Path) -> None:
    with holding(tmp_path, "ask") as holder:
        holder.until("ApprovalRequested")
        wait_until(lambda: bool(transcripts(tmp_path)), holder.process)
        follow = (*TENURE, "sessions", "follow", holder.session, "--all", "--json")
        with started(*follow, cwd=tmp_path) as following:
            assert following.stdout is not None
            first = [following.stdout.readline() for _ in range(2)]
            assert all('"state":"intact"' in line for line in first)
            request = tenure("approvals", "ls", root=tmp_path).stdout.split()[0]
            assert tenure("approve", request, root=tmp_path).exit_code == 0
            rest = iter(following.stdout.readline, "")
            assert any("toolResult" in line for line in rest)  # behind what was decided
            assert any("done" in line for line in rest)
            following.send_signal(signal.SIGINT)
            assert following.wait(10) == 130
