"""The observations of the last days, as wake tells them.

A line is `- [decision|c=0.90|i=0.85] text` in `ledger/observations/YYYY/MM/DD.md`, or in
the older `observations/YYYY-MM-DD.md`.  Days are those of the vault's calendar (UTC).

These functions block: they run in a worker.
"""

import re
from datetime import timedelta

import msgspec

from tenure.runtime.doors.vault.names import moment_of, one_line
from tenure.runtime.doors.vault.paths import VaultGround, reason_of

DAYS = 7
STRUCTURAL = 0.8
TOLD_MIN = 0.4
STRUCTURAL_MAX = 20
POTENTIAL_MAX = 10
FILE_BYTES_MAX = 4_194_304

_LINE = re.compile(r"^- \[([^|\]]+)\|(?:c=([^|\]]*)\|)?i=([^\]]*)\] (.+)$", re.MULTILINE)


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    day: str
    """YYYY-MM-DD."""
    kind: str
    importance: float
    text: str
    source: str
    number: int
    """Its place in its file, from 1."""


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """What is told, the weightiest of the newest day first, and how many are not."""

    told: tuple[Observation, ...]
    omitted: int
    problems: tuple[str, ...]


def observations(ground: VaultGround, now_ms: int) -> Window:
    """The observations of the last seven days, fewer the older they are."""
    chosen: list[Observation] = []
    problems: list[str] = []
    weighty = 0
    for age in range(DAYS):
        day = f"{moment_of(now_ms) - timedelta(days=age):%Y-%m-%d}" if now_ms > 0 else ""
        found = [each for each in _of_day(ground, day, problems) if each.importance >= TOLD_MIN]
        weighty += len(found)
        chosen += _of_age(age, found)
    structural = [each for each in chosen if each.importance >= STRUCTURAL][:STRUCTURAL_MAX]
    potential = [each for each in chosen if each.importance < STRUCTURAL][:POTENTIAL_MAX]
    told = sorted(structural + potential, key=lambda each: each.importance, reverse=True)
    told.sort(key=lambda each: each.day, reverse=True)
    return Window(told=tuple(told), omitted=weighty - len(told), problems=tuple(problems))


def _of_age(age: int, found: list[Observation]) -> list[Observation]:
    by_weight = sorted(found, key=lambda each: each.importance, reverse=True)
    structural = [each for each in by_weight if each.importance >= STRUCTURAL]
    potential = [each for each in by_weight if each.importance < STRUCTURAL]
    match age:
        case 0:
            return by_weight
        case 1:
            return structural + potential[:5]
        case 2 | 3:
            return structural
        case _:
            return structural[:3]


def _of_day(ground: VaultGround, day: str, problems: list[str]) -> list[Observation]:
    ledger = f"ledger/observations/{day.replace('-', '/')}.md"
    for path in (ledger, f"observations/{day}.md"):
        try:
            data, _ = ground.read(path, FILE_BYTES_MAX)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            problems.append(f"{path}: {reason_of(error)}")
            continue
        found = _LINE.findall(data.decode("utf-8", "replace"))
        return [
            Observation(
                day=day,
                kind=one_line(kind),
                importance=_number(importance),
                text=one_line(text),
                source=path,
                number=number,
            )
            for number, (kind, _, importance, text) in enumerate(found, 1)
        ]
    return []


def _number(text: str) -> float:
    """A score; one that cannot be read counts as weighty enough to be seen."""
    try:
        value = float(text)
    except ValueError:
        return TOLD_MIN
    return value if 0 <= value <= 1 else TOLD_MIN
