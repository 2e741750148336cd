"""A host, an authorization server and an MCP server that it guards, simulated."""

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from typing import Any, TypeVar

from tenure.messages.base import Reply
from tenure.messages.mcp_auth import Challenge, McpServer, ObtainAccess, RenewAccess, Signed
from tenure.messages.tokens import ServerId
from tenure.runtime.doors.mcp.sign_in import SignInScreen
from tenure.runtime.testing.auth_server import AuthServer, GuardedServer
from tenure.runtime.testing.web import MemoryWeb
from tenure.runtime.testing.web_faults import WebRequest
from tenure.runtime.testing.world import SimHost, World

T = TypeVar("T")

ISSUER = "https://auth.example"
URL = "https://mcp.example/mcp"
SERVER = McpServer(server_id=ServerId("notes"), url=URL)
UNAUTHORIZED = Challenge(status=401)


class Servers:
    """The two servers of a world, and the user's browser."""

    def __init__(self, world: World, *, life_s: int = 3_600) -> None:
        self.world = world
        self.auth = AuthServer(ISSUER, world.clock, life_s=life_s)
        self.mcp = GuardedServer(URL, self.auth)
        world.web.serve(ISSUER, self.auth)
        world.web.serve(self.mcp.origin, self.mcp)

    def browsing(self) -> "Browsing":
        return Browsing(self.world)

    def sign_in(self, host: SimHost, screen: SignInScreen | None = None) -> Signed:
        return self.world.run(sign_in(host, screen or self.browsing()))

    def run_out(self) -> None:
        """So much time passes that no access token is good any more."""
        self.world.run(self.world.clock.sleep(self.auth.life_s + 1))

    def obtain(self, host: SimHost) -> Reply:
        return self.world.ask(host, ObtainAccess(server=SERVER))

    def renew(self, host: SimHost, generation: int) -> Reply:
        command = RenewAccess(server=SERVER, generation=generation, challenge=UNAUTHORIZED)
        return self.world.ask(host, command)


async def within(host: SimHost, work: Coroutine[Any, Any, T]) -> T:
    """Something that is done in the process of a host."""
    return await host._world.inside(host.process, work)


async def sign_in(host: SimHost, screen: SignInScreen, server: McpServer = SERVER) -> Signed:
    await host.start()
    return await within(host, host.host.mcp.login(server, screen=screen))


class Holding:
    """Holds the first refresh at the server until it is let go."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._gone = asyncio.Event()
        self.reached = asyncio.Event()
        servers.auth.pause = self._pause

    async def _pause(self, request: WebRequest) -> None:
        if request.path == "/token" and not self.reached.is_set():
            self.reached.set()
            await self._gone.wait()

    def let_go(self) -> None:
        self._gone.set()


class Browsing:
    """A user who agrees to everything, at a browser on the same machine."""

    def __init__(self, world: World) -> None:
        self._web = MemoryWeb(world.web, world.disk.processes.start())
        self._visits: set[asyncio.Task[None]] = set()
        self.opened: list[str] = []
        self.shown = asyncio.Event()
        self.pages: list[tuple[int, str]] = []

    async def show(self, url: str) -> None:
        self.opened.append(url)
        self.shown.set()
        visit = asyncio.get_running_loop().create_task(self.visit(url), context=Context())
        self._visits.add(visit)

    async def visit(self, url: str) -> None:
        async with self._web.client() as client:
            answer = await client.get(url)
            if answer.status_code == 302:
                answer = await client.get(answer.headers["location"])
            self.pages.append((answer.status_code, answer.text))

    async def pasted(self, problem: str) -> str:
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody pastes here")
