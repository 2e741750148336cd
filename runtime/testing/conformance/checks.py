"""What a conformance kit is made of: named checks, readable reasons, a report.

A check is a function of one subject (the embedder's own implementation, with
whatever the check needs beside it).  It returns where the implementation
conforms, and raises `NotConforming` with the reason where it does not.
"""

import asyncio
import errno as numbers
import inspect
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

S = TypeVar("S")
T = TypeVar("T")

LEFT_BEHIND_S_MAX = 1.0
"""How long what a check left running may take to end."""

Make = Callable[[], S | AbstractContextManager[S]]
"""Gives a new subject for each check, or a context manager of one that also clears it away."""


class NotConforming(AssertionError):
    """An implementation does not keep the contract of its port; the text says where."""


class Check(Generic[S]):
    """One promise of a port.  Called with a subject, it returns or raises `NotConforming`."""

    def __init__(self, port: str, function: Callable[[S], Awaitable[None] | None]) -> None:
        self.port = port
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self._function = function

    def __call__(self, subject: S) -> None:
        done = self._function(subject)
        if inspect.iscoroutine(done):
            _run(done)

    def __repr__(self) -> str:
        return f"{self.port}: {self.__name__.replace('_', ' ')}"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How one check went."""

    name: str
    reason: str
    """Why it did not pass; empty where it did."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """How an implementation did.  `print` it, or `assert report.ok, str(report)`."""

    port: str
    results: tuple[Result, ...]

    @property
    def ok(self) -> bool:
        return not self.failures

    @property
    def failures(self) -> tuple[Result, ...]:
        return tuple(result for result in self.results if result.reason)

    def __str__(self) -> str:
        passed = len(self.results) - len(self.failures)
        lines = [f"{self.port}: {passed} of {len(self.results)} checks passed"]
        for result in self.results:
            lines.append(f"  {'FAIL' if result.reason else 'ok  '}  {result.name}")
            if result.reason:
                lines.append(f"        {result.reason}")
        return "\n".join(lines)


class Kit(Collection[Check[S]]):
    """The checks of one port.  Iterate over them, or run them all on what a factory makes."""

    def __init__(self, port: str) -> None:
        self.port = port
        self._checks: list[Check[S]] = []

    def check(self, function: Callable[[S], Awaitable[None] | None]) -> Check[S]:
        """Decorates a check; its name is the promise, as a sentence."""
        check = Check(self.port, function)
        self._checks.append(check)
        return check

    def __iter__(self) -> Iterator[Check[S]]:
        return iter(self._checks)

    def __contains__(self, check: object) -> bool:
        return check in self._checks

    def __len__(self) -> int:
        return len(self._checks)

    def run(self, make: Make[S]) -> Report:
        """Run every check on a new subject of its own."""
        results = tuple(
            Result(name=check.__name__.replace("_", " "), reason=_reason(check, make))
            for check in self._checks
        )
        return Report(port=self.port, results=results)


def _reason(check: Check[S], make: Make[S]) -> str:
    try:
        made = make()
        place = made if isinstance(made, AbstractContextManager) else nullcontext(made)
        with place as subject:
            check(subject)
    except NotConforming as broken:
        return str(broken)
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"
    return ""


def _run(work: Coroutine[Any, Any, None]) -> None:
    """As `asyncio.run`, which would wait for ever for a task that will not be cancelled."""
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(work)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=LEFT_BEHIND_S_MAX))
        for task in left:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


# --- what checks say ----------------------------------------------------------------------------


def fail(reason: str) -> NoReturn:
    """Say what does not conform."""
    raise NotConforming(reason)


def holds(true: object, reason: str) -> None:
    """The reason is said where it does not hold."""
    if not true:
        raise NotConforming(reason)


def same(what: str, got: object, expected: object) -> None:
    """Two values that must be equal."""
    if got != expected:
        raise NotConforming(f"{what}: got {got!r}, expected {expected!r}")


def refuses(what: str, call: Callable[[], object], number: int) -> None:
    """The call must raise `OSError` with this number."""
    raises_one_of(what, call, (number,))


def raises_one_of(what: str, call: Callable[[], object], expected: tuple[int, ...]) -> None:
    """The call must raise `OSError` with one of these numbers."""
    names = " or ".join(numbers.errorcode[number] for number in expected)
    try:
        call()
    except OSError as refused:
        if refused.errno in expected:
            return
        got = numbers.errorcode.get(refused.errno or 0, str(refused.errno))
        raise NotConforming(f"{what}: raised {got}, expected {names}") from refused
    except Exception as error:
        raise NotConforming(
            f"{what}: raised {type(error).__name__}, expected OSError {names}"
        ) from error
    raise NotConforming(f"{what}: raised nothing, expected OSError {names}")


def there(what: str, value: T | None) -> T:
    """A value that must not be None."""
    if value is None:
        raise NotConforming(f"{what}: got None")
    return value
