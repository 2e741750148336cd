"""Acknowledging a brief: what it named is over, as it was then, and nothing newer.

These functions block: they run in a worker, under the vault's claim.
"""

from contextlib import suppress

from tenure.messages.base import Reply
from tenure.messages.handoff import BriefAcknowledged, BriefUnknown
from tenure.runtime.doors.vault.clawvault import remove_flag
from tenure.runtime.doors.vault.journal import append, make_sure, read_journal
from tenure.runtime.doors.vault.marks import CLAWVAULT, find_marks, remove_marks
from tenure.runtime.doors.vault.paths import VaultGround
from tenure.runtime.doors.vault.records import AckRecord, MarkName


def acknowledge(ground: VaultGround, brief_id: str) -> Reply:
    """Record it, then take away the marks that it named.

    Raises:
        OSError: it is not recorded, and the brief comes again.
    """
    journal = read_journal(ground)
    delivered = journal.briefs.get(brief_id)
    if delivered is None:
        return BriefUnknown(brief_id=brief_id)
    named = delivered.record.notices
    before = delivered.acknowledged
    if before is not None:
        make_sure(ground)
        _take_away(ground, before.cleared)
        return _reply(brief_id, named, before.cleared, "already")
    standing = {each.name for each in find_marks(ground, journal).marks}
    changed = {name.id for name in standing if name not in named}
    # A mark that was written anew since is another death: this brief did not tell of it.
    cleared = tuple(name for name in named if name.id not in changed)
    record = AckRecord(brief=brief_id, at_ms=ground.leaves.clock.now_ms(), cleared=cleared)
    append(ground, journal, (record,))
    _take_away(ground, cleared)
    return _reply(brief_id, named, cleared, "acknowledged")


def _take_away(ground: VaultGround, cleared: tuple[MarkName, ...]) -> None:
    """The journal says that they are over; the files go as far as they can be removed."""
    remove_marks(ground, cleared)
    for name in cleared:
        if name.id == CLAWVAULT:
            with suppress(OSError):
                remove_flag(ground, name.digest)


def _reply(
    brief_id: str, named: tuple[MarkName, ...], cleared: tuple[MarkName, ...], outcome: str
) -> BriefAcknowledged:
    return BriefAcknowledged(
        brief_id=brief_id,
        cleared=tuple(name.id for name in cleared),
        kept=tuple(name.id for name in named if name not in cleared),
        outcome="already" if outcome == "already" else "acknowledged",
    )
