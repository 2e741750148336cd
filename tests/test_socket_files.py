"""Where the local socket lies: private to its user, and removed when its host is dead."""

import asyncio
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from holders import sockets

from tenure import Host
from tenure.messages.remote import BadRequest
from tenure.messages.session import StartTurn
from tenure.messages.turn import GetTurn, TurnView
from tenure.runtime.doors.sockets import PATH_BYTES_MAX, Connection, LocalSockets
from tenure.runtime.lines import lines_of
from tenure.runtime.remote import RemoteHost

__all__ = ["sockets"]
pytestmark = [pytest.mark.real, pytest.mark.usefixtures("sockets")]

NOBODY = 65_534


async def greet(connection: Connection) -> None:
    await connection.write(b"hello\n")


async def heard(found: LocalSockets, name: str) -> list[bytes]:
    """All that a listener says."""
    connection = await found.connect(name)
    try:
        return [line async for line in lines_of(connection, 100)]
    finally:
        await connection.close()


def listening(found: LocalSockets, check: Callable[[str], Awaitable[Any]]) -> Any:
    """Listen as `here`, and check something meanwhile."""

    async def run() -> Any:
        listener = await found.listen("here", greet)
        try:
            return await check(listener.path)
        finally:
            await listener.close()

    return asyncio.run(run())


def local(folder: Path | str, **more: str) -> LocalSockets:
    return LocalSockets({"XDG_RUNTIME_DIR": str(folder), **more})


def test_folder_and_socket_are_closed_to_every_other_user(sockets: Path) -> None:
    async def look(path: str) -> tuple[int, int]:
        folder, there = os.stat(os.path.dirname(path)), os.stat(path)
        assert stat.S_ISSOCK(there.st_mode)
        return stat.S_IMODE(folder.st_mode), stat.S_IMODE(there.st_mode)

    assert listening(local(sockets), look) == (0o700, 0o600)
    assert list((sockets / "tenure").iterdir()) == [], "the name goes with its listener"


def test_folder_that_is_a_link_or_open_to_others_is_not_used(sockets: Path) -> None:
    elsewhere = sockets / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (sockets / "tenure").symlink_to(elsewhere)
    temporary = sockets / "t"
    temporary.mkdir()
    mine = temporary / f"tenure-{os.geteuid()}"
    mine.mkdir(mode=0o755)

    async def where(path: str) -> str:
        return path

    found = local(sockets, TMPDIR=str(temporary))
    assert listening(found, where).startswith("/tmp/tenure-")
    assert list(elsewhere.iterdir()) == []
    mine.chmod(0o700)
    assert listening(found, where).startswith(str(mine))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user as well")
def test_another_user_is_not_served_even_where_the_folder_would_let_it_in() -> None:
    with TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)

        async def try_as_nobody(path: str) -> str:
            (folder / "tenure").chmod(0o755)
            os.chmod(path, 0o777)
            program = (
                "import os, socket, sys\n"
                f"os.setgroups([]); os.setegid({NOBODY}); os.seteuid({NOBODY})\n"
                "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
                "print(s.recv(100))"
            )
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", program, path, stdout=subprocess.PIPE
            )
            said, _ = await process.communicate()
            return said.decode().strip()

        assert listening(local(folder), try_as_nobody) == "b''"


def test_path_that_is_too_long_for_a_socket_is_put_elsewhere_and_found_there(
    sockets: Path,
) -> None:
    deep = sockets / ("d" * (PATH_BYTES_MAX - len(str(sockets))))
    deep.mkdir()
    found = local(deep, TMPDIR=str(deep))

    async def hear(path: str) -> tuple[str, list[bytes]]:
        return path, await heard(local(sockets), "here")

    path, said = listening(found, hear)
    assert path.startswith("/tmp/tenure-")
    assert said == [b"hello"], "who has another environment finds it as well"


def test_socket_of_the_dead_is_refused_and_removed_and_that_of_the_living_stays(
    sockets: Path,
) -> None:
    found = local(sockets)
    (sockets / "tenure").mkdir(mode=0o700)
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(sockets / "tenure" / "dead.sock"))
    dead.close()

    async def sweep(path: str) -> tuple[tuple[str, ...], tuple[str, ...], list[bytes]]:
        with pytest.raises(ConnectionRefusedError):
            await found.connect("dead")
        before = found.names()
        found.remove_dead()
        return before, found.names(), await heard(found, "here")

    before, after, said = listening(found, sweep)
    assert {"dead", "here"} <= set(before)
    assert ("dead" in after, "here" in after, said) == (False, True, [b"hello"])


def test_forked_child_does_not_keep_its_parents_socket_alive(sockets: Path) -> None:
    program = (
        "import asyncio, os, sys, time\n"
        "from tenure.runtime.doors.sockets import LocalSockets\n"
        "async def main():\n"
        "    await LocalSockets().listen('parent', None)\n"
        "    reading, writing = os.pipe()\n"
        "    if os.fork() == 0:\n"
        "        os.write(writing, b'x'); time.sleep(60); os._exit(0)\n"
        "    os.read(reading, 1); print('forked', flush=True); os._exit(0)\n"
        "asyncio.run(main())\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "forked\n"
        process.wait(10)
        assert "parent" in local(sockets).names()
        local(sockets).remove_dead()
        assert "parent" not in local(sockets).names(), "its child listened on"
    finally:
        process.kill()
        if process.stdout is not None:
            process.stdout.close()


def test_host_that_finds_no_private_place_runs_without_a_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalSockets, "_folders", lambda self: [])

    async def run() -> tuple[str, str]:
        async with Host.open(str(tmp_path)) as host:
            await host.seat()
            return host.socket_path, host.socket_problem

    path, problem = asyncio.run(run())
    assert path == ""
    assert problem


def test_host_listens_from_its_first_seat_to_its_end(tmp_path: Path, sockets: Path) -> None:
    async def run() -> list[str]:
        async with Host.open(str(tmp_path)) as host:
            seen = [host.socket_path]
            await host.seat()
            seen.append(host.socket_path)
            assert host.host_id in LocalSockets().names()
        return seen

    before, path = asyncio.run(run())
    assert (before, path.startswith(str(sockets))) == ("", True)
    assert list((sockets / "tenure").iterdir()) == []


def test_hundred_megabytes_on_a_real_socket_are_cut_off_with_a_reason(tmp_path: Path) -> None:
    def flood(path: str) -> tuple[int, bytes]:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            client.settimeout(20)
            sent = 0
            with suppress(ConnectionError):
                while sent < 100_000_000:
                    sent += client.send(b"x" * 1_000_000)
            return sent, client.recv(1_000_000)

    async def run() -> tuple[int, bytes]:
        async with Host.open(str(tmp_path)) as host:
            await host.seat()
            return await asyncio.to_thread(flood, host.socket_path)

    sent, said = asyncio.run(run())
    assert sent < 30_000_000
    assert b"4,194,304 bytes" in said


def test_command_that_is_too_long_for_a_line_is_told_and_the_connection_goes_on(
    tmp_path: Path,
) -> None:
    async def run() -> tuple[object, object, bytes]:
        async with Host.open(str(tmp_path)) as host:
            await host.seat()
            async with await RemoteHost.connect(host_id=host.host_id) as remote:
                long = await remote.ask(StartTurn(text="x" * 5_000_000), "main")
                after = await remote.ask(GetTurn(), "main")
            reader, writer = await asyncio.open_unix_connection(host.socket_path)
            writer.write(b"x" * 5_000_000)
            await writer.drain()
            said = await reader.read(1_000_000)
            writer.transport.abort()
            return long, after, said

    long, after, said = asyncio.run(run())
    assert isinstance(long, BadRequest)
    assert isinstance(after, TurnView)
    assert b"Hello" in said
