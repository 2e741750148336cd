"""SettingsActor: the one writer of the settings file, and the one source of the policy.

    Ready -> Reading -> Ready      a query: the file may have changed
    Ready -> Writing -> Ready      a change, under the file's claim

ARCHITECTURE.md, section SettingsActor.
"""

import msgspec

from tenure.messages.base import Message, Reply
from tenure.messages.bus import OwnerStarted, Unhandled
from tenure.messages.settings import (
    Change,
    GetPolicy,
    GetSettings,
    Policy,
    PolicyChanged,
    ReadSettings,
    RemoveToolPolicy,
    SetChangeRule,
    SetExpiry,
    SetMode,
    SetModel,
    Settings,
    SettingsNotRead,
    SettingsNotSaved,
    SettingsNotWritten,
    SettingsRead,
    SettingsSaved,
    SettingsWritten,
    SetToolPolicy,
    SetWorkingDirs,
    WriteSettings,
)
from tenure.runtime.owner import Owner
from tenure.runtime.step import AskId, Step, Taken

CLOSED = Policy(version="unread", mode="safe", mutating="deny")
"""What holds while the file cannot be read: nothing is changed unasked, or asked."""


class WantsSettings(msgspec.Struct, frozen=True):
    asker: AskId | None


class WantsPolicy(msgspec.Struct, frozen=True):
    asker: AskId | None


class WantsChange(msgspec.Struct, frozen=True):
    asker: AskId | None
    change: Change


Want = WantsSettings | WantsPolicy | WantsChange


class Ready(msgspec.Struct, frozen=True):
    """Nothing is under way."""

    policy: Policy = CLOSED


class Reading(msgspec.Struct, frozen=True):
    """The file is being read for `askers`; what came since waits."""

    policy: Policy
    askers: tuple[WantsSettings | WantsPolicy, ...]
    waiting: tuple[Want, ...] = ()


class Writing(msgspec.Struct, frozen=True):
    """One change is being written; what came since waits."""

    policy: Policy
    asker: AskId | None
    waiting: tuple[Want, ...] = ()


State = Ready | Reading | Writing


def settings_step(state: State, message: Message, taken: Taken) -> Step[State]:
    """Decide one message."""
    match message:
        case OwnerStarted():
            return Step[State](state)
        case GetSettings():
            return on_want(state, WantsSettings(taken.asker))
        case GetPolicy():
            return on_want(state, WantsPolicy(taken.asker))
        case SetToolPolicy() | RemoveToolPolicy() | SetMode() | SetModel():
            return on_want(state, WantsChange(taken.asker, message))
        case SetChangeRule() | SetWorkingDirs() | SetExpiry():
            return on_want(state, WantsChange(taken.asker, message))
        case SettingsRead(settings=settings):
            return on_read(state, settings)
        case SettingsNotRead(reason=reason):
            return on_not_read(state, reason)
        case SettingsWritten(settings=settings):
            return on_written(state, settings)
        case SettingsNotWritten(path=path, reason=reason):
            return on_not_written(state, path, reason)
        case _:
            return Step(state).answer(taken.asker, Unhandled(message=type(message).__name__))


def on_want(state: State, want: Want) -> Step[State]:
    """One thing at a time; later ones wait, and queries in a row share one read."""
    match state:
        case Ready(policy):
            return _go_on(policy, (want,))
        case Reading(policy, askers, waiting):
            return Step(Reading(policy, askers, (*waiting, want)))
        case Writing(policy, asker, waiting):
            return Step(Writing(policy, asker, (*waiting, want)))


def on_read(state: State, settings: Settings) -> Step[State]:
    if not isinstance(state, Reading):
        return Step(state)
    step = _changed(state.policy, _go_on(settings.policy, state.waiting), settings.policy)
    for want in state.askers:
        reply: Reply = settings if isinstance(want, WantsSettings) else settings.policy
        step = step.answer(want.asker, reply)
    return step


def on_not_read(state: State, reason: str) -> Step[State]:
    """Unreadable is not empty: the closed policy holds, and whoever asked for more is told."""
    if not isinstance(state, Reading):
        return Step(state)
    step = _changed(state.policy, _go_on(CLOSED, state.waiting), CLOSED)
    for want in state.askers:
        refused = SettingsNotSaved(path="settings.toml", reason=reason)
        step = step.answer(want.asker, refused if isinstance(want, WantsSettings) else CLOSED)
    return step


def on_written(state: State, settings: Settings) -> Step[State]:
    """The change is durable: now it is a fact."""
    if not isinstance(state, Writing):
        return Step(state)
    step = _changed(state.policy, _go_on(settings.policy, state.waiting), settings.policy)
    return step.answer(state.asker, SettingsSaved(settings=settings))


def on_not_written(state: State, path: str, reason: str) -> Step[State]:
    if not isinstance(state, Writing):
        return Step(state)
    step = _go_on(state.policy, state.waiting)
    return step.answer(state.asker, SettingsNotSaved(path=path, reason=reason))


# --- pure helpers ------------------------------------------------------------------------


def _go_on(policy: Policy, waiting: tuple[Want, ...]) -> Step[State]:
    if not waiting:
        return Step(Ready(policy))
    first = waiting[0]
    if isinstance(first, WantsChange):
        writing = Writing(policy, first.asker, waiting[1:])
        return Step[State](writing).do(WriteSettings(change=first.change))
    queries: list[WantsSettings | WantsPolicy] = []
    for want in waiting:
        if isinstance(want, WantsChange):
            break
        queries.append(want)
    reading = Reading(policy, tuple(queries), waiting[len(queries) :])
    return Step[State](reading).do(ReadSettings())


def _changed(before: Policy, step: Step[State], now: Policy) -> Step[State]:
    if before.version == now.version:
        return step
    return step.emit(PolicyChanged(policy=now))


class SettingsActor(Owner):
    step = staticmethod(settings_step)
    first = Ready
