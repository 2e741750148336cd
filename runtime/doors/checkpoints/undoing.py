"""Carries out `PlanUndo` and `RestoreFiles`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tenure.messages.base import Outcome
from tenure.messages.checkpoints import (
    CannotUndo,
    ChangedSince,
    FilesNotRestored,
    FilesRestored,
    NothingToUndo,
    NotTheLast,
    PlanUndo,
    RestoreFiles,
    UndoNotPlanned,
    UndoNotPossible,
    UndoPlanned,
    UndoRecord,
    UndoUncertain,
)
from tenure.messages.tokens import SessionId
from tenure.runtime.doors.checkpoints.planning import (
    NoWayBack,
    is_after,
    is_before,
    look,
    steps_of,
)
from tenure.runtime.doors.checkpoints.restoring import Restorer
from tenure.runtime.doors.checkpoints.stack import undo_stack
from tenure.runtime.doors.checkpoints.store import Damaged, Store
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.tools.tool import ToolRefused

Entries = Callable[[SessionId, str], Iterable[Mapping[str, Any]] | None]
"""The fields of the checkpoint entries of a session that a seat has open; None for none."""


class Undoing:
    """The undo of the changes that tools made."""

    def __init__(self, leaves: Leaves, root: str, store: Store, entries: Entries) -> None:
        self._leaves = leaves
        self._root = root
        self._store = store
        self._entries = entries

    async def plan(self, effect: PlanUndo, context: Context) -> Outcome:
        """The last change and the way back: `UndoPlanned` or `UndoNotPlanned`."""
        entries = self._entries(effect.session_id, context.seat)
        if entries is None:
            refusal = UndoNotPossible(reason="the session is not open")
            return UndoNotPlanned(refusal=refusal)
        stack = undo_stack(entries, effect.session_id)
        try:
            return await self._leaves.workers.run(self._plan, effect, stack)
        except OSError as refused:
            return UndoNotPlanned(refusal=UndoNotPossible(reason=_why(refused)))

    def _plan(self, effect: PlanUndo, stack: tuple[UndoRecord, ...]) -> Outcome:
        files = self._leaves.files
        for record in reversed(stack):
            try:
                now = look(files, self._root, record)
                if is_before(record, now):
                    continue  # it never happened, or somebody took it back
                if effect.checkpoint not in ("", record.checkpoint):
                    return UndoNotPlanned(refusal=NotTheLast(record=record))
                steps = steps_of(files, self._root, self._store, record, now)
            except NoWayBack as lost:
                return UndoNotPlanned(refusal=CannotUndo(record=record, reason=str(lost)))
            if effect.when_changed == "refuse":
                if record.certainty == "uncertain" and not is_after(record, now):
                    return UndoNotPlanned(refusal=UndoUncertain(record=record, steps=steps))
                if not is_after(record, now):
                    return UndoNotPlanned(refusal=ChangedSince(record=record, steps=steps))
            return UndoPlanned(record=record, steps=steps)
        return UndoNotPlanned(refusal=NothingToUndo())

    async def restore(self, effect: RestoreFiles, context: Context) -> Outcome:
        """Make the steps: `FilesRestored` or `FilesNotRestored`."""
        try:
            return await self._leaves.workers.run(self._restore, effect)
        except (NoWayBack, ToolRefused, Damaged) as refused:
            return FilesNotRestored(reason=str(refused))
        except OSError as refused:
            return FilesNotRestored(reason=_why(refused))

    def _restore(self, effect: RestoreFiles) -> FilesRestored:
        leaves = self._leaves
        restorer = Restorer(leaves.files, leaves.entropy, self._root, self._store)
        restorer.restore(effect.steps)
        return FilesRestored(replaced=tuple(restorer.replaced), warning=restorer.warning)


def _why(refused: OSError) -> str:
    return refused.strerror or str(refused)
