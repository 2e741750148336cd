"""What the commands do that change sessions: each through the owner of a seat."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from tenure.messages.base import Command, Reply
from tenure.messages.session import Appended
from tenure.messages.session_ops import (
    DeleteSession,
    ForkSession,
    Redact,
    RenameSession,
    RewindSession,
    RewriteSession,
    SessionDeleted,
    SessionForked,
    SessionRewound,
    SessionRewritten,
    Vacuum,
)
from tenure.messages.tokens import EntryId
from tenure.runtime.cli.hosting import SEAT, SaidNo, session_of
from tenure.runtime.cli.looking import refused
from tenure.runtime.cli.screen import (
    JsonScreen,
    NoEntry,
    Screen,
    print_json,
    print_text,
    screen_of,
)
from tenure.runtime.cli.turns import EXIT_DONE, EXIT_REFUSED
from tenure.runtime.doors.transcripts import SessionFound
from tenure.runtime.errors import Refused
from tenure.runtime.host import Host

Position = Literal["at", "before"]


async def rename(root: str, text: str, name: str, form: str) -> int:
    return await _ask(
        root, text, form, lambda found: RenameSession(name=name, session_id=found.session_id)
    )


async def fork(
    root: str, text: str, entry: str | None, position: Position, name: str, form: str
) -> int:
    async def command(host: Host, found: SessionFound) -> Command:
        return ForkSession(
            session_id=found.session_id,
            entry_id=None if entry is None else await entry_of(host, found.path, entry),
            position=position,
            name=name,
        )

    return await _on_session(root, text, form, command)


async def rewind(root: str, text: str, entry: str | None, position: Position, form: str) -> int:
    """The session is opened for that: its turn would be somebody else's."""
    screen = screen_of(form)
    async with Host.open(root) as host:
        try:
            found = await session_of(host, text)
            entry_id = None if entry is None else await entry_of(host, found.path, entry)
            seat = await host.seat(SEAT, session=found.session_id)
            reply = await seat.ask(RewindSession(entry_id=entry_id, position=position))
        except (SaidNo, Refused) as said:
            return _no(said, screen)
    return show(reply, screen)


async def remove(root: str, texts: Sequence[str], form: str) -> int:
    """Each of them; the exit code is that of the first that was refused."""
    codes = [
        await _ask(root, text, form, lambda found: DeleteSession(session_id=found.session_id))
        for text in texts
    ]
    return next((code for code in codes if code != EXIT_DONE), EXIT_DONE)


async def redact(
    root: str,
    text: str,
    patterns: Sequence[str],
    entries: Sequence[str],
    replacement: str,
    form: str,
) -> int:
    async def command(host: Host, found: SessionFound) -> Command:
        entry_ids = [await entry_of(host, found.path, each) for each in entries]
        rewrite = Redact(
            patterns=tuple(patterns), entry_ids=tuple(entry_ids), replacement=replacement
        )
        return RewriteSession(rewrite=rewrite, session_id=found.session_id)

    return await _on_session(root, text, form, command)


async def vacuum(root: str, text: str, form: str) -> int:
    return await _ask(
        root,
        text,
        form,
        lambda found: RewriteSession(rewrite=Vacuum(), session_id=found.session_id),
    )


async def entry_of(host: Host, path: str, text: str) -> EntryId:
    """The one entry whose id is, or begins with, this text.  Raises `SaidNo`."""
    snapshot = await host.sessions.read(path)
    ids = [entry.id for entry in snapshot.entries if entry.id]
    found = [text] if text in ids else [each for each in ids if text and each.startswith(text)]
    if len(found) == 1:
        return EntryId(found[0])
    raise SaidNo(NoEntry(text=text, candidates=tuple(found)))


def show(reply: Reply, screen: Screen) -> int:
    """Print what was done, or why not; gives the exit code."""
    if not isinstance(
        reply, Appended | SessionForked | SessionRewound | SessionDeleted | SessionRewritten
    ):
        return refused(reply, screen)
    if isinstance(screen, JsonScreen):
        print_json(reply)
        return EXIT_DONE
    match reply:
        case Appended():
            screen.note("renamed")
        case SessionForked():
            print_text(f"{reply.session_id}\n")
            screen.note(f"forked: {reply.entries} entries in {reply.path}")
        case SessionRewound(leaf=leaf):
            screen.note(f"rewound to {leaf}" if leaf else "rewound to the beginning")
        case SessionDeleted(kept_at=kept_at):
            screen.note(f"deleted; its file is kept at {kept_at}" if kept_at else "deleted")
        case SessionRewritten():
            _show_rewrite(reply, screen)
    return EXIT_DONE


def _show_rewrite(reply: SessionRewritten, screen: Screen) -> None:
    screen.note(
        f"{reply.path}: {reply.changed} lines changed or left out, "
        f"{reply.bytes_before:,} bytes before and {reply.bytes_after:,} now"
    )
    if reply.backup:
        screen.note(f"the old file is {reply.backup}")
    if reply.left_lines:
        lines = ", ".join(map(str, reply.left_lines))
        screen.note(f"a pattern still matches an id or a name on lines {lines}")
    for copy in reply.copies:
        screen.note(f"may hold the old text, and was left alone: {copy}")


async def _ask(root: str, text: str, form: str, command: Callable[[SessionFound], Command]) -> int:
    async def made(host: Host, found: SessionFound) -> Command:
        return command(found)

    return await _on_session(root, text, form, made)


async def _on_session(
    root: str,
    text: str,
    form: str,
    command: Callable[[Host, SessionFound], Awaitable[Command]],
) -> int:
    """Ask the owner of a seat that opens nothing."""
    screen = screen_of(form)
    async with Host.open(root) as host:
        try:
            found = await session_of(host, text)
            desk = await host.vacant_seat(SEAT)
            reply = await desk.ask(await command(host, found))
        except SaidNo as said:
            return _no(said, screen)
    return show(reply, screen)


def _no(said: SaidNo | Refused, screen: Screen) -> int:
    screen.refusal(said.no if isinstance(said, SaidNo) else said.reply)
    return EXIT_REFUSED
