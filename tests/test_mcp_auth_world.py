"""Sign-ins and refreshes in a simulated world, from the browser to the disk."""

import asyncio

import pytest
from auth_world import ISSUER, SERVER, URL, Browsing, Holding, Servers, sign_in, within

from tenure.messages.base import Reply
from tenure.messages.mcp_auth import (
    AccessGranted,
    AccessUnavailable,
    McpServer,
    NotSignedIn,
    ObtainAccess,
    SignInBusy,
    SignInNeeded,
)
from tenure.messages.tokens import ServerId
from tenure.runtime.doors.mcp.credential_file import name_of
from tenure.runtime.errors import Refused
from tenure.runtime.testing.expect import expect_reply
from tenure.runtime.testing.faults import DISK_FULL, FaultRules
from tenure.runtime.testing.leaves import memory_leaves
from tenure.runtime.testing.web_faults import (
    AnswerLost,
    AnswerSlow,
    KillAsking,
    NotConnected,
    StatusInstead,
    WebFault,
    WebRule,
    WebRules,
)
from tenure.runtime.testing.world import SimHost, World, simulate


def fault(world: World, fault: WebFault, nth: int = 1) -> None:
    world.web.before = WebRules(WebRule(fault=fault, url_has="/token", nth=nth))


def test_a_sign_in_gives_access_that_is_refreshed_when_it_runs_out() -> None:
    with simulate(seed=1) as world:
        servers = Servers(world)
        host = world.host("a")
        signed = servers.sign_in(host)
        granted = expect_reply(servers.obtain(host), AccessGranted)
        assert granted.generation == signed.generation
        first = host.host.mcp.bearer(SERVER, granted.generation)
        servers.auth.expire()
        again = expect_reply(servers.renew(host, granted.generation), AccessGranted)
        assert again.generation > granted.generation
        assert host.host.mcp.bearer(SERVER, again.generation) not in (None, first)
        assert servers.auth.counts.refreshes == 1


@pytest.mark.witness("AUTH-1")
@pytest.mark.parametrize("seed", range(10))
def test_of_many_callers_in_two_processes_with_an_expired_token_one_refreshes(seed: int) -> None:
    with simulate(seed=seed) as world:
        servers = Servers(world)
        world.disk.put_folder("/other")
        hosts = [world.host("a"), world.host("b", root="/other")]
        servers.sign_in(hosts[0])
        servers.run_out()
        fault(world, AnswerSlow(ms=2_000))
        replies = world.run(_ask_all(hosts, 20))
        assert [type(each) for each in replies] == [AccessGranted] * 40
        assert servers.auth.counts.refreshes == 1
        assert servers.auth.counts.spent == {}


async def _ask_all(hosts: list[SimHost], count: int) -> list[Reply]:
    asks = [host.ask(ObtainAccess(server=SERVER)) for host in hosts for _ in range(count)]
    return list(await asyncio.gather(*asks))


@pytest.mark.witness("AUTH-2")
def test_everybody_who_waited_for_a_refresh_gets_its_tokens() -> None:
    with simulate(seed=3) as world:
        servers = Servers(world)
        host = world.host("a")
        signed = servers.sign_in(host)
        servers.run_out()
        replies = world.run(_ask_all([host], 5))
        generations = {expect_reply(each, AccessGranted).generation for each in replies}
        assert len(generations) == 1
        assert generations > {signed.generation} or min(generations) > signed.generation
        assert host.host.mcp.bearer(SERVER, min(generations)) is not None


@pytest.mark.witness("AUTH-3")
def test_an_exchange_whose_owner_ends_is_saved_all_the_same() -> None:
    with simulate(seed=4) as world:
        servers = Servers(world)
        host = world.host("a")
        servers.sign_in(host)
        servers.run_out()
        holding = Holding(servers)
        waiting = world.tell(host, ObtainAccess(server=SERVER))
        world.run(holding.reached.wait())
        closing = world.loop.create_task(within(host, host.host.close()))
        world.run(waiting)
        holding.let_go()
        world.run(closing)
        later = world.host("later")
        expect_reply(servers.obtain(later), AccessGranted)
        assert servers.auth.counts.refreshes == 1
        assert servers.auth.counts.spent == {}


def test_a_caller_who_goes_away_takes_nobody_with_him() -> None:
    with simulate(seed=5) as world:
        servers = Servers(world)
        host = world.host("a")
        servers.sign_in(host)
        servers.run_out()
        holding = Holding(servers)
        first = world.tell(host, ObtainAccess(server=SERVER))
        second = world.tell(host, ObtainAccess(server=SERVER))
        world.run(holding.reached.wait())
        first.cancel()
        holding.let_go()
        expect_reply(world.run(second), AccessGranted)
        assert servers.auth.counts.refreshes == 1


@pytest.mark.witness("AUTH-4")
def test_a_late_refusal_never_removes_what_a_newer_sign_in_brought() -> None:
    """Another machine on the same file system does not see our lock."""
    with simulate(seed=6) as world:
        servers = Servers(world)
        host, other = world.host("a"), world.host("b")
        servers.sign_in(host)
        servers.run_out()
        servers.auth.families[0].alive = False
        folder = f"{host.leaves.user_data}/credentials"
        holding = Holding(servers)
        waiting = world.tell(host, ObtainAccess(server=SERVER))
        world.run(holding.reached.wait())
        outside = memory_leaves(world.disk).files
        for name, _ in outside.list(folder):
            if name.endswith(".lock"):
                outside.remove(f"{folder}/{name}")
        signed = servers.sign_in(other)
        holding.let_go()
        granted = expect_reply(world.run(waiting), AccessGranted)
        assert granted.generation == signed.generation
        expect_reply(servers.obtain(other), AccessGranted)


@pytest.mark.witness("AUTH-5")
def test_a_refresh_whose_answer_was_lost_is_tried_once_more_and_then_a_sign_in_is_due() -> None:
    with simulate(seed=7) as world:
        servers = Servers(world)
        servers.auth.rotates = "never"
        host = world.host("a")
        servers.sign_in(host)
        servers.run_out()
        lost = [WebRule(fault=AnswerLost(), url_has="/token", nth=n) for n in (1, 2)]
        world.web.before = WebRules(*lost)
        expect_reply(servers.obtain(host), AccessUnavailable)
        expect_reply(servers.obtain(host), AccessUnavailable)
        asked = len(world.web.requests)
        expect_reply(servers.obtain(host), SignInNeeded)
        assert len(world.web.requests) == asked
        signed = servers.sign_in(host)
        assert expect_reply(servers.obtain(host), AccessGranted).generation == signed.generation


@pytest.mark.witness("AUTH-5")
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_dies_in_a_refresh_costs_one_sign_in_at_most(when: str) -> None:
    with simulate(seed=8) as world:
        servers = Servers(world)
        host = world.host("a")
        servers.sign_in(host)
        servers.run_out()
        fault(world, KillAsking(when="before" if when == "before" else "after"))
        dying = world.tell(host, ObtainAccess(server=SERVER))
        world.settle()
        assert not host.alive
        dying.cancel()
        world.web.before = None
        next_one = host.again()
        reply = servers.obtain(next_one)
        if when == "before":
            expect_reply(reply, AccessGranted)
        else:
            expect_reply(reply, SignInNeeded)
            servers.sign_in(next_one)
            expect_reply(servers.obtain(next_one), AccessGranted)
        assert all(times <= 1 for times in servers.auth.counts.spent.values())


@pytest.mark.witness("AUTH-5")
def test_the_intent_is_on_disk_before_the_request_leaves() -> None:
    with simulate(seed=9) as world:
        servers = Servers(world)
        host = world.host("a")
        servers.sign_in(host)
        servers.run_out()
        for _ in range(2):
            fault(world, KillAsking(when="before"))
            dying = world.tell(host, ObtainAccess(server=SERVER))
            world.settle()
            dying.cancel()
            host = host.again()
        asked = len(world.web.requests)
        expect_reply(servers.obtain(host), SignInNeeded)
        assert len(world.web.requests) == asked


@pytest.mark.witness("AUTH-5")
def test_tokens_that_cannot_be_saved_stay_unseen_and_unshared_until_they_are() -> None:
    with simulate(seed=10) as world:
        servers = Servers(world)
        host, other = world.host("a"), world.host("b")
        signed = servers.sign_in(host)
        servers.obtain(other)
        servers.run_out()
        holding = Holding(servers)
        waiting = world.tell(host, ObtainAccess(server=SERVER))
        world.run(holding.reached.wait())
        world.disk.before = FaultRules(DISK_FULL)
        holding.let_go()
        expect_reply(world.run(waiting), AccessUnavailable)
        assert host.host.mcp.bearer(SERVER, signed.generation + 1) is None
        world.disk.before = None
        theirs = world.tell(other, ObtainAccess(server=SERVER))
        world.run(world.clock.sleep(1.0))
        assert not theirs.done()
        expect_reply(servers.obtain(host), AccessGranted)
        expect_reply(world.run(theirs), AccessGranted)
        assert servers.auth.counts.refreshes == 1
        assert servers.auth.counts.spent == {}


@pytest.mark.parametrize(
    "went_wrong",
    [StatusInstead(status=503), StatusInstead(status=429), NotConnected()],
    ids=["503", "429", "refused"],
)
def test_what_only_fails_for_now_keeps_the_sign_in(went_wrong: WebFault) -> None:
    """A token endpoint that is out of order once deleted good credentials (E07)."""
    with simulate(seed=11) as world:
        servers = Servers(world)
        host = world.host("a")
        servers.sign_in(host)
        servers.run_out()
        for _ in range(4):
            fault(world, went_wrong)
            expect_reply(servers.obtain(host), AccessUnavailable)
        world.web.before = None
        expect_reply(servers.obtain(host), AccessGranted)


@pytest.mark.witness("AUTH-6")
def test_a_second_sign_in_to_one_server_is_told_of_the_first() -> None:
    with simulate(seed=12) as world:
        Servers(world)
        host = world.host("a")
        screen = Slow(world)
        first = world.loop.create_task(sign_in(host, screen))
        world.run(screen.shown.wait())
        with pytest.raises(Refused) as refused:
            world.run(sign_in(host, Slow(world)))
        assert isinstance(refused.value.reply, SignInBusy)
        first.cancel()
        world.settle()


class Slow(Browsing):
    """A user who has not opened the address yet."""

    async def show(self, url: str) -> None:
        self.opened.append(url)
        self.shown.set()


@pytest.mark.witness("AUTH-6")
def test_a_stray_request_changes_nothing_and_is_told_so() -> None:
    with simulate(seed=13) as world:
        Servers(world)
        host = world.host("a")
        screen = Slow(world)
        signing = world.loop.create_task(sign_in(host, screen))
        world.run(screen.shown.wait())
        port = screen.opened[0].partition("127.0.0.1%3A")[2].partition("%2F")[0]
        for stray in ("/favicon.ico", "/callback?state=other&code=x", "/callback?code=x"):
            world.run(screen.visit(f"http://127.0.0.1:{port}{stray}"))
        assert [status for status, _ in screen.pages] == [404, 400, 400]
        assert not signing.done()
        world.run(screen.visit(screen.opened[0]))
        assert world.run(signing).generation == 1
        assert screen.pages[-1][0] == 200


@pytest.mark.witness("AUTH-6")
def test_a_server_that_was_loaded_anew_joins_the_refresh_that_is_under_way() -> None:
    with simulate(seed=14) as world:
        servers = Servers(world)
        host = world.host("a")
        servers.sign_in(host)
        servers.run_out()
        holding = Holding(servers)
        first = world.tell(host, ObtainAccess(server=SERVER))
        world.run(holding.reached.wait())
        copy = McpServer(server_id=ServerId("notes"), url=URL)
        second = world.tell(host, ObtainAccess(server=copy))
        world.run(asyncio.sleep(0))
        holding.let_go()
        replies = [expect_reply(world.run(each), AccessGranted) for each in (first, second)]
        assert replies[0] == replies[1]


@pytest.mark.witness("AUTH-7")
def test_a_server_that_moved_finds_no_tokens_of_its_old_place() -> None:
    with simulate(seed=15) as world:
        servers = Servers(world)
        host = world.host("a")
        servers.sign_in(host)
        moved = McpServer(server_id=SERVER.server_id, url="https://evil.example/mcp")
        expect_reply(world.ask(host, ObtainAccess(server=moved)), SignInNeeded)
        assert host.host.mcp.bearer(moved, 0) is None
        # Nor when somebody puts the file of the old place under the new one's name.
        folder = f"{host.leaves.user_data}/credentials"
        memory_leaves(world.disk).files.rename(
            f"{folder}/{name_of(SERVER.server_id, SERVER.url)}.json",
            f"{folder}/{name_of(moved.server_id, moved.url)}.json",
        )
        expect_reply(world.ask(host, ObtainAccess(server=moved)), SignInNeeded)


@pytest.mark.witness("AUTH-7")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("metadata elsewhere", "metadata elsewhere"),
        ("another resource", "another resource"),
        ("another issuer", "another issuer"),
        ("answer of another issuer", "another authorization server"),
        ("no S256", "PKCE"),
        ("loopback endpoint", "this machine"),
        ("plain endpoint", "use https"),
    ],
)
def test_a_document_of_the_wrong_place_ends_the_sign_in(change: str, reason: str) -> None:
    with simulate(seed=16) as world:
        servers = Servers(world)
        match change:
            case "metadata elsewhere":
                servers.mcp.metadata_url = f"{ISSUER}/.well-known/oauth-protected-resource"
            case "another resource":
                servers.mcp.changes = {"resource": "https://bank.example/mcp"}
            case "another issuer":
                servers.auth.changes = {"issuer": "https://bank.example"}
            case "answer of another issuer":
                servers.auth.iss = "https://bank.example"
            case "no S256":
                servers.auth.changes = {"code_challenge_methods_supported": ["plain"]}
            case "loopback endpoint":
                servers.auth.changes = {"token_endpoint": "http://127.0.0.1:8080/token"}
            case "plain endpoint":
                servers.auth.changes = {"token_endpoint": "http://auth.example/token"}
        host = world.host("a")
        with pytest.raises(Refused) as refused:
            servers.sign_in(host)
        assert isinstance(refused.value.reply, NotSignedIn)
        assert reason in refused.value.reply.reason
        assert servers.auth.counts.resources == []
