"""What an undo would do to the files, from what they were, what they became and what they are."""

from tenure.messages.checkpoints import FileImage, FileRestore, UndoRecord
from tenure.runtime.doors.checkpoints.images import image_of
from tenure.runtime.doors.checkpoints.store import CHECKPOINT_BYTES_MAX, Damaged, Store
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.tools.diff import unified_diff
from tenure.runtime.doors.tools.text import decode_text, read_whole
from tenure.runtime.doors.tools.tool import ToolRefused
from tenure.runtime.doors.tools.workspace import Place, Workspace


class NoWayBack(Exception):
    """What was there cannot be had again; its text says why."""


Looked = dict[str, FileImage]
"""The files of a record as they are now, by path."""


def look(files: Files, root: str, record: UndoRecord) -> Looked:
    """The files of a record as they are now.  Raises `NoWayBack`."""
    workspace = Workspace(files, root)
    looked: Looked = {}
    for image in record.before:
        looked[image.path] = image_of(files, place_of(workspace, image.path))
    return looked


def place_of(workspace: Workspace, path: str) -> Place:
    """The place of a name that was changed; never through a link that was put there since."""
    try:
        place = workspace.entry(path)
    except ToolRefused as refused:
        raise NoWayBack(str(refused)) from None
    if place.path != path:
        raise NoWayBack(f"a folder above {path} is a link by now")
    return place


def is_before(record: UndoRecord, now: Looked) -> bool:
    """Whether everything is as it was: there is nothing left to undo."""
    return all(now[image.path].digest == image.digest for image in record.before)


def is_after(record: UndoRecord, now: Looked) -> bool:
    """Whether everything is as the tool left it."""
    return bool(record.after) and all(
        image.path in now and now[image.path].digest == image.digest for image in record.after
    )


def steps_of(
    files: Files, root: str, store: Store, record: UndoRecord, now: Looked
) -> tuple[FileRestore, ...]:
    """The steps that take the files back.  Raises `NoWayBack`."""
    moved = _moved(record, now)
    if moved is not None:
        return moved
    trash = {image.path: image.trash for image in record.after if image.trash}
    steps: list[FileRestore] = []
    for before in reversed(record.before):
        if now[before.path].digest == before.digest:
            continue
        step = _step(files, root, before, now[before.path], trash.get(before.path, ""))
        steps.append(_with_diff(files, root, store, step))
    return tuple(steps)


def _moved(record: UndoRecord, now: Looked) -> tuple[FileRestore, ...] | None:
    """A name that was moved goes back whole, whatever is in it."""
    if len(record.before) != 2:
        return None
    source, target = record.before
    was_moved = source.kind != "absent" and target.kind == "absent"
    if not was_moved or source.content == "kept":
        return None
    there, here = now[target.path], now[source.path]
    if there.kind != source.kind:
        raise NoWayBack(f"{target.path} is not there any more")
    if here.kind != "absent":
        raise NoWayBack(f"there is something at {source.path} by now")
    step = FileRestore(does="move", path=source.path, source=target.path, before=source, now=here)
    removed = FileRestore(does="remove", path=target.path, before=target, now=there)
    return (step, removed) if target.missing else (step,)


def _step(files: Files, root: str, before: FileImage, now: FileImage, trash: str) -> FileRestore:
    if before.kind == "absent":
        if now.kind not in ("file", "folder"):
            raise NoWayBack(f"{before.path} is a {now.kind} by now; remove it yourself")
        return FileRestore(does="remove", path=before.path, before=before, now=now)
    if before.kind == "folder" and now.kind == "absent":
        return FileRestore(does="make_folder", path=before.path, before=before, now=now)
    in_trash = now.kind == "absent" and trash and _is_there(files, f"{root}/{trash}")
    if before.kind == "file" and before.content == "kept":
        if now.kind not in ("file", "absent"):
            raise NoWayBack(f"{before.path} is a {now.kind} by now")
        return FileRestore(does="write", path=before.path, before=before, now=now)
    if in_trash:
        return FileRestore(does="move", path=before.path, source=trash, before=before, now=now)
    if before.content == "too_large":
        raise NoWayBack(
            f"it had {before.size:,} bytes, and more than {CHECKPOINT_BYTES_MAX:,} are not kept"
        )
    raise NoWayBack(f"{before.path} was a {before.kind}, of which nothing is kept")


def _with_diff(files: Files, root: str, store: Store, step: FileRestore) -> FileRestore:
    """Shows what the step changes, where it is text."""
    try:
        old = _text(files, root, step.now)
        new = None
        if step.does == "write":
            new = decode_text(store.read(step.before.digest), step.path)
        elif step.does != "remove":
            return step
    except (Damaged, NoWayBack) as lost:
        raise NoWayBack(str(lost)) from None
    except ToolRefused:
        return step
    return FileRestore(
        does=step.does,
        path=step.path,
        source=step.source,
        before=step.before,
        now=step.now,
        diff=unified_diff(old, new, step.path),
    )


def _text(files: Files, root: str, image: FileImage) -> str | None:
    if image.kind != "file":
        return None
    place = place_of(Workspace(files, root), image.path)
    return decode_text(read_whole(files, place.real, CHECKPOINT_BYTES_MAX, image.path), image.path)


def _is_there(files: Files, path: str) -> bool:
    try:
        files.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
