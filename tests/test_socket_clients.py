"""The host's local socket, and clients that behave badly."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from socket_world import Client, listening

from tenure.messages.models import ModelDone, ModelEvent, ModelRequest, ModelText
from tenure.messages.remote import LINE_TO_HOST_BYTES_MAX
from tenure.messages.turn import TurnEnded
from tenure.runtime.socket import CLIENTS_MAX, DROPPED_BYTES_MAX, REQUESTS_MAX
from tenure.runtime.testing.world import ROOT

GET_TURN = {"type": "GetTurn"}
IDLE = {"type": "TurnView", "state": "Idle"}


def is_idle(line: dict[str, Any]) -> bool:
    return {name: line["reply"][name] for name in IDLE} == IDLE


def test_host_says_first_who_it_is() -> None:
    with listening() as (world, host):
        hello = Client(world).connect(host).receive()
        assert hello == {
            "type": "Hello",
            "version": 1,
            "host_id": host.host.host_id,
            "root": ROOT,
            "pid": host.process.name.pid,
            "seats": ["main"],
        }


def test_command_is_answered_as_inside_the_host() -> None:
    with listening() as (world, host):
        client = Client(world).connect(host)
        client.send(id=7, seat="main", ask={"type": "GetSession"})
        token = host.host.seats["main"].token
        reply = client.answer_to(7)["reply"]
        assert reply["type"] == "SessionView"
        assert reply["token"] == {"session_id": token.session_id, "epoch": token.epoch}


def test_turn_of_a_client_writes_events_to_whoever_reads_them() -> None:
    with listening("the answer") as (world, host):
        reader, asker = Client(world).connect(host), Client(world).connect(host)
        reader.send(id=1, events={"after": None, "seat": "main"})
        world.settle(0.1)
        asker.send(id=1, seat="main", ask={"type": "StartTurn", "text": "go"})
        assert asker.answer_to(1)["reply"]["type"] == "TurnAccepted"
        seen = []
        while "TurnEnded" not in seen:
            seen.append(reader.answer_to(1)["published"]["event"]["type"])
        assert seen[0] in ("EntriesAppended", "TurnStarted")
        assert "TextDelta" in seen
        reader.send(id=1, end=True)
        assert reader.answer_to(1) == {"id": 1, "end": True}


@pytest.mark.parametrize(
    ("line", "number", "says"),
    [
        (b"\xff\xfe\x00garbage", None, "malformed"),
        (b"[1, 2, 3]", None, "array"),
        (b'{"id": "one"}', None, "`str`"),
        (b'{"id": 3, "ask": {"type": "FlyToTheMoon"}}', 3, "no command 'FlyToTheMoon'"),
        (b'{"id": 3, "ask": {"type": "StartTurn"}}', 3, "`text`"),
        (b'{"id": 3, "ask": {"no": "type"}}', 3, "`type`"),
        (b'{"id": 3, "ask": 17}', 3, "`int`"),
        (b'{"id": 3}', 3, "one of `ask`, `events` and `end`"),
        (b'{"id": 3, "ask": {"type": "GetTurn"}, "events": {}}', 3, "one of"),
        (b'{"id": 3, "eventz": {}}', 3, "`eventz`"),
        (b'{"id": 3, "events": {"seat": "nowhere"}}', 3, "no seat 'nowhere'"),
        (b'{"id": 3, "end": true}', 3, "no stream has the number 3"),
        (b"[" * 100_000, None, ""),
    ],
)
def test_line_that_makes_no_sense_is_told_what_is_wrong_and_the_next_is_answered(
    line: bytes, number: int | None, says: str
) -> None:
    with listening() as (world, host):
        client = Client(world).connect(host)
        client.write(line + b"\n")
        error = client.answer_to(number)["error"]
        assert error["type"] == "BadRequest"
        assert says in error["reason"]
        client.send(id=4, seat="main", ask=GET_TURN)
        assert is_idle(client.answer_to(4))


def test_command_between_owners_is_refused_and_nothing_is_done() -> None:
    with listening() as (world, host):
        client = Client(world).connect(host)
        client.send(id=1, seat="main", ask={"type": "DrainTurn"})
        assert client.answer_to(1)["reply"] == {"type": "Unhandled", "message": "DrainTurn"}
        client.send(id=2, seat="main", ask=GET_TURN)
        assert is_idle(client.answer_to(2))


def test_half_a_message_is_never_done() -> None:
    with listening("hello") as (world, host):
        client = Client(world).connect(host)
        client.write(b'{"id": 1, "seat": "main", "ask": {"type": "StartTurn", "text": "go"}}')
        client.end()
        world.settle(5.0)
        other = Client(world).connect(host)
        other.send(id=1, seat="main", ask={"type": "GetSession"})
        assert other.answer_to(1)["reply"]["last_turn"] == 0


def test_message_may_come_in_the_smallest_pieces() -> None:
    with listening() as (world, host):
        world.disk.net.read_bytes_max = 1
        client = Client(world).connect(host)
        client.send(id=1, seat="main", ask=GET_TURN)
        assert is_idle(client.answer_to(1))


def test_line_without_end_ends_its_connection_in_bounded_memory() -> None:
    with listening() as (world, host):
        client = Client(world).connect(host)
        piece = b"x" * 1024 * 1024
        sent = 0
        with suppress(BrokenPipeError):
            for _ in range(100):
                client.write(piece)
                sent += len(piece)
        most = LINE_TO_HOST_BYTES_MAX + DROPPED_BYTES_MAX
        assert sent <= most + 2 * len(piece), "it was read on and on"
        error = client.answer_to(None)["error"]
        assert f"{LINE_TO_HOST_BYTES_MAX:,}" in error["reason"]
        assert client.receive() is None
        again = Client(world).connect(host)
        again.send(id=1, seat="main", ask=GET_TURN)
        assert is_idle(again.answer_to(1))


async def chatty(request: ModelRequest) -> AsyncIterator[ModelEvent]:
    for number in range(200):
        yield ModelText(text=f"{number} " + "x" * 1_000)
    yield ModelDone()


def test_client_that_never_reads_holds_nobody_up_and_is_dropped() -> None:
    with listening(model=chatty) as (world, host):
        world.disk.net.buffer_bytes_max = 8_000
        idle = Client(world).connect(host)
        idle.send(id=1, events={"seat": "main"})
        world.settle(0.1)
        events = world.run(host.prompt("go"))
        assert isinstance(events[-1], TurnEnded)
        assert events[-1].stop_reason == "end_turn"
        world.settle(60.0)
        kept = 0
        while (data := idle.run(idle.connection.read())) != b"":
            kept += len(data)
        assert kept <= 8_000, "what it did not read was kept for it"


def test_as_many_clients_as_there_may_be_and_the_next_is_told() -> None:
    with listening() as (world, host):
        clients = [Client(world).connect(host) for _ in range(CLIENTS_MAX)]
        for client in clients:
            assert client.receive() is not None
        late = Client(world).connect(host)
        assert late.answer_to(None)["error"] == {
            "type": "TooManyClients",
            "clients_max": CLIENTS_MAX,
        }
        assert late.receive() is None
        clients[0].end()
        world.settle(1.0)
        assert Client(world).connect(host).receive() is not None, "there is room again"


def test_killed_clients_make_room() -> None:
    with listening() as (world, host):
        for _ in range(CLIENTS_MAX):
            client = Client(world).connect(host)
            client.send(id=1, events={})
            client.receive()
            world.kill(client.process)
        world.settle(1.0)
        assert Client(world).connect(host).receive() is not None


def test_more_requests_than_a_client_may_have_are_refused_one_by_one() -> None:
    with listening() as (world, host):
        client = Client(world).connect(host)
        for number in range(REQUESTS_MAX):
            client.send(id=number, events={})
        world.settle(1.0)
        client.send(id=REQUESTS_MAX, seat="main", ask=GET_TURN)
        refused = client.answer_to(REQUESTS_MAX)["reply"]
        assert refused == {"type": "Overloaded", "waiting": REQUESTS_MAX}
        client.send(id=0, end=True)
        assert client.answer_to(0)["end"] is True
        client.send(id=0, seat="main", ask=GET_TURN)
        assert is_idle(client.answer_to(0))


def test_number_of_an_open_request_cannot_be_used_again() -> None:
    with listening() as (world, host):
        client = Client(world).connect(host)
        client.send(id=1, events={})
        client.send(id=1, seat="main", ask=GET_TURN)
        assert "not answered yet" in client.answer_to(1)["error"]["reason"]


def test_text_that_is_no_json_is_written_so_that_every_reader_can_read_it() -> None:
    with listening("half \ud83d") as (world, host):
        client = Client(world).connect(host)
        client.send(id=1, events={})
        world.settle(0.1)
        world.run(host.prompt("go"))
        texts = []
        while not texts:
            event = client.answer_to(1)["published"]["event"]
            texts = [event["text"]] if event["type"] == "ModelAnswered" else []
        assert texts == ["half \ufffd"]


def test_closing_host_ends_every_stream_and_every_connection() -> None:
    with listening() as (world, host):
        client = Client(world).connect(host)
        client.send(id=1, events={})
        world.settle(0.1)
        world.run(host.close())
        lines = []
        while (line := client.receive()) is not None:
            lines.append(line)
        assert lines[-1] == {"id": 1, "end": True}
        assert world.disk.net.listeners == {}


def test_host_closes_although_a_client_never_reads() -> None:
    with listening() as (world, host):
        world.disk.net.buffer_bytes_max = 100
        client = Client(world).connect(host)
        client.send(id=1, events={"after": 0})
        world.settle(0.1)
        began = world.loop.time()
        world.run(host.close())
        assert world.loop.time() - began < 5.0
