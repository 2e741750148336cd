"""pytest fixtures of the simulated world: `pytest_plugins = ["tenure.testing.fixtures"]`.

    def test_a_prompt_is_answered(world, host):
        seat = world.run(host.seat())
        events = world.run(host.prompt("hello"))

A test that takes `world` runs once for each seed: seed 0, or as many as the
command line or a marker says.

    pytest --tenure-seeds 200                     # seeds 0 to 199
    pytest --tenure-seed 57                       # this seed alone
    @pytest.mark.tenure_seeds(50)                 # this test, seeds 0 to 49

A failure says its seed and how to run it again.
"""

from collections.abc import Generator, Iterator, Mapping
from typing import Any

import pytest

from tenure.runtime.testing.world import SimHost, World, simulate

_SEED = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The two options."""
    group = parser.getgroup("tenure", "simulated worlds")
    group.addoption(
        "--tenure-seeds", type=int, metavar="N", help="run each test in a world with N seeds"
    )
    group.addoption(
        "--tenure-seed", type=int, metavar="SEED", help="run each test in a world with this seed"
    )


def pytest_configure(config: pytest.Config) -> None:
    """The marker."""
    config.addinivalue_line(
        "markers", "tenure_seeds(n): run this test with the seeds 0 to n - 1, unless told otherwise"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One run a seed, for whatever takes `world`."""
    if "tenure_seed" in metafunc.fixturenames:
        seeds = _seeds(metafunc)
        metafunc.parametrize("tenure_seed", seeds, ids=[f"seed{seed}" for seed in seeds])


def _seeds(metafunc: pytest.Metafunc) -> list[int]:
    config = metafunc.config
    one = config.getoption("--tenure-seed", default=None)
    if one is not None:
        return [one]
    count = config.getoption("--tenure-seeds", default=None)
    marker = metafunc.definition.get_closest_marker("tenure_seeds")
    if count is None and marker is not None:
        count = marker.args[0]
    return list(range(1 if count is None else count))


@pytest.fixture
def world(request: pytest.FixtureRequest, tenure_seed: int) -> Iterator[World]:
    """A simulated world; what its watchers find fails the test when it is left."""
    request.node.stash[_SEED] = tenure_seed
    with simulate(tenure_seed) as made:
        yield made


@pytest.fixture
def host_options() -> Mapping[str, Any]:
    """What `host` is opened with; give another fixture of this name for a model of your own."""
    return {}


@pytest.fixture
def host(world: World, host_options: Mapping[str, Any]) -> SimHost:
    """A host in the world, with the seat `main` open."""
    made = world.host(**host_options)
    world.run(made.seat())
    return made


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """What watchers found fails the test itself, and not its tear-down."""
    done = yield
    made = pyfuncitem.funcargs.get("world")
    if isinstance(made, World):
        try:
            made.watchers.finish()
        finally:
            made.watchers.all.clear()
    return done


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure in a world says with which seed, and how to see it again."""
    report = yield
    seed = item.stash.get(_SEED, None)
    if report.failed and seed is not None:
        test = item.nodeid.partition("[")[0]
        again = f"this world again: pytest {test!r} --tenure-seed {seed}"
        report.sections.append(("tenure", f"seed {seed}\n{again}"))
    return report
