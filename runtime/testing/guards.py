"""Takes every guard away, and makes every mutation, to see that a witness notices.

    python -m tenure.runtime.testing.guards [--only ID] [--json] [--jobs N]

For each invariant: its guards in the source (`# guard: ID`) and its mutations
(`runtime/invariants.py`) are applied one at a time to a copy of the checkout, and
only the witnesses of that invariant are run.  Exits 1 where a breakage survives,
where it could not be judged, or where an invariant has neither guard nor mutation.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tenure.runtime.invariants import INVARIANTS, MUTATIONS, Invariant, Mutation
from tenure.runtime.testing.checkout import FOLDERS, Checkout, NoCheckout, find_checkout
from tenure.runtime.testing.guards_run import (
    SOUND_S_MAX,
    Breakage,
    Copy,
    Verdict,
    failed_in,
    judge_all,
    last_lines,
)
from tenure.runtime.testing.guards_source import BadGuard, Guard, guards_of, without

JOBS = 2


def all_guards(checkout: Checkout) -> list[Guard]:
    """Every guard in the source of a checkout."""
    return [
        guard
        for file in checkout.python_files(*FOLDERS)
        for guard in guards_of(file, checkout.text(file))
    ]


def breakages_of(checkout: Checkout, invariants: Sequence[Invariant]) -> list[Breakage]:
    """Everything that would break these invariants, one at a time.

    A guard that is redundant with another invariant's is taken away together
    with the guards of that one: only then is it missed.

    Raises:
        BadGuard: a guard or a mutation does not fit the source.
    """
    guards = all_guards(checkout)
    found: list[Breakage] = []
    for invariant in invariants:
        for guard in guards:
            if guard.invariant == invariant.id:
                others = [each for each in guards if each.invariant == guard.redundant_with]
                found.append(_removal(checkout, guard, others))
        for mutation in MUTATIONS:
            if mutation.invariant == invariant.id:
                found.append(_mutated(checkout, mutation))
    return found


def _removal(checkout: Checkout, guard: Guard, others: list[Guard]) -> Breakage:
    name = f"{guard.file}:{guard.line} {guard.function}"
    if guard.redundant_with:
        name += f", with the guards of {guard.redundant_with}"
    removed: dict[str, list[Guard]] = {}
    for each in (guard, *others):
        removed.setdefault(each.file, []).append(each)
    changed = {file: without(checkout.text(file), gone) for file, gone in removed.items()}
    return Breakage(invariant=guard.invariant, name=name, changed=changed)


def _mutated(checkout: Checkout, mutation: Mutation) -> Breakage:
    text = checkout.text(mutation.file)
    if text.count(mutation.before) != 1:
        raise BadGuard(
            f"mutation {mutation.name!r}: its `before` is {text.count(mutation.before)} times "
            f"in {mutation.file}, not once"
        )
    return Breakage(
        invariant=mutation.invariant,
        name=f"{mutation.file} ({mutation.name})",
        changed={mutation.file: text.replace(mutation.before, mutation.after)},
    )


def remove_all(
    checkout: Checkout, ids: Sequence[str], jobs: int, say: Callable[[Verdict], None]
) -> list[Verdict]:
    """Judge every breakage of the named invariants, or of all where none is named.

    Raises:
        BadGuard: a guard or a mutation does not fit the source, or the tests of a
            copy cannot be run.
    """
    chosen = [each for each in INVARIANTS if not ids or each.id in ids]
    breakages = breakages_of(checkout, chosen)
    broken = {each.invariant for each in breakages}
    tests = sorted({test for each in chosen for test in each.witnesses})
    with tempfile.TemporaryDirectory(prefix="tenure-guards-") as folder:
        copies = [Copy(checkout, Path(folder).resolve() / str(n)) for n in range(max(jobs, 1))]
        unsound = unsound_of(copies[0], tests)
        verdicts = [Verdict(invariant="", name=test, fate="unsound") for test in sorted(unsound)]
        verdicts += [
            Verdict(invariant=each.id, name="no guard and no mutation", fate="survived")
            for each in chosen
            if each.id not in broken
        ]
        for verdict in verdicts:
            say(verdict)
        witnesses = {
            each.id: [test for test in each.witnesses if test not in unsound] for each in chosen
        }
        return verdicts + judge_all(copies, breakages, witnesses, say)


def unsound_of(copy: Copy, tests: Sequence[str]) -> set[str]:
    """The witnesses that fail although nothing is broken: what they say means nothing."""
    imported = copy.check()
    if imported:
        raise BadGuard(f"the copy is not what Python imports: {imported}")
    if not tests:
        return set()
    ran = copy.run(tests, SOUND_S_MAX, failures_max=len(tests))
    if ran is None:
        raise BadGuard(f"the witnesses take more than {SOUND_S_MAX:.0f} s on the unbroken source")
    failed = {test.partition("[")[0] for test in failed_in(ran.stdout)}
    if ran.returncode not in (0, 1) or not failed <= set(tests):
        raise BadGuard(f"the witnesses cannot be run on the unbroken source:\n{last_lines(ran)}")
    return failed


def line_of(verdict: Verdict) -> str:
    """One verdict as a line for people."""
    fates = {
        "caught": f"caught by {verdict.witness}",
        "hung": f"caught: {verdict.witness} hangs",
        "survived": "SURVIVED",
        "no_witness": "NO WITNESS",
        "unsound": "FAILS ALTHOUGH NOTHING IS BROKEN",
        "unusable": f"NOT JUDGED: the tests cannot be run\n{verdict.detail}",
    }
    return (
        f"{verdict.invariant or 'witness':<10} {verdict.name}\n           -> {fates[verdict.fate]}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; gives the exit code: 0 all caught, 1 not all, 2 it cannot run."""
    parser = argparse.ArgumentParser(prog="python -m tenure.runtime.testing.guards")
    parser.add_argument("--only", action="append", default=[], metavar="ID")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--jobs", type=int, default=JOBS, help=f"copies at a time ({JOBS})")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.only) - {each.id for each in INVARIANTS})
    if unknown:
        parser.error(f"no invariant {', '.join(unknown)}; runtime/invariants.py has them all")

    def say(verdict: Verdict) -> None:
        text = msgspec.json.encode(verdict).decode() if given.json else line_of(verdict)
        print(text, flush=True)

    try:
        verdicts = remove_all(find_checkout(), given.only, given.jobs, say)
    except (NoCheckout, BadGuard) as problem:
        print(problem, file=sys.stderr)
        return 2
    missed = [verdict for verdict in verdicts if not verdict.holds]
    if not given.json:
        judged = [verdict for verdict in verdicts if verdict.fate != "unsound"]
        noticed = sum(verdict.holds for verdict in judged)
        print(f"{noticed} of {len(judged)} breakages were noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
