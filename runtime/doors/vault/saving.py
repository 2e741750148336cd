"""Saving a handoff or a checkpoint: under the claim, and durable before it is said.

The journal line is the fact.  The readable file follows it and can be made again.

These functions block: they run in a worker, under the vault's claim.
"""

import msgspec
from msgspec.structs import replace

from tenure.messages.base import Reply
from tenure.messages.bus import KeyReused
from tenure.messages.handoff import (
    CheckpointSaved,
    HandoffProblem,
    HandoffRefused,
    HandoffText,
    SaveCheckpoint,
    SaveHandoff,
    SessionLink,
    StageResult,
)
from tenure.messages.handoff_effects import (
    HandoffNotWritten,
    HandoffRepeated,
    HandoffWritten,
    Receipt,
    WriteHandoff,
)
from tenure.runtime.doors.vault.checkpoints import (
    StoredCheckpoint,
    checkpoint_path,
    history_of,
    prune,
    with_key,
    write_checkpoint,
)
from tenure.runtime.doors.vault.handoff_files import (
    bytes_of,
    compare,
    load_seen,
    numbered,
    rebuild,
    save_seen,
    write_file,
)
from tenure.runtime.doors.vault.journal import Journal, Known, append, make_sure, read_journal
from tenure.runtime.doors.vault.marks import StoredMark, find_marks, remove_marks, set_mark
from tenure.runtime.doors.vault.names import digest_of, handoff_name, iso, whole
from tenure.runtime.doors.vault.paths import VaultGround, reason_of
from tenure.runtime.doors.vault.records import HandoffRecord, MarkName
from tenure.runtime.doors.vault.spans import link_of, session_paths

TEXT_BYTES_MAX = 1_048_576


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint to be saved, with its id."""

    wish: SaveCheckpoint
    id: str


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """The session that a handoff is of."""

    name: str
    link: SessionLink | None = None
    warning: str = ""


# --- handoffs ----------------------------------------------------------------------------------


def save_handoff(
    ground: VaultGround, effect: WriteHandoff
) -> HandoffWritten | HandoffRepeated | HandoffNotWritten:
    """Append the handoff, then make its file.

    Raises:
        OSError: nothing was saved.
    """
    wish = replace(effect.wish, text=_whole_text(effect.wish.text))
    size = sum(len(item.encode()) for name in _FIELDS for item in getattr(wish.text, name))
    if size > TEXT_BYTES_MAX:
        reason = f"the text has {size:,} bytes; {TEXT_BYTES_MAX:,} are taken at most"
        return HandoffNotWritten(asker=effect.asker, reply=HandoffRefused(reason=reason))
    digest = _digest(wish)
    journal, problems = catch_up(ground)
    known = journal.keys.get(wish.idempotency_key) if wish.idempotency_key else None
    if known is not None:
        return _repeated(ground, effect, known, digest)
    session = _session(ground, journal, wish)
    if isinstance(session, HandoffRefused):
        return HandoffNotWritten(asker=effect.asker, reply=session)
    record = _record(ground, journal, wish, effect.id, digest, session)
    append(ground, journal, (record,))
    receipt = _receipt(ground, record, problems, session)
    remove_marks(ground, record.closes)
    return HandoffWritten(asker=effect.asker, wish=wish, receipt=receipt)


def _repeated(
    ground: VaultGround, effect: WriteHandoff, known: Known, digest: str
) -> HandoffRepeated | HandoffNotWritten:
    first = known.first
    if first.digest != digest:  # guard: HANDOFF-6
        reused = KeyReused(idempotency_key=first.key)
        return HandoffNotWritten(asker=effect.asker, reply=reused)
    # Whoever wrote it may have died before it was durable.
    make_sure(ground)
    path = known.last.path
    receipt = Receipt(
        seq=first.seq, id=first.id, path=ground.at(path), note=path, stages=known.stages
    )
    return HandoffRepeated(asker=effect.asker, receipt=receipt)


def _record(
    ground: VaultGround,
    journal: Journal,
    wish: SaveHandoff,
    handoff_id: str,
    digest: str,
    session: Session,
) -> HandoffRecord:
    now_ms = ground.leaves.clock.now_ms()
    record = HandoffRecord(
        seq=journal.last_seq + 1,
        id=handoff_id,
        at_ms=now_ms,
        text=wish.text,
        path=handoff_name(now_ms, wish.text.working_on[0], handoff_id),
        file_digest="",
        digest=digest,
        author=whole(wish.author),
        session=session.name,
        link=session.link,
        key=whole(wish.idempotency_key),
        closes=_closes(ground, journal, session),
    )
    return replace(record, file_digest=digest_of(bytes_of(record)))


def _closes(ground: VaultGround, journal: Journal, session: Session) -> tuple[MarkName, ...]:
    """The marks of this session, and of no other; one that was delivered is of a dead one."""
    told = {name.id for each in journal.briefs.values() for name in each.record.notices}
    found = find_marks(ground, journal, session.name)
    return tuple(each.name for each in found.marks if each.name.id not in told)


def _receipt(
    ground: VaultGround, record: HandoffRecord, problems: list[HandoffProblem], session: Session
) -> Receipt:
    """The journal has it: what happens to the readable file is only told."""
    try:
        write_file(ground, record)
        made = StageResult(status="ok", detail=record.path)
    except OSError as error:
        detail = f"{reason_of(error)}; it is in the journal, and the next command makes the file"
        made = StageResult(status="failed", detail=detail)
    warnings = [f"{each.where}: {each.text}" for each in problems]
    if session.warning:
        warnings.append(session.warning)
    return Receipt(
        seq=record.seq,
        id=record.id,
        path=ground.at(record.path),
        note=record.path,
        stages={"file": made},
        warnings=tuple(warnings),
    )


def catch_up(ground: VaultGround) -> tuple[Journal, list[HandoffProblem]]:
    """Read the journal, and bring the files and it together.

    Raises:
        OSError: the journal cannot be read or written.
    """
    journal = read_journal(ground)
    trusted = load_seen(ground)
    compared = compare(ground, journal, trusted)
    if compared.records:
        append(ground, journal, tuple(numbered(journal, compared.records)))
    save_seen(ground, trusted, compared.seen)
    return journal, [*compared.problems, *rebuild(ground, compared.missing)]


def _session(ground: VaultGround, journal: Journal, wish: SaveHandoff) -> Session | HandoffRefused:
    """The session that is meant: one of this root, or a name of the caller's own."""
    if not wish.session:
        return Session(name="")
    found = session_paths(ground, wish.session)
    if len(found) > 1:
        return HandoffRefused(
            reason=f"{wish.session!r} may be any of {len(found)} sessions; write more of its id"
        )
    if not found:
        return Session(name=whole(wish.session))
    ((session_id, path),) = found.items()
    before = next(
        (
            known.first.link
            for known in journal.newest()
            if known.first.link is not None and known.first.link.session_id == session_id
        ),
        None,
    )
    try:
        return Session(name=session_id, link=link_of(ground, session_id, path, before))
    except OSError as error:
        warning = f"{path}: {reason_of(error)}; the handoff does not say how far it reaches"
        return Session(name=session_id, warning=warning)


_FIELDS = HandoffText.__struct_fields__


def _whole_text(text: HandoffText) -> HandoffText:
    return HandoffText(
        **{name: tuple(whole(item) for item in getattr(text, name)) for name in _FIELDS}
    )


def _digest(wish: SaveHandoff) -> str:
    """Of what the caller said: how far the session reaches may differ between two tries."""
    said = [list(getattr(wish.text, name)) for name in _FIELDS]
    return digest_of(msgspec.json.encode([said, whole(wish.session), whole(wish.author)]))


# --- checkpoints -------------------------------------------------------------------------------


def save_checkpoint(ground: VaultGround, said: Said) -> Reply:
    """Write the checkpoint and the mark of its session.

    Raises:
        OSError: it was not saved.
    """
    wish = said.wish
    history = history_of(ground)
    key = whole(wish.idempotency_key)
    known = with_key(ground, history, key) if key else None
    if known is not None:
        return _same_checkpoint(ground, known, wish)
    now_ms = ground.leaves.clock.now_ms()
    session = whole(wish.session)
    found = session_paths(ground, session) if session else {}
    stored = StoredCheckpoint(
        seq=history.last_seq + 1,
        id=said.id,
        at=iso(now_ms),
        at_ms=now_ms,
        working_on=whole(wish.working_on),
        focus=whole(wish.focus),
        blocked=whole(wish.blocked),
        urgency=wish.urgency,
        session=next(iter(found)) if len(found) == 1 else session,
        key=key,
    )
    write_checkpoint(ground, stored)
    path = checkpoint_path(ground, stored.seq, stored.id)
    mark = StoredMark(
        id=stored.id,
        session=stored.session,
        checkpoint=path.rpartition("/")[2],
        at_ms=now_ms,
    )
    set_mark(ground, read_journal(ground), mark)
    pruned = prune(ground, history, now_ms)
    return CheckpointSaved(seq=stored.seq, id=stored.id, path=path, pruned=pruned)


def _same_checkpoint(ground: VaultGround, known: StoredCheckpoint, wish: SaveCheckpoint) -> Reply:
    said = (wish.working_on, wish.focus, wish.blocked, wish.urgency)
    if (known.working_on, known.focus, known.blocked, known.urgency) != said:
        return KeyReused(idempotency_key=known.key)
    # Whoever wrote it may have died before its name was durable.
    ground.files.sync_folder(ground.checkpoints)
    return CheckpointSaved(
        seq=known.seq, id=known.id, path=checkpoint_path(ground, known.seq, known.id)
    )
