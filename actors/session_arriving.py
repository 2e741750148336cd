"""A transcript is open, or is not: who waits for it goes on."""

from tenure.actors.session_compaction import on_not_restored, on_restored
from tenure.actors.session_reopening import on_not_reopened, on_reopened
from tenure.actors.session_state import (
    Loading,
    NotOpened,
    Reopening,
    Restoring,
    Resume,
    State,
)
from tenure.actors.session_swap import on_loaded, on_not_loaded
from tenure.messages.transcripts import CloseTranscript, Opened
from tenure.runtime.step import Step


def on_opened(state: State, opened: Opened) -> Resume:
    match state:
        case Loading():
            return on_loaded(state, opened)
        case Reopening():
            return on_reopened(state, opened)
        case Restoring():
            return on_restored(state, opened)
        case _:
            # Nobody waits for it: let it go, so that its claim is not kept for nothing.
            close = CloseTranscript(session_id=opened.token.session_id)
            return Resume(Step[State](state).do(close))


def on_not_opened(state: State, refusal: NotOpened) -> Resume:
    match state:
        case Loading():
            return on_not_loaded(state, refusal)
        case Reopening():
            return on_not_reopened(state, refusal)
        case Restoring():
            return on_not_restored(state, refusal)
        case _:
            return Resume(Step(state))
