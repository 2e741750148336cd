"""Speaking to a host of another process: asks, events, approvals, and hosts that are not there."""

import asyncio
from typing import Any

import pytest
from seat_world import Counted, use
from socket_world import Client, listening

from tenure.messages.approval import (
    Allow,
    Applied,
    ApprovalRequested,
    ApprovalResolved,
    Deny,
)
from tenure.messages.base import Reply
from tenure.messages.bus import DeadlinePassed, OwnerStopped, Published, Unhandled
from tenure.messages.remote import (
    BadRequest,
    HostSilent,
    NoHost,
    SeveralHosts,
    TooManyClients,
)
from tenure.messages.session import CancelTurn, GetSession, SessionView, StartTurn
from tenure.messages.turn import (
    DrainTurn,
    GetTurn,
    TurnAccepted,
    TurnEnded,
    TurnNotRunning,
    TurnView,
)
from tenure.runtime.errors import Refused, StrangeHost
from tenure.runtime.finding import find_hosts
from tenure.runtime.remote import RemoteHost
from tenure.runtime.socket import CLIENTS_MAX
from tenure.runtime.testing.world import ROOT

SEEDS = range(12)


def test_ask_gives_the_typed_reply_of_the_owner() -> None:
    with listening() as (world, host):
        remote = Client(world).remote(host)
        view = world.run(remote.ask(GetSession(), "main"))
        assert isinstance(view, SessionView)
        assert view.token == host.host.seats["main"].token
        assert world.run(remote.seat_of(view.token.session_id)) == "main"


def test_commands_between_owners_are_refused_to_other_processes_too() -> None:
    with listening() as (world, host):
        remote = Client(world).remote(host)
        assert world.run(remote.ask(DrainTurn(), "main")) == Unhandled(message="DrainTurn")


def test_events_of_a_turn_are_read_by_another_process_in_their_order() -> None:
    with listening("hello there") as (world, host):
        client = Client(world)
        remote = client.remote(host)

        async def read() -> list[Published]:
            seen = []
            async for published in remote.events(after=0):
                seen.append(published)
                if isinstance(published.event, TurnEnded):
                    break
            return seen

        reading = world.loop.create_task(world.inside(client.process, read()))
        assert isinstance(world.run(remote.ask(StartTurn(text="go"), "main")), TurnAccepted)
        seen = world.run(_result(reading))
        numbers = [published.seq_first for published in seen]
        assert numbers == sorted(numbers)
        assert numbers[0] == 1
        assert {published.host_run for published in seen} == {host.host.host_id}


async def _result(task: "asyncio.Task[Any]") -> Any:
    return await task


def test_events_end_with_their_host() -> None:
    with listening() as (world, host):
        client = Client(world)
        remote = client.remote(host)

        async def read() -> int:
            return len([published async for published in remote.events()])

        reading = world.loop.create_task(world.inside(client.process, read()))
        world.settle(0.1)
        host.kill()
        assert world.run(_result(reading)) == 0
        reply = world.run(remote.ask(GetTurn(), "main"))
        assert isinstance(reply, OwnerStopped)
        assert not reply.begun, "it was never sent"


def test_ask_under_way_when_the_host_dies_is_answered_as_perhaps_begun() -> None:
    with listening() as (world, host):
        client = Client(world)
        remote = client.remote(host)
        host.stop()
        asking = world.loop.create_task(world.inside(client.process, remote.ask(GetTurn(), "main")))
        world.settle(0.1)
        host.kill()
        reply = world.run(_result(asking))
        assert isinstance(reply, OwnerStopped)
        assert reply.begun


def test_host_that_is_stopped_lets_an_ask_run_into_its_deadline() -> None:
    with listening() as (world, host):
        client = Client(world)
        remote = client.remote(host)
        host.stop()
        asked = client.run(remote.ask(GetTurn(), "main", deadline_s=1.0))
        assert asked == DeadlinePassed(begun=True)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.witness("APPROVE-4")
def test_request_that_is_answered_here_and_there_at_once_is_used_once(seed: int) -> None:
    counted = Counted(mutating=True)
    with listening((use("c1"),), "done", seed=seed, tools=(counted.tool,)) as (world, host):
        client = Client(world)
        remote = client.remote(host)
        turn = world.loop.create_task(host.prompt("go"))
        asked = world.run_until(host, ApprovalRequested).request
        (open_one,) = client.run(remote.approvals())
        assert open_one.request == asked, "the other process sees what is asked, whole"

        async def both() -> tuple[Reply, Reply]:
            there = world.inside(
                client.process, remote.answer(asked.request_id, Allow(), open_one.seat)
            )
            here = world.inside(
                host.process, host.host.seats["main"].answer(asked.request_id, Deny(reason="no"))
            )
            there_reply, here_reply = await asyncio.gather(there, here)
            return there_reply, here_reply

        replies = world.run(both())
        world.run(_result(turn))
        assert sorted(type(reply).__name__ for reply in replies) == ["Applied", "Superseded"]
        assert len(counted.runs) == (1 if isinstance(replies[0], Applied) else 0)


def test_remote_approver_sees_the_request_close_when_another_answers() -> None:
    counted = Counted(mutating=True)
    with listening((use("c1"),), "done", tools=(counted.tool,)) as (world, host):
        client = Client(world)
        remote = client.remote(host)
        turn = world.loop.create_task(host.prompt("go"))
        asked = world.run_until(host, ApprovalRequested).request

        async def closed() -> Any:
            async for published in remote.events(after=0):
                if isinstance(published.event, ApprovalResolved):
                    return published.event
            raise AssertionError("the events ended")

        closing = world.loop.create_task(world.inside(client.process, closed()))
        world.run(
            world.inside(
                host.process, host.host.seats["main"].answer(asked.request_id, Deny(reason="no"))
            )
        )
        assert world.run(_result(closing)).outcome == "denied"
        world.run(_result(turn))
        assert client.run(remote.approvals()) == ()


# --- finding -------------------------------------------------------------------------------------


def refusal(client: Client, **where: Any) -> object:
    with pytest.raises(Refused) as caught:
        client.run(RemoteHost.connect(leaves=client.leaves, **where))
    return caught.value.reply


def test_only_host_of_a_root_is_found_and_of_several_none_is_meant() -> None:
    with listening() as (world, host):
        client = Client(world)
        remote = client.run(RemoteHost.connect(root=ROOT, leaves=client.leaves))
        assert remote.hello.host_id == host.host.host_id
        second = world.host("b", socket=True)
        world.run(second.seat())
        pids = tuple(sorted((host.process.name.pid, second.process.name.pid)))
        assert refusal(client, root=ROOT) == SeveralHosts(root=ROOT, pids=pids)
        found = client.run(find_hosts(client.leaves, ROOT))
        assert tuple(hello.pid for hello in found) == pids


def test_host_of_another_root_is_not_meant() -> None:
    with listening() as (world, _):
        world.disk.put_folder("/elsewhere")
        client = Client(world)
        assert refusal(client, root="/elsewhere") == NoHost(root="/elsewhere")


def test_host_is_found_by_the_session_that_it_has() -> None:
    with listening("hello") as (world, host):
        world.run(host.prompt("go"))
        session = host.host.seats["main"].token.session_id
        client = Client(world)
        remote = client.run(RemoteHost.connect(root=ROOT, session=session, leaves=client.leaves))
        assert remote.hello.host_id == host.host.host_id
        world.run(world.inside(host.process, host.host.seats["main"].park()))
        none = NoHost(root=ROOT, session_id=session)
        assert refusal(client, root=ROOT, session=session) == none
        assert refusal(client, root=ROOT, session="no such session").session_id == (  # type: ignore[attr-defined]
            "no such session"
        )


def test_session_of_a_dead_host_belongs_to_nobody() -> None:
    with listening("hello") as (world, host):
        world.run(host.prompt("go"))
        session = host.host.seats["main"].token.session_id
        host.kill()
        client = Client(world)
        gone = NoHost(root=ROOT, session_id=session)
        assert refusal(client, root=ROOT, session=session) == gone
        assert refusal(client, root=ROOT) == NoHost(root=ROOT)


def test_host_that_is_stopped_is_shown_with_its_pid() -> None:
    with listening("hello") as (world, host):
        world.run(host.prompt("go"))
        session = host.host.seats["main"].token.session_id
        host.stop()
        silent = refusal(Client(world), root=ROOT, session=session)
        assert isinstance(silent, HostSilent)
        assert silent.pid == host.process.name.pid


def test_host_that_has_too_many_clients_says_so() -> None:
    with listening() as (world, host):
        for _ in range(CLIENTS_MAX):
            Client(world).connect(host).receive()
        full = refusal(Client(world), host_id=host.host.host_id)
        assert full == TooManyClients(clients_max=CLIENTS_MAX)


@pytest.mark.parametrize(
    "greeting",
    [b'{"type": "Hello", "version": 2}\n', b"HTTP/1.1 400 Bad Request\r\n", b"{}\n"],
)
def test_host_of_another_version_is_not_spoken_to(greeting: bytes) -> None:
    with listening() as (world, _):
        server, client = Client(world, "server"), Client(world)

        async def serve(connection: Any) -> None:
            await connection.write(greeting)
            await connection.read()

        server.run(server.leaves.sockets.listen("strange", serve))
        with pytest.raises(StrangeHost):
            client.run(RemoteHost.connect(host_id="strange", leaves=client.leaves))
        assert client.run(find_hosts(client.leaves, ROOT)), "others are found all the same"


def test_reply_that_is_not_known_here_is_a_refusal_and_no_crash() -> None:
    with listening() as (world, _):
        server, client = Client(world, "server"), Client(world)

        async def serve(connection: Any) -> None:
            await connection.write(
                b'{"type":"Hello","version":1,"host_id":"h","root":"/","pid":1,"seats":[]}\n'
            )
            await connection.read()
            await connection.write(b'{"id":1,"reply":{"type":"FromTheFuture"}}\n')
            await connection.read()

        server.run(server.leaves.sockets.listen("newer", serve))
        remote = client.run(RemoteHost.connect(host_id="newer", leaves=client.leaves))
        reply = client.run(remote.ask(GetTurn(), "main"))
        assert isinstance(reply, BadRequest)
        assert "FromTheFuture" in reply.reason


def test_late_stop_and_unknown_seat_are_refusals() -> None:
    with listening() as (world, host):
        remote = Client(world).remote(host)
        view = world.run(remote.ask(GetTurn(), "main"))
        assert isinstance(view, TurnView)
        assert world.run(remote.ask(CancelTurn(), "main")) == TurnNotRunning(turn_id=None)
        assert isinstance(world.run(remote.ask(GetTurn(), "nowhere")), OwnerStopped)
