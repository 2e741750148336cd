"""The brief: what a session is told when it wakes, in an order and within a budget.

Notices first, then the newest handoffs, then open notes and observations.  What does not
fit is counted, with the command that shows it.

Pure, but for the looks at the vault that its caller hands in.
"""

import msgspec

from tenure.messages.handoff import (
    BriefItem,
    Detail,
    HandoffText,
    ItemKind,
    Notice,
    Omitted,
)
from tenure.runtime.doors.vault.journal import Known
from tenure.runtime.doors.vault.names import digest_of, one_line
from tenure.runtime.doors.vault.observations import Observation
from tenure.runtime.doors.vault.recap import FOLDERS, NEW_MAX, Recap

ITEM_CHARS_MAX = 500
PER_KIND_BRIEF = 5
SUMMARY_ITEMS = 2
NOTHING = "there is no handoff yet"

_KINDS: tuple[tuple[ItemKind, str], ...] = (
    ("working_on", "working_on"),
    ("blocked", "blocked"),
    ("next_step", "next_steps"),
    ("decision", "decisions"),
    ("question", "questions"),
    ("feeling", "feelings"),
)


class Budget:
    """Takes items while there is room, and counts the others by kind and by how to see them."""

    def __init__(self, chars_max: int) -> None:
        self.items: list[BriefItem] = []
        self._left = chars_max
        self._omitted: dict[tuple[ItemKind, str], int] = {}

    def add(self, item: BriefItem, fetch: str) -> None:
        """Take an item, or count it.  A notice always fits."""
        cut = shortened(item, fetch)
        size = len(cut.text) + len(cut.id)
        if size > self._left and item.kind != "notice":
            self.omit(item.kind, fetch, 1)
            return
        self._left -= size
        self.items.append(cut)

    def omit(self, kind: ItemKind, fetch: str, count: int) -> None:
        if count > 0:
            self._omitted[kind, fetch] = self._omitted.get((kind, fetch), 0) + count

    @property
    def omitted(self) -> tuple[Omitted, ...]:
        return tuple(
            Omitted(kind=kind, count=count, fetch=fetch)
            for (kind, fetch), count in self._omitted.items()
        )


def shortened(item: BriefItem, fetch: str) -> BriefItem:
    """The item with at most so many characters; what is left out is said."""
    if len(item.text) <= ITEM_CHARS_MAX:
        return item
    more = len(item.text) - ITEM_CHARS_MAX
    text = f"{item.text[:ITEM_CHARS_MAX]}… (+{more:,} characters: {fetch})"
    return msgspec.structs.replace(item, text=text)


def add_notices(budget: Budget, notices: tuple[Notice, ...]) -> None:
    for notice in notices:
        item = BriefItem(
            id=f"n.{notice.id}", kind="notice", text=_told(notice), source="tenure recover"
        )
        budget.add(item, "tenure recover")


def add_handoffs(budget: Budget, newest: list[Known], count: int, detail: Detail) -> None:
    """The newest handoffs, item by item; older ones are counted."""
    for known in newest[:count]:
        fetch = f"tenure handoffs show {known.seq}"
        for kind, name in _KINDS:
            items = _items_of(known, kind, name)
            told = items if detail == "full" else items[:PER_KIND_BRIEF]
            for item in told:
                budget.add(item, fetch)
            budget.omit(kind, fetch, len(items) - len(told))
    budget.omit("working_on", "tenure handoffs ls", max(0, len(newest) - count))


def _items_of(known: Known, kind: ItemKind, name: str) -> list[BriefItem]:
    texts = getattr(text_of(known), name)
    return [
        BriefItem(
            id=f"h{known.seq}.{kind}.{place}",
            kind=kind,
            text=one_line(text),
            source=known.last.path,
        )
        for place, text in enumerate(texts, 1)
    ]


def text_of(known: Known) -> HandoffText:
    """A handoff's text; where a file has only words of its own, their beginning."""
    text = known.last.text
    if text.working_on:
        return text
    lines = known.last.source.splitlines()
    said = [one_line(line.lstrip("#>-* ")) for line in lines if line.strip("#>-* ")]
    return msgspec.structs.replace(text, working_on=(said[0],) if said else ())


def add_gap(budget: Budget, known: Known, entries: int) -> None:
    """The session went on after its handoff: what the handoff says is not the newest."""
    link = known.first.link
    if link is None or entries == 0:
        return
    text = f"session {link.session_id} has {entries} records after handoff {known.seq}"
    if entries < 0:
        text = f"session {link.session_id} has not the record any more where {known.seq} ends"
    item = BriefItem(id=f"h{known.seq}.gap", kind="gap", text=text, source=known.last.path)
    budget.add(item, f"tenure sessions show {link.session_id}")


def add_notes(budget: Budget, recap: Recap) -> None:
    for folder, kind in FOLDERS.items():
        rows = recap.rows.get(kind, [])
        told = rows if kind in ("project", "commitment") else rows[:NEW_MAX]
        for path, title in told:
            item = BriefItem(id=path.removesuffix(".md"), kind=kind, text=title, source=path)
            budget.add(item, f"the files of {folder}/")


def add_observations(budget: Budget, told: tuple[Observation, ...], omitted: int) -> None:
    fetch = "the files of ledger/observations/"
    for each in told:
        item = BriefItem(
            id=f"o{each.day.replace('-', '')}.{each.number}",
            kind="observation",
            text=f"[{each.kind}] {each.text}",
            source=each.source,
        )
        budget.add(item, fetch)
    budget.omit("observation", fetch, omitted)


def summary_of(notices: tuple[Notice, ...], newest: list[Known]) -> str:
    """One line by rule: what was worked on."""
    for notice in reversed(notices):
        if notice.checkpoint is not None and notice.checkpoint.working_on.strip():
            return one_line(notice.checkpoint.working_on)[:ITEM_CHARS_MAX]
    for known in newest:
        texts = [one_line(each)[:ITEM_CHARS_MAX] for each in text_of(known).working_on]
        if texts:
            more = len(texts) - SUMMARY_ITEMS
            told = " | ".join(texts[:SUMMARY_ITEMS])
            return f"{told} +{more} more" if more > 0 else told
    return NOTHING


def brief_digest(notices: tuple[Notice, ...], items: list[BriefItem]) -> str:
    """Two briefs with one digest say the same."""
    said = ([(each.id, each.digest) for each in notices], items)
    return digest_of(msgspec.json.encode(said))


def _told(notice: Notice) -> str:
    who = f"session {one_line(notice.session)}" if notice.session else "a session"
    if notice.kind == "clawvault":
        who = "a session of ClawVault"
    parts = [f"{who} ended without a handoff (last mark {one_line(notice.since)})"]
    checkpoint = notice.checkpoint
    if checkpoint is not None:
        for label, text in (
            ("working on", checkpoint.working_on),
            ("focus", checkpoint.focus),
            ("blocked", checkpoint.blocked),
        ):
            if text.strip():
                parts.append(f"{label}: {one_line(text)}")
    if notice.warning:
        parts.append(notice.warning)
    return "; ".join(parts)
