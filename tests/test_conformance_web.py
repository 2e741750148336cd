"""The conformance kit of the web port: ours and the fake pass, broken ones fail with a reason."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest
from web_world import on_loopback

from tenure.messages.tokens import ProcessName
from tenure.runtime.doors.clock import SystemClock
from tenure.runtime.doors.http import httpx
from tenure.runtime.doors.web import READ_S_MAX, SystemWeb, Web
from tenure.runtime.testing import conformance
from tenure.runtime.testing.conformance import WebUnderTest
from tenure.runtime.testing.web import MemoryWeb
from tenure.runtime.testing.web_net import MemoryWebNet

SERVER = "https://server.example"
ME = ProcessName(pid=1, started="1")


def simulated() -> WebUnderTest:
    net = MemoryWebNet(SystemClock(), lambda process: None)
    net.serve(SERVER, conformance.web_server)
    return WebUnderTest(web=MemoryWeb(net, ME), url=SERVER, nowhere="https://nowhere.example/")


@contextmanager
def loopback_url() -> Iterator[str]:
    """A server in a thread of its own: each check has an event loop of its own, too."""
    loop = asyncio.new_event_loop()
    stack = on_loopback(conformance.web_server)
    url = loop.run_until_complete(stack.__aenter__())
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        yield url
    finally:
        asyncio.run_coroutine_threadsafe(stack.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@contextmanager
def real(web: Web | None = None) -> Iterator[WebUnderTest]:
    with loopback_url() as url:
        yield WebUnderTest(web=web or SystemWeb(), url=url, nowhere="http://127.0.0.1:9/")


@pytest.mark.parametrize("check", conformance.WEB, ids=lambda check: check.__name__)
def test_simulated_web_keeps_the_contract(check: conformance.Check[WebUnderTest]) -> None:
    check(simulated())


@pytest.mark.real
@pytest.mark.parametrize("check", conformance.WEB, ids=lambda check: check.__name__)
def test_real_web_keeps_the_contract(check: conformance.Check[WebUnderTest]) -> None:
    with real() as subject:
        check(subject)


class Impatient(MemoryWeb):
    """Follows redirects, and waits for ever."""

    def client(self, *, read_s_max: float = READ_S_MAX) -> httpx.AsyncClient:
        transport = self.transport()
        return httpx.AsyncClient(transport=transport, follow_redirects=True, timeout=0.01)


def test_web_that_follows_redirects_or_hurries_is_told_so() -> None:
    def make() -> WebUnderTest:
        good = simulated()
        net = MemoryWebNet(SystemClock(), lambda process: None)
        net.serve(SERVER, conformance.web_server)
        return WebUnderTest(web=Impatient(net, ME), url=good.url, nowhere=good.nowhere)

    report = conformance.web(make)
    failed = {each.name: each.reason for each in report.failures}
    redirect = "a redirect is an answer and is not followed"
    assert failed[redirect] == "status: got 200, expected 302"
    assert "a request that was cancelled leaves the client usable" in failed
