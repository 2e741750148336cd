"""What the code says of itself: owners, messages, handlers, guards and witnesses.

Read from the loaded classes where they know it, else from the syntax trees.  A
message's senders are the modules that construct it, its takers the owners whose
steps match it.
"""

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib import import_module

import msgspec

from tenure.messages.base import (
    Command,
    Effect,
    Event,
    Message,
    Notice,
    Outcome,
    Query,
    Refusal,
    Reply,
)
from tenure.runtime.owner import Owner
from tenure.runtime.system import BETWEEN_OWNERS, EVENT_ROUTES, TAKEN_BY
from tenure.runtime.testing.checkout import Checkout

KINDS = (Query, Command, Refusal, Reply, Event, Effect, Outcome, Notice)
"""The narrower first: a query is a command, too, and a refusal a reply."""

PROGRAMS = ("runtime/cli/", "runtime/testing/")
"""They use a host from outside, or simulate one: they are no part of what it says."""

API = frozenset({"host", "host_sync", "seat"})
"""What these say in commands, they say for whoever called them."""


class MessageRow(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the vocabulary."""

    name: str
    kind: str
    said_by: tuple[str, ...]
    taken_by: tuple[str, ...]
    file: str


class EffectRow(msgspec.Struct, frozen=True, kw_only=True):
    """One effect, and who carries it out."""

    name: str
    concurrent: bool
    wanted_by: tuple[str, ...]
    handler: str
    """`doors/transcripts/door.py Transcripts.append`."""


class Facts:
    """Everything that ARCHITECTURE.md says in tables."""

    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout

    @cached_property
    def owners(self) -> dict[str, type[Owner]]:
        """By the stem of their file: `session` has `SessionActor`."""
        found: dict[str, type[Owner]] = {}
        for file in self._checkout.python_files("actors"):
            module = import_module(_module_of(file))
            for each in vars(module).values():
                own = isinstance(each, type) and each.__module__ == module.__name__
                if own and issubclass(each, Owner):
                    found[_stem(file)] = each
        return found

    @cached_property
    def messages(self) -> dict[str, type[Message]]:
        """The vocabulary by name, without the kinds themselves, in the order of their files."""
        found: dict[str, type[Message]] = {}
        for file in self._checkout.python_files("messages"):
            module = import_module(_module_of(file))
            for each in vars(module).values():
                own = isinstance(each, type) and each.__module__ == module.__name__
                if own and issubclass(each, Message) and file != "messages/base.py":
                    found[each.__name__] = each
        return found

    def owner_of(self, file: str) -> str:
        """The owner that a file of actors/ belongs to: the longest stem that begins its name."""
        stem = _stem(file)
        begins = [each for each in self.owners if stem == each or stem.startswith(f"{each}_")]
        return self.owners[max(begins, key=len)].__name__ if begins else stem

    def part_of(self, file: str) -> str:
        """Who speaks in this file: an owner, a door, or a part of the runtime."""
        if file.startswith("actors/"):
            return self.owner_of(file)
        if file.startswith("runtime/doors/"):
            return f"{file.split('/')[2].removesuffix('.py')} door"
        return _stem(file)

    @cached_property
    def message_rows(self) -> list[MessageRow]:
        """One row a message."""
        return [self._row(name, message) for name, message in self.messages.items()]

    def _row(self, name: str, message: type[Message]) -> MessageRow:
        kind = next(kind for kind in KINDS if issubclass(message, kind))
        said_by = self._constructed.get(name, set())
        if issubclass(message, Command):
            said_by = said_by - API
            if message not in BETWEEN_OWNERS:
                said_by = said_by | {"outside"}
        elif issubclass(message, Outcome) and name in self._failures:
            said_by = said_by | {"the shell"}
        return MessageRow(
            name=name,
            kind=kind.__name__,
            said_by=tuple(sorted(said_by)),
            taken_by=self._takers(name, message),
            file=message.__module__.removeprefix("tenure.").replace(".", "/") + ".py",
        )

    def _takers(self, name: str, message: type[Message]) -> tuple[str, ...]:
        if issubclass(message, Command):
            role = TAKEN_BY.get(message)
            return (self._owner_with_role(role),) if role else ()
        if issubclass(message, Reply):
            return ("the asker",)
        if issubclass(message, Event):
            routed = EVENT_ROUTES.get(message)
            return ("subscribers", *([self._owner_with_role(routed)] if routed else []))
        if issubclass(message, Effect):
            return (self.handlers[name],) if name in self.handlers else ()
        if issubclass(message, Notice):
            return ("every owner",)
        return tuple(sorted(self._matched.get(name, set())))

    @cached_property
    def effect_rows(self) -> list[EffectRow]:
        """One row an effect."""
        return [
            EffectRow(
                name=name,
                concurrent=message.concurrent,
                wanted_by=tuple(sorted(self._constructed.get(name, set()))),
                handler=self.handlers.get(name, ""),
            )
            for name, message in self.messages.items()
            if issubclass(message, Effect)
        ]

    @cached_property
    def handlers(self) -> dict[str, str]:
        """Who carries out which effect, as `runtime/system.py` wires a host."""
        from tenure.runtime.host_doors import Wishes, open_doors
        from tenure.runtime.system import handlers_of
        from tenure.runtime.testing.leaves import memory_leaves

        wishes = Wishes()
        doors = open_doors(memory_leaves(), "/workspace", "host", wishes)
        return {
            effect.__name__: _place_of(handler)
            for effect, handler in handlers_of(doors, wishes).items()
        }

    def _owner_with_role(self, role: str) -> str:
        """A role is the stem of its owner's file."""
        return self.owners[role].__name__ if role in self.owners else role

    @cached_property
    def _constructed(self) -> dict[str, set[str]]:
        """By message: the parts that make one."""
        found: dict[str, set[str]] = {}
        for file, tree in self._checkout.trees("actors", "runtime"):
            for name in _calls(tree):
                if name in self.messages and not file.startswith(PROGRAMS):
                    found.setdefault(name, set()).add(self.part_of(file))
        return found

    @cached_property
    def _matched(self) -> dict[str, set[str]]:
        """By message: the owners whose steps have a `case` for it."""
        found: dict[str, set[str]] = {}
        for file, tree in self._checkout.trees("actors"):
            for node in ast.walk(tree):
                if isinstance(node, ast.MatchClass) and isinstance(node.cls, ast.Name):
                    found.setdefault(node.cls.id, set()).add(self.part_of(file))
        return found

    @cached_property
    def _failures(self) -> set[str]:
        """What effects themselves say when their handler cannot."""
        return {name for _, tree in self._checkout.trees("messages") for name in _calls(tree)}


def witnesses_of(checkout: Checkout) -> dict[str, tuple[str, ...]]:
    """By invariant: the tests that mark themselves with `@pytest.mark.witness(ID)`."""
    found: dict[str, list[str]] = {}
    for file, tree in checkout.trees("tests"):
        module = [
            id
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
            for id in _marks([node.value])
        ]
        for path, node, ids in _tests(tree.body, f"{file}::", module):
            for id in dict.fromkeys([*ids, *_marks(node.decorator_list)]):
                found.setdefault(id, []).append(path + node.name)
    return {id: tuple(tests) for id, tests in sorted(found.items())}


def _tests(
    body: Iterable[ast.stmt], path: str, ids: list[str]
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, list[str]]]:
    for node in body:
        match node:
            case ast.ClassDef(name=name) if name.startswith("Test"):
                marked = ids + _marks(node.decorator_list)
                yield from _tests(node.body, f"{path}{name}::", marked)
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name.startswith("test"):
                yield path, node, ids


def _marks(nodes: Iterable[ast.AST]) -> list[str]:
    """The ids in every `pytest.mark.witness(...)` below these nodes."""
    return [
        argument.value
        for each in nodes
        for node in ast.walk(each)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.witness"
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def _calls(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def _place_of(handler: object) -> str:
    """Where a handler stands, for people: its door's file and its name."""
    module: str = getattr(handler, "__module__", "")
    name: str = getattr(handler, "__qualname__", type(handler).__qualname__)
    file = module.removeprefix("tenure.").replace(".", "/") + ".py"
    return f"{file} {name.rpartition('<locals>.')[2]}"


def _module_of(file: str) -> str:
    return "tenure." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _stem(file: str) -> str:
    return file.rpartition("/")[2].removesuffix(".py")
