"""What `tenure undo` does."""

from tenure.messages.checkpoints import ChangeUndone, UndoShown, WhenChanged
from tenure.runtime.cli.screen import JsonScreen, Screen, print_json, print_text
from tenure.runtime.seat import Seat


async def undo(when_changed: WhenChanged, seat: Seat, screen: Screen) -> None:
    """Take the last change back.  Raises `Refused`."""
    reply = await seat.undo(when_changed=when_changed)
    _show(reply, screen)
    screen.note(f"undone: {reply.record.tool} of {', '.join(reply.record.paths)}{reply.warning}")


async def show_undo(seat: Seat, screen: Screen) -> None:
    """Show what an undo would do.  Raises `Refused`."""
    reply = await seat.undo_preview()
    _show(reply, screen)
    screen.note(f"would undo: {reply.record.tool} of {', '.join(reply.record.paths)}")


def _show(reply: ChangeUndone | UndoShown, screen: Screen) -> None:
    if isinstance(screen, JsonScreen):
        print_json(reply)
        return
    for step in reply.steps:
        print_text(step.diff or f"{step.does} {step.path}\n")
