"""What takes the place of the messages that go: by a model, part by part, or by rule."""

import asyncio

import msgspec
import pytest
from compaction_world import answer, history, of_tokens, planned, result, turns, user
from hypothesis import given
from hypothesis import strategies as st

from tenure.messages.content import ImageBlock, TextBlock, ToolResultMessage, Usage, UserMessage
from tenure.messages.models import ModelCallError, ModelFailure
from tenure.runtime.doors.summaries.by_rule import HEAD, summary_by_rule
from tenure.runtime.doors.summaries.carried import carried_of
from tenure.runtime.doors.summaries.sizes import tokens_of_text
from tenure.runtime.doors.summaries.summarising import (
    Unfolded,
    by_model,
    by_rule,
    folded_of,
)
from tenure.runtime.doors.summaries.writing import RESULT_CHARS_MAX, cut_middle, parted, written


class Summariser:
    """A model that notes its prompts and numbers its summaries."""

    def __init__(self, tokens_max=10**9, fails=None):
        self.tokens_max = tokens_max
        self.fails = fails
        self.prompts = []

    async def __call__(self, prompt):
        if self.fails is not None:
            raise ModelCallError(self.fails)
        if tokens_of_text(prompt) > self.tokens_max:
            raise ModelCallError(ModelFailure(kind="context_exceeded", reason="too long"))
        self.prompts.append(prompt)
        said = answer(f"summary {len(self.prompts)}", tokens=7)
        return msgspec.structs.replace(said, model="acme-1")


def folded(told, trigger="manual", window=1_000):
    return folded_of(told, planned(told, trigger, window))


def summed(told, say, *, instructions="", window=0):
    return asyncio.run(by_model(folded(told), instructions, window, say))


# --- parts ---------------------------------------------------------------------------------------


@given(st.lists(st.text(max_size=200), max_size=30), st.integers(1, 40))
def test_parts_are_the_texts_in_order_and_none_is_larger_than_it_may_be(texts, tokens_max):
    parts = parted(texts, tokens_max)
    assert "".join(parts) == "".join(texts)
    assert all(len(part) <= tokens_max * 4 for part in parts)


def test_a_tool_result_is_cut_in_its_middle_and_says_how_much_is_gone():
    text = written((result("c", "a" * 5_000 + "b" * 5_000),))[0]
    assert len(text) < RESULT_CHARS_MAX + 100
    assert "2000 characters left out" in text
    assert text.startswith("[Result of read]: aaa")
    assert text.endswith("bbb\n")
    assert cut_middle("short", 100) == "short"


def test_calls_thoughts_and_failures_are_told_apart():
    failed = msgspec.structs.replace(result("c", "no"), is_error=True)
    texts = written((user("hi"), answer("looking", "c"), failed))
    assert texts == (
        "[User]: hi\n",
        '[Assistant]: looking\n[Assistant calls]: read({"path":"a.md"})\n',
        "[Result of read, failed]: no\n",
    )


# --- by a model (S75, C09) -----------------------------------------------------------------------


def test_instructions_reach_the_summariser_with_the_conversation():
    say = Summariser()
    summary = summed(history(*turns(4, 40)), say, instructions="Keep the prices")
    assert len(say.prompts) == 1
    assert "Keep the prices" in say.prompts[0]
    assert "prompt 0" in say.prompts[0]
    assert "prompt 3" not in say.prompts[0]
    assert (summary.summariser, summary.model) == ("model", "acme-1")
    assert summary.text.startswith("summary 1")


def test_what_is_too_large_goes_in_parts_in_order_with_the_summary_so_far():
    say = Summariser()
    summary = summed(history(*turns(20, 1_000)), say, window=28_384)
    assert len(say.prompts) > 2
    assert "<summary-so-far>" not in say.prompts[0]
    for number, prompt in enumerate(say.prompts[1:], 1):
        assert f"<summary-so-far>\nsummary {number}\n</summary-so-far>" in prompt
    whole = "".join(say.prompts)
    places = [whole.index(f"prompt {number} ") for number in range(12)]
    assert places == sorted(places)
    assert summary.details["calls"] == len(say.prompts)
    assert summary.details["usage"]["totalTokens"] == 7 * len(say.prompts)


def test_a_summariser_that_can_read_less_than_was_thought_gets_smaller_parts():
    """C09: a conversation three times as long as the summariser can read goes by stages."""
    say = Summariser(tokens_max=2_000)
    summary = summed(history(*turns(12, 800)), say, window=100_000)
    assert summary.summariser == "model"
    assert all(tokens_of_text(prompt) <= 2_000 for prompt in say.prompts)
    assert "prompt 0 " in say.prompts[0]


def test_a_summariser_that_reads_nothing_at_all_is_given_up():
    with pytest.raises(ModelCallError, match="too long"):
        summed(history(*turns(12, 800)), Summariser(tokens_max=0))


def test_an_empty_summary_is_a_failure_of_its_own():
    async def say(prompt):
        return answer("  \n")

    with pytest.raises(ModelCallError, match="empty"):
        summed(history(*turns(4, 40)), say)


# --- by rule -------------------------------------------------------------------------------------


def test_the_rule_says_what_it_is_and_names_what_was_asked_and_done():
    told = history(
        user("Find the price list. Never use old prices."),
        answer("Looking.", "c1", path="prices.md"),
        result("c1"),
        answer("The price list is in prices.md."),
        *turns(3, 4_000),
    )
    text = by_rule(folded(told), "").text
    assert text.startswith(HEAD)
    assert "Asked: Find the price list." in text
    assert "Answered: The price list is in prices.md." in text
    assert "read (1)" in text
    assert "## Constraints & Preferences\n- Find the price list. Never use old prices." in text
    assert "<read-files>\nprices.md\n</read-files>" in text


def test_the_rule_quotes_lines_that_have_words_of_the_instructions():
    told = history(user("x"), answer("one\nthe invoice is 42\nthree"), *turns(4, 400))
    assert "- the invoice is 42" in by_rule(folded(told), "keep every invoice").text


def test_the_rule_says_why_it_stands_in_for_a_model():
    summary = by_rule(folded(history(*turns(4, 400))), "", "auth: no key")
    assert (summary.summariser, summary.problem) == ("deterministic", "auth: no key")


@given(st.integers(1, 30), st.integers(2, 400), st.integers(100, 3_000), st.text(max_size=4_000))
def test_the_rule_never_says_more_than_it_may(count, size, chars_max, earlier):
    text = summary_by_rule(
        turns(count, size), earlier=earlier, instructions="prompt", chars_max=chars_max
    )
    assert len(text) <= chars_max + 60


# --- what outlives the messages (S71, S72, S73) --------------------------------------------------


def test_an_earlier_summary_is_taken_up_and_ordinary_text_is_not_taken_for_one():
    told = history(
        user("<conversation-summary>\nnot one\n</conversation-summary>"),
        *turns(5, 100),
        summary="the first summary",
        kept=3,
    )
    found = folded(told)
    assert found.earlier == "the first summary"
    assert any("not one" in str(message.content) for message in found.messages)


def test_usage_of_what_is_folded_is_carried_through_repeated_passes():
    first = carried_of((answer("a", tokens=10), answer("b", tokens=5)), {})
    assert first.usage.total_tokens == 15
    again = carried_of((answer("c", tokens=1),), first.details())
    assert again.usage.total_tokens == 16
    assert carried_of((), {"compactedUsage": "nonsense"}).usage == Usage()


def test_references_to_artifacts_are_kept_in_text_and_details():
    named = ToolResultMessage(
        tool_call_id="c",
        tool_name="web",
        content=(TextBlock(text="see artifact:abc-1"),),
        details={"sourceArtifactId": "xyz"},
    )
    carried = carried_of((named,), {"artifacts": ["old"]})
    assert carried.artifacts == ("old", "abc-1", "xyz")
    told = history(user("a"), answer("b", "c"), named, answer("d"), *turns(6, 400))
    assert "artifact:abc-1" in by_rule(folded(told), "").text


def test_files_of_an_earlier_pass_stay_listed():
    before = {"readFiles": ["old.md"], "modifiedFiles": ["mine.md"]}
    carried = carried_of((answer("a", "c", path="new.md"),), before)
    assert carried.files_read == ("old.md", "new.md")
    assert carried.files_modified == ("mine.md",)


# --- one long turn -------------------------------------------------------------------------------


def long_turn(*messages, batches=9):
    told = list(messages)
    for number in range(batches):
        told += [answer("next", f"c{number}"), result(f"c{number}", of_tokens(100))]
    return told


def test_the_prompt_of_a_turn_that_is_cut_inside_stays_word_for_word():
    prompt = UserMessage(
        content=(TextBlock(text="Do   this\nexactly"), ImageBlock(data="a", mime_type="image/png"))
    )
    summary = by_rule(folded(history(*long_turn(prompt))), "")
    assert "<current-prompt>\nDo   this\nexactly\n" in summary.text
    assert "1 images came with it" in summary.text


def test_the_quoted_prompt_survives_a_second_pass_inside_the_same_turn():
    first = by_rule(folded(history(*long_turn(user("Do   this\nexactly")))), "")
    told = history(*long_turn(), summary=first.text, kept=4, details=first.details)
    again = folded(told)
    assert again.quoted == "Do   this\nexactly"
    assert "current-prompt" not in again.earlier
    assert by_rule(again, "").text.count("<current-prompt>\nDo   this\nexactly") == 1


def test_a_conversation_that_lost_the_entry_to_keep_is_refused():
    plan = planned(history(*turns(9, 100)))
    with pytest.raises(Unfolded):
        folded_of(history(*turns(2, 100)), plan)


def test_what_came_after_the_plan_is_behind_the_cut():
    """C02: a message that is stored meanwhile is not covered by the summary."""
    told = history(*turns(9, 100))
    plan = planned(told)
    later = history(*turns(9, 100), user("late"))
    assert folded_of(later, plan).messages == folded_of(told, plan).messages
