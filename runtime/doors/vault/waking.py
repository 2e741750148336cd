"""Building a brief, and recording that it was delivered.

These functions block: they run in a worker, `deliver_brief` under the vault's claim.
"""

from msgspec.structs import replace

from tenure.messages.handoff import Brief, BuildBrief, OpenBrief
from tenure.messages.handoff_effects import DeliverBrief
from tenure.runtime.doors.vault.brief import (
    Budget,
    add_gap,
    add_handoffs,
    add_notes,
    add_notices,
    add_observations,
    brief_digest,
    summary_of,
)
from tenure.runtime.doors.vault.journal import Journal, append, read_journal
from tenure.runtime.doors.vault.marks import notices_of
from tenure.runtime.doors.vault.observations import observations
from tenure.runtime.doors.vault.paths import VaultGround, reason_of
from tenure.runtime.doors.vault.recap import recap
from tenure.runtime.doors.vault.records import BriefRecord, MarkName
from tenure.runtime.doors.vault.saving import catch_up
from tenure.runtime.doors.vault.spans import gap_after

OPEN_TOLD_MAX = 10


def deliver_brief(ground: VaultGround, effect: DeliverBrief) -> Brief:
    """The brief, recorded as delivered: it comes again until it is acknowledged.

    Raises:
        OSError: the journal cannot be read or written.
    """
    journal, problems = catch_up(ground)
    brief = _built(ground, journal, effect.wish)
    notices = tuple(MarkName(id=each.id, digest=each.digest) for each in brief.notices)
    digest = brief_digest(brief.notices, list(brief.items))
    same = [each for each in journal.open_briefs() if each.record.digest == digest]
    brief_id = same[0].record.id if same else effect.id
    record = BriefRecord(
        id=brief_id, at_ms=ground.leaves.clock.now_ms(), digest=digest, notices=notices
    )
    append(ground, journal, (record,))
    told = tuple(f"{each.where}: {each.text}" for each in problems)
    return replace(
        brief,
        brief_id=brief_id,
        delivered=journal.briefs[brief_id].times,
        open=tuple(each for each in brief.open if each.brief_id != brief_id),
        problems=(*brief.problems, *told),
    )


def build_brief(ground: VaultGround, wish: BuildBrief, problem: str) -> Brief:
    """The brief without a record of its delivery; nothing is written.

    Args:
        problem: why it is not recorded.

    Raises:
        OSError: the journal cannot be read.
    """
    brief = _built(ground, read_journal(ground), wish)
    return replace(brief, problems=(problem, *brief.problems))


def _built(ground: VaultGround, journal: Journal, wish: BuildBrief) -> Brief:
    problems = [f"{each.where} of the journal: {each.text}" for each in journal.problems]
    notices, skipped = notices_of(ground, journal)
    newest = journal.newest()
    budget = Budget(wish.chars_max)
    add_notices(budget, notices)
    for known in newest[:1]:
        if known.first.link is not None:
            try:
                add_gap(budget, known, gap_after(ground, known.first.link).entries)
            except OSError as error:
                problems.append(f"session {known.first.link.session_id}: {reason_of(error)}")
    add_handoffs(budget, newest, wish.handoffs_max, wish.detail)
    notes = recap(ground)
    add_notes(budget, notes)
    window = observations(ground, ground.leaves.clock.now_ms())
    add_observations(budget, window.told, window.omitted)
    return Brief(
        brief_id="",
        died=bool(notices),
        notices=notices,
        items=tuple(budget.items),
        omitted=budget.omitted,
        summary=summary_of(notices, newest),
        open=_open(journal),
        problems=(*problems, *skipped, *notes.problems, *window.problems),
    )


def _open(journal: Journal) -> tuple[OpenBrief, ...]:
    """The deliveries that nobody acknowledged, the newest first."""
    return tuple(
        OpenBrief(
            brief_id=each.record.id,
            delivered=each.times,
            notices=tuple(name.id for name in each.record.notices),
        )
        for each in journal.open_briefs()[:OPEN_TOLD_MAX]
    )
