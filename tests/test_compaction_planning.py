"""Whether a conversation is compacted, and where it is cut."""

import msgspec
import pytest
from compaction_world import (
    RULES,
    answer,
    history,
    of_tokens,
    parts,
    plan,
    planned,
    result,
    turns,
    user,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.messages.compaction import CompactionPlan
from tenure.messages.content import (
    AssistantMessage,
    ImageBlock,
    TextBlock,
    ToolResultMessage,
    UserMessage,
    calls_of,
)
from tenure.messages.settings import CompactionRules
from tenure.runtime.doors.summaries.planning import NotPlanned, places_of
from tenure.runtime.doors.summaries.sizes import tokens_of, tokens_shown
from tenure.runtime.doors.transcripts.conversation import paired


def reason(found):
    assert isinstance(found, NotPlanned), found
    return found.reason


# --- S68: no plan when disabled, unknown window, under threshold, fewer than two user turns ------


def test_nothing_is_planned_when_compaction_is_switched_off():
    off = CompactionRules(enabled=False)
    assert reason(plan(history(*turns(9, 100)), rules=off)) == "disabled"
    assert reason(plan(history(*turns(9, 100)), "context_exceeded", rules=off)) == "disabled"


def test_a_wish_counts_although_compaction_is_switched_off():
    off = CompactionRules(enabled=False)
    assert isinstance(plan(history(*turns(9, 100)), "manual", rules=off), CompactionPlan)


def test_nothing_is_planned_by_itself_when_nobody_knows_the_window():
    assert reason(plan(history(*turns(9, 100)), window=0)) == "window_unknown"


def test_a_wish_needs_no_known_window_and_keeps_a_share_of_what_there_is():
    told = history(*turns(10, 100))
    found = planned(told, "manual", window=0)
    assert found.first_kept == "e14"
    assert found.tokens_kept == 300


def test_nothing_is_planned_at_the_threshold_and_something_right_behind_it():
    told = history(*turns(8, 100))
    assert reason(plan(told)) == "under_threshold"
    assert isinstance(plan(history(*turns(8, 100), user("and"))), CompactionPlan)


def test_nothing_is_planned_for_fewer_than_two_turns_of_the_user():
    told = history(user(of_tokens(900)), answer("yes"))
    assert reason(plan(told)) == "too_few_turns"
    assert reason(plan(told, "manual")) == "too_few_turns"
    assert reason(plan(history(), "manual")) == "too_few_turns"


def test_a_summary_alone_is_not_summarised_again():
    told = history(user(of_tokens(400)), answer("a"), summary=of_tokens(600), kept=2)
    assert reason(plan(told, "manual")) == "too_few_turns"
    again = history(user(of_tokens(900)), answer("a"), user("b"), summary="s", kept=3)
    assert planned(again, "manual").first_kept == "e2"


# --- S69: the cut is at a prompt, keeps as much as fits, and never less than the last turn -------


def test_the_earliest_prompt_is_taken_from_which_all_fits_into_a_third():
    found = planned(history(*turns(9, 100)))
    assert (found.first_kept, found.cut, found.tokens_kept) == ("e12", "before_prompt", 300)


def test_the_last_turn_stays_even_where_it_does_not_fit():
    found = planned(history(*turns(5, 100), user(of_tokens(390)), answer(of_tokens(10))))
    assert (found.first_kept, found.tokens_kept) == ("e10", 400)


def test_sizes_add_up_and_messages_are_counted():
    found = planned(history(*turns(9, 100)))
    assert (found.messages, found.user_turns, found.tokens_before) == (12, 9, 900)
    assert found.tokens_folded + found.tokens_kept == 900


# --- one long turn ---------------------------------------------------------------------------


def long_turn(batches, tokens):
    messages = [user("do it")]
    for number in range(batches):
        messages += [answer("next", f"c{number}"), result(f"c{number}", of_tokens(tokens))]
    return messages


def test_one_long_turn_is_cut_behind_a_complete_tool_batch():
    told = history(*long_turn(9, 100))
    found = planned(told)
    assert found.cut == "inside_turn"
    assert isinstance(parts(told, found)[1][0].message, AssistantMessage)
    assert found.tokens_kept <= 300


def test_one_batch_alone_cannot_be_cut():
    assert reason(plan(history(*long_turn(1, 900)))) == "too_few_turns"


def test_a_last_turn_that_takes_half_of_the_window_is_cut_inside():
    told = history(*turns(2, 100), *long_turn(7, 100))
    assert planned(told).cut == "inside_turn"
    assert planned(history(*turns(5, 100), *long_turn(4, 100))).cut == "before_prompt"


# --- C06, C08: a cut never parts a call from its result --------------------------------------


@pytest.mark.witness("COMPACT-6")
def test_a_prompt_between_a_call_and_its_result_is_no_place_to_cut():
    told = history(
        *turns(6, 100),
        answer("both", "a", "b"),
        result("a"),
        user("hurry"),
        result("b"),
        answer("done"),
    )
    cuts = [told.shown[place.index].entry_id for place in places_of(told.shown)]
    assert cuts == ["e2", "e4", "e6", "e8", "e10", "e16"]


def test_a_call_that_still_runs_stays_with_its_turn():
    told = history(*turns(9, 100), user("go"), answer("look", "open"))
    found = planned(told)
    assert all(not calls_of(e.message) for e in parts(told, found)[0] if e.message.content)


MESSAGES = st.lists(
    st.one_of(
        st.tuples(st.just("user"), st.integers(1, 300)),
        st.tuples(st.just("answer"), st.integers(1, 300), st.integers(0, 3)),
        st.tuples(st.just("result"), st.integers(1, 300)),
    ),
    max_size=40,
)


def told_from(steps, summary):
    """Any conversation: prompts stand between calls and results, ids come again."""
    messages, waiting, number = [], [], 0
    for step in steps:
        match step:
            case ("user", size):
                messages.append(user(of_tokens(size)))
            case ("answer", size, count):
                ids = [f"c{(number + n) % 5}" for n in range(count)]
                number += count
                waiting += ids
                messages.append(answer(of_tokens(size), *ids))
            case ("result", size) if waiting:
                messages.append(result(waiting.pop(0), of_tokens(size)))
    return history(*messages, summary=summary, kept=len(messages) // 2)


@given(MESSAGES, st.sampled_from(["", "earlier"]), st.sampled_from([0, 200, 1_000]))
@settings(max_examples=300, deadline=None)
def test_whatever_is_cut_keeps_pairs_together_and_loses_nothing(steps, summary, window):
    """S70: no orphaned result, both parts non-empty, and together they are the whole."""
    told = told_from(steps, summary)
    found = plan(told, "manual", window)
    if isinstance(found, NotPlanned):
        return
    gone, kept = parts(told, found)
    assert gone
    assert kept
    assert (*gone, *kept) == told.shown
    assert any(each.kind != "summary" for each in gone)
    first = kept[0].message
    assert isinstance(first, UserMessage) or isinstance(gone[-1].message, ToolResultMessage)
    for part in (gone, kept):
        messages = [each.message for each in part]
        calls = sum(len(calls_of(m)) for m in messages if isinstance(m, AssistantMessage))
        results = [m for m in messages if isinstance(m, ToolResultMessage)]
        if part is gone:
            assert calls == len(results)
        shown = paired(messages)
        assert sum(isinstance(m, ToolResultMessage) for m in shown) == calls


# --- C04: sizes ----------------------------------------------------------------------------------


def test_what_the_provider_counted_holds_and_what_came_since_is_estimated():
    told = history(user("a"), answer("b", tokens=700), user(of_tokens(50)))
    assert tokens_shown(told.shown) == 750


@pytest.mark.parametrize("stop_reason", ["error", "aborted"])
def test_a_count_of_a_call_that_failed_is_not_taken(stop_reason):
    failed = msgspec.structs.replace(answer("b", tokens=700), stop_reason=stop_reason)
    told = history(user("abcd"), failed)
    assert tokens_shown(told.shown) == 2


def test_a_count_from_before_a_compaction_calls_for_no_further_one():
    messages = (user("a"), answer("b", tokens=900), user("c"))
    assert tokens_shown(history(*messages).shown) > 900
    assert tokens_shown(history(*messages, summary="short", kept=2).shown) < 50


def test_text_counts_a_quarter_of_its_characters_rounded_up_and_an_image_as_1200():
    assert tokens_of(user("abcde")) == 2
    image = ImageBlock(data="aaaa", mime_type="image/png")
    assert tokens_of(UserMessage(content=(TextBlock(text="abcd"), image))) == 1_201
    assert tokens_of(answer("abcd", "c1", path="a")) == 1 + -(-(4 + 12 - 0) // 4)


def test_rules_are_as_the_contract_says_by_default():
    assert (RULES.enabled, RULES.threshold_percent, RULES.model, RULES.window) == (True, 80, "", 0)
