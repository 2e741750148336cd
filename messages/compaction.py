"""The CompactionActor's vocabulary: a summary takes the place of what was said long ago."""

from typing import Any, Literal, NewType

import msgspec

from tenure.messages.tokens import EntryId

PassId = NewType("PassId", str)
"""Names one pass: from its plan to its end."""

Trigger = Literal["manual", "threshold", "context_exceeded"]
"""manual: somebody asked for it.  threshold: the window fills up.  context_exceeded: the
provider said that the conversation is too long."""

SkipReason = Literal[
    "disabled",
    "window_unknown",
    "under_threshold",
    "too_few_turns",
    "no_cut",
    "no_gain",
    "unreadable",
]
"""Why there is nothing to compact."""

Summariser = Literal["model", "deterministic"]
"""deterministic: put together by rule, without a language model."""

Cut = Literal["before_prompt", "inside_turn"]
"""inside_turn: behind a complete tool batch; the summary quotes the turn's prompt word for word."""


class CompactionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Where a conversation is cut.  Sizes are in tokens, estimated."""

    first_kept: EntryId
    """The first entry that stays as it is; all that is shown before it is summarised."""
    cut: Cut
    messages: int
    """How many messages are summarised."""
    user_turns: int
    """How many prompts of the user are shown before the pass."""
    tokens_before: int
    """Of the whole conversation: what the provider counted last, and an estimate of the rest."""
    tokens_folded: int
    """Of what is summarised."""
    tokens_kept: int
    """Of what stays."""
    window: int
    """Tokens that the turn's model can read; 0 where nobody knows."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What takes the place of the summarised messages."""

    text: str
    summariser: Summariser
    model: str = ""
    """As the provider reported it; empty for none."""
    problem: str = ""
    """Why the rule stood in for the model that was asked; empty where none was, or it did well."""
    tokens: int
    """Of the text, estimated."""
    details: dict[str, Any] = {}
    """For the entry: usage, files, references."""
