"""Lays the root folders out as one package, `tenure`.

A wheel gets them by the `sources` map in pyproject.toml.  An editable install
gets `.dev/tenure/`, a git-ignored tree of directory links back to the root
folders, so that type checkers and editors (which do not run import hooks)
resolve `tenure.*` too, and a new module needs no reinstall.
"""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDERS = ("actors", "messages", "runtime")
FILES = {
    "runtime/_package.py": "__init__.py",
    "runtime/py.typed": "py.typed",
    "runtime/_testing.py": "testing/__init__.py",
    "runtime/_testing_fixtures.py": "testing/fixtures.py",
}


def _link(target: Path, link: Path) -> None:
    if link.is_symlink() or link.exists():
        return
    try:
        link.symlink_to(os.path.relpath(target, link.parent), target.is_dir())
    except OSError:  # Windows without the symlink right
        if os.name != "nt":
            raise
        if target.is_dir():
            import _winapi

            _winapi.CreateJunction(str(target), str(link))
        else:
            os.link(target, link)


def dev_tree(root: Path) -> Path:
    tree = root / ".dev" / "tenure"
    tree.mkdir(parents=True, exist_ok=True)
    for name in FOLDERS:
        _link(root / name, tree / name)
    for src, dst in FILES.items():
        (tree / dst).parent.mkdir(exist_ok=True)
        _link(root / src, tree / dst)
    return tree


class TenureTree(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if version == "editable":
            dev_tree(root)
        else:
            for src, dst in FILES.items():
                build_data["force_include"][str(root / src)] = f"tenure/{dst}"
