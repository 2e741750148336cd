"""The entries of a transcript, in the pi v3 dialect: what is appended, and where it hangs."""

from typing import Any

import msgspec

from tenure.messages.content import ChatMessage
from tenure.messages.tokens import EntryId


class MessageEntry(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="message", rename="camel"
):
    message: ChatMessage


class ModelChangeEntry(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="model_change", rename="camel"
):
    provider: str
    model_id: str


class CustomEntry(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="custom", rename="camel"
):
    """What is ours: `custom_type` is `tenure/<kind>`.  Never shown to the model."""

    custom_type: str
    data: dict[str, Any]


class SessionInfoEntry(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="session_info", rename="camel"
):
    name: str
    """Empty clears the name."""


class CompactionEntry(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="compaction", rename="camel"
):
    """From here on the summary stands for everything before `first_kept_entry_id`."""

    summary: str
    first_kept_entry_id: EntryId
    """The first entry before this one that is still shown, word for word."""
    tokens_before: int
    details: dict[str, Any]


class LabelEntry(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="type",
    tag="label",
    rename="camel",
    omit_defaults=True,
):
    """A mark on another entry, for people."""

    target_id: EntryId
    label: str | msgspec.UnsetType = msgspec.UNSET
    """Left out, it takes the mark away."""


EntryBody = (
    MessageEntry | ModelChangeEntry | CustomEntry | SessionInfoEntry | CompactionEntry | LabelEntry
)


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One entry with its place: what a step decides and the transcript door writes."""

    id: EntryId
    parent_id: EntryId | None
    """None for a root; else the leaf it was appended to."""
    timestamp_ms: int
    seq: int
    """Counts the records of a session from 1."""
    turn: int
    """The number of the turn that it belongs to; 0 for none."""
    key: str
    """The idempotency key of the command that appended it; empty for none."""
    body: EntryBody
