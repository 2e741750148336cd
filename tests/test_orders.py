"""Every order of some messages, as input for tests in simulated worlds."""

from itertools import permutations

import pytest

from tenure.messages.session import StartTurn
from tenure.messages.turn import TurnBusy, TurnEnded
from tenure.runtime.doors.models.scripted import Scripted
from tenure.runtime.testing.expect import events_of, expect_reply
from tenure.runtime.testing.orders import ORDERS_MAX, OrderFailed, each_order, orders
from tenure.runtime.testing.watch import Violated, Watcher
from tenure.runtime.testing.world import World


def test_without_a_constraint_every_permutation_comes_once() -> None:
    assert list(orders("a", "b", "c")) == list(permutations("abc"))
    assert list(orders()) == [()]


def test_a_kept_pair_is_in_its_order_in_every_one() -> None:
    found = list(orders("a", "b", "c", "d", keep=[("a", "b"), ("b", "d")]))
    expected = [
        order
        for order in permutations("abcd")
        if order.index("a") < order.index("b") < order.index("d")
    ]
    assert found == expected
    assert len(found) == 4


def test_equal_items_are_told_apart_by_where_they_stand() -> None:
    one, other = StartTurn(text="go"), StartTurn(text="go")
    found = list(orders(one, other, "stop", keep=[(one, other)]))
    assert len(found) == 3
    assert all(
        next(i for i, item in enumerate(order) if item is one)
        < next(i for i, item in enumerate(order) if item is other)
        for order in found
    )


@pytest.mark.parametrize(
    ("keep", "why"),
    [
        ([("a", "b"), ("b", "a")], "in a circle"),
        ([("a", "a")], "in a circle"),
        ([("a", "x")], "keep names 'x'"),
    ],
)
def test_constraints_that_cannot_be_kept_are_refused(keep: list[tuple[str, str]], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        list(orders("a", "b", keep=keep))


def test_more_orders_than_anybody_runs_are_refused() -> None:
    with pytest.raises(ValueError, match=f"more than {ORDERS_MAX} orders"):
        for _ in orders(*range(9)):
            pass


# --- in worlds ----------------------------------------------------------------------------------


def first(world: World) -> str:
    return "first"


def second(world: World) -> str:
    return "second"


def third(world: World) -> str:
    return "third"


def test_a_scenario_runs_once_for_each_order_and_seed_in_a_world_of_its_own() -> None:
    seen: list[tuple[int | str, list[str]]] = []
    worlds: list[World] = []

    def scenario(world: World, order: tuple[object, ...]) -> None:
        worlds.append(world)
        seen.append((world.seed, [item(world) for item in order]))  # type: ignore[operator]

    assert each_order(scenario, first, second, third, keep=[(first, third)], seeds=(1, 2)) == 6
    assert seen == [
        (seed, list(order))
        for order in (
            ("first", "second", "third"),
            ("first", "third", "second"),
            ("second", "first", "third"),
        )
        for seed in (1, 2)
    ]
    assert len({id(world) for world in worlds}) == 6


def test_a_failure_names_the_order_the_seed_and_the_reason_and_runs_alone_again() -> None:
    runs: list[tuple[str, ...]] = []

    def scenario(world: World, order: tuple[object, ...]) -> None:
        names = tuple(item.__name__ for item in order)  # type: ignore[attr-defined]
        runs.append(names)
        assert names[0] != "second", "second must not be first"

    with pytest.raises(OrderFailed) as failed:
        each_order(scenario, first, second, third, seeds=(3,))
    assert str(failed.value).startswith(
        "failed in this order (seed 3):\n"
        "  1. second\n"
        "  2. first\n"
        "  3. third\n"
        "because: AssertionError: second must not be first"
    )
    assert "each_order(..., seeds=[3], only=['second', 'first', 'third'])" in str(failed.value)
    assert isinstance(failed.value.__cause__, AssertionError)
    runs.clear()
    with pytest.raises(OrderFailed):
        each_order(scenario, first, second, third, seeds=[3], only=["second", "first", "third"])
    assert runs == [("second", "first", "third")]


def test_what_a_watcher_finds_fails_the_order() -> None:
    class Suspicious(Watcher):
        def finished(self) -> None:
            self.report("HOUSE-1", "nothing is right")

    with pytest.raises(OrderFailed, match="HOUSE-1: nothing is right") as failed:
        each_order(lambda world, order: None, first, watchers=lambda: [Suspicious()])
    assert isinstance(failed.value.__cause__, Violated)


def test_two_prompts_in_any_order_are_never_two_turns() -> None:
    one, other = StartTurn(text="one"), StartTurn(text="other")
    outcomes: set[str] = set()

    def scenario(world: World, order: tuple[StartTurn, ...]) -> None:
        log = events_of(world)
        host = world.host(model=Scripted(["fine", "fine"]))
        world.run(host.seat())
        asked = [world.tell(host, command) for command in order]
        replies = [world.run(task) for task in asked]
        world.settle()
        ended = log.of(TurnEnded)
        busy = [reply for reply in replies if isinstance(reply, TurnBusy)]
        for reply in busy:
            expect_reply(reply, TurnBusy)
        assert len(ended) == 2 - len(busy)
        outcomes.add(f"{len(busy)} busy")

    each_order(scenario, one, other, seeds=range(10))
    assert "1 busy" in outcomes
