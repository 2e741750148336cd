"""The published pi coding agent opens what forks, rewinds, redactions and vacuums leave.

Runs where tests/test_transcript_pi.py does.
"""

import asyncio
from pathlib import Path
from typing import Any

import test_transcript_pi as of_pi

from tenure.messages.session_ops import Redact, Vacuum
from tenure.runtime.doors.models.scripted import Scripted
from tenure.runtime.host import Host

pytestmark = of_pi.pytestmark


def opened_by_pi(tmp_path: Path, path: str) -> Any:
    return of_pi.pi(tmp_path, path, "")


def test_pi_opens_every_result_at_the_same_leaf(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()

    async def play() -> None:
        async with Host.open(str(root), model=Scripted(["one", "two", "three"])) as host:
            seat = await host.seat()
            for text in ("first", "second"):
                async for _ in seat.prompt(text):
                    pass
            session = await seat.session()
            entries = (await host.sessions.read(session.path)).entries
            await seat.label(entries[0].id, "start")
            await seat.rename("Trip")
            forked = await seat.fork(entries[1].id)
            found = opened_by_pi(tmp_path, forked.path)
            assert (found["id"], found["roles"]) == (forked.session_id, ["user", "assistant"])
            assert found["name"] == "Trip"
            await seat.rewind(entries[2].id, position="before")
            async for _ in seat.prompt("otherwise"):
                pass
            roles = ["user", "assistant"] * 2
            for work in (None, Redact(patterns=("otherwise",)), Vacuum()):
                if work is not None:
                    await seat.rewrite(work)
                found = opened_by_pi(tmp_path, session.path)
                assert (found["roles"], found["name"]) == (roles, "Trip")
                assert found["leaf"] == (await seat.session()).leaf

    asyncio.run(play())
