"""Records the stored traces anew: `python tests/traces/record.py [NAME...]`.

Each is a run in a simulated world, so the same code gives the same bytes.  A
trace that changes is a decision: look at the difference before you keep it.
"""

import asyncio
import errno
import sys
from collections.abc import Callable
from pathlib import Path

from tenure.messages.approval import Allow, ApprovalRequest
from tenure.messages.entries import CustomEntry
from tenure.messages.models import Model, ModelFailure, ModelToolCall
from tenure.messages.session import AppendEntries, OpenNewSession, OpenSession, StartTurn
from tenure.messages.turn import GetTurn, StopTurn, TextDelta, TurnView
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.models.scripted import Scripted
from tenure.runtime.host import Host
from tenure.runtime.observer import Observer
from tenure.runtime.testing.expect import expect_reply
from tenure.runtime.testing.faults import Fail
from tenure.runtime.testing.world import DRAIN_MAX, ROOT, SimHost, World, simulate
from tenure.runtime.trace import Trace

FOLDER = Path(__file__).parent

WRITE = ModelToolCall(id="c1", name="write", arguments={"path": "a.md", "content": "one\n"})
READ = ModelToolCall(id="c2", name="read", arguments={"path": "a.md"})


def host_of(
    world: World, model: Model, write: Callable[[bytes], None], always: bool = False
) -> SimHost:
    """A host whose steps are traced, with the seat `main`."""

    async def approve(request: ApprovalRequest) -> Allow:
        return Allow(scope="always") if always else Allow()

    def open_host(leaves: Leaves, observer: Observer) -> Host:
        return Host.open(
            ROOT,
            model=model,
            approve=approve,
            leaves=leaves,
            observers=(observer, Trace(write)),
            drain_max=DRAIN_MAX,
        )

    host = SimHost(world, "a", open_host)
    world.hosts.append(host)
    world.run(host.seat())
    return host


# --- what is recorded -------------------------------------------------------------------------


def tools(world: World, write: Callable[[bytes], None]) -> None:
    """A prompt, a tool that must be approved, one that must not, an answer."""
    model = Scripted([["I write. ", WRITE], [READ], "It says one."])
    host = host_of(world, model, write, always=True)
    world.run(host.prompt("Write one into a.md, then read it."))
    world.run(host.close())


def stop(world: World, write: Callable[[bytes], None]) -> None:
    """A turn that is stopped in its answer, with a prompt behind it; then a late stop."""
    speaking = asyncio.Event()
    host = host_of(world, Scripted([["A long ", speaking, "answer."]]), write)
    running = world.loop.create_task(host.prompt("Go on."))
    world.run_until(host, TextDelta)
    world.ask(host, StartTurn(text="And then?", when_busy="queue"))
    turn = expect_reply(world.ask(host, GetTurn()), TurnView).turn_id
    assert turn is not None
    world.ask(host, StopTurn(turn_id=turn))
    world.run(running)
    world.ask(host, StopTurn(turn_id=turn))
    world.run(host.close())


def swap(world: World, write: Callable[[bytes], None]) -> None:
    """A new session under a running turn, an append with the old token, and back again."""
    host = host_of(world, Scripted([["Half", asyncio.Event()]]), write)
    seat = host.host.seats["main"]
    old = seat.token
    running = world.loop.create_task(host.prompt("Go on."))
    world.run_until(host, TextDelta)
    world.ask(host, OpenNewSession(name="second"))
    world.run(running)
    note = CustomEntry(custom_type="tenure/note", data={"text": "late"})
    world.ask(host, AppendEntries(token=old, entries=(note,)))
    world.ask(host, OpenSession(session_id=old.session_id))
    world.run(host.close())


def failure(world: World, write: Callable[[bytes], None]) -> None:
    """A model that is cut and tried again, then refuses; and a disk that is full."""
    cut = ModelFailure(kind="transport", reason="the connection was cut")
    wrong = ModelFailure(kind="auth", reason="the key is wrong")
    host = host_of(world, Scripted([["Half", cut], [wrong], "never said"]), write)
    world.run(host.prompt("Go on."))
    world.disk.before = lambda call: Fail(errno=errno.ENOSPC) if call.name == "append" else None
    world.ask(host, StartTurn(text="Again."))
    world.disk.before = None
    world.run(host.close())


RUNS = (tools, stop, swap, failure)


def record(run: Callable[[World, Callable[[bytes], None]], None], seed: int = 0) -> bytes:
    """The trace of one run."""
    lines: list[bytes] = []
    with simulate(f"trace/{run.__name__}/{seed}") as world:
        run(world, lines.append)
    return b"".join(lines)


if __name__ == "__main__":
    for each in RUNS:
        if not sys.argv[1:] or each.__name__ in sys.argv[1:]:
            (FOLDER / f"{each.__name__}.jsonl").write_bytes(record(each))
