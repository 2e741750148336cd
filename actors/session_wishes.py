"""What a user wants of a session through another owner of its seat: a checked token, handed on."""

from tenure.actors.session_compaction import run_compaction, unwind
from tenure.actors.session_state import Closed, Live, State
from tenure.messages.checkpoints import RunUndo, UndoChange
from tenure.messages.compaction import Compact, Uncompact
from tenure.messages.session import AppendUnknown
from tenure.runtime.step import Step, Taken


def on_seat_wish(
    live: Live, message: Compact | Uncompact | UndoChange, taken: Taken
) -> Step[State]:
    """A wish for the conversation that its asker has seen, or for whatever is current."""
    match message:
        case Compact():
            return run_compaction(live, message, taken)
        case UndoChange():
            return run_undo(live, message, taken)
        case Uncompact():
            return unwind(live, taken)


def run_undo(live: Live, message: UndoChange, taken: Taken) -> Step[State]:
    """An undo whose token is current goes to the ApprovalActor."""
    if isinstance(live.appends, Closed):
        return Step[State](live).answer(taken.asker, AppendUnknown(reason=live.appends.reason))
    run = RunUndo(
        token=live.session.token,
        checkpoint=message.checkpoint,
        when_changed=message.when_changed,
        only_show=message.only_show,
    )
    return Step[State](live).forward("approval", run, taken.asker)
