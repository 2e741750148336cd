"""Carries out `ResolveCall` and `KeepFiles`, and looks at files when a tool ended."""

import msgspec

from tenure.messages.base import Outcome
from tenure.messages.checkpoints import (
    CallNotResolved,
    CallResolved,
    FileImage,
    FilesKept,
    FilesNotKept,
    KeepFiles,
    ResolveCall,
)
from tenure.messages.models import ToolSpec
from tenure.messages.turn_effects import RunTool
from tenure.runtime.doors.checkpoints.images import image_of, kept_image, resolved_paths
from tenure.runtime.doors.checkpoints.store import Store
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.tools.tool import ToolRefused, ToolResult
from tenure.runtime.doors.tools.workspace import Place, Workspace


class FileKeeping:
    """The files of calls, before and after.

    Args:
        specs: the tools of the host, by name.
    """

    def __init__(self, leaves: Leaves, root: str, store: Store, specs: dict[str, ToolSpec]) -> None:
        self._workers = leaves.workers
        self._files = leaves.files
        self._root = root
        self._store = store
        self._specs = specs

    async def resolve(self, effect: ResolveCall, context: Context) -> Outcome:
        """Where the files of a call lie: `CallResolved` or `CallNotResolved`."""
        spec = self._specs.get(effect.tool)
        if spec is None:
            return CallNotResolved(request_id=effect.request_id, reason="there is no such tool")
        try:
            paths = await self._workers.run(
                resolved_paths, self._files, self._root, spec, effect.arguments
            )
        except OSError as refused:
            return CallNotResolved(request_id=effect.request_id, reason=_why(refused))
        return CallResolved(request_id=effect.request_id, paths=paths)

    async def keep(self, effect: KeepFiles, context: Context) -> Outcome:
        """Make what the files hold durable: `FilesKept` or `FilesNotKept`."""
        try:
            images = await self._workers.run(self._keep, effect)
        except ToolRefused as refused:
            return FilesNotKept(request_id=effect.request_id, reason=str(refused))
        except OSError as refused:
            return FilesNotKept(request_id=effect.request_id, reason=_why(refused))
        return FilesKept(request_id=effect.request_id, images=images)

    def same_files(self, effect: RunTool) -> bool:
        """Whether the links of an allowed call lead where they led; blocks."""
        spec = self._specs.get(effect.tool)
        if spec is None or not effect.paths:
            return True
        return resolved_paths(self._files, self._root, spec, effect.arguments) == effect.paths

    def after(self, effect: RunTool, result: ToolResult) -> tuple[FileImage, ...]:
        """The files of a call as the tool left them; blocks.

        What the tool itself says of them counts: somebody may have been at them since.
        """
        images: list[FileImage] = []
        for place in self._places(effect.paths):
            image = image_of(self._files, place)
            details = result.details
            if details.get("path") == image.path:
                said = details.get("digest")
                if isinstance(said, str) and image.kind == "file":
                    image = msgspec.structs.replace(image, digest=said)
                kept = details.get("kept")
                if isinstance(kept, str) and image.kind == "absent":
                    image = msgspec.structs.replace(image, trash=kept)
            images.append(image)
        return tuple(images)

    def _keep(self, effect: KeepFiles) -> tuple[FileImage, ...]:
        spec = self._specs[effect.tool]
        found = resolved_paths(self._files, self._root, spec, effect.arguments)
        if found != effect.paths:  # guard: APPROVE-4
            raise ToolRefused("its files lie elsewhere than when it was decided")
        moves = not spec.follows_links and len(effect.paths) > 1
        places = self._places(effect.paths)
        if moves:  # a name that is moved keeps its bytes
            return tuple(image_of(self._files, place) for place in places)
        return tuple(kept_image(self._files, self._store, place) for place in places)

    def _places(self, paths: tuple[str, ...]) -> tuple[Place, ...]:
        """The names inside the root that tools may touch: nothing else is looked at."""
        workspace = Workspace(self._files, self._root)
        places: list[Place] = []
        for path in dict.fromkeys(paths):
            try:
                places.append(workspace.entry(path))
            except ToolRefused:
                continue
        return tuple(places)


def _why(refused: OSError) -> str:
    return refused.strerror or str(refused)
