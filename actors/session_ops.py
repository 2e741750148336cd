"""What is done with sessions besides opening and appending: names, branches, copies, ends.

The seat's own session is changed in the lane of its appends and swaps; a session
that the seat does not have is changed by the door under that session's own claim,
and whoever asked is named in the effect: the answer needs no state here.
"""

from msgspec.structs import replace

from tenure.actors.session_appends import take_append
from tenure.actors.session_state import ClearOld, DeleteOld, Live, State, Vacant, widened
from tenure.actors.session_swap import load
from tenure.messages.entries import LabelEntry, SessionInfoEntry
from tenure.messages.session import AppendEntries, NoSession
from tenure.messages.session_ops import (
    ClearSessions,
    DeleteSession,
    ForkSession,
    RenameSession,
    RewindSession,
    RewriteSession,
    SetLabel,
)
from tenure.messages.tokens import SessionId, SessionToken
from tenure.messages.transcripts import (
    Changed,
    ChangeStored,
    Discard,
    DiscardAll,
    EntryFound,
    EntryMissing,
    FindEntry,
    ForkAt,
    Fresh,
    RenameTo,
    Rewind,
    RewriteWith,
    StoredChanged,
    StoredNotChanged,
)
from tenure.runtime.step import AskId, Step, Taken

OpsCommand = (
    RenameSession
    | SetLabel
    | ForkSession
    | RewindSession
    | DeleteSession
    | ClearSessions
    | RewriteSession
)

Change = RenameTo | ForkAt | Discard | DiscardAll | RewriteWith


def operate(live: Live, message: OpsCommand, taken: Taken) -> Step[State]:
    """A seat with a session: its own, where the command names no other."""
    here = live.session.token
    match message:
        case ClearSessions():
            return _clear(live, taken)
        case DeleteSession(session_id=session_id) if session_id == here.session_id:
            return load(live, Fresh(), taken, DeleteOld())
        case RewindSession(entry_id=entry_id, position=position):
            change = Rewind(entry_id=entry_id, position=position)
            return load(live, Changed(session_id=here.session_id, change=change), taken)
        case SetLabel(entry_id=entry_id, label=label):
            find = FindEntry(asker=taken.asker, token=here, entry_id=entry_id, label=label)
            return Step[State](live).do(find)
        case RenameSession(session_id=None | here.session_id, name=name):
            entries = (SessionInfoEntry(name=_one_line(name)),)
            append = AppendEntries(token=here, entries=entries)
            return widened(take_append(live, append, taken))
        case RewriteSession(session_id=None | here.session_id, rewrite=rewrite):
            return load(live, Changed(session_id=here.session_id, change=rewrite), taken)
        case _:
            return _stored(live, message, here.session_id, taken)


def operate_without_session(vacant: Vacant, message: OpsCommand, taken: Taken) -> Step[State]:
    """A seat without a session: whatever the command names."""
    match message:
        case ClearSessions():
            return _do(vacant, DiscardAll(current=None), taken)
        case RewindSession() | SetLabel():
            return Step[State](vacant).answer(taken.asker, NoSession(reason=vacant.reason))
        case _ if message.session_id is None:
            return Step[State](vacant).answer(taken.asker, NoSession(reason=vacant.reason))
        case _:
            return _stored(vacant, message, message.session_id, taken)


def token_in(message: OpsCommand) -> SessionToken | None:
    """The token that the asker looked at; None where it names none."""
    match message:
        case RenameSession() | SetLabel() | RewindSession() | RewriteSession():
            return message.token
        case ForkSession() | DeleteSession() | ClearSessions():
            return None


def labelled(found: EntryFound, taken: Taken) -> tuple[AppendEntries, Taken]:
    """The entry is there: the label is appended like any other entry, for whoever asked."""
    entry = LabelEntry(target_id=found.entry_id)
    if found.label:
        entry = LabelEntry(target_id=found.entry_id, label=_one_line(found.label))
    append = AppendEntries(token=found.token, entries=(entry,))
    asker = None if found.asker is None else AskId(found.asker)
    return append, replace(taken, asker=asker)


def answered(state: State, outcome: StoredChanged | StoredNotChanged | EntryMissing) -> Step[State]:
    """Who asked is named in the outcome, so it does not matter what the seat has now."""
    asker = None if outcome.asker is None else AskId(outcome.asker)
    match outcome:
        case StoredChanged(reply=reply):
            return Step(state).answer(asker, reply)
        case StoredNotChanged(refusal=refusal) | EntryMissing(refusal=refusal):
            return Step(state).answer(asker, refusal)


# --- pure helpers ------------------------------------------------------------------------


def _clear(live: Live, taken: Taken) -> Step[State]:
    """Where the seat's own session says something it goes, too, and one new one comes."""
    if live.session.entries:
        return load(live, Fresh(), taken, ClearOld())
    return _do(live, DiscardAll(current=live.session.token), taken)


def _stored(
    state: Live | Vacant,
    message: ForkSession | RenameSession | DeleteSession | RewriteSession,
    here: SessionId,
    taken: Taken,
) -> Step[State]:
    """What the door does under the session's own claim.

    Args:
        here: what a command that names no session means.
    """
    match message:
        case ForkSession(entry_id=entry_id, position=position, name=name):
            fork = ForkAt(
                session_id=message.session_id or here,
                entry_id=entry_id,
                position=position,
                name=_one_line(name),
            )
            return _do(state, fork, taken)
        case RenameSession(name=name):
            rename = RenameTo(session_id=message.session_id or here, name=_one_line(name))
            return _do(state, rename, taken)
        case DeleteSession(session_id=session_id):
            return _do(state, Discard(session_id=session_id, current=None), taken)
        case RewriteSession(rewrite=rewrite):
            stored = RewriteWith(session_id=message.session_id or here, rewrite=rewrite)
            return _do(state, stored, taken)


def _do(state: Live | Vacant, change: Change, taken: Taken) -> Step[State]:
    return Step[State](state).do(ChangeStored(asker=taken.asker, change=change))


def _one_line(text: str) -> str:
    return " ".join(text.split())
