"""`host.handoff`: the same owner in a running host, beside the command line."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from cli_world import json_lines, tenure

from tenure import Host
from tenure.messages.handoff import HandoffReceipted, HandoffRefused
from tenure.runtime.errors import Refused
from tenure.testing import simulate


@pytest.mark.real
def test_host_and_command_line_share_one_vault(tmp_path: Path) -> None:
    async def embed() -> None:
        async with Host.open(str(tmp_path)) as host:
            seat = await host.seat()
            async for _ in seat.prompt("hello"):
                pass
            assert seat.token is not None
            session = seat.token.session_id
            await host.handoff.checkpoint("the parser", session=session)
            saved = await host.handoff.sleep("one, still one", next_steps=["n"], session=session)
            view = await host.handoff.show(str(saved.seq))
            assert view.link is not None
            assert view.link.session_id == session
            assert view.link.entries > 0
            brief = await host.handoff.wake()
            assert not brief.died
            assert (await host.handoff.ack(brief.brief_id)).outcome == "acknowledged"
            assert (await host.handoff.verify()).sound
            assert (await host.handoff.recover()).handoff == view
            assert len((await host.handoff.ls()).handoffs) == 1
            with pytest.raises(Refused) as said:
                await host.handoff.sleep("")
            assert isinstance(said.value.reply, HandoffRefused)

    asyncio.run(embed())
    (row,) = json_lines(tenure("handoffs", "ls", "--json", cwd=tmp_path).stdout)
    assert row["summary"] == "one, still one"


@pytest.mark.real
def test_session_whose_host_was_killed_is_told_to_the_next_one(tmp_path: Path) -> None:

    program = (
        "import asyncio, os\nfrom tenure import Host\n"
        "async def main():\n"
        f"    async with Host.open({str(tmp_path)!r}) as host:\n"
        "        seat = await host.seat()\n"
        "        async for _ in seat.prompt('hello'): pass\n"
        "        os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], check=False, timeout=50)
    assert ran.returncode == -9
    (brief,) = json_lines(tenure("wake", "--json", cwd=tmp_path).stdout)
    assert [each["kind"] for each in brief["notices"]] == ["seat"]
    tenure("ack", brief["brief_id"], cwd=tmp_path)
    (brief,) = json_lines(tenure("wake", "--json", cwd=tmp_path).stdout)
    assert not brief["died"]


@pytest.mark.parametrize("seed", range(5))
def test_two_hosts_that_sleep_at_once_get_two_numbers(seed: int) -> None:
    with simulate(seed) as world:
        one, two = world.host("a"), world.host("b")

        async def sleeps() -> list[int]:
            await asyncio.gather(one.start(), two.start())
            wishes = [
                world.inside(host.process, host.host.handoff.sleep(f"{n}"))
                for host in (one, two)
                for n in range(3)
            ]
            return [saved.seq for saved in await asyncio.gather(*wishes)]

        assert sorted(world.run(sleeps())) == [1, 2, 3, 4, 5, 6]


def test_receipt_is_an_event_of_the_host() -> None:
    with simulate(1) as world:
        host = world.host()
        world.run(host.start())
        task = world.loop.create_task(
            world.inside(host.process, host.host.handoff.sleep("x", stages=["observe"]))
        )
        receipt = world.run_until(host, HandoffReceipted)
        assert receipt.seq == 1
        assert world.run(task).stages["observe"].status == "skipped"
