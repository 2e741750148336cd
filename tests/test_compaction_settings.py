"""What `[compaction]` in the settings means, and which model summarises what."""

import asyncio

import pytest
from compaction_world import answer, history, of_tokens, turns, user

from tenure.messages.compaction import (
    CompactionNotPlanned,
    CompactionPlanned,
    ConversationNotSummarised,
    ConversationSummarised,
    PassId,
    PlanCompaction,
    SummariseConversation,
)
from tenure.messages.models import ModelCallError, ModelFailure
from tenure.messages.settings import CompactionRules
from tenure.messages.tokens import SessionId
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.models.names import parsed
from tenure.runtime.doors.models.windows import window_of
from tenure.runtime.doors.settings_layout import check_overrides, read_text, settings_of
from tenure.runtime.doors.summaries.door import PART_S_MAX, Summaries
from tenure.runtime.testing.leaves import memory_leaves

SESSION = SessionId("s")
RULES = CompactionRules()
CONTEXT = Context(owner="main/compaction", seat="main", progress=lambda outcome: None)


def rules_of(text):
    found = settings_of("settings.toml", "/work", read_text(text.encode()), {})
    return found.compaction, found.problems


def test_without_a_table_the_defaults_hold():
    assert rules_of("") == (CompactionRules(), ())


def test_every_value_of_the_table_is_read():
    text = (
        "[compaction]\nenabled = false\nthreshold_percent = 60\n"
        'model = "ollama:small"\nwindow = 32000\n'
    )
    wanted = CompactionRules(
        enabled=False, threshold_percent=60, model="ollama:small", window=32_000
    )
    assert rules_of(text) == (wanted, ())


@pytest.mark.parametrize(
    ("line", "field", "taken"),
    [
        ("threshold_percent = 10", "threshold_percent", 50),
        ("threshold_percent = 99", "threshold_percent", 95),
        ('threshold_percent = "many"', "threshold_percent", 80),
        ("enabled = 1", "enabled", True),
        ("model = 4", "model", ""),
        ("window = -1", "window", 0),
        ("window = true", "window", 0),
    ],
)
def test_a_value_that_cannot_be_used_is_named_and_another_taken(line, field, taken):
    rules, problems = rules_of(f"[compaction]\n{line}\n")
    assert getattr(rules, field) == taken
    assert len(problems) == 1
    assert f"compaction.{field}" in problems[0]


def test_something_else_in_place_of_the_table_is_named():
    rules, problems = rules_of("compaction = 3\n")
    assert rules == CompactionRules()
    assert problems == ("compaction is no table; the defaults are taken",)


def test_a_host_that_misspells_a_setting_is_told():
    check_overrides("/work", {"compaction": {"window": 1_000}})
    with pytest.raises(ValueError, match=r"compaction\.windows is unknown"):
        check_overrides("/work", {"compaction": {"windows": 1_000}})


# --- who summarises ------------------------------------------------------------------------------


class Models:
    """What the summaries door knows of models."""

    default = "acme:large"

    def __init__(self, *answers, window=100_000):
        self.answers = list(answers)
        self.asked = []
        self.known = window

    async def ask(self, model, system, prompt, session_id, within_s):
        self.asked.append((model, within_s))
        said = self.answers.pop(0)
        if isinstance(said, ModelFailure):
            raise ModelCallError(said)
        return answer(said)

    async def window(self, model):
        return self.known


class Door:
    """A summaries door over one conversation."""

    def __init__(self, told, models=None):
        self.told = told
        self.leaves = memory_leaves()
        self.models = models or Models()
        self.door = Summaries(self.leaves, self, self.models)

    def history(self, session_id):
        if session_id != SESSION:
            raise LookupError(session_id)
        return self.told

    async def plan(self, rules=RULES, model="acme:large", session=SESSION):
        effect = PlanCompaction(
            pass_id=PassId("p"), session_id=session, trigger="manual", model=model, window=0
        )
        return await self.door.plan(effect, rules, CONTEXT)

    async def summarise(self, rules=RULES, instructions=""):
        planned = await self.plan(rules)
        assert isinstance(planned, CompactionPlanned), planned
        effect = SummariseConversation(
            pass_id=PassId("p"), session_id=SESSION, plan=planned.plan, instructions=instructions
        )
        task = asyncio.ensure_future(self.door.summarise(effect, CONTEXT))
        while not task.done():
            await asyncio.sleep(0)
            self.leaves.clock.advance(1.0)
        return task.result()


def summariser(rules, model="acme:large"):
    planned = asyncio.run(Door(history(*turns(6, 100))).plan(rules, model))
    return planned.plan.summariser


def test_by_default_the_rule_summarises():
    assert summariser(CompactionRules()) == ""


def test_a_model_of_its_own_summarises_or_that_of_the_turn():
    assert summariser(CompactionRules(model="acme:small")) == "acme:small"
    assert summariser(CompactionRules(model="same"), "acme:huge") == "acme:huge"
    assert summariser(CompactionRules(model="same"), "") == "acme:large"


def test_the_librarian_does_not_summarise_the_rule_does():
    assert summariser(CompactionRules(model="same"), "librarian") == ""


def test_a_model_that_fails_is_stood_in_for_and_the_reason_is_kept():
    models = Models(ModelFailure(kind="auth", reason="no key"))
    door = Door(history(*turns(6, 400)), models)
    outcome = asyncio.run(door.summarise(CompactionRules(model="acme:small")))
    assert isinstance(outcome, ConversationSummarised)
    assert outcome.summary.summariser == "deterministic"
    assert outcome.summary.problem == "auth: no key"
    assert models.asked == [("acme:small", PART_S_MAX)]


def test_a_failure_that_may_pass_is_tried_once_more():
    models = Models(ModelFailure(kind="overloaded", reason="busy"), "the summary")
    door = Door(history(*turns(6, 400)), models)
    outcome = asyncio.run(door.summarise(CompactionRules(model="acme:small")))
    assert outcome.summary.text.startswith("the summary")
    assert len(models.asked) == 2


def test_a_provider_that_wants_a_long_wait_is_not_waited_for():
    models = Models(ModelFailure(kind="rate_limit", reason="later", retry_after_ms=60_000))
    door = Door(history(*turns(6, 400)), models)
    outcome = asyncio.run(door.summarise(CompactionRules(model="acme:small")))
    assert outcome.summary.summariser == "deterministic"


def test_a_session_that_is_not_open_is_neither_planned_nor_summarised():
    door = Door(history(*turns(6, 100)))
    planned = asyncio.run(door.plan(session=SessionId("other")))
    assert isinstance(planned, CompactionNotPlanned)
    assert planned.reason == "unreadable"


def test_a_conversation_that_changed_under_the_plan_is_not_summarised():
    door = Door(history(*turns(6, 100)))

    async def run():
        planned = await door.plan()
        door.told = history(user(of_tokens(9)))
        effect = SummariseConversation(
            pass_id=PassId("p"), session_id=SESSION, plan=planned.plan, instructions=""
        )
        return await door.door.summarise(effect, CONTEXT)

    assert isinstance(asyncio.run(run()), ConversationNotSummarised)


def test_the_window_is_as_set_else_as_known():
    door = Door(history())
    rules = CompactionRules(window=7)
    assert asyncio.run(door.door.window("acme:large", rules)) == 7
    assert asyncio.run(door.door.window("acme:large", CompactionRules())) == 100_000


@pytest.mark.parametrize(
    "model", ["librarian", "ollama:small", "openai:gpt-4o@http://127.0.0.1:1/v1", "openai:nobody"]
)
def test_nobody_knows_the_window_of_a_model_of_ones_own_server(model):
    assert window_of(parsed(model)) == 0
