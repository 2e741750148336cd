"""Taking a session over from the host that has it: ask, wait, and open it.

The claim decides, not the answers: whatever the other host says, the session is
ours when it is open here, and not before.
"""

import asyncio
from collections.abc import Awaitable, Callable

from tenure.messages.base import Reply
from tenure.messages.handover import HandedOver, HandoverPending, HandOverSession
from tenure.messages.remote import HostSilent
from tenure.messages.session import SessionInUse
from tenure.messages.tokens import SessionId
from tenure.runtime.errors import Refused
from tenure.runtime.finding import GREETING_DEADLINE_S, host_of_holder
from tenure.runtime.running import Running
from tenure.runtime.seat import Seat

HANDOVER_S = 30.0
ASK_AGAIN_S = 0.05
ASK_AGAIN_S_MAX = 1.0
SILENT_MAX = 2
"""How often in a row a living holder may not answer: once it may just be busy."""

OpenSeat = Callable[[str, str], Awaitable[Seat]]
"""`Host.seat`."""


async def take_over(
    running: Running, open_seat: OpenSeat, session_id: SessionId, seat: str, within_s: float
) -> Seat:
    """See `Host.take_over`."""
    clock = running.leaves.clock
    ends_s = clock.monotonic_s() + within_s
    pause_s = ASK_AGAIN_S
    silent = 0
    while True:
        try:
            return await open_seat(seat, session_id)
        except Refused as refused:
            in_use = refused.reply
        if not isinstance(in_use, SessionInUse) or in_use.seat:
            raise Refused(in_use)
        answer = await _ask_holder(running, in_use, max(ends_s - clock.monotonic_s(), 0.0))
        if isinstance(answer, HandedOver):
            continue  # unless another was faster, the claim is free
        silent = silent + 1 if isinstance(answer, HostSilent) else 0
        if silent == SILENT_MAX:
            raise Refused(in_use)  # it names the process, which keeps what it has
        if clock.monotonic_s() + pause_s > ends_s:
            raise Refused(answer if isinstance(answer, HandoverPending) else in_use)
        await clock.sleep(pause_s)
        pause_s = min(2 * pause_s, ASK_AGAIN_S_MAX)


async def _ask_holder(running: Running, in_use: SessionInUse, within_s: float) -> Reply:
    """What the holder says to a handover; `HostSilent` where it lives and says nothing."""
    if in_use.holder is None:
        return in_use  # it has the lock, and will have said who it is in a moment
    try:
        remote = await host_of_holder(running.leaves, in_use.holder)
    except Refused as refused:
        leaves = running.leaves
        alive = await leaves.workers.run(leaves.processes.alive, in_use.holder.process)
        return refused.reply if alive else in_use
    try:
        async with remote, asyncio.timeout(max(within_s, GREETING_DEADLINE_S)):
            seat = await remote.seat_of(in_use.session_id)
            if seat is None:
                return in_use  # it is being opened there, or has just been let go of
            return await remote.ask(HandOverSession(session_id=in_use.session_id), seat)
    except TimeoutError:
        pid = in_use.holder.process.pid
        return HostSilent(pid=pid, reason="it greeted, and then said nothing")
