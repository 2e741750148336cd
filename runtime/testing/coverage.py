"""What a search has reached: arms of steps, messages by state, refusals, crash points."""

import ast
import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pkgutil import iter_modules
from types import CodeType, FrameType
from typing import Any

import msgspec

from tenure.messages.base import Effect, Message, Outcome, Refusal
from tenure.messages.tokens import ProcessName
from tenure.runtime.owner import Owner
from tenure.runtime.step import Step, Taken
from tenure.runtime.testing.checkers.base import role_of
from tenure.runtime.testing.watch import Watcher

ACTORS = "tenure.actors"


class Reached(msgspec.Struct, kw_only=True):
    """Counts of one run, or of many."""

    messages: Counter[str] = msgspec.field(default_factory=Counter)
    """`turn StopTurn in Calling`: what an owner took in which state."""
    crashes: Counter[str] = msgspec.field(default_factory=Counter)
    """What was under way in a process when it died."""
    effects: Counter[str] = msgspec.field(default_factory=Counter)
    outcomes: Counter[str] = msgspec.field(default_factory=Counter)

    def add(self, other: "Reached") -> None:
        self.messages.update(other.messages)
        self.crashes.update(other.crashes)
        self.effects.update(other.effects)
        self.outcomes.update(other.outcomes)


class Coverage(Watcher):
    """Counts what one run reaches."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = Reached()
        self._states: dict[tuple[str, str], str] = {}
        self._hosts: dict[ProcessName, str] = {}
        self._open: dict[str, dict[int, str]] = {}

    def host_started(self, host: str, process: ProcessName) -> None:
        self._hosts[process] = host

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        state = self._states.get((host, owner), "first")
        self.reached.messages[f"{role_of(owner)} {type(message).__name__} in {state}"] += 1
        self._states[host, owner] = type(step.state).__name__

    def effect_started(self, host: str, owner: str, number: int, effect: Effect) -> None:
        name = type(effect).__name__
        self.reached.effects[name] += 1
        self._open.setdefault(host, {})[number] = name

    def effect_ended(self, host: str, owner: str, number: int, outcome: Outcome) -> None:
        self.reached.outcomes[type(outcome).__name__] += 1
        self._open.get(host, {}).pop(number, None)

    def process_died(self, process: ProcessName) -> None:
        under_way = self._open.pop(self._hosts.get(process, ""), {}).values()
        for name in set(under_way) or {"nothing"}:
            self.reached.crashes[name] += 1


# --- arms ----------------------------------------------------------------------------------------


class Arms:
    """The arms of every step, and which of them have run.

    An arm is the first line of a `case`, of an `if` or of an `else` in `actors/`.
    """

    def __init__(self) -> None:
        self._arms: dict[str, dict[int, str]] = {}
        self._functions: dict[str, dict[int, str]] = {}
        self._left: dict[str, set[int]] = {}
        package = import_module(ACTORS)
        for found in iter_modules(package.__path__):
            module = import_module(f"{ACTORS}.{found.name}")
            path = str(module.__file__)
            source = inspect.getsource(module)
            self._arms[path] = _arms_of(source)
            self._functions[path] = _functions_of(source, self._arms[path])
            self._left[path] = set(self._arms[path])
        self._interesting: dict[CodeType, bool] = {}

    @property
    def count(self) -> int:
        return sum(len(arms) for arms in self._arms.values())

    def unreached(self) -> tuple[str, ...]:
        """`turn_stop.py:31 case Waiting()`, in order."""
        return tuple(
            f"{path.rpartition('/')[2]}:{line} {self._arms[path][line]}"
            for path, lines in sorted(self._left.items())
            for line in sorted(lines)
        )

    def names_unreached(self) -> tuple[str, ...]:
        """`turn_stop.py on_stop: case Waiting()`: a name that other changes of the file leave."""
        names = {
            f"{path.rpartition('/')[2]} {self._functions[path][line]}: {self._arms[path][line]}"
            for path, lines in self._left.items()
            for line in lines
        }
        return tuple(sorted(names))

    def take(self, unreached: tuple[str, ...]) -> None:
        """What another process has not reached either."""
        for path, lines in self._left.items():
            name = path.rpartition("/")[2]
            others = {each.partition(" ")[0] for each in unreached}
            lines &= {line for line in lines if f"{name}:{line}" in others}

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Every step that is taken inside counts."""
        own = {owner: owner.step for owner in Owner.__subclasses__()}
        for owner, step in own.items():
            owner.step = staticmethod(self._traced(step))  # type: ignore[method-assign]
        try:
            yield
        finally:
            for owner, step in own.items():
                owner.step = staticmethod(step)  # type: ignore[method-assign]

    def _traced(self, step: Any) -> Any:
        def traced(state: Any, message: Message, taken: Taken) -> Step[Any]:
            before = sys.gettrace()
            sys.settrace(self._call)
            try:
                taken_step: Step[Any] = step(state, message, taken)
            finally:
                sys.settrace(before)
            return taken_step

        return traced

    def _call(self, frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        wanted = self._interesting.get(code)
        if wanted is None:
            # Where everything was reached, nothing need be looked at any more.
            left = self._left.get(code.co_filename, set())
            lines = {line for _, _, line in code.co_lines() if line is not None}
            wanted = bool(left & lines)
            self._interesting[code] = wanted
        return self._line if wanted else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Any:
        left = self._left[frame.f_code.co_filename]
        if frame.f_lineno in left:
            left.discard(frame.f_lineno)
            self._interesting.pop(frame.f_code, None)
        return self._line


def _arms_of(source: str) -> dict[int, str]:
    """First line of each arm to what opens it."""
    arms: dict[int, str] = {}
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.match_case(body=body):
                arms[body[0].lineno] = f"case {ast.unparse(node.pattern)}"
            case ast.If(body=body, orelse=orelse):
                test = ast.unparse(node.test)
                arms[body[0].lineno] = f"if {test}"
                if orelse and not isinstance(orelse[0], ast.If):
                    arms[orelse[0].lineno] = f"else of if {test}"
            case _:
                pass
    never = {
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and ast.unparse(node.value).startswith("assert_never(")
    }
    return {line: text for line, text in arms.items() if line not in never}


def _functions_of(source: str, arms: dict[int, str]) -> dict[int, str]:
    """The function that each arm stands in."""
    found: dict[int, str] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            inside = (line for line in arms if node.lineno <= line <= (node.end_lineno or 0))
            found.update(dict.fromkeys(inside, node.name))
    return found


# --- what there is to reach ----------------------------------------------------------------------


def all_refusals() -> tuple[str, ...]:
    """Every refusal of the vocabulary by name."""
    return tuple(sorted(_below(Refusal)))


def all_effects() -> tuple[str, ...]:
    """Every effect of the vocabulary by name."""
    return tuple(sorted(_below(Effect)))


def _below(kind: type[Message]) -> set[str]:
    names: set[str] = set()
    for each in kind.__subclasses__():
        if each.__module__.startswith("tenure.messages"):
            names.add(each.__name__)
        names |= _below(each)
    return names
