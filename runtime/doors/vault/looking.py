"""Looking at a vault: recovery, lists, one handoff, and the check.  Nothing here writes.

These functions block: they run in a worker.
"""

from tenure.messages.base import Reply
from tenure.messages.handoff import (
    HandoffCheck,
    HandoffList,
    HandoffProblem,
    HandoffRow,
    HandoffUnknown,
    HandoffView,
    Recovery,
)
from tenure.runtime.doors.vault.brief import text_of
from tenure.runtime.doors.vault.checkpoints import newest_checkpoint
from tenure.runtime.doors.vault.clawvault import clawvault_checkpoint
from tenure.runtime.doors.vault.handoff_files import BY_FILE, compare
from tenure.runtime.doors.vault.journal import Journal, Known, read_journal
from tenure.runtime.doors.vault.marks import NO_HANDOFF, as_found, notices_of
from tenure.runtime.doors.vault.names import iso, one_line
from tenure.runtime.doors.vault.paths import VaultGround

SUMMARY_CHARS_MAX = 200


def recovery(ground: VaultGround) -> Recovery:
    """Who died, the newest checkpoint that can be read, and the newest handoff."""
    journal = read_journal(ground)
    notices, skipped = notices_of(ground, journal)
    ours, passed = newest_checkpoint(ground)
    theirs, passed_too = clawvault_checkpoint(ground)
    found = [as_found(each) for each in (ours, theirs) if each is not None]
    newest = journal.newest()
    warnings = [f"{each.where} of the journal: {each.text}" for each in journal.problems]
    if notices:
        warnings.append(
            NO_HANDOFF if newest else f"{NO_HANDOFF}; there is no earlier handoff either"
        )
    return Recovery(
        died=bool(notices),
        notices=notices,
        checkpoint=max(found, key=lambda each: each.at, default=None),
        handoff=view_of(newest[0]) if newest else None,
        skipped=tuple(dict.fromkeys((*skipped, *passed, *passed_too))),
        warnings=tuple(warnings),
    )


def list_handoffs(ground: VaultGround) -> HandoffList:
    """The handoffs, the newest first."""
    journal = read_journal(ground)
    rows = [
        HandoffRow(
            seq=known.seq,
            id=known.first.id,
            created=iso(known.first.at_ms),
            path=known.last.path,
            summary=" | ".join(one_line(each) for each in text_of(known).working_on)[
                :SUMMARY_CHARS_MAX
            ],
            session=known.last.session,
            author=known.last.author,
            revisions=len(known.revisions),
        )
        for known in journal.newest()
    ]
    problems = tuple(
        f"{each.where}: {each.text}" for each in (*journal.problems, *_unread(ground, journal))
    )
    return HandoffList(handoffs=tuple(rows), problems=problems)


def _unread(ground: VaultGround, journal: Journal) -> list[HandoffProblem]:
    """Files that the journal does not know yet."""
    compared = compare(ground, journal, {})
    return compared.problems + [
        HandoffProblem(
            kind="changed" if record.revises else "added",
            where=record.path,
            text="somebody "
            + ("changed" if record.revises else "added")
            + " it; the next command that writes takes it in",
        )
        for record in compared.records
    ]


def show_handoff(ground: VaultGround, name: str) -> Reply:
    """One handoff by its number, its id, or the beginning of one."""
    journal = read_journal(ground)
    known = journal.handoffs.get(int(name)) if name.isdecimal() and len(name) < 12 else None
    if known is None and name:
        by_id = {each.first.id: each for each in journal.handoffs.values()}
        begun = [each for each in by_id.values() if each.first.id.startswith(name)]
        found = [by_id[name]] if name in by_id else begun
        if len(found) != 1:
            ids = tuple(each.first.id for each in found)
            return HandoffUnknown(name=name, candidates=ids)
        known = found[0]
    return HandoffUnknown(name=name) if known is None else view_of(known)


def view_of(known: Known) -> HandoffView:
    """A handoff as it stands."""
    first, last = known.first, known.last
    return HandoffView(
        seq=first.seq,
        id=first.id,
        created=iso(first.at_ms),
        path=last.path,
        text=text_of(known),
        body=last.source if last.author == BY_FILE else "",
        author=last.author,
        session=first.session or last.session,
        link=first.link,
        digest=last.digest,
        idempotency_key=first.key,
        revisions=known.revisions,
        stages=known.stages,
        problem=last.problem,
    )


def check(ground: VaultGround) -> HandoffCheck:
    """Check the journal line by line, and every file against it."""
    journal = read_journal(ground)
    compared = compare(ground, journal, {})
    problems = [*journal.problems, *_unread(ground, journal)]
    problems += [
        HandoffProblem(
            kind="missing",
            where=known.last.path,
            text="the file is gone; the next command that writes makes it again",
        )
        for known in compared.missing
    ]
    return HandoffCheck(
        sound=not problems,
        journal=ground.journal,
        records=journal.records,
        handoffs=len(journal.handoffs),
        last_seq=journal.last_seq,
        problems=tuple(problems),
    )
