"""The checkout of this package, for the programs that look at its own source.

An installed wheel has no tests and no ARCHITECTURE.md, so these programs work in
a checkout only, and say so elsewhere.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("actors", "messages", "runtime")
NEEDED = (*FOLDERS, "tests", "ARCHITECTURE.md", "pyproject.toml")


class NoCheckout(Exception):
    """This program runs in a checkout of the repository, and this is none."""


class Checkout:
    """The root of a checkout, and what is read in it."""

    def __init__(self, root: Path) -> None:
        missing = [name for name in NEEDED if not (root / name).exists()]
        if missing:
            raise NoCheckout(
                f"{root} is no checkout of tenure: {', '.join(missing)} missing. "
                "Clone the repository, install it with `pip install -e '.[dev]'`, and run "
                "this with that environment's Python"
            )
        self.root = root

    def python_files(self, *folders: str) -> list[str]:
        """The Python files below these folders, from the root, in order."""
        found = (path for folder in folders for path in (self.root / folder).rglob("*.py"))
        return sorted(path.relative_to(self.root).as_posix() for path in found)

    def text(self, file: str) -> str:
        """The text of a file of the checkout."""
        return (self.root / file).read_text("utf-8")

    def trees(self, *folders: str) -> Iterator[tuple[str, ast.Module]]:
        """Every file with its syntax tree."""
        for file in self.python_files(*folders):
            yield file, ast.parse(self.text(file), file)


def find_checkout() -> Checkout:
    """The checkout that this very module is part of.

    Raises:
        NoCheckout: it is installed from a wheel.
    """
    return Checkout(Path(__file__).resolve().parents[2])
