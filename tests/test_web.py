"""Simulated HTTP: servers in memory, and everything that goes wrong between them and a host."""

import asyncio
import random
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from tenure.runtime.doors.http import httpx
from tenure.runtime.testing.watch import Watcher
from tenure.runtime.testing.web_faults import (
    FAULTS,
    AnswerCut,
    AnswerLost,
    AnswerSlow,
    Garbled,
    KillAsking,
    NotConnected,
    PiecesDoubled,
    RequestDoubled,
    RequestLost,
    SeededWebFaults,
    StatusInstead,
    WebFault,
    WebRequest,
    WebResponse,
    WebRule,
    WebRules,
)
from tenure.runtime.testing.world import ProcessEnded, World, simulate

URL = "https://counter.example"


class Counter:
    """A server that counts what it did."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def __call__(self, request: WebRequest) -> WebResponse:
        self.done.append(request.body.decode())
        return WebResponse(headers={"X-Count": str(len(self.done))}, body=b"number %d" % len(self))

    def __len__(self) -> int:
        return len(self.done)


class Asker:
    """A process in a world, with a client of its own."""

    def __init__(self, world: World, fault: WebFault | None = None) -> None:
        self.world = world
        self.server = Counter()
        world.web.serve(URL, self.server)
        if fault is not None:
            world.web.before = WebRules(WebRule(fault=fault, url_has="counter"))
        self.process = world.start_process()
        self.leaves = world.leaves_of(self.process, "asker")

    async def post(self, text: str = "one", read_s_max: float = 30.0) -> httpx.Response:
        async with self.leaves.web.client(read_s_max=read_s_max) as client:
            return await client.post(f"{URL}/add?to=1", content=text)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.world.run(self.world.inside(self.process, work))


def test_request_reaches_its_server_and_its_answer_comes_back() -> None:
    with simulate() as world:
        asker = Asker(world)
        answer = asker.run(asker.post())
        assert (answer.status_code, answer.text, answer.headers["x-count"]) == (
            200,
            "number 1",
            "1",
        )
        (request,) = world.web.requests
        assert (request.method, request.path, request.query) == ("POST", "/add", {"to": "1"})
        assert request.process == asker.process.name


FAILING = [
    (NotConnected(), httpx.ConnectError, 0, 0.0),
    (NotConnected(how="silent"), httpx.ConnectTimeout, 0, 10.0),
    (RequestLost(), httpx.RemoteProtocolError, 0, 0.0),
    (RequestLost(how="silent"), httpx.ReadTimeout, 0, 30.0),
    (AnswerLost(), httpx.ReadError, 1, 0.0),
    (AnswerLost(how="silent"), httpx.ReadTimeout, 1, 30.0),
    (AnswerSlow(ms=40_000), httpx.ReadTimeout, 1, 30.0),
    (AnswerCut(bytes_kept=3), httpx.RemoteProtocolError, 1, 0.0),
    (AnswerCut(bytes_kept=0), httpx.RemoteProtocolError, 1, 0.0),
]


@pytest.mark.parametrize(("fault", "error", "done", "took_s"), FAILING, ids=lambda each: str(each))
def test_request_that_fails_says_how_and_the_server_has_done_it_or_not(
    fault: WebFault, error: type[Exception], done: int, took_s: float
) -> None:
    with simulate() as world:
        asker = Asker(world, fault)
        with pytest.raises(error):
            asker.run(asker.post())
        assert len(asker.server) == done
        assert world.loop.time() == pytest.approx(took_s, abs=0.01)
        assert asker.run(asker.post()).status_code == 200


ANSWERED = [
    (StatusInstead(status=503, headers={"Retry-After": "3"}, body=b"busy"), 503, b"busy", 0),
    (StatusInstead(status=502, when="after"), 502, b"", 1),
    (Garbled(body=b"<html>"), 200, b"<html>", 1),
    (RequestDoubled(), 200, b"number 2", 2),
    (PiecesDoubled(), 200, b"number 1number 1", 1),
    (AnswerSlow(ms=2_000), 200, b"number 1", 1),
]


@pytest.mark.parametrize(("fault", "status", "body", "done"), ANSWERED, ids=lambda each: str(each))
def test_answer_that_is_not_the_servers_own(
    fault: WebFault, status: int, body: bytes, done: int
) -> None:
    with simulate() as world:
        asker = Asker(world, fault)
        answer = asker.run(asker.post())
        assert (answer.status_code, answer.content, len(asker.server)) == (status, body, done)


@pytest.mark.parametrize(("when", "done"), [("before", 0), ("after", 1)])
def test_process_that_dies_while_it_asks_never_hears_the_answer(when: Any, done: int) -> None:
    with simulate() as world:
        asker = Asker(world, KillAsking(when=when))
        with pytest.raises(ProcessEnded):
            asker.run(asker.post())
        assert asker.process.state == "ended"
        assert len(asker.server) == done


def test_server_finishes_what_a_killed_process_asked_for() -> None:
    with simulate() as world:
        asker = Asker(world)
        finished: list[str] = []

        async def slow(request: WebRequest) -> WebResponse:
            await world.clock.sleep(5)
            finished.append(request.path)
            return WebResponse()

        world.web.serve(URL, slow)
        asking = world.loop.create_task(world.inside(asker.process, asker.post()))
        world.run(world.clock.sleep(1))
        world.kill(asker.process)
        world.run(asyncio.wait([asking]))
        world.run(world.clock.sleep(10))
        assert isinstance(asking.exception(), ProcessEnded)
        assert finished == ["/add"]


def test_streams_come_piece_by_piece_in_virtual_time() -> None:
    with simulate() as world:
        asker = Asker(world)

        async def pieces() -> AsyncIterator[bytes]:
            for number in range(3):
                await world.clock.sleep(20)
                yield b"%d" % number

        async def stream(request: WebRequest) -> WebResponse:
            return WebResponse(body=pieces())

        async def read() -> list[tuple[float, bytes]]:
            async with (
                asker.leaves.web.client(read_s_max=30) as client,
                client.stream("GET", URL) as answer,
            ):
                return [(world.loop.time(), piece) async for piece in answer.aiter_bytes()]

        world.web.serve(URL, stream)
        assert asker.run(read()) == [(20.0, b"0"), (40.0, b"1"), (60.0, b"2")]


def test_server_that_raises_fails_the_test_and_not_the_host() -> None:
    async def broken(request: WebRequest) -> WebResponse:
        raise ValueError("a mistake in the test")

    def run() -> None:
        with simulate() as world:
            asker = Asker(world)
            world.web.serve(URL, broken)
            seen.append(asker.run(asker.post()).status_code)

    seen: list[int] = []
    with pytest.raises(ValueError, match="a mistake in the test"):
        run()
    assert seen == [500]


def test_watchers_see_every_request_at_its_moment() -> None:
    class Requests(Watcher):
        def web_asked(self, request: WebRequest) -> None:
            seen.append(f"{request.method} {request.url}")

    seen: list[str] = []
    with simulate(watchers=[Requests()]) as world:
        asker = Asker(world, RequestLost())
        with pytest.raises(httpx.RemoteProtocolError):
            asker.run(asker.post())
    assert seen == [f"POST {URL}/add?to=1"]


def test_rules_count_what_matches_them() -> None:
    once = WebRule(fault=RequestLost(), method="POST", nth=2)
    always = WebRule(fault=NotConnected(), url_has="down.example", hits="lasting")
    rules = WebRules(once, always)

    def hit(method: str, url: str) -> WebFault | None:
        with simulate() as world:
            process = world.start_process().name
        request = WebRequest(
            process=process, number=1, method=method, url=url, headers={}, body=b""
        )
        return rules(request)

    assert hit("POST", URL) is None
    assert hit("GET", URL) is None
    assert hit("POST", URL) == RequestLost()
    assert hit("POST", URL) is None
    assert [hit("GET", "https://down.example/x") for _ in range(2)] == [NotConnected()] * 2


def test_faults_that_chance_chooses_are_the_same_for_the_same_seed() -> None:
    def statuses(seed: int) -> list[str]:
        with simulate(seed) as world:
            asker = Asker(world)
            world.web.before = SeededWebFaults(random.Random(seed), one_in=2, faults=FAULTS)

            async def ask(number: int) -> str:
                try:
                    return str((await asker.post(str(number))).status_code)
                except httpx.TransportError as error:
                    return type(error).__name__

            return [asker.run(ask(number)) for number in range(60)]

    assert statuses(3) == statuses(3)
    assert statuses(3) != statuses(4)
    assert len(set(statuses(3))) >= 6


def test_host_asks_through_the_web_of_its_world() -> None:
    """What a host's doors are given is the simulated web, and never the network."""
    with simulate() as world:
        host = world.host()
        assert type(host.leaves.web).__name__ == "MemoryWeb"
