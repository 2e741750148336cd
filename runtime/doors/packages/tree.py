"""What a source holds, checked as a whole before a byte of it is written (INSTALL-7)."""

from typing import Literal

import msgspec

from tenure.runtime.doors.packages.names import UnsafePath, collision_key, safe_path, shown

VIOLATIONS_SHOWN_MAX = 20


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a source may have at most.  Over a limit it is refused whole."""

    download_bytes: int = 256 * 1_048_576
    """Of the archive as it comes."""
    entries: int = 10_000
    """Files and folders."""
    file_bytes: int = 64 * 1_048_576
    """Of one file."""
    total_bytes: int = 256 * 1_048_576
    """Of all files."""
    ratio: int = 200
    """How many times larger than the archive its files may be, beyond `ratio_free_bytes`."""
    ratio_free_bytes: int = 4 * 1_048_576
    redirects: int = 5


LIMITS = Limits()


class Rejected(Exception):
    """The source is not taken; every violation is named."""

    def __init__(self, *violations: str) -> None:
        shown_ = violations[:VIOLATIONS_SHOWN_MAX]
        more = len(violations) - len(shown_)
        self.violations = (*shown_, f"and {more:,} more") if more else shown_
        super().__init__("; ".join(self.violations))


Tree = dict[str, bytes]
"""Files by their safe path: `skills/review/SKILL.md`."""


class TreeBuilder:
    """Takes entries one by one, and gives the tree where none of them was wrong."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.files: Tree = {}
        self._violations: list[str] = []
        self._seen: dict[str, tuple[str, Literal["file", "folder"]]] = {}
        self._announced: set[str] = set()
        self._entries = 0
        self._total_bytes = 0

    def folder(self, raw: str) -> None:
        self._count()
        path = raw.replace("\\", "/").rstrip("/")
        if path in ("", ".") and not raw.startswith(("/", "\\")):
            return  # the top itself
        checked = self._safe(path.removeprefix("./"))
        if checked is not None:
            self._claim(checked, "folder")

    def file(self, raw: str) -> str | None:
        """Announce a file before its bytes are read; None where it is wrong."""
        self._count()
        checked = self._safe(raw.removeprefix("./"))
        if checked is None or not self._claim(checked, "file"):
            return None
        return checked

    def fill(self, path: str, data: bytes) -> None:
        """The bytes of a file that was announced.  Raises `Rejected` over a limit."""
        if len(data) > self.limits.file_bytes:  # guard: INSTALL-7
            raise Rejected(f"{shown(path)}: more than {self.limits.file_bytes:,} bytes")
        self._total_bytes += len(data)
        if self._total_bytes > self.limits.total_bytes:  # guard: INSTALL-7
            raise Rejected(f"the files have more than {self.limits.total_bytes:,} bytes")
        self.files[path] = data

    def refuse(self, violation: str) -> None:
        self._violations.append(violation)

    @property
    def left_bytes(self) -> int:
        """How much more the files may have."""
        return min(self.limits.file_bytes, self.limits.total_bytes - self._total_bytes)

    def check(self) -> None:
        """Raises `Rejected` where anything was wrong."""
        if self._violations:  # guard: INSTALL-7
            raise Rejected(*self._violations)

    def done(self) -> Tree:
        """The files.  Raises `Rejected` where anything was wrong."""
        self.check()
        if not self.files:
            raise Rejected("it holds no files")
        return self.files

    def _count(self) -> None:
        self._entries += 1
        if self._entries > self.limits.entries:  # guard: INSTALL-7
            raise Rejected(f"more than {self.limits.entries:,} entries")

    def _safe(self, raw: str) -> str | None:
        try:
            return safe_path(raw)
        except UnsafePath as unsafe:
            self.refuse(str(unsafe))
            return None

    def _claim(self, path: str, kind: Literal["file", "folder"]) -> bool:
        """Every name once, in one spelling, and either a file or a folder."""
        at = ""
        for part in path.split("/")[:-1]:
            at = f"{at}/{part}" if at else part
            if not self._claim_one(at, "folder"):
                return False
        return self._claim_one(path, kind)

    def _claim_one(self, path: str, kind: Literal["file", "folder"]) -> bool:
        before = self._seen.setdefault(collision_key(path), (path, kind))
        if before == (path, kind) and path not in self._announced:
            if kind == "file":
                self._announced.add(path)
            return True
        if before[0] != path:
            self.refuse(f"{shown(path)} and {shown(before[0])} are one name on some platforms")
        elif before[1] != kind:
            self.refuse(f"{shown(path)} is a file and a folder")
        else:
            self.refuse(f"{shown(path)} is there twice")
        return False


def unwrapped(tree: Tree) -> Tree:
    """Without the one folder that everything lies in, as archives of repositories have it."""
    tops = {path.partition("/")[0] for path in tree}
    if len(tops) != 1 or any("/" not in path for path in tree):
        return tree
    (top,) = tops
    return {path[len(top) + 1 :]: data for path, data in tree.items()}
