"""The states of the InstallerActor: what it does now, what waits, and whether a load runs."""

import msgspec

from tenure.messages.install import (
    AllowServer,
    DisablePackage,
    EnablePackage,
    ForbidServer,
    InstallPackage,
    RemovePackage,
    RollBackPackage,
    SweepPackages,
    UpdatePackage,
    VerifyPackages,
)
from tenure.messages.install_effects import JobId
from tenure.runtime.step import AskId

Wanted = (
    InstallPackage
    | UpdatePackage
    | RollBackPackage
    | RemovePackage
    | EnablePackage
    | DisablePackage
    | AllowServer
    | ForbidServer
    | SweepPackages
    | VerifyPackages
)


class Want(msgspec.Struct, frozen=True):
    """One command, and who waits for it."""

    asker: AskId | None
    job: JobId
    command: Wanted


class NotLoading(msgspec.Struct, frozen=True):
    """The next who asks begins a load."""


class Loading(msgspec.Struct, frozen=True, kw_only=True):
    """All of these get what this load finds."""

    askers: tuple[AskId | None, ...]


class Overtaken(msgspec.Struct, frozen=True, kw_only=True):
    """A change was made while this load ran: who asked since then gets the next one."""

    askers: tuple[AskId | None, ...]
    late: tuple[AskId | None, ...] = ()


Reload = NotLoading | Loading | Overtaken


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing is being changed."""

    reload: Reload = NotLoading()


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The source of the package that is to be updated is being read."""

    want: Want
    waiting: tuple[Want, ...] = ()
    reload: Reload = NotLoading()


class Fetching(msgspec.Struct, frozen=True, kw_only=True):
    """A package is on its way; nothing is written yet."""

    want: Want
    waiting: tuple[Want, ...] = ()
    reload: Reload = NotLoading()


class Changing(msgspec.Struct, frozen=True, kw_only=True):
    """A change is being made, under the claim."""

    want: Want
    waiting: tuple[Want, ...] = ()
    reload: Reload = NotLoading()


class Checking(msgspec.Struct, frozen=True, kw_only=True):
    """Every file is being compared with its digest."""

    want: Want
    waiting: tuple[Want, ...] = ()
    reload: Reload = NotLoading()


State = Ready | Finding | Fetching | Changing | Checking


def waiting_of(state: State) -> tuple[Want, ...]:
    return () if isinstance(state, Ready) else state.waiting


def next_want(waiting: tuple[Want, ...]) -> tuple[Want | None, tuple[Want, ...]]:
    """The oldest, and the others."""
    return (waiting[0], waiting[1:]) if waiting else (None, ())
