"""InstallerActor: one change at a time, one load for all who ask, facts once they are durable."""

from typing import Any

import pytest
from steps import Driven

from tenure.actors.installer import installer_step
from tenure.actors.installer_state import Ready
from tenure.messages.bus import OwnerStarted, Unhandled
from tenure.messages.install import (
    DownloadAdvanced,
    GetPackages,
    InstallFailed,
    InstallPackage,
    PackageChanged,
    PackageInstalled,
    PackageName,
    PackageNotFound,
    PackageRefused,
    PackageRemoved,
    Packages,
    ReloadPackages,
    RemovePackage,
    SweepPackages,
    Swept,
    UpdatePackage,
    Verified,
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
from tenure.messages.settings import GetSettings

DEMO = PackageName("demo")
INSTALLED = PackageInstalled(name=DEMO, version="1", generation=1)


def driven() -> Driven[Any]:
    owner = Driven(installer_step, Ready())
    owner.tell(OwnerStarted(incarnation=1))
    return owner


def fetched(owner: Driven[Any]) -> JobId:
    """The last fetch came through."""
    job = owner.wanted(FetchPackage)[-1].job
    owner.tell(PackageFetched(job=job, name=DEMO))
    return job


def changed(owner: Driven[Any], reply: Any) -> None:
    owner.tell(PackagesChanged(job=owner.wanted(ChangePackages)[-1].job, reply=reply))


def test_an_installation_is_fetched_then_placed_and_a_fact_once_it_is_durable() -> None:
    owner = driven()
    asker = owner.ask(InstallPackage(source="a.zip"))
    job = fetched(owner)
    assert owner.wanted(ChangePackages) == [ChangePackages(job=job, change=PlaceFetched())]
    assert owner.reply_to(asker) is None
    assert owner.said(PackageChanged) == []
    changed(owner, INSTALLED)
    assert owner.reply_to(asker) == INSTALLED
    assert [event.change for event in owner.said(PackageChanged)] == ["installed"]


@pytest.mark.witness("INSTALL-5")
def test_a_second_change_waits_for_the_first_and_they_keep_their_order() -> None:
    """X16: two installs of one name, and an install and a sweep, one after the other."""
    owner = driven()
    first = owner.ask(InstallPackage(source="a.zip"))
    second = owner.ask(InstallPackage(source="b.zip"))
    swept = owner.ask(SweepPackages())
    assert [each.source for each in owner.wanted(FetchPackage)] == ["a.zip"]
    fetched(owner)
    assert len(owner.wanted(ChangePackages)) == 1
    changed(owner, INSTALLED)
    assert owner.reply_to(first) == INSTALLED
    assert [each.source for each in owner.wanted(FetchPackage)] == ["a.zip", "b.zip"]
    fetched(owner)
    changed(owner, PackageInstalled(name=DEMO, version="2", generation=2))
    assert owner.reply_to(second) is not None
    assert isinstance(owner.wanted(ChangePackages)[-1].change, SweepPackages)
    changed(owner, Swept())
    assert owner.reply_to(swept) == Swept()
    assert owner.state == Ready()


def test_what_is_refused_is_answered_and_the_next_one_begins() -> None:
    owner = driven()
    first = owner.ask(InstallPackage(source="a.zip"))
    second = owner.ask(RemovePackage(name=DEMO))
    refusal = PackageRefused(source="a.zip", violations=("a link",))
    job = owner.wanted(FetchPackage)[-1].job
    owner.tell(PackageNotFetched(job=job, refusal=refusal))
    assert owner.reply_to(first) == refusal
    missing = PackageNotFound(name="demo")
    job = owner.wanted(ChangePackages)[-1].job
    owner.tell(PackagesNotChanged(job=job, refusal=missing))
    assert owner.reply_to(second) == missing
    assert owner.said(PackageChanged) == []


def test_an_update_asks_first_where_the_package_came_from() -> None:
    owner = driven()
    asker = owner.ask(UpdatePackage(name=DEMO))
    job = owner.wanted(FindPackageSource)[-1].job
    owner.tell(PackageSourceFound(job=job, source="/src/demo"))
    assert owner.wanted(FetchPackage) == [FetchPackage(job=job, source="/src/demo")]
    fetched(owner)
    changed(owner, PackageInstalled(name=DEMO, version="2", generation=2))
    assert isinstance(owner.reply_to(asker), PackageInstalled)
    assert [event.change for event in owner.said(PackageChanged)] == ["updated"]


def test_an_update_of_what_nobody_knows_the_source_of_is_refused() -> None:
    owner = driven()
    asker = owner.ask(UpdatePackage(name=DEMO))
    missing = PackageNotFound(name="demo")
    job = owner.wanted(FindPackageSource)[-1].job
    owner.tell(PackageSourceNotFound(job=job, refusal=missing))
    assert owner.reply_to(asker) == missing
    assert owner.state == Ready()


def test_progress_of_a_download_is_told_and_that_of_an_old_one_is_not() -> None:
    owner = driven()
    owner.ask(InstallPackage(source="a"))
    job = owner.wanted(FetchPackage)[-1].job
    for each in (job, JobId("another")):
        owner.tell(PackageFetchAdvanced(job=each, source="a", received_bytes=5, expected_bytes=9))
    assert owner.said(DownloadAdvanced) == [
        DownloadAdvanced(source="a", received_bytes=5, expected_bytes=9)
    ]


@pytest.mark.witness("INSTALL-6")
def test_those_who_ask_at_once_share_one_load() -> None:
    """X17: concurrent reloads share one load."""
    owner = driven()
    askers = [owner.ask(ReloadPackages()), owner.ask(GetPackages()), owner.ask(ReloadPackages())]
    assert owner.wanted(LoadPackages) == [LoadPackages()]
    owner.tell(PackagesLoaded(packages=Packages()))
    assert [owner.reply_to(asker) for asker in askers] == [Packages()] * 3


@pytest.mark.witness("INSTALL-6")
def test_a_failed_load_is_told_and_the_next_one_is_free() -> None:
    """X17: a rejected reload is tried again by who asks next."""
    owner = driven()
    first = owner.ask(ReloadPackages())
    owner.tell(PackagesNotLoaded(reason="no such disk"))
    assert isinstance(owner.reply_to(first), InstallFailed)
    second = owner.ask(ReloadPackages())
    assert len(owner.wanted(LoadPackages)) == 2
    owner.tell(PackagesLoaded(packages=Packages()))
    assert owner.reply_to(second) == Packages()


def test_who_asks_after_a_change_never_gets_a_load_that_began_before_it() -> None:
    owner = driven()
    early = owner.ask(ReloadPackages())
    owner.ask(RemovePackage(name=DEMO))
    changed(owner, PackageRemoved(name=DEMO))
    late = owner.ask(GetPackages())
    owner.tell(PackagesLoaded(packages=Packages()))
    assert owner.reply_to(early) == Packages()
    assert owner.reply_to(late) is None
    assert len(owner.wanted(LoadPackages)) == 2
    owner.tell(PackagesLoaded(packages=Packages()))
    assert owner.reply_to(late) == Packages()
    assert owner.state == Ready()


def test_a_load_goes_on_beside_a_change() -> None:
    owner = driven()
    owner.ask(InstallPackage(source="a"))
    asker = owner.ask(GetPackages())
    owner.tell(PackagesLoaded(packages=Packages()))
    assert owner.reply_to(asker) == Packages()


def test_late_outcomes_of_other_jobs_change_nothing() -> None:
    owner = driven()
    owner.ask(InstallPackage(source="a"))
    before, old = owner.state, JobId("old")
    for outcome in (
        PackageFetched(job=old, name=DEMO),
        PackagesChanged(job=old, reply=INSTALLED),
        PackagesNotChanged(job=old, refusal=PackageNotFound(name="demo")),
        PackageSourceFound(job=old, source="x"),
        PackagesChecked(job=old, verified=Verified()),
        PackagesLoaded(packages=Packages()),
    ):
        owner.tell(outcome)
        assert owner.state == before
    assert owner.said(PackageChanged) == []


def test_verification_is_answered_whether_it_works_or_not() -> None:
    owner = driven()
    first, second = owner.ask(VerifyPackages()), owner.ask(VerifyPackages())
    owner.tell(PackagesChecked(job=owner.wanted(CheckPackages)[-1].job, verified=Verified()))
    assert owner.reply_to(first) == Verified()
    owner.tell(PackagesNotChecked(job=owner.wanted(CheckPackages)[-1].job, reason="unreadable"))
    assert isinstance(owner.reply_to(second), InstallFailed)


def test_what_is_not_for_the_installer_is_answered() -> None:
    owner = driven()
    asker = owner.ask(GetSettings())
    assert owner.reply_to(asker) == Unhandled(message="GetSettings")
