"""One client of the soak: a host in a process of its own that makes random operations.

client.py ROOT LEDGER SEED

It goes on until its input is closed, or until it is killed.  Before each operation it
notes what it is about to do, afterwards what it was told.
"""

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from ledger import Ledger

from tenure import Host, Refused
from tenure.messages.entries import CustomEntry
from tenure.messages.models import (
    Model,
    ModelDone,
    ModelEvent,
    ModelRequest,
    ModelText,
    ModelToolCall,
    ToolSpec,
)
from tenure.messages.session import Appended, AppendEntries, EntriesAppended, StartTurn
from tenure.messages.session_ops import Redact, RewriteSession, SessionRewritten, Vacuum
from tenure.messages.tokens import SessionToken
from tenure.messages.turn import TurnAccepted, TurnQueued
from tenure.runtime.doors.tools.functions import function_tool
from tenure.runtime.seat import Seat

IDLE_S_MAX = 20.0
SLOW = ToolSpec(
    name="slow",
    description="Takes a moment.",
    parameters={"type": "object", "properties": {}},
    mutating=False,
)


async def pause(seconds: float) -> None:
    """This process is a load, not a test: what it lets pass is time for kills to land in."""
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), seconds)


async def slow() -> str:
    """Long enough to be stopped, swapped away or killed in."""
    await pause(0.02)
    return "that took a moment"


def model_of(chance: random.Random) -> Model:
    """A model that talks in pieces, and in two of five answers calls a tool or two."""

    async def answer(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        for piece in range(chance.randrange(1, 6)):
            await pause(chance.random() * 0.004)
            yield ModelText(text=f"piece {piece} ")
        for call in range(chance.choice((0, 0, 0, 1, 2))):
            name = chance.choice(("ls", "slow"))
            arguments = {"path": "."} if name == "ls" else {}
            call_id = f"c{chance.randrange(10**12)}-{call}"
            yield ModelToolCall(id=call_id, name=name, arguments=arguments)
        yield ModelDone(provider="soak", model="soak", api="soak")

    return answer


class Client:
    def __init__(self, host: Host, ledger: Ledger, seed: str) -> None:
        self.host = host
        self.ledger = ledger
        self.chance = random.Random(seed)
        self.seed = seed
        self.count = 0

    def marker(self) -> str:
        self.count += 1
        return f"mark-{self.seed}-{self.count}-end"

    async def seat(self) -> Seat:
        """One of three seats; a new one continues a session that nobody has open."""
        return await self.host.seat(self.chance.choice(("a", "b", "c")))

    async def some_session(self) -> str:
        sessions = await self.host.sessions.list()
        newest = sessions[:8]
        return self.chance.choice(newest).id if newest else ""

    # --- operations ------------------------------------------------------------------------

    async def append(self) -> None:
        seat = await self.seat()
        await self._append(seat, seat.token, self.marker())

    async def _append(self, seat: Seat, token: SessionToken, marker: str) -> None:
        self.ledger.note("append", session=token.session_id, epoch=token.epoch, marker=marker)
        note = CustomEntry(custom_type="soak/note", data={"text": marker})
        command = AppendEntries(token=token, entries=(note,), idempotency_key=marker)
        reply = await seat.ask(command)
        if isinstance(reply, Appended):
            self.ledger.note(
                "appended",
                session=reply.token.session_id,
                epoch=reply.token.epoch,
                marker=marker,
                entries=reply.entry_ids,
            )
        else:
            self.ledger.note("refused", marker=marker, reply=type(reply).__name__)

    async def append_twice(self) -> None:
        """A sender that is not sure sends the same again: one entry, one answer."""
        seat = await self.seat()
        marker = self.marker()
        token = seat.token
        await asyncio.gather(*(self._append(seat, token, marker) for _ in range(2)))

    async def append_beside_a_swap(self) -> None:
        """Each lands in its own session, or is refused; never in the other one."""
        seat = await self.seat()
        token = seat.token
        markers = [self.marker() for _ in range(4)]
        jobs = [self._append(seat, token, marker) for marker in markers]
        await asyncio.gather(*jobs[:2], self._swallow(self.swap()), *jobs[2:])

    async def prompt(self) -> None:
        seat = await self.seat()
        marker = self.marker()
        self.ledger.note("prompt", marker=marker)
        command = StartTurn(text=f"say {marker}", when_busy=self.chance.choice(("refuse", "queue")))
        reply = await seat.ask(command)
        if isinstance(reply, TurnAccepted | TurnQueued):
            self.ledger.note("taken", marker=marker, turn=reply.turn_id, reply=type(reply).__name__)
        if self.chance.random() < 0.5:
            await asyncio.wait_for(seat.wait_idle(), IDLE_S_MAX)

    async def stop(self) -> None:
        await (await self.seat()).stop()

    async def new(self) -> None:
        await (await self.seat()).new()

    async def swap(self) -> None:
        await (await self.seat()).open(await self.some_session())

    async def rename(self) -> None:
        await (await self.seat()).rename(f"name {self.count}")

    async def fork(self) -> None:
        seat = await self.seat()
        forked = await seat.fork(name=f"fork {self.count}")
        self.ledger.note("forked", session=forked.session_id, source=forked.source)

    async def rewind(self) -> None:
        seat = await self.seat()
        ids: list[str] = []
        with suppress(FileNotFoundError):  # a session has no file before its first entry
            snapshot = await self.host.sessions.read((await seat.session()).path)
            ids = [view.id for view in snapshot.entries if view.id]
        if ids:
            await seat.rewind(self.chance.choice(ids))

    async def delete(self) -> None:
        seat = await self.seat()
        session = await self.some_session()
        self.ledger.note("delete", session=session)
        await seat.delete(session)

    async def redact(self) -> None:
        seat = await self.seat()
        marker = self.marker()
        token = seat.token
        await self._append(seat, token, marker)
        self.ledger.note("redact", session=token.session_id, marker=marker)
        reply = await seat.ask(RewriteSession(rewrite=Redact(patterns=(marker,)), token=token))
        if isinstance(reply, SessionRewritten):
            self.ledger.note("redacted", session=token.session_id, marker=marker)

    async def vacuum(self) -> None:
        seat = await self.seat()
        token = seat.token  # the seat may have another session by the time this is taken
        self.ledger.note("vacuum", session=token.session_id)
        await seat.ask(RewriteSession(rewrite=Vacuum(), token=token))

    async def compact(self) -> None:
        await (await self.seat()).compact()

    async def uncompact(self) -> None:
        await (await self.seat()).uncompact()

    async def park(self) -> None:
        await (await self.seat()).park()

    async def take_over(self) -> None:
        session = await self.some_session()
        if session:
            await self.host.take_over(session, self.chance.choice(("a", "b", "c")), within_s=2.0)

    async def close_seat(self) -> None:
        await self.host.close_seat(self.chance.choice(("a", "b", "c")))

    async def search(self) -> None:
        await self.host.sessions.search(f"mark-{self.seed}")

    def weighted(self) -> list[Callable[[], Awaitable[None]]]:
        often = [self.append, self.append_twice, self.append_beside_a_swap, self.prompt]
        sometimes = [self.stop, self.swap, self.take_over, self.rewind, self.new]
        seldom = [
            self.rename,
            self.fork,
            self.compact,
            self.uncompact,
            self.park,
            self.redact,
            self.close_seat,
            self.search,
        ]
        return often * 6 + sometimes * 3 + seldom * 2 + [self.delete, self.vacuum]

    # --- the run ---------------------------------------------------------------------------

    async def _swallow(self, operation: Awaitable[None]) -> None:
        """A refusal is an answer like any other; it is counted, and what it says is checked."""
        try:
            await operation
        except Refused as refused:
            self.ledger.note("refused", reply=type(refused.reply).__name__)

    async def watch(self) -> None:
        async for published in self.host.events():
            event = published.event
            if isinstance(event, EntriesAppended):
                self.ledger.note(
                    "seen",
                    session=event.token.session_id,
                    epoch=event.token.epoch,
                    entries=event.entry_ids,
                )

    async def one_hand(self) -> None:
        operations = self.weighted()
        while True:
            operation = self.chance.choice(operations)
            self.ledger.note("op", name=operation.__name__)
            await self._swallow(operation())
            self.ledger.note("done", name=operation.__name__)
            if self.host.violations:
                raise AssertionError(f"strict host: {self.host.violations}")


async def main(root: str, ledger: Ledger, seed: str) -> None:
    model = model_of(random.Random(f"model {seed}"))
    tools = (function_tool(SLOW, slow),)
    async with Host.open(root, model=model, tools=tools, strict=True) as host:
        await host.settings.set_mode("yolo")
        client = Client(host, ledger, seed)
        print("ready", flush=True)
        loop = asyncio.get_running_loop()
        ended = loop.run_in_executor(None, sys.stdin.read)
        hands = [asyncio.create_task(client.one_hand()) for _ in range(3)]
        hands.append(asyncio.create_task(client.watch()))
        done, rest = await asyncio.wait([*hands, ended], return_when=asyncio.FIRST_COMPLETED)
        for hand in rest:
            hand.cancel()
        for hand in done:
            await hand  # what it raised is a fault, and must be seen


if __name__ == "__main__":
    root, path, seed = sys.argv[1:]
    asyncio.run(main(root, Ledger(Path(path)), seed))
