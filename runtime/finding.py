"""Finding the hosts of this machine: by their names, by a root, by a session that one has."""

import asyncio
from collections.abc import Sequence

import msgspec

from tenure.messages.base import Refusal
from tenure.messages.remote import (
    LINE_TO_CLIENT_BYTES_MAX,
    PROTOCOL_VERSION,
    Hello,
    HostSilent,
    NoHost,
    SeveralHosts,
)
from tenure.messages.tokens import Holder, SessionId
from tenure.runtime.doors.claims import Claims
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.sockets import Sockets
from tenure.runtime.doors.transcripts.layout import Layout
from tenure.runtime.errors import Refused, StrangeHost
from tenure.runtime.lines import DECODE_ERRORS, LineTooLong, lines_of, message_of
from tenure.runtime.remote import RemoteHost

GREETING_DEADLINE_S = 2.0
"""A host that runs greets at once; one that is stopped never does."""
ASKED_AT_ONCE_MAX = 16
"""Hosts that are greeted at the same time."""


async def find_hosts(leaves: Leaves, root: str) -> tuple[Hello, ...]:
    """The hosts of a root that answer now, the smallest pid first."""
    files, sockets = leaves.files, leaves.sockets
    real = await leaves.workers.run(files.real_path, root)
    names = await leaves.workers.run(sockets.names)
    few = asyncio.Semaphore(ASKED_AT_ONCE_MAX)

    async def ask(name: str) -> Hello | None:
        async with few:
            return await _hello_of(sockets, name)

    told = await asyncio.gather(*(ask(name) for name in names))
    here = [hello for hello in told if hello is not None and hello.root == real]
    return tuple(sorted(here, key=lambda hello: hello.pid))


async def host_of_root(leaves: Leaves, root: str) -> RemoteHost:
    """The only host of a root.

    Raises:
        Refused: there is none, there are several, or it does not answer.
    """
    found = await find_hosts(leaves, root)
    if len(found) != 1:
        real = await leaves.workers.run(leaves.files.real_path, root)
        raise Refused(_not_one(real, found))
    try:
        return await reach(leaves.sockets, found[0].host_id, found[0].pid)
    except ConnectionRefusedError:
        raise Refused(NoHost(root=found[0].root)) from None


async def host_of_id(leaves: Leaves, root: str, host_id: str) -> RemoteHost:
    """The host with this id, wherever its root is.

    Raises:
        Refused: there is none any more, or it does not answer.
    """
    try:
        return await reach(leaves.sockets, host_id)
    except ConnectionRefusedError:
        raise Refused(NoHost(root=root)) from None


async def host_of_session(leaves: Leaves, root: str, session_id: SessionId) -> RemoteHost:
    """The host that has a session of a root open.

    Raises:
        Refused: none has, or it does not answer.
    """
    holder = await leaves.workers.run(holder_of, leaves, root, session_id)
    if holder is None:
        raise Refused(NoHost(root=root, session_id=session_id))
    return await host_of_holder(leaves, holder)


async def host_of_holder(leaves: Leaves, holder: Holder) -> RemoteHost:
    """The host that holds a claim.

    Raises:
        Refused: it does not answer.
    """
    pid = holder.process.pid
    try:
        return await reach(leaves.sockets, holder.host_id, pid)
    except ConnectionRefusedError:
        raise Refused(HostSilent(pid=pid, reason="it has no socket")) from None


def holder_of(leaves: Leaves, root: str, session_id: SessionId) -> Holder | None:
    """Who has a session open, as its claim record says; None where nobody has.  Blocks.

    Raises:
        OSError: the record cannot be read.
    """
    layout = Layout(leaves.files.real_path(root))
    record = Claims(leaves, "").peek(layout.claim(session_id))
    if record is None or record.parked is not None:
        return None
    return record.holder if leaves.processes.alive(record.holder.process) else None


async def reach(sockets: Sockets, host_id: str, pid: int = 0) -> RemoteHost:
    """Connect to a host and hear its greeting.

    Args:
        pid: whose it is, for people.

    Raises:
        ConnectionRefusedError: nobody listens.
        Refused: it does not greet, or has too many clients.
        StrangeHost: it speaks another version.
    """
    connection = await sockets.connect(host_id)
    try:
        lines = lines_of(connection, LINE_TO_CLIENT_BYTES_MAX)
        async with asyncio.timeout(GREETING_DEADLINE_S):
            first = await anext(lines, b"")
        return RemoteHost(connection, lines, _greeting(first, pid))
    except TimeoutError:
        await connection.close()
        silent = HostSilent(pid=pid, reason="it is stopped, or too busy to greet")
        raise Refused(silent) from None
    except LineTooLong as error:
        await connection.close()
        raise StrangeHost(f"process {pid} is no host of this version: {error}") from None
    except BaseException:
        await connection.close()
        raise


class _Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a host says first, of whatever version it is."""

    type: str = ""
    version: int = 0
    error: msgspec.Raw = msgspec.Raw(b"")


def _greeting(line: bytes, pid: int) -> Hello:
    if not line:
        raise Refused(HostSilent(pid=pid, reason="it ended the connection"))
    try:
        told = msgspec.json.decode(line, type=_Told)
        if bytes(told.error):
            raise Refused(message_of(told.error, Refusal))
        if told.version != PROTOCOL_VERSION:
            reason = f"it speaks version {told.version}, and this program {PROTOCOL_VERSION}"
            raise StrangeHost(f"process {pid}: {reason}; use the program that started it")
        return msgspec.json.decode(line, type=Hello)
    except (LookupError, *DECODE_ERRORS) as error:
        raise StrangeHost(f"process {pid} is no host of this version: {error}") from None


async def _hello_of(sockets: Sockets, name: str) -> Hello | None:
    """None where it does not answer, or speaks another version."""
    try:
        remote = await reach(sockets, name)
    except (OSError, Refused, StrangeHost):
        return None
    await remote.close()
    return remote.hello


def _not_one(root: str, found: Sequence[Hello]) -> NoHost | SeveralHosts:
    if not found:
        return NoHost(root=root)
    return SeveralHosts(root=root, pids=tuple(hello.pid for hello in found))
