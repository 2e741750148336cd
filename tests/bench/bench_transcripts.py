"""Transcripts against plain loops over the same bytes; ratios of one run, best of several rounds.

python tests/bench/bench_transcripts.py [append|load|open|list]
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from tenure.messages.content import AssistantMessage, ChatMessage, TextBlock, UserMessage
from tenure.messages.entries import MessageEntry, Record
from tenure.messages.tokens import EntryId, SessionId
from tenure.messages.transcripts import AppendRecords, ById, CloseTranscript, Fresh, OpenTranscript
from tenure.runtime.doors.claims import Claims
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves, system_leaves
from tenure.runtime.doors.transcripts import Catalogue, Transcripts, list_sessions
from tenure.runtime.doors.transcripts.codec import encode_header, encode_record
from tenure.runtime.doors.transcripts.storage import Sync

CONTEXT = Context(owner="main/session", seat="main", progress=lambda outcome: None)
MOMENT_MS = 1_700_000_000_000


class Whole(msgspec.Struct, rename="camel"):
    """The typed decode that opening is compared with."""

    type: str
    id: str = ""
    parent_id: str | None = None
    timestamp: str = ""
    message: ChatMessage | None = None
    tenure: dict[str, int | str] | None = None


def record(number: int, characters: int) -> Record:
    message = (
        AssistantMessage(content=(TextBlock(text="w" * characters),), provider="p", model="m")
        if number % 2
        else UserMessage(content="u" * characters, timestamp=MOMENT_MS + number)
    )
    return Record(
        id=EntryId(f"{number:016x}"),
        parent_id=EntryId(f"{number - 1:016x}") if number > 1 else None,
        timestamp_ms=MOMENT_MS + number,
        seq=number,
        turn=(number + 1) // 2,
        key="",
        body=MessageEntry(message=message),
    )


def transcript(session_id: str, entries: int, characters: int) -> bytes:
    lines = [encode_record(record(number, characters), 1) for number in range(1, entries + 1)]
    return encode_header(SessionId(session_id), MOMENT_MS, "/work") + b"".join(lines)


def put(root: str, session_id: str, data: bytes) -> Path:
    folder = Path(root) / ".tenure/sessions"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"2026-01-01T00-00-00-000Z_{session_id}.jsonl"
    path.write_bytes(data)
    return path


def best_s(work: Callable[[], object], rounds: int = 5) -> float:
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


def say(name: str, value: float, bound: str) -> None:
    print(f"{name:58} {value:10.2f}   bound {bound}")


async def appends(leaves: Leaves, root: str, session: str, sync: Sync, count: int) -> float:
    """The median time of an append to a session, in microseconds."""
    door = Transcripts(leaves, root, Claims(leaves, "bench"), "bench", sync)
    target = ById(session_id=SessionId(session)) if session else Fresh()
    outcome = await door.open(OpenTranscript(target=target), CONTEXT)
    opened = outcome.opened  # type: ignore[attr-defined]
    leaf, times = opened.leaf, []
    for number in range(opened.seq + 1, opened.seq + 1 + count):
        one = msgspec.structs.replace(record(number, 200), parent_id=leaf)
        begun = time.perf_counter()
        await door.append(AppendRecords(token=opened.token, after=leaf, records=(one,)), CONTEXT)
        times.append(time.perf_counter() - begun)
        leaf = one.id
    await door.close(CloseTranscript(session_id=opened.token.session_id), CONTEXT)
    return statistics.median(times) * 1e6


def bare_appends(root: str, count: int) -> float:
    """The median time of a bare write and fdatasync, in microseconds."""
    line = encode_record(record(2, 200), 1)
    descriptor = os.open(f"{root}/bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        os.write(descriptor, line)
        os.fdatasync(descriptor)
        times.append(time.perf_counter() - begun)
    os.close(descriptor)
    return statistics.median(times) * 1e6


async def bench_append(leaves: Leaves, root: str) -> None:
    put(root, "long", transcript("long", 20_000, 200))
    own = [await appends(leaves, root, "", "flush", 500) for _ in range(3)]
    say("append, own cost without the sync, us", min(own), "<= 200")
    synced = [
        (await appends(leaves, root, "", "fsync", 300), bare_appends(root, 300)) for _ in range(3)
    ]
    say("append over a bare write+fdatasync, us", min(a - b for a, b in synced), "<= 200")
    first = min([await appends(leaves, root, "", "flush", 300) for _ in range(3)])
    later = min([await appends(leaves, root, "long", "flush", 300) for _ in range(3)])
    say("append at 20,000 entries / at the first", later / first, "<= 1.2")


async def bench_load(leaves: Leaves, root: str) -> None:
    path = put(root, "load", transcript("load", 20_000, 200))
    door = Transcripts(leaves, root, Claims(leaves, "bench"), "bench")

    async def load() -> float:
        begun = time.perf_counter()
        await door.open(OpenTranscript(target=ById(session_id=SessionId("load"))), CONTEXT)
        took = time.perf_counter() - begun
        await door.close(CloseTranscript(session_id=SessionId("load")), CONTEXT)
        return took

    def plain() -> list[object]:
        with path.open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    ours = min([await load() for _ in range(5)])
    say("load of 20,000 entries / a json line loop", ours / best_s(plain), "<= 0.6")


async def bench_open(leaves: Leaves, root: str) -> None:
    data = transcript("big", 62_000, 1_400)
    path = put(root, "big", data)
    decode = msgspec.json.Decoder(Whole).decode_lines
    door = Transcripts(leaves, root, Claims(leaves, "bench"), "bench")

    async def open_it() -> float:
        begun = time.perf_counter()
        await door.open(OpenTranscript(target=ById(session_id=SessionId("big"))), CONTEXT)
        took = time.perf_counter() - begun
        await door.close(CloseTranscript(session_id=SessionId("big")), CONTEXT)
        return took

    ours = min([await open_it() for _ in range(3)])
    typed = best_s(lambda: decode(path.read_bytes()), 3)
    print(f"{len(data) / 1e6:.0f} MB: {len(data) / ours / 1e6:.0f} MB/s")
    say("open of 100 MB, rate / msgspec's typed decode", typed / ours, ">= 0.6")


async def bench_list(leaves: Leaves, root: str) -> None:
    for number in range(2_000):
        put(root, f"s{number}", transcript(f"s{number}", 30, 200))

    def plain() -> int:
        count = 0
        for path in sorted((Path(root) / ".tenure/sessions").iterdir()):
            with path.open(encoding="utf-8") as lines:
                count += len([json.loads(line) for line in lines])
        return count

    ours = best_s(lambda: list_sessions(leaves, root), 3)
    say("list of 2,000 sessions / a json line loop", ours / best_s(plain, 3), "<= 0.5")
    for number in range(2_000, 10_000):
        put(root, f"s{number}", transcript(f"s{number}", 2, 50))
    catalogue = Catalogue(leaves, root)
    catalogue.sessions()
    say("search in 10,000 sessions, warm, s", best_s(lambda: catalogue.search("uuu")), "<= 0.2")


async def main() -> None:
    wanted = sys.argv[1:] or ["append", "load", "open", "list"]
    benches = {
        "append": bench_append,
        "load": bench_load,
        "open": bench_open,
        "list": bench_list,
    }
    leaves = system_leaves()
    for name in wanted:
        with tempfile.TemporaryDirectory() as root:
            await benches[name](leaves, root)
    await leaves.workers.close()


if __name__ == "__main__":
    asyncio.run(main())
