"""These orders of these messages: all of them, or those that keep what must come first.

    for order in orders(start, stop, swap, keep=[(start, stop)]):
        ...

    each_order(scenario, start, stop, swap)      # a fresh world for each order and seed

`explore.py` goes further: it also takes every order of what happens inside.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from tenure.runtime.testing.expect import short
from tenure.runtime.testing.watch import Watcher
from tenure.runtime.testing.world import World, simulate

T = TypeVar("T")

ORDERS_MAX = 100_000
"""Eight messages without a constraint have 40,320 orders; explore smaller parts."""


def orders(*items: T, keep: Iterable[tuple[T, T]] = ()) -> Iterator[tuple[T, ...]]:
    """Every order of these items that keeps the given pairs: the first before the second.

    Items are told apart by where they stand, so two equal ones may be given; a
    pair of `keep` names an item by being it, or, where nothing is, by being equal
    to it.  The first order is the one that was given, where it keeps the pairs.

    Raises:
        ValueError: a pair names what is not there, or the pairs go in a circle.
    """
    before: list[set[int]] = [set() for _ in items]
    for first, second in keep:
        before[_place(items, second)].add(_place(items, first))
    yield from _orders(items, before)


def _orders(items: tuple[T, ...], before: list[set[int]]) -> Iterator[tuple[T, ...]]:
    found = 0
    for order in _arranged(frozenset(range(len(items))), before):
        found += 1
        if found > ORDERS_MAX:
            raise ValueError(f"more than {ORDERS_MAX} orders; give fewer items or keep more pairs")
        yield tuple(items[place] for place in order)
    if not found:
        raise ValueError("no order keeps these pairs: they go in a circle")


def _arranged(left: frozenset[int], before: list[set[int]]) -> Iterator[tuple[int, ...]]:
    if not left:
        yield ()
    for place in sorted(left):
        if not before[place] & left:
            for rest in _arranged(left - {place}, before):
                yield (place, *rest)


def _place(items: tuple[T, ...], wanted: T) -> int:
    for place, item in enumerate(items):
        if item is wanted:
            return place
    for place, item in enumerate(items):
        if item == wanted:
            return place
    raise ValueError(f"keep names {wanted!r}, which is not among the items")


class OrderFailed(AssertionError):
    """A scenario failed in one order; the text names the order, the seed and the reason."""

    def __init__(self, order: tuple[object, ...], seed: int, reason: BaseException) -> None:
        lines = [f"failed in this order (seed {seed}):"]
        lines += [f"  {number}. {_named(item)}" for number, item in enumerate(order, 1)]
        lines.append(f"because: {type(reason).__name__}: {reason}")
        lines.append(f"this order alone: each_order(..., seeds=[{seed}], only={_names(order)})")
        super().__init__("\n".join(lines))
        self.order = order
        self.seed = seed


def each_order(
    scenario: Callable[[World, tuple[T, ...]], None],
    *items: T,
    keep: Iterable[tuple[T, T]] = (),
    seeds: Sequence[int] = (0,),
    only: Sequence[str] = (),
    watchers: Callable[[], Sequence[Watcher]] = tuple,
) -> int:
    """Run a scenario once for each order and seed, each time in a fresh world.

    Args:
        scenario: takes the world and the order, and raises where something is wrong.
        only: the order to run, by the items' names, as a failure gives them.
        watchers: gives new watchers for each world.

    Gives the number of runs.

    Raises:
        OrderFailed: the scenario raised, or a watcher found something.
    """
    runs = 0
    for order in orders(*items, keep=keep):
        if only and list(only) != _names(order):
            continue
        for seed in seeds:
            runs += 1
            try:
                with simulate(seed, watchers=watchers()) as world:
                    scenario(world, order)
            except Exception as reason:
                raise OrderFailed(order, seed, reason) from reason
    return runs


def _names(order: Iterable[object]) -> list[str]:
    return [_named(item) for item in order]


def _named(item: object) -> str:
    """A function by its name, a message without what is usual, anything else as it is."""
    name = getattr(item, "__name__", None)
    if isinstance(name, str):
        return name
    return short(item) if isinstance(item, msgspec.Struct) else str(item)
