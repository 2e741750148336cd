"""Whether a conversation is compacted, and where it is cut.

The part that stays begins at a prompt of the user, or, inside one long turn,
right behind a complete tool batch: a call is never parted from its result.
"""

from collections.abc import Iterator, Sequence

import msgspec

from tenure.messages.compaction import CompactionPlan, Cut, SkipReason, Trigger
from tenure.messages.content import AssistantMessage, ToolResultMessage, calls_of
from tenure.messages.settings import CompactionRules
from tenure.messages.tokens import EntryId
from tenure.runtime.doors.summaries.sizes import tokens_of, tokens_shown
from tenure.runtime.doors.transcripts.conversation import History, Shown

KEPT_PERCENT = 30
"""Of the window: how much may stay as it is."""
LAST_TURN_PERCENT = 50
"""Of the window: a last turn that alone takes more is cut inside."""
USER_TURNS_MIN = 2


class NotPlanned(msgspec.Struct, frozen=True, kw_only=True):
    """There is nothing to do, or nothing that can be done."""

    reason: SkipReason
    said: str
    """For people."""


class Place(msgspec.Struct, frozen=True):
    """A place where the conversation can be cut."""

    index: int
    """Of the first message that stays."""
    cut: Cut
    tokens_kept: int


def plan_of(
    history: History, trigger: Trigger, window: int, rules: CompactionRules
) -> CompactionPlan | NotPlanned:
    """Decide on one conversation.

    Args:
        window: tokens that the model can read; 0 where nobody knows.
    """
    refusal = _not_wanted(trigger, window, rules)
    if refusal is not None:
        return refusal
    shown = history.shown
    tokens = tokens_shown(shown)
    if trigger == "threshold" and tokens * 100 <= window * rules.threshold_percent:
        said = f"{tokens} tokens are not more than {rules.threshold_percent} % of {window}"
        return NotPlanned(reason="under_threshold", said=said)
    estimated = sum(tokens_of(each.message) for each in shown)
    # A wish, and a provider's refusal, are about what there is: the window may be
    # unknown, or be said to be larger than it is.
    base = window if trigger == "threshold" else min(window or estimated, estimated)
    places = list(places_of(shown))
    found = chosen(places, base)
    turns = sum(each.kind == "prompt" for each in shown)
    if found is None:
        return _no_place(turns)
    return CompactionPlan(
        first_kept=EntryId(shown[found.index].entry_id),
        cut=found.cut,
        messages=found.index,
        user_turns=turns,
        tokens_before=tokens,
        tokens_folded=estimated - found.tokens_kept,
        tokens_kept=found.tokens_kept,
        window=window,
    )


def places_of(shown: Sequence[Shown]) -> Iterator[Place]:
    """Every place where a cut is allowed, in order.

    Something new is before it, so that each pass makes progress; no call is open
    there; and what begins there is an entry of its own.
    """
    first = 1 if shown and shown[0].kind == "summary" else 0
    last_prompt = max((i for i, each in enumerate(shown) if each.kind == "prompt"), default=-1)
    kept = sum(tokens_of(each.message) for each in shown)
    open_calls: dict[str, int] = {}
    for index, each in enumerate(shown):
        allowed = index > first and bool(each.entry_id)
        if sum(open_calls.values()):  # guard: COMPACT-6
            allowed = False
        if allowed and each.kind == "prompt":
            yield Place(index, "before_prompt", kept)
        elif allowed and index > last_prompt and _follows_batch(shown, index):
            yield Place(index, "inside_turn", kept)
        _note_calls(open_calls, each)
        kept -= tokens_of(each.message)


def chosen(places: Sequence[Place], base: int) -> Place | None:
    """The earliest prompt from which all fits; else as much as a long last turn allows."""
    kept_max = base * KEPT_PERCENT // 100
    prompts = [place for place in places if place.cut == "before_prompt"]
    batches = [place for place in places if place.cut == "inside_turn"]
    for place in prompts:
        if place.tokens_kept <= kept_max:
            return place
    if prompts and prompts[-1].tokens_kept * 100 <= base * LAST_TURN_PERCENT:
        return prompts[-1]
    for place in batches:
        if place.tokens_kept <= kept_max:
            return place
    ends = batches or prompts
    return ends[-1] if ends else None


# --- pure parts ----------------------------------------------------------------------------


def _not_wanted(trigger: Trigger, window: int, rules: CompactionRules) -> NotPlanned | None:
    if trigger == "manual":
        return None
    if not rules.enabled:
        return NotPlanned(reason="disabled", said="compaction is switched off in the settings")
    if trigger == "threshold" and window <= 0:
        said = "nobody knows how much the model can read; set compaction.window in the settings"
        return NotPlanned(reason="window_unknown", said=said)
    return None


def _no_place(turns: int) -> NotPlanned:
    if turns < USER_TURNS_MIN:
        said = "there are fewer than two turns, and no complete tool batch to cut behind"
        return NotPlanned(reason="too_few_turns", said=said)
    said = "there is nothing new before the last turn that could be summarised"
    return NotPlanned(reason="no_cut", said=said)


def _follows_batch(shown: Sequence[Shown], index: int) -> bool:
    before, here = shown[index - 1].message, shown[index].message
    return isinstance(before, ToolResultMessage) and isinstance(here, AssistantMessage)


def _note_calls(open_calls: dict[str, int], each: Shown) -> None:
    """Keep count of the calls that wait for their result, by id: ids may come again."""
    message = each.message
    if isinstance(message, AssistantMessage):
        for call in calls_of(message):
            open_calls[call.id] = open_calls.get(call.id, 0) + 1
    elif isinstance(message, ToolResultMessage) and open_calls.get(message.tool_call_id):
        open_calls[message.tool_call_id] -= 1
