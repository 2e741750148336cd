"""What the files of a call are: where their links lead, and what they hold now."""

from collections.abc import Mapping
from typing import Any

from tenure.messages.checkpoints import ABSENT, Content, FileImage
from tenure.messages.models import ToolSpec
from tenure.runtime.doors.checkpoints.store import CHECKPOINT_BYTES_MAX, Store
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.staged import folder_of
from tenure.runtime.doors.tools.text import digest_of
from tenure.runtime.doors.tools.workspace import Place

NOWHERE = "/?"
"""Stands for a path that cannot be followed: it is outside of everything."""


def resolved_paths(
    files: Files, root: str, spec: ToolSpec, arguments: Mapping[str, Any]
) -> tuple[str, ...]:
    """Where the files of a call really lie: below the root relative to it, else absolute."""
    named = (arguments.get(name) for name in spec.path_arguments)
    real_root = files.real_path(root).rstrip("/")
    return tuple(
        _resolved(files, real_root, path, spec)
        for path in named
        if isinstance(path, str) and path.strip()
    )


def _resolved(files: Files, root: str, path: str, spec: ToolSpec) -> str:
    joined = path if path.startswith("/") else f"{root}/{path}"
    try:
        joined.encode()
        real = _real(files, joined, spec)
    except (OSError, ValueError):
        return NOWHERE
    if real == root or real.startswith(f"{root}/"):
        return real[len(root) :].strip("/") or "."
    return real


def _real(files: Files, joined: str, spec: ToolSpec) -> str:
    folder, _, name = joined.rstrip("/").rpartition("/")
    if spec.follows_links or name in ("", ".", ".."):
        return files.real_path(joined)
    return f"{files.real_path(folder or '/').rstrip('/')}/{name}"


def image_of(files: Files, place: Place) -> FileImage:
    """A name as it is now; nothing of it is kept."""
    try:
        found = files.lstat(place.real)
    except (FileNotFoundError, NotADirectoryError):
        return FileImage(
            path=place.path, kind="absent", digest=ABSENT, missing=_missing(files, place)
        )
    digest = digest_of(files, place.real) if found.kind == "file" else found.kind
    return FileImage(
        path=place.path, kind=found.kind, digest=digest, size=found.size, mode=found.mode
    )


def kept_image(files: Files, store: Store, place: Place) -> FileImage:
    """A name as it is now, its bytes durable in the store where they fit.

    Raises:
        OSError: they could not be made durable.
    """
    image = image_of(files, place)
    if image.kind != "file":
        return image
    if image.size > CHECKPOINT_BYTES_MAX:
        return _with(image, "too_large", image.digest)
    file = files.open(place.real, "read")
    try:
        data = file.read_at(0, CHECKPOINT_BYTES_MAX + 1)
    finally:
        file.close()
    if len(data) > CHECKPOINT_BYTES_MAX:
        return _with(image, "too_large", image.digest)
    return _with(image, "kept", store.keep(data))


def _with(image: FileImage, content: Content, digest: str) -> FileImage:
    return FileImage(
        path=image.path,
        kind=image.kind,
        digest=digest,
        size=image.size,
        mode=image.mode,
        content=content,
    )


def _missing(files: Files, place: Place) -> tuple[str, ...]:
    """The folders above it that do not exist, relative to the root, topmost first."""
    missing: list[str] = []
    real, path = folder_of(place.real), place.path.rpartition("/")[0]
    while path:
        try:
            files.lstat(real)
        except (FileNotFoundError, NotADirectoryError):
            missing.append(path)
        else:
            break
        real, path = folder_of(real), path.rpartition("/")[0]
    return tuple(reversed(missing))
