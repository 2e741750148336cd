"""Looking at the notes: what is there, what changed, and which chunks nobody has yet.

The ignore files decide before anything is opened.  Change is found by content: a note that
was only touched, renamed or moved is not embedded again.
"""

import hashlib
from collections.abc import Iterator, Mapping

import msgspec

from tenure.messages.index_work import (
    ActiveNote,
    Everything,
    Folder,
    IndexScope,
    Tagged,
    UnreadNote,
)
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.search.chunks import note_of
from tenure.runtime.doors.tools.tool import ToolRefused
from tenure.runtime.doors.tools.workspace import Entry, Workspace

NOTE_BYTES_MAX = 2_097_152
UNREAD_SHOWN_MAX = 50
LOOKS_MAX = 3
"""How often a note is read again that changes while it is read."""
NOTE_SUFFIXES = (".md", ".markdown", ".mdx", ".txt", ".rst", ".org", ".adoc")
"""Bad UTF-8 in these is read over; other files with it are no text."""


class DraftChunk(msgspec.Struct, frozen=True):
    """A chunk of a note: what it is, and where it stands."""

    digest: bytes
    first: int
    last: int


class Draft(msgspec.Struct, frozen=True):
    """A note as the next generation will have it."""

    path: str
    digest: bytes
    mtime_ns: int
    title: str
    tags: tuple[str, ...]
    chunks: tuple[DraftChunk, ...]


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """What was found."""

    drafts: dict[str, Draft]
    """Every note of the next generation by path, those out of scope as they were."""
    texts: dict[bytes, str]
    """What is to be embedded, by the digests of the chunks, in order."""
    in_scope: int
    changed: int
    removed: int
    chunks: int
    unread: tuple[UnreadNote, ...]


class _Unread(Exception):
    """This note cannot be indexed; the text says why."""


class NotAScope(Exception):
    """The scope names what is not there, or is hidden."""


def scan_notes(
    files: Files,
    root: str,
    scope: IndexScope,
    before: Mapping[str, Draft],
    known: frozenset[bytes] | set[bytes],
    *,
    anew: bool = False,
) -> Scan:
    """Look at every note in scope.  Blocks.

    Args:
        before: the notes of the last generation.
        known: digests of the chunks that there is a vector for.
        anew: the model changed: what is out of scope is looked at, too.

    Raises:
        NotAScope: there is no such folder or note.
        OSError: the root cannot be listed.
    """
    run = _Scanning(files, root, scope, before, known)
    run.scan(everything=anew)
    return run.result()


class _Scanning:
    def __init__(
        self,
        files: Files,
        root: str,
        scope: IndexScope,
        before: Mapping[str, Draft],
        known: frozenset[bytes] | set[bytes],
    ) -> None:
        self._files = files
        self._workspace = Workspace(files, root)
        self._scope = scope
        self._before = before
        self._known = known
        self._by_digest = {draft.digest: draft for draft in before.values()}
        self._drafts: dict[str, Draft] = {}
        self._texts: dict[bytes, str] = {}
        self._unread: list[UnreadNote] = []
        self._in_scope = self._changed = self._chunks = 0
        self._gone: set[str] = set()

    def scan(self, *, everything: bool) -> None:
        there: set[str] = set()
        for entry in self._entries(Everything() if everything else self._scope):
            if entry.kind == "file" and _shown(entry.path):
                there.add(entry.path)
                self._look(entry)
        for path, draft in self._before.items():
            if path in there or path in self._drafts:
                continue
            if everything or _may_hold(self._scope, path, draft):
                self._gone.add(path)
            else:
                self._drafts[path] = draft

    def result(self) -> Scan:
        return Scan(
            drafts=self._drafts,
            texts=self._texts,
            in_scope=self._in_scope,
            changed=self._changed,
            removed=len(self._gone),
            chunks=self._chunks,
            unread=tuple(self._unread),
        )

    def _entries(self, scope: IndexScope) -> Iterator[Entry]:
        workspace = self._workspace
        path = scope.path if isinstance(scope, Folder | ActiveNote) else "."
        try:
            place = workspace.target(path)
        except ToolRefused as refused:
            raise NotAScope(str(refused)) from None
        found = workspace.stat(place)
        wanted = "file" if isinstance(scope, ActiveNote) else "folder"
        if found is None or found.kind != wanted:
            if isinstance(scope, ActiveNote) and found is None and place.path in self._before:
                return  # it was deleted: that is for the index to learn
            raise NotAScope(f"{path} is no {'note' if wanted == 'file' else 'folder'}")
        if isinstance(scope, ActiveNote):
            yield Entry(real=place.real, path=place.path, kind="file")
        else:
            yield from workspace.walk(place)

    def _look(self, entry: Entry) -> None:
        before = self._before.get(entry.path)
        try:
            data, mtime_ns = self._read(entry)
        except _Unread as why:
            self._unread.append(UnreadNote(path=entry.path, reason=str(why)))
            if before is not None:
                self._keep(before)  # nothing is lost because it cannot be read just now
            return
        digest = hashlib.sha256(data).digest()[:16]
        same = self._by_digest.get(digest)
        if same is not None and all(chunk.digest in self._known for chunk in same.chunks):
            self._keep_same(entry, same, digest, mtime_ns)
            return
        text = _text_of(entry.path, data)
        if text is None:
            return
        name = entry.path.rpartition("/")[2].rpartition(".")[0] or entry.path
        note = note_of(text, name)
        chunks = tuple(DraftChunk(each.digest, each.first, each.last) for each in note.chunks)
        draft = Draft(entry.path, digest, mtime_ns, note.title, note.tags, chunks)
        if not self._wanted(draft):
            return
        for each, chunk in zip(chunks, note.chunks, strict=True):
            if each.digest not in self._known:
                self._texts.setdefault(each.digest, f"{chunk.heading}\n{chunk.text}")
        self._take(draft)

    def _keep_same(self, entry: Entry, same: Draft, digest: bytes, mtime_ns: int) -> None:
        """The same bytes, here or under another name: its chunks are known."""
        title = same.title
        if same.path != entry.path and title == _name_of(same.path):
            title = _name_of(entry.path)
        draft = Draft(entry.path, digest, mtime_ns, title, same.tags, same.chunks)
        if self._wanted(draft):
            self._take(draft)

    def _wanted(self, draft: Draft) -> bool:
        """Whether a note is in scope now, or was: one that lost its tag is looked at once more."""
        scope, before = self._scope, self._before.get(draft.path)
        if not isinstance(scope, Tagged):
            return True
        tag = scope.tag.lstrip("#").lower()
        if tag in draft.tags or (before is not None and tag in before.tags):
            return True
        if before is not None:
            self._drafts[draft.path] = before
        return False

    def _keep(self, draft: Draft) -> None:
        self._drafts[draft.path] = draft
        self._chunks += len(draft.chunks)

    def _take(self, draft: Draft) -> None:
        before = self._before.get(draft.path)
        self._in_scope += 1
        if before is None or before.digest != draft.digest:
            self._changed += 1
        self._keep(draft)

    def _read(self, entry: Entry) -> tuple[bytes, int]:
        for _ in range(LOOKS_MAX):
            try:
                file = self._files.open(entry.real, "read")
            except OSError as refused:
                raise _Unread(refused.strerror or str(refused)) from None
            try:
                found = file.stat()
                if found.size > NOTE_BYTES_MAX:
                    raise _Unread(f"it has more than {NOTE_BYTES_MAX:,} bytes")
                data = file.read_at(0, NOTE_BYTES_MAX + 1)
                after = file.stat()
            except OSError as refused:
                raise _Unread(refused.strerror or str(refused)) from None
            finally:
                file.close()
            if (
                (after.size, after.mtime_ns)
                == (found.size, found.mtime_ns)
                == (
                    len(data),
                    found.mtime_ns,
                )
            ):
                return data, found.mtime_ns
        raise _Unread("it changes while it is read")


def _shown(path: str) -> bool:
    """Whether no part of a path is a hidden name."""
    return not path.startswith(".") and "/." not in path


def _name_of(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[0] or path


def _may_hold(scope: IndexScope, path: str, draft: Draft) -> bool:
    """Whether a note that is gone was in scope."""
    match scope:
        case Everything():
            return True
        case Folder(path=folder):
            inner = folder.strip("/")
            return inner in ("", ".") or path.startswith(f"{inner}/")
        case Tagged(tag=tag):
            return tag.lstrip("#").lower() in draft.tags
        case ActiveNote(path=active):
            return path == active


def _text_of(path: str, data: bytes) -> str | None:
    """The text of a file; None where it is none."""
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        if path.lower().endswith(NOTE_SUFFIXES):
            return data.decode("utf-8-sig", "replace")
        return None
