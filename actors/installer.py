"""InstallerActor: one mailbox for everything that changes the packages of a root.

    Ready -> Fetching -> Changing -> Ready     an installation; the claim is taken to change
    Ready -> Finding -> Fetching ...           an update asks first where the package came from
    Ready -> Changing -> Ready                 anything else; every change sweeps first, prunes last
    reload: NotLoading <-> Loading             beside all of these: one load for all who ask;
            Overtaken by a change, the next one serves who asked since

ARCHITECTURE.md, section InstallerActor.
"""

from typing import assert_never

from msgspec.structs import replace

from tenure.actors.installer_state import (
    Changing,
    Checking,
    Fetching,
    Finding,
    Loading,
    NotLoading,
    Overtaken,
    Ready,
    State,
    Want,
    next_want,
    waiting_of,
)
from tenure.messages.base import Message, Refusal, Reply
from tenure.messages.bus import OwnerStarted, Unhandled
from tenure.messages.install import (
    AllowServer,
    ChoiceSaved,
    DisablePackage,
    DownloadAdvanced,
    EnablePackage,
    ForbidServer,
    GetPackages,
    InstallFailed,
    InstallPackage,
    PackageChanged,
    PackageInstalled,
    PackageRemoved,
    PackageRolledBack,
    ReloadPackages,
    RemovePackage,
    RollBackPackage,
    SweepPackages,
    UpdatePackage,
    VerifyPackages,
)
from tenure.messages.install_effects import (
    ChangePackages,
    CheckPackages,
    FetchPackage,
    FindPackageSource,
    JobId,
    LoadPackages,
    PackageFetchAdvanced,
    PackageFetched,
    PackageNotFetched,
    PackagesChanged,
    PackagesChecked,
    PackagesLoaded,
    PackagesNotChanged,
    PackagesNotChecked,
    PackagesNotLoaded,
    PackageSourceFound,
    PackageSourceNotFound,
    PlaceFetched,
)
from tenure.runtime.owner import Owner
from tenure.runtime.step import AskId, Step, Taken


def installer_step(state: State, message: Message, taken: Taken) -> Step[State]:
    """Decide one message."""
    match message:
        case OwnerStarted():
            return Step(state)
        case (
            InstallPackage()
            | UpdatePackage()
            | RollBackPackage()
            | RemovePackage()
            | EnablePackage()
            | DisablePackage()
            | AllowServer()
            | ForbidServer()
            | SweepPackages()
            | VerifyPackages()
        ):
            return on_want(state, Want(taken.asker, JobId(taken.fresh), message))
        case GetPackages() | ReloadPackages():
            return on_reload(state, taken.asker)
        case PackageSourceFound(job=job, source=source):
            return on_source_found(state, job, source)
        case PackageFetchAdvanced():
            return on_advanced(state, message)
        case PackageFetched(job=job, warnings=warnings):
            return on_fetched(state, job, warnings)
        case PackagesChanged(job=job, reply=reply):
            return on_changed(state, job, reply)
        case PackagesChecked(job=job, verified=verified):
            return on_done(state, job, verified)
        case PackageSourceNotFound() | PackageNotFetched() | PackagesNotChanged():
            return on_done(state, message.job, message.refusal)
        case PackagesNotChecked(job=job, reason=reason):
            return on_done(state, job, InstallFailed(what="the packages", reason=reason))
        case PackagesLoaded(packages=packages):
            return on_loaded(state, packages)
        case PackagesNotLoaded(reason=reason):
            return on_loaded(state, InstallFailed(what="the packages", reason=reason))
        case _:
            return Step(state).answer(taken.asker, Unhandled(message=type(message).__name__))


def on_want(state: State, want: Want) -> Step[State]:
    """One thing at a time, in the order in which it was asked for (INSTALL-5)."""
    if not isinstance(state, Ready):  # guard: INSTALL-5
        return Step(replace(state, waiting=(*state.waiting, want)))
    return _begin(state, want)


def on_reload(state: State, asker: AskId | None) -> Step[State]:
    """Whoever asks while a load is under way gets what it finds (INSTALL-6).

    Except after a change: a load that began before it may not have seen it.
    """
    match state.reload:
        case Loading(askers=askers):
            return Step(replace(state, reload=Loading(askers=(*askers, asker))))
        case Overtaken(askers=askers, late=late):
            return Step(replace(state, reload=Overtaken(askers=askers, late=(*late, asker))))
        case NotLoading():
            return Step(replace(state, reload=Loading(askers=(asker,)))).do(LoadPackages())


def on_source_found(state: State, job: JobId, source: str) -> Step[State]:
    if not isinstance(state, Finding) or state.want.job != job:
        return Step(state)
    fetching = Fetching(want=state.want, waiting=state.waiting, reload=state.reload)
    return Step[State](fetching).do(FetchPackage(job=job, source=source))


def on_advanced(state: State, progress: PackageFetchAdvanced) -> Step[State]:
    if not isinstance(state, Fetching) or state.want.job != progress.job:
        return Step(state)
    return Step[State](state).emit(
        DownloadAdvanced(
            source=progress.source,
            received_bytes=progress.received_bytes,
            expected_bytes=progress.expected_bytes,
        )
    )


def on_fetched(state: State, job: JobId, warnings: tuple[str, ...]) -> Step[State]:
    """All checks are passed; only now is anything written."""
    if not isinstance(state, Fetching) or state.want.job != job:
        return Step(state)
    changing = Changing(want=state.want, waiting=state.waiting, reload=state.reload)
    change = PlaceFetched(warnings=warnings)
    return Step[State](changing).do(ChangePackages(job=job, change=change))


def on_changed(state: State, job: JobId, reply: Reply) -> Step[State]:
    """The change is durable: now it is a fact."""
    if isinstance(state, Ready) or state.want.job != job:
        return Step(state)
    if isinstance(state.reload, Loading):
        state = replace(state, reload=Overtaken(askers=state.reload.askers))
    step = on_done(state, job, reply)
    match reply:
        case PackageInstalled(name=name, version=version, generation=generation):
            if generation > 1:
                return step.emit(PackageChanged(name=name, change="updated", version=version))
            return step.emit(PackageChanged(name=name, change="installed", version=version))
        case PackageRolledBack(name=name, version=version):
            return step.emit(PackageChanged(name=name, change="rolled_back", version=version))
        case PackageRemoved(name=name):
            return step.emit(PackageChanged(name=name, change="removed"))
        case ChoiceSaved(name=name):
            return step.emit(PackageChanged(name=name, change="chosen"))
        case _:
            return step


def on_done(state: State, job: JobId, reply: Reply | Refusal) -> Step[State]:
    """Answer, and take up what waited."""
    if isinstance(state, Ready) or state.want.job != job:
        return Step(state)
    ready = Ready(reload=state.reload)
    return _resume(ready, waiting_of(state)).answer(state.want.asker, reply)


def on_loaded(state: State, reply: Reply) -> Step[State]:
    """Also a failed load frees the place for the next one (INSTALL-6)."""
    match state.reload:
        case NotLoading():
            return Step(state)
        case Loading(askers=askers):
            step: Step[State] = Step(replace(state, reload=NotLoading()))
        case Overtaken(askers=askers, late=()):
            step = Step(replace(state, reload=NotLoading()))
        case Overtaken(askers=askers, late=late):
            step = Step[State](replace(state, reload=Loading(askers=late))).do(LoadPackages())
    for asker in askers:
        step = step.answer(asker, reply)
    return step


# --- pure parts ----------------------------------------------------------------------------


def _resume(ready: Ready, waiting: tuple[Want, ...]) -> Step[State]:
    first, rest = next_want(waiting)
    if first is None:
        return Step[State](ready)
    step = _begin(ready, first)
    if isinstance(step.state, Ready):
        return step
    return step.to(replace(step.state, waiting=rest))


def _begin(ready: Ready, want: Want) -> Step[State]:
    job, reload = want.job, ready.reload
    match want.command:
        case InstallPackage(source=source, digest=digest, signature=signature):
            effect = FetchPackage(job=job, source=source, digest=digest, signature=signature)
            return Step[State](Fetching(want=want, reload=reload)).do(effect)
        case UpdatePackage(name=name):
            finding = Finding(want=want, reload=reload)
            return Step[State](finding).do(FindPackageSource(job=job, name=name))
        case VerifyPackages():
            return Step[State](Checking(want=want, reload=reload)).do(CheckPackages(job=job))
        case (
            RollBackPackage()
            | RemovePackage()
            | EnablePackage()
            | DisablePackage()
            | AllowServer()
            | ForbidServer()
            | SweepPackages() as change
        ):
            changing = Changing(want=want, reload=reload)
            return Step[State](changing).do(ChangePackages(job=job, change=change))
        case other:
            assert_never(other)


class InstallerActor(Owner):
    step = staticmethod(installer_step)
    first = Ready
