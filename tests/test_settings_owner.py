"""SettingsActor: one thing at a time, a change is a fact once durable, and unreadable is closed."""

from typing import Any

import pytest
from steps import Driven

from tenure.actors.settings import CLOSED, Ready, settings_step
from tenure.messages.bus import OwnerStarted
from tenure.messages.settings import (
    GetPolicy,
    GetSettings,
    Policy,
    PolicyChanged,
    ReadSettings,
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
    WriteSettings,
)
from tenure.runtime.step import AskId

OLD = Policy(version="1")
NEW = Policy(version="2", mode="yolo")


def settings(policy: Policy = OLD) -> Settings:
    return Settings(path="settings.toml", policy=policy)


def driven(policy: Policy = OLD) -> Driven[Any]:
    return Driven(settings_step, Ready(policy))


def changes(owner: Driven[Any]) -> list[Policy]:
    return [event.policy for event in owner.said(PolicyChanged)]


def test_queries_are_answered_from_the_file_and_not_from_memory() -> None:
    owner = driven()
    first, second = owner.ask(GetSettings()), owner.ask(GetPolicy())
    assert owner.wanted(ReadSettings) == [ReadSettings()]
    owner.tell(SettingsRead(settings=settings()))
    assert owner.reply_to(first) == settings()
    assert owner.reply_to(second) is None
    owner.tell(SettingsRead(settings=settings()))
    assert owner.reply_to(second) == OLD
    assert changes(owner) == []


def test_queries_that_wait_share_one_reading_that_began_after_them() -> None:
    owner = driven()
    owner.ask(GetSettings())
    askers = [owner.ask(GetPolicy()) for _ in range(5)]
    owner.tell(SettingsRead(settings=settings()))
    assert len(owner.wanted(ReadSettings)) == 2
    owner.tell(SettingsRead(settings=settings(NEW)))
    assert [owner.reply_to(asker) for asker in askers] == [NEW] * 5


def test_policy_that_another_program_changed_is_said_when_it_is_read() -> None:
    owner = driven()
    asker = owner.ask(GetPolicy())
    owner.tell(SettingsRead(settings=settings(NEW)))
    assert owner.reply_to(asker) == NEW
    assert changes(owner) == [NEW]
    owner.ask(GetPolicy())
    owner.tell(SettingsRead(settings=settings(NEW)))
    assert changes(owner) == [NEW]


@pytest.mark.parametrize(
    "command",
    [SetToolPolicy(tool="write", rule="allow"), SetMode(mode="yolo"), SetModel(model="m")],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.witness("APPROVE-5")
def test_change_is_a_fact_once_it_is_durable(
    command: SetToolPolicy | SetMode | SetModel,
) -> None:
    owner = driven()
    asker = owner.ask(command)
    assert owner.wanted(WriteSettings) == [WriteSettings(change=command)]
    assert (owner.reply_to(asker), changes(owner)) == (None, [])
    owner.tell(SettingsWritten(settings=settings(NEW)))
    assert owner.reply_to(asker) == SettingsSaved(settings=settings(NEW))
    assert changes(owner) == [NEW]


def test_change_that_failed_changes_nothing_and_says_why() -> None:
    owner = driven()
    asker = owner.ask(SetMode(mode="yolo"))
    owner.tell(SettingsNotWritten(path="settings.toml", reason="no space left"))
    assert owner.reply_to(asker) == SettingsNotSaved(path="settings.toml", reason="no space left")
    assert changes(owner) == []
    assert owner.state == Ready(OLD)


def test_changes_and_queries_are_taken_one_by_one_in_their_order() -> None:
    owner = driven()
    asked: list[AskId] = [
        owner.ask(SetMode(mode="yolo")),
        owner.ask(GetPolicy()),
        owner.ask(SetMode(mode="plan")),
        owner.ask(GetSettings()),
    ]
    done = (
        SettingsWritten(settings=settings(NEW)),
        SettingsRead(settings=settings(NEW)),
        SettingsWritten(settings=settings(OLD)),
        SettingsRead(settings=settings(OLD)),
    )
    for number, outcome in enumerate(done):
        assert len(owner.effects) == number + 1
        owner.tell(outcome)
    assert [type(effect) for effect in owner.effects] == [
        WriteSettings,
        ReadSettings,
        WriteSettings,
        ReadSettings,
    ]
    assert owner.reply_to(asked[1]) == NEW
    assert owner.reply_to(asked[3]) == settings(OLD)
    assert changes(owner) == [NEW, OLD]


def test_file_that_cannot_be_read_closes_the_policy_until_it_can() -> None:
    owner = driven(NEW)
    policy = owner.ask(GetPolicy())
    owner.tell(SettingsNotRead(reason="permission denied"))
    assert owner.reply_to(policy) == CLOSED
    assert (CLOSED.mutating, CLOSED.mode) == ("deny", "safe")
    whole = owner.ask(GetSettings())
    owner.tell(SettingsNotRead(reason="permission denied"))
    refused = owner.reply_to(whole)
    assert isinstance(refused, SettingsNotSaved)
    assert refused.reason == "permission denied"
    assert changes(owner) == [CLOSED]
    owner.ask(GetPolicy())
    owner.tell(SettingsRead(settings=settings(NEW)))
    assert changes(owner) == [CLOSED, NEW]


def test_nothing_is_allowed_before_the_file_was_read() -> None:
    owner = Driven(settings_step, Ready())
    owner.tell(OwnerStarted(incarnation=2))
    assert owner.state == Ready(CLOSED)
    asker = owner.ask(GetPolicy())
    assert owner.reply_to(asker) is None


def test_outcomes_that_nobody_waits_for_change_nothing() -> None:
    owner = driven()
    for outcome in (
        SettingsRead(settings=settings(NEW)),
        SettingsNotRead(reason="x"),
        SettingsWritten(settings=settings(NEW)),
        SettingsNotWritten(path="p", reason="x"),
    ):
        owner.tell(outcome)
    assert (owner.state, owner.events) == (Ready(OLD), [])
