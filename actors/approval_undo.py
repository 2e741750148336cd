"""Undo of the last change to files: announced, made, and its end written down.

    NoUndo -> Planning -> Announcing -> Restoring -> Concluding -> NoUndo
    Planning -> NoUndo                                     shown, or refused
    Announcing -> NoUndo                                   it could not be written

A change is off the stack when the transcript says that its undo is done, and not
before; so one that failed, or of which the end is not known, can be tried again.
"""

from msgspec.structs import replace

from tenure.actors.approval_state import (
    Announcing,
    Concluding,
    Gate,
    NoUndo,
    Planning,
    Restoring,
    UndoAnnounced,
    UndoConcluded,
)
from tenure.messages.base import Message, Refusal, Reply
from tenure.messages.bus import Answered, Unhandled
from tenure.messages.checkpoints import (
    ChangeReverted,
    ChangeUndone,
    FilesNotRestored,
    FilesRestored,
    PlanUndo,
    RestoreFiles,
    RunUndo,
    UndoBusy,
    UndoFailed,
    UndoNotPlanned,
    UndoNotPossible,
    UndoOutcome,
    UndoPlanned,
    UndoShown,
    undo_entry,
    undone_entry,
)
from tenure.messages.session import Appended, AppendEntries
from tenure.runtime.step import Step, Taken


def undo_step(state: Gate, message: Message, taken: Taken) -> Step[Gate]:
    """Everything that an undo is told."""
    match message:
        case RunUndo():
            return on_run(state, message, taken)
        case UndoPlanned() | UndoNotPlanned():
            return on_planned(state, message, taken)
        case Answered(re=UndoAnnounced(), reply=reply):
            return on_announced(state, reply)
        case FilesRestored() | FilesNotRestored():
            return on_restored(state, message)
        case Answered(re=UndoConcluded(), reply=reply):
            return on_concluded(state, reply)
        case _:
            return Step(state).answer(taken.asker, Unhandled(message=type(message).__name__))


def on_run(state: Gate, run: RunUndo, taken: Taken) -> Step[Gate]:
    """One undo of a seat at a time."""
    if not isinstance(state.undo, NoUndo):
        return Step(state).answer(taken.asker, UndoBusy())
    plan = PlanUndo(
        session_id=run.token.session_id,
        checkpoint=run.checkpoint,
        when_changed=run.when_changed if run.only_show == "no" else "overwrite",
    )
    return Step(replace(state, undo=Planning(run, taken.asker))).do(plan)


def on_planned(state: Gate, message: UndoPlanned | UndoNotPlanned, taken: Taken) -> Step[Gate]:
    undo = state.undo
    if not isinstance(undo, Planning):
        return Step(state)
    idle = Step(replace(state, undo=NoUndo()))
    if isinstance(message, UndoNotPlanned):
        return idle.answer(undo.asker, message.refusal)
    record, steps = message.record, message.steps
    if undo.run.only_show == "yes":
        return idle.answer(undo.asker, UndoShown(record=record, steps=steps))
    announcing = Announcing(undo.run, undo.asker, record, steps, taken.fresh)
    entry = undo_entry(record.checkpoint, taken.fresh)
    append = AppendEntries(token=undo.run.token, entries=(entry,))
    step = Step(replace(state, undo=announcing))
    return step.ask("session", append, re=UndoAnnounced(undo=taken.fresh))


def on_announced(state: Gate, reply: Reply) -> Step[Gate]:
    """That it begins is durable; now the files may change."""
    undo = state.undo
    if not isinstance(undo, Announcing):
        return Step(state)
    if not isinstance(reply, Appended):  # guard: APPROVE-7
        refusal = reply if isinstance(reply, Refusal) else _not_written(reply)
        return Step(replace(state, undo=NoUndo())).answer(undo.asker, refusal)
    restoring = Restoring(undo.run, undo.asker, undo.record, undo.steps, undo.undo)
    restore = RestoreFiles(record=undo.record, steps=undo.steps)
    return Step(replace(state, undo=restoring)).do(restore)


def on_restored(state: Gate, outcome: UndoOutcome) -> Step[Gate]:
    undo = state.undo
    if not isinstance(undo, Restoring):
        return Step(state)
    concluding = Concluding(undo.run, undo.asker, undo.record, undo.steps, outcome)
    entry = undone_entry(undo.record.checkpoint, undo.undo, outcome)
    append = AppendEntries(token=undo.run.token, entries=(entry,))
    step = Step(replace(state, undo=concluding))
    return step.ask("session", append, re=UndoConcluded(checkpoint=undo.record.checkpoint))


def on_concluded(state: Gate, reply: Reply) -> Step[Gate]:
    """The files are what they are, also where that could not be written down."""
    undo = state.undo
    if not isinstance(undo, Concluding):
        return Step(state)
    step = Step(replace(state, undo=NoUndo()))
    if isinstance(undo.outcome, FilesNotRestored):
        failed = UndoFailed(record=undo.record, reason=undo.outcome.reason)
        return step.answer(undo.asker, failed)
    warning = undo.outcome.warning
    if not isinstance(reply, Appended):
        why = reply.remedy if isinstance(reply, Refusal) else type(reply).__name__
        warning = f"{warning} The session does not say that it was undone ({why})".strip()
    done = ChangeUndone(record=undo.record, steps=undo.steps, warning=warning)
    undone = ChangeReverted(
        token=undo.run.token, checkpoint=undo.record.checkpoint, paths=undo.record.paths
    )
    return step.emit(undone).answer(undo.asker, done)


# --- pure helpers ------------------------------------------------------------------------


def _not_written(reply: Reply) -> UndoNotPossible:
    return UndoNotPossible(reason=f"that it begins could not be written ({type(reply).__name__})")
