"""`tenure sim`: simulated runs of whole hosts, searched for one that breaks an invariant."""

import gc
import multiprocessing
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

if TYPE_CHECKING:
    from tenure.runtime.testing.coverage import Arms
    from tenure.runtime.testing.search import Tally

SHOWN_MAX = 12
CHUNK_SEEDS = 50
COLLECT_EVERY = 25
EXIT_FAILED = 1
DEFENCE = " case _"


@click.group("sim")
def command() -> None:
    """Search simulated runs for one that breaks an invariant.

    Whole hosts run on one thread with a virtual clock, on a simulated disk, in an
    order that a seed chooses: swaps, turns, approvals, crashes, two hosts on one
    disk.  The same seed gives the same run.
    """


@command.command("run")
@click.option("--seeds", default=200, show_default=True, help="How many runs.")
@click.option("--start", default=0, show_default=True, help="The first seed.")
@click.option("--workload", default="", help="One workload alone: seats, sessions, ...")
@click.option("--seconds", type=float, help="Stop after this time, whatever is left.")
@click.option("--jobs", default=1, show_default=True, help="Processes that share the work.")
@click.option("--out", type=click.Path(file_okay=False), default=".", help="For failing runs.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def run(
    seeds: int, start: int, workload: str, seconds: float | None, jobs: int, out: str, as_json: bool
) -> None:
    """Run many seeds under all checkers; exit 1 where one broke an invariant.

    The runs are shared out among all workloads, unless one is named.
    """
    from tenure.runtime.testing.search import parts_of

    _check_workload(workload)
    began = time.monotonic()
    ends = None if seconds is None else began + seconds
    chunks = [
        (name, first, min(first + CHUNK_SEEDS, start + part), ends)
        for name, part in parts_of(seeds, workload).items()
        for first in range(start, start + part, CHUNK_SEEDS)
    ]
    tally, unreached, arms = _searched(chunks, jobs)
    took_s = time.monotonic() - began
    paths = _written(tally, Path(out))
    if as_json:
        click.echo(msgspec.json.encode(_facts(tally, took_s, unreached, arms)))
    else:
        _print(tally, took_s, unreached, arms)
        for path in paths:
            click.echo(f"replay with: tenure sim replay {path}")
    if tally.found:
        sys.exit(EXIT_FAILED)


@command.command("replay")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--pause", is_flag=True, help="Wait for Enter after each line.")
def replay(file: str, pause: bool) -> None:
    """Run the failing run of FILE again, step by step; exit 1 where it fails again."""
    from tenure.runtime.testing.shrink import Failure
    from tenure.runtime.testing.shrink import replay as run_again

    try:
        failure = msgspec.json.decode(Path(file).read_bytes(), type=Failure)
    except msgspec.DecodeError as error:
        raise click.ClickException(f"{file}: this is no failing run: {error}") from error
    for op in failure.plan.ops:
        click.echo(f"plan: {op}")
    if failure.crash is not None:
        click.echo(f"crash: {failure.crash}")

    def say(line: str) -> None:
        click.echo(line)
        if pause:
            click.pause(info="")

    violations = run_again(failure, say)
    for violation in violations:
        click.echo(f"BROKEN {violation.invariant}: {violation.what}")
    if not violations:
        click.echo("nothing was broken")
    else:
        sys.exit(EXIT_FAILED)


@command.command("sweep")
@click.option("--seed", default=0, show_default=True, help="Whose plan.")
@click.option("--workload", default="seats", show_default=True, help="Of which workload.")
@click.option("--out", type=click.Path(file_okay=False), default=".", help="For failing runs.")
def sweep_command(seed: int, workload: str, out: str) -> None:
    """Crash at every call to the disk and every effect of one plan, one run for each."""
    _check_workload(workload)
    from tenure.runtime.testing.sweep import sweep
    from tenure.runtime.testing.workload_plan import plan_of

    began = time.monotonic()
    tally = sweep(plan_of(seed, workload))
    paths = _written(tally, Path(out))
    _print(tally, time.monotonic() - began, (), None)
    for path in paths:
        click.echo(f"replay with: tenure sim replay {path}")
    if tally.found:
        sys.exit(EXIT_FAILED)


# --- the search -----------------------------------------------------------------------------


def _check_workload(name: str) -> None:
    from tenure.runtime.testing.workload_plan import SEATS_ALONE
    from tenure.runtime.testing.workloads import WORKLOADS

    if name not in ("", SEATS_ALONE, *WORKLOADS):
        known = ", ".join((SEATS_ALONE, *WORKLOADS))
        raise click.BadParameter(f"there is no workload {name!r}; there are {known}")


Chunk = tuple[str, int, int, float | None]
"""Workload, first seed, end of seeds, and when to stop."""


def _searched(chunks: list[Chunk], jobs: int) -> "tuple[Tally, tuple[str, ...], int]":
    from tenure.runtime.testing.coverage import Arms
    from tenure.runtime.testing.search import Tally

    tally, arms = Tally(), Arms()
    if jobs == 1:
        for chunk in chunks:
            tally.add(_chunk(chunk, arms))
    else:
        with multiprocessing.get_context("spawn").Pool(jobs) as pool:
            for part, unreached in pool.imap_unordered(_chunk_elsewhere, chunks):
                tally.add(part)
                arms.take(unreached)
    return tally, arms.unreached(), arms.count


def _chunk(chunk: Chunk, arms: "Arms") -> "Tally":
    from tenure.runtime.testing.search import Tally, try_plan
    from tenure.runtime.testing.workload_plan import plan_of

    workload, first, end, ends = chunk
    tally = Tally()
    gc.freeze()
    with arms.watched():
        for seed in range(first, end):
            if ends is not None and time.monotonic() >= ends:
                break
            try_plan(plan_of(seed, workload), tally)
            if seed % COLLECT_EVERY == 0:
                gc.collect()
    gc.unfreeze()
    return tally


def _chunk_elsewhere(chunk: Chunk) -> "tuple[Tally, tuple[str, ...]]":
    from tenure.runtime.testing.coverage import Arms

    arms = Arms()
    return _chunk(chunk, arms), arms.unreached()


def _written(tally: "Tally", folder: Path) -> list[Path]:
    """One file for each kind of failure, each made as short as it gets."""
    from tenure.runtime.testing.shrink import NotAgain, Shrinker

    paths: list[Path] = []
    seen: set[str] = set()
    for found in tally.found:
        invariant = found.violations[0].invariant
        if invariant in seen:
            continue
        seen.add(invariant)
        try:
            failure = Shrinker(found).shrink()
        except NotAgain as error:
            click.echo(f"no file is written: {error}", err=True)
            continue
        folder.mkdir(parents=True, exist_ok=True)
        name = found.plan.name.replace("/", "-")
        path = folder / f"sim-{invariant.lower()}-{name}.json"
        path.write_bytes(msgspec.json.format(msgspec.json.encode(failure)))
        paths.append(path)
    return paths


# --- what is printed ------------------------------------------------------------------------


def _facts(
    tally: "Tally", took_s: float, unreached: tuple[str, ...], arms: int
) -> dict[str, object]:
    from tenure.runtime.testing.coverage import all_effects, all_refusals

    return {
        "type": "SimulationRan",
        "schedules": tally.schedules,
        "distinct": len(tally.distinct),
        "steps": tally.steps,
        "seconds": round(took_s, 3),
        "steps_per_second": round(tally.steps / took_s) if took_s else 0,
        "crashes": dict(tally.crashes.most_common()),
        "refusals": dict(tally.refusals.most_common()),
        "refusals_never": [name for name in all_refusals() if name not in tally.refusals],
        "crash_points": dict(tally.reached.crashes.most_common()),
        "crash_points_never": [each for each in all_effects() if each not in tally.reached.crashes],
        "arms": arms,
        "arms_reached": arms - len(unreached),
        "arms_never": unreached,
        "messages_by_state": dict(sorted(tally.reached.messages.items())),
        "violations": [
            {"plan": found.plan.name, "invariant": each.invariant, "what": each.what}
            for found in tally.found
            for each in found.violations
        ],
    }


def _print(tally: "Tally", took_s: float, unreached: tuple[str, ...], arms: int | None) -> None:
    from tenure.runtime.testing.coverage import all_effects, all_refusals

    crashes = sum(tally.crashes.values())
    refused = sum(tally.refusals.values())
    click.echo(
        f"{tally.schedules} schedules ({len(tally.distinct)} different), {tally.steps} steps "
        f"in {took_s:.1f} s ({tally.steps / max(took_s, 0.001):,.0f} a second)"
    )
    click.echo(f"{crashes} accidents: {_counts(tally.crashes)}")
    click.echo(f"{refused} refusals: {_counts(tally.refusals)}")
    if arms is not None:
        _never("refusals never given", [x for x in all_refusals() if x not in tally.refusals])
        died = tally.reached.crashes
        click.echo(f"processes died under: {_counts(died)}")
        _never("effects under which none died", [x for x in all_effects() if x not in died])
        click.echo(f"arms of steps: {arms - len(unreached)} of {arms} reached")
        # What takes the rest of a match is mostly there for what no owner ever sends.
        defences = [arm for arm in unreached if arm.endswith(DEFENCE)]
        for arm in unreached:
            if arm not in defences:
                click.echo(f"  never: {arm}")
        for arm in defences:
            click.echo(f"  never, a defence: {arm}")
        by_role = Counter[str]()
        for place, count in tally.reached.messages.items():
            by_role[place.partition(" ")[0]] += count
        combinations = len(tally.reached.messages)
        click.echo(f"{combinations} kinds of message in a state: {_counts(by_role)}")
    click.echo(f"{len(tally.found)} runs with violations")
    for found in tally.found[:SHOWN_MAX]:
        for each in found.violations[:3]:
            click.echo(f"  plan {found.plan.name}: {each.invariant}: {each.what}")


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common()) or "none"


def _never(what: str, names: list[str]) -> None:
    if names:
        click.echo(f"{what}: {', '.join(names)}")
