"""Runs witnesses against a copy of the source in which something was broken.

The working tree is never touched: each job works in a copy of its own, in which
`tenure` is laid out as an editable install lays it out, and PYTHONPATH makes
that one win.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from tenure.runtime.testing.checkout import FOLDERS, Checkout

COPIED_FILES = ("ARCHITECTURE.md", "README.md", "hatch_build.py", "pyproject.toml")
COPIED_FOLDERS = (*FOLDERS, "tests", "examples", "docs")
RUN_S_MAX = 180.0
"""How long the witnesses of one breakage may run; a breakage may make them hang."""
SOUND_S_MAX = 600.0
"""How long all witnesses may run on the unbroken source."""
TEST_S_MAX = 20
"""How long one test may run."""

_FAILED = re.compile(r"^(?:FAILED|ERROR) (?P<test>.+?)(?: - .*)?$")


class Breakage(msgspec.Struct, frozen=True, kw_only=True):
    """One way to break one invariant."""

    invariant: str
    name: str
    """For people: where the guard is, or what the mutation does."""
    changed: dict[str, str]
    """The broken files: path from the root to the whole new text."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the witnesses said of one breakage."""

    invariant: str
    name: str
    fate: Literal["caught", "hung", "survived", "no_witness", "unusable", "unsound"]
    """unusable: the tests could not be run at all, so nobody was asked.
    unsound: a witness that fails on the unbroken source, and is not believed."""
    witness: str = ""
    """The test that failed."""
    detail: str = ""
    """What pytest said where it is unusable."""

    @property
    def holds(self) -> bool:
        return self.fate in ("caught", "hung")


class Copy:
    """A copy of the checkout that is broken and mended again, one breakage at a time."""

    def __init__(self, checkout: Checkout, folder: Path) -> None:
        self.root = folder
        _lay_out(checkout.root, folder)

    def judge(self, breakage: Breakage, witnesses: Sequence[str]) -> Verdict:
        """Break it, run the witnesses until one fails, and mend it."""
        mended = {file: (self.root / file).read_text("utf-8") for file in breakage.changed}
        try:
            self._write(breakage.changed)
            ran = self.run(witnesses)
        finally:
            self._write(mended)
        said = Verdict(invariant=breakage.invariant, name=breakage.name, fate="survived")
        if ran is None:
            return msgspec.structs.replace(said, fate="hung", witness=witnesses[0])
        if ran.returncode == 0:
            return said
        failed = failed_in(ran.stdout)
        if ran.returncode != 1 or not failed:
            return msgspec.structs.replace(said, fate="unusable", detail=last_lines(ran))
        return msgspec.structs.replace(said, fate="caught", witness=failed[0])

    def run(
        self, tests: Sequence[str], within_s: float = RUN_S_MAX, failures_max: int = 1
    ) -> subprocess.CompletedProcess[str] | None:
        """Run these tests until so many have failed; None where they took too long."""
        command = [sys.executable, "-m", "pytest", f"--maxfail={failures_max}"]
        command += ["-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", f"--timeout={TEST_S_MAX}"]
        try:
            return subprocess.run(
                [*command, *tests],
                cwd=self.root,
                env=_environment(self.root),
                capture_output=True,
                text=True,
                timeout=within_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None

    def check(self) -> str:
        """Empty where the copy is what Python imports; else what it imports instead."""
        ran = subprocess.run(
            [sys.executable, "-c", "import tenure.runtime.bus as b; print(b.__file__)"],
            cwd=self.root,
            env=_environment(self.root),
            capture_output=True,
            text=True,
            timeout=RUN_S_MAX,
            check=False,
        )
        imported = ran.stdout.strip()
        return "" if imported.startswith(str(self.root)) else imported or last_lines(ran)

    def _write(self, changed: Mapping[str, str]) -> None:
        for file, text in changed.items():
            path = self.root / file
            path.write_text(text, "utf-8")
            # Two texts of one length within one second look the same to Python's cache.
            for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
                compiled.unlink()


def judge_all(
    copies: Sequence[Copy],
    breakages: Sequence[Breakage],
    witnesses: Mapping[str, Sequence[str]],
    say: Callable[[Verdict], None],
) -> list[Verdict]:
    """Judge every breakage, in order, one copy a worker; `say` hears each verdict in order."""
    from concurrent.futures import ThreadPoolExecutor
    from queue import SimpleQueue

    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def judge(breakage: Breakage) -> Verdict:
        tests = witnesses.get(breakage.invariant, ())
        if not tests:
            return Verdict(invariant=breakage.invariant, name=breakage.name, fate="no_witness")
        copy = free.get()
        try:
            return copy.judge(breakage, tests)
        finally:
            free.put(copy)

    verdicts = []
    with ThreadPoolExecutor(len(copies)) as pool:
        for verdict in pool.map(judge, breakages):
            say(verdict)
            verdicts.append(verdict)
    return verdicts


def _lay_out(source: Path, folder: Path) -> None:
    """Copy what the tests need, and link `tenure` together as the build hook does."""
    folder.mkdir()
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in COPIED_FOLDERS:
        if (source / name).is_dir():
            shutil.copytree(source / name, folder / name, ignore=ignore)
    for name in COPIED_FILES:
        if (source / name).is_file():
            shutil.copy(source / name, folder / name)
    _link_all(source, source / ".dev", folder)


def _link_all(source: Path, here: Path, folder: Path) -> None:
    """Lay links that lead to the copy where those of the checkout lead to the checkout."""
    there = folder / here.relative_to(source)
    there.mkdir()
    for each in here.iterdir():
        if each.is_symlink():
            target = folder / each.resolve().relative_to(source)
            (there / each.name).symlink_to(os.path.relpath(target, there))
        elif each.is_dir() and each.name != "__pycache__":
            _link_all(source, each, folder)


def _environment(root: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    return {**kept, "PYTHONPATH": str(root / ".dev")}


def failed_in(output: str) -> list[str]:
    """The tests that failed, as pytest names them at its end."""
    matches = (_FAILED.match(line) for line in output.splitlines())
    return [match["test"] for match in matches if match]


def last_lines(ran: subprocess.CompletedProcess[str]) -> str:
    """The end of what a run printed."""
    lines = [line for line in (ran.stdout + ran.stderr).splitlines() if line.strip()]
    return "\n".join(lines[-6:])
