"""Whether anything changed below a root, by names, sizes and times alone."""

from tenure.runtime.doors.files import Files
from tenure.runtime.doors.tools.workspace import Workspace

Signature = dict[str, tuple[int, int, int]]


class Watching:
    """What the notes looked like the last time.  Blocks."""

    def __init__(self, files: Files, root: str) -> None:
        self._files = files
        self._root = root
        self._before: Signature | None = None

    def changed(self) -> bool:
        """Whether anything is otherwise than at the last call; the first call says yes."""
        now = self._signature()
        before, self._before = self._before, now
        return now != before

    def forget(self) -> None:
        """The next call says yes."""
        self._before = None

    def _signature(self) -> Signature:
        workspace = Workspace(self._files, self._root)
        seen: Signature = {}
        for entry in workspace.walk(workspace.target(".")):
            if entry.kind == "file":
                try:
                    found = self._files.lstat(entry.real)
                except OSError:
                    continue  # it is being removed, which the next look will show
                seen[entry.path] = (found.size, found.mtime_ns, found.inode)
        return seen
