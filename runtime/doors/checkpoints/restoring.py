"""Takes files back: what is there now is kept first, and a file is the old or the new one."""

from contextlib import suppress

from tenure.messages.checkpoints import FileImage, FileRestore
from tenure.runtime.doors.checkpoints.images import image_of, kept_image
from tenure.runtime.doors.checkpoints.planning import NoWayBack, place_of
from tenure.runtime.doors.checkpoints.store import CHECKPOINT_BYTES_MAX, Store
from tenure.runtime.doors.entropy import Entropy
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.staged import folder_of
from tenure.runtime.doors.tools.change import FileChange, make_folders, put_file
from tenure.runtime.doors.tools.moving import sync_names
from tenure.runtime.doors.tools.workspace import Place, Workspace


class Restorer:
    """The steps of one undo, in order.  Blocks; runs in a worker."""

    def __init__(self, files: Files, entropy: Entropy, root: str, store: Store) -> None:
        self._files = files
        self._entropy = entropy
        self._store = store
        self._workspace = Workspace(files, root)
        self.replaced: list[FileImage] = []
        self.warning = ""

    def restore(self, steps: tuple[FileRestore, ...]) -> None:
        """All of them.

        Raises:
            NoWayBack: a file changed since the plan, or what was kept is gone.
            ToolRefused, OSError, Damaged: a step was not made, nor those behind it.
        """
        places = [self._checked(step) for step in steps]
        for step, place in zip(steps, places, strict=True):
            if step.now.kind == "file" and step.does in ("write", "remove"):
                self._keep(place)
        for step, place in zip(steps, places, strict=True):
            self._step(step, place)

    def _checked(self, step: FileRestore) -> Place:
        """The last look: a file that is not the one of the plan is left alone."""
        place = place_of(self._workspace, step.path)
        now = image_of(self._files, place)
        if now.digest != step.now.digest:  # guard: APPROVE-7
            raise NoWayBack(f"{step.path} changed while it was undone")
        return place

    def _keep(self, place: Place) -> None:
        image = kept_image(self._files, self._store, place)
        if image.content == "too_large":
            raise NoWayBack(
                f"what is in {place.path} now has more than {CHECKPOINT_BYTES_MAX:,} bytes and "
                "would be lost; move it away first"
            )
        self.replaced.append(image)

    def _step(self, step: FileRestore, place: Place) -> None:
        match step.does:
            case "write":
                self._write(step, place)
            case "remove":
                self._remove(step, place)
            case "move":
                self._move(step, place)
            case "make_folder":
                inside = Place(real=f"{place.real}/.", path=place.path)
                make_folders(self._workspace, inside)

    def _write(self, step: FileRestore, place: Place) -> None:
        found = self._workspace.stat(place)
        data = self._store.read(step.before.digest)
        change = FileChange(place=place, found=found, data=data, mode=step.before.mode)
        self.warning += put_file(self._workspace, self._entropy.fresh(), change)

    def _remove(self, step: FileRestore, place: Place) -> None:
        found = self._workspace.stat(place)
        if found is not None and found.kind == "folder":
            self._files.remove_folder(place.real)
        elif found is not None:
            self._files.remove(place.real)
        self.warning += sync_names(self._files, place.real, place.real)
        for folder in reversed(step.before.missing):
            # A folder that was made for it, and holds nothing else.
            with suppress(OSError):
                at = place_of(self._workspace, folder)
                self._files.remove_folder(at.real)
                self._files.sync_folder(folder_of(at.real))

    def _move(self, step: FileRestore, place: Place) -> None:
        source = f"{self._workspace.root.rstrip('/')}/{step.source}"
        make_folders(self._workspace, place)
        self._files.rename(source, place.real)
        self.warning += sync_names(self._files, place.real, source)
