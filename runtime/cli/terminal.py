"""The terminal: lines as they come, Ctrl-C, and text that cannot play tricks with it."""

import asyncio
import os
import re
import signal
import sys
import termios
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

LINE_BYTES_MAX = 8 * 1024 * 1024
"""A line that is longer is cut into several."""

READ_BYTES = 65_536
EXIT_SIGNALLED = 128
"""Plus the number of the signal: the exit code of a process that a signal ended."""

# Control characters move the cursor, and direction marks reorder what is read.
_TRICKS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """The text with everything that a terminal would act on made visible."""
    return _TRICKS.sub(_picture, text)


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)  # the control pictures: ␛ for escape
    return "␡" if code == 0x7F else f"\\u{code:04x}"


async def lines_of(descriptor: int) -> AsyncIterator[str]:
    """The lines of a terminal, pipe or file, without their ends; never blocks the loop."""
    rest = b""
    while True:
        await _readable(descriptor)
        try:
            data = os.read(descriptor, READ_BYTES)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            break
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            yield _text(line)
        if len(rest) > LINE_BYTES_MAX:
            yield _text(rest)
            rest = b""
    if rest:
        yield _text(rest)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def note() -> None:
        if not ready.done():
            ready.set_result(None)

    try:
        loop.add_reader(descriptor, note)
    except PermissionError:
        return  # a plain file, which cannot be waited for and never lets one wait
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


class Keyboard:
    """A terminal that is read only when somebody is asked something."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def answer(self) -> str | None:
        """The next line that is typed from now on; None where the input has ended.

        What was typed before the question is no answer to it.
        """
        with suppress(termios.error):  # no terminal after all: there is nothing to drop
            termios.tcflush(self._descriptor, termios.TCIFLUSH)
        async for line in lines_of(self._descriptor):
            return line
        return None


def keyboard_of(stdin: str) -> Keyboard | None:
    """Where a person can be asked; None where nobody sits.

    Args:
        stdin: `free`, or `taken` where the prompt came through it: then the
            controlling terminal is asked.
    """
    if not sys.stderr.isatty():
        return None
    if stdin == "free":
        return Keyboard(sys.stdin.fileno()) if sys.stdin.isatty() else None
    try:
        return Keyboard(os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY))
    except OSError:
        return None


class Interrupts:
    """SIGINT, SIGTERM and SIGHUP: the first ends what runs in order, the next leaves at once.

    Made inside the task that is to be cancelled where nothing else is wanted.
    """

    def __init__(self) -> None:
        self.exit_code = EXIT_SIGNALLED + signal.SIGINT
        self._task = asyncio.current_task()
        self._on_interrupt: Callable[[], None] = self.end
        self._pressed = False
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupted)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._told_to_end, number)

    def first(self, act: Callable[[], None]) -> None:
        """The next Ctrl-C does this, and only one behind it leaves at once."""
        self._on_interrupt = act
        self._pressed = False

    def end_of_turn(self) -> None:
        """The next Ctrl-C ends the program, or leaves at once where one came before."""
        self._on_interrupt = self.end

    def end(self) -> None:
        """End the program in order."""
        if self._task is not None:
            self._task.cancel()

    def _interrupted(self) -> None:
        if self._pressed:
            leave(EXIT_SIGNALLED + signal.SIGINT)
        self._pressed = True
        self._on_interrupt()

    def _told_to_end(self, number: int) -> None:
        if self.exit_code == EXIT_SIGNALLED + number:
            leave(self.exit_code)
        self.exit_code = EXIT_SIGNALLED + number
        self.end()


def leave(exit_code: int) -> None:
    """End the process now.  What is durable is on disk; nothing else is waited for."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads any more
            stream.flush()
    os._exit(exit_code)
