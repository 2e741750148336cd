"""Conformance of the small leaf ports: clock, entropy, processes, workers."""

import asyncio
import logging
from itertools import pairwise

from tenure.messages.tokens import ProcessName
from tenure.runtime.doors.clock import Clock
from tenure.runtime.doors.entropy import Entropy
from tenure.runtime.doors.processes import Processes
from tenure.runtime.doors.workers import Workers
from tenure.runtime.testing.conformance.checks import Kit, fail, holds, same

NAMES_ASKED = 100
YEAR_2020_MS = 1_577_836_800_000

CLOCK: Kit[Clock] = Kit("clock")
ENTROPY: Kit[Entropy] = Kit("entropy")
PROCESSES: Kit[Processes] = Kit("processes")
WORKERS: Kit[Workers] = Kit("workers")


# --- clock ------------------------------------------------------------------------------------


@CLOCK.check
def the_monotonic_clock_never_goes_back(clock: Clock) -> None:
    """Deadlines are counted on it."""
    times = [clock.monotonic_s() for _ in range(NAMES_ASKED)]
    backwards = [late for early, late in pairwise(times) if late < early]
    same("times that lie before the one read earlier", backwards, [])


@CLOCK.check
def wall_time_is_whole_milliseconds_since_1970(clock: Clock) -> None:
    """Transcripts are stamped with it."""
    now = clock.now_ms()
    holds(isinstance(now, int), f"now_ms gave {type(now).__name__}, expected int")
    holds(now > YEAR_2020_MS, f"now_ms gave {now}: these are no milliseconds since 1970")


@CLOCK.check
async def a_sleep_of_nothing_lets_others_run_and_returns(clock: Clock) -> None:
    """Nobody who waits for no time may hold up the loop, or wait for ever."""
    ran: list[str] = []
    asyncio.get_running_loop().call_soon(ran.append, "other")
    task = asyncio.create_task(clock.sleep(0))
    await asyncio.wait({task}, timeout=2.0)
    holds(task.done(), "sleep(0) did not return")
    same("what ran meanwhile", ran, ["other"])


@CLOCK.check
async def a_cancelled_sleep_ends_at_once(clock: Clock) -> None:
    """A stop does not wait for a pause to be over."""
    task = asyncio.create_task(clock.sleep(3600))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task}, timeout=2.0)
    holds(task.cancelled(), "a sleep that was cancelled went on")


# --- entropy ------------------------------------------------------------------------------------


@ENTROPY.check
def fresh_gives_16_hexadecimal_digits_and_never_the_same_twice(entropy: Entropy) -> None:
    """Entries, requests and hosts are named with it."""
    names = [entropy.fresh() for _ in range(NAMES_ASKED)]
    same("different names", len(set(names)), NAMES_ASKED)
    wrong = [name for name in names if len(name) != 16 or set(name) - set("0123456789abcdef")]
    same("names that are not 16 lower-case hexadecimal digits", wrong, [])


@ENTROPY.check
def uuid_gives_random_uuids_in_their_usual_form(entropy: Entropy) -> None:
    """Sessions are named with it."""
    names = [entropy.uuid() for _ in range(NAMES_ASKED)]
    same("different uuids", len(set(names)), NAMES_ASKED)
    wrong = [name for name in names if len(name) != 36 or name[14] != "4" or name.lower() != name]
    same("names that are no lower-case random uuids", wrong, [])


# --- processes ----------------------------------------------------------------------------------


@PROCESSES.check
def this_process_is_alive_and_has_one_name(processes: Processes) -> None:
    """A claim record names its holder with it."""
    me = processes.me()
    same("the second answer", processes.me(), me)
    holds(processes.alive(me), "this very process is said to be dead")


@PROCESSES.check
def a_process_is_told_from_another_with_its_pid_by_its_start(processes: Processes) -> None:
    """Pids are used again: a later process with the pid of a dead holder is not the holder."""
    me = processes.me()
    later = ProcessName(pid=me.pid, started=me.started + "0")
    holds(not processes.alive(later), "another start time with the same pid is said to be alive")


# --- workers ------------------------------------------------------------------------------------


@WORKERS.check
async def workers_give_back_the_result_and_the_exception(workers: Workers) -> None:
    """Positional and keyword arguments arrive; what the work raises, the caller gets."""
    same("the result", await workers.run(lambda: 42), 42)
    same("the result with arguments", await workers.run(int, "ff", base=16), 255)
    try:
        await workers.run(lambda: 1 // 0)
    except ZeroDivisionError:
        pass
    else:
        fail("the exception of the work did not come back")
    await workers.close()


@WORKERS.check
async def work_that_raises_stop_iteration_is_told_as_an_error(workers: Workers) -> None:
    """A future refuses it, and its caller would wait for ever."""
    task = asyncio.create_task(workers.run(next, iter(())))
    await asyncio.wait({task}, timeout=5.0)
    holds(task.done(), "the caller of work that raised StopIteration waits for ever")
    holds(isinstance(task.exception(), RuntimeError), f"raised {task.exception()!r}")
    await workers.close()


@WORKERS.check
async def a_cancelled_caller_does_not_cancel_the_work(workers: Workers) -> None:
    """Half a write to a file is worse than a late one."""
    done: list[str] = []

    async def caller() -> None:
        await workers.run(done.append, "work")
        done.append("caller")

    task = asyncio.create_task(caller())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task}, timeout=5.0)
    holds(task.cancelled(), "the cancelled caller went on")
    await workers.close()
    same("what was done", done, ["work"])


class _Said(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))


@WORKERS.check
async def the_exception_of_abandoned_work_is_logged(workers: Workers) -> None:
    """A failure that nobody waits for must not vanish."""
    said = _Said()
    logging.getLogger().addHandler(said)
    try:
        task = asyncio.create_task(workers.run(lambda: 1 // 0))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task}, timeout=5.0)
        await workers.close()
        await asyncio.sleep(0)
    finally:
        logging.getLogger().removeHandler(said)
    holds(
        any("ZeroDivisionError" in text for text in said.texts),
        f"the exception was not logged; logged was {said.texts}",
    )


@WORKERS.check
async def closed_workers_take_no_work(workers: Workers) -> None:
    """A host that ended has no hands any more; closing twice is harmless."""
    await workers.run(int)
    await workers.close()
    await workers.close()
    try:
        await workers.run(int)
    except RuntimeError:
        return
    fail("closed workers took work")
