"""The settings file door: `<root>/.tenure/settings.toml`, written under its own claim.

What the file means is said in settings_layout.py.
"""

from collections.abc import Mapping

import msgspec

from tenure.messages.base import Outcome
from tenure.messages.settings import (
    Change,
    ReadSettings,
    Settings,
    SettingsNotRead,
    SettingsNotWritten,
    SettingsRead,
    SettingsWritten,
    WriteSettings,
)
from tenure.runtime.doors.claims import ClaimBusy, Claims, HeldClaim
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.files import FileStat
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.settings_layout import (
    CLOSED_DIRS,
    ChangeRefused,
    SettingsText,
    changed_text,
    check_overrides,
    read_text,
    settings_of,
    versioned,
)
from tenure.runtime.doors.staged import NotSynced, folder_of, stage_file

CLAIM_WAIT_MAX_S = 5.0
CLAIM_RETRY_S = 0.05
FILE_BYTES_MAX = 1_048_576
NEW_FILE_PERMISSIONS = 0o666
"""Before the umask."""
NEW_FILE_TEXT = "# Settings of this workspace.  Your comments and your own keys are kept.\n\n"


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """The file as it was read; both None where there is none."""

    stat: FileStat | None
    data: bytes | None


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    """Settings, and the file that they were read from."""

    stat: FileStat | None
    settings: Settings


class SettingsFile:
    """Carries out `ReadSettings` and `WriteSettings`.

    Args:
        root: the workspace; an absolute path.
        overrides: settings of this host run, in the layout of the file.  They win
            over the file and are never written.

    Raises:
        ValueError: the overrides have an unknown key or a wrong value.
    """

    def __init__(
        self, leaves: Leaves, root: str, claims: Claims, overrides: Mapping[str, object]
    ) -> None:
        check_overrides(root, overrides)
        self._leaves = leaves
        self._root = root.rstrip("/")
        self._claims = claims
        self._overrides = overrides
        self._path = f"{self._root}/.tenure/settings.toml"
        self._known: _Known | None = None

    async def now(self) -> Settings:
        """The settings as they are now, for another door.  `OSError`: they cannot be read."""
        return await self._leaves.workers.run(self._current)

    async def read(self, effect: ReadSettings, context: Context) -> Outcome:
        """The settings as they are now; an unchanged file costs one stat."""
        try:
            return SettingsRead(settings=await self._leaves.workers.run(self._current))
        except OSError as refused:
            return SettingsNotRead(reason=f"{self._path}: {_why(refused)}")

    async def write(self, effect: WriteSettings, context: Context) -> Outcome:
        """Make one change, waiting `CLAIM_WAIT_MAX_S` at most for another writer."""
        clock = self._leaves.clock
        ends_s = clock.monotonic_s() + CLAIM_WAIT_MAX_S
        while True:
            # Taking, writing and letting go are one piece of work: a cancel in
            # between would leave the claim with nobody to release it.
            done = await self._leaves.workers.run(self._write, effect.change)
            if not isinstance(done, ClaimBusy):
                return done
            if clock.monotonic_s() >= ends_s:
                return self._not_written(f"{_holder(done)} is changing the settings; try again")
            await clock.sleep(CLAIM_RETRY_S)

    def _current(self) -> Settings:
        known = self._known
        if known is not None and known.stat == self._stat():
            return self._followed(known.settings)
        return self._learn(self._read())

    def _followed(self, settings: Settings) -> Settings:
        """The working directories where their links lead now; outside the root is none."""
        policy = settings.policy
        if not policy.working_dirs:
            return settings
        root = self._leaves.files.real_path(self._root).rstrip("/")
        found: list[str] = []
        for folder in policy.working_dirs:
            real = self._leaves.files.real_path(f"{root}/{folder}".rstrip("/"))
            if real == root or real.startswith(f"{root}/"):
                found.append(real[len(root) :].strip("/"))
        dirs = tuple(dict.fromkeys(found)) or CLOSED_DIRS
        if dirs == policy.working_dirs:
            return settings
        followed = versioned(msgspec.structs.replace(policy, working_dirs=dirs))
        return msgspec.structs.replace(settings, policy=followed)

    def _learn(self, found: _Found) -> Settings:
        text = SettingsText(table={}) if found.data is None else _text_of(found.data)
        settings = settings_of(self._path, self._root, text, self._overrides)
        self._known = _Known(stat=found.stat, settings=settings)
        return self._followed(settings)

    def _stat(self) -> FileStat | None:
        try:
            return self._leaves.files.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _read(self) -> _Found:
        try:
            file = self._leaves.files.open(self._path, "read")
        except (FileNotFoundError, NotADirectoryError):
            return _Found(stat=None, data=None)
        try:
            # The stat first: a change while it is read is then seen the next time.
            return _Found(stat=file.stat(), data=file.read_at(0, FILE_BYTES_MAX + 1))
        finally:
            file.close()

    def _write(self, change: Change) -> Outcome | ClaimBusy:
        try:
            claim = self._claims.take(f"{self._root}/.tenure/claims/settings")
        except OSError as refused:
            return self._not_written(f"it cannot be locked here ({_why(refused)})")
        if isinstance(claim, ClaimBusy):  # guard: CLAIM-1
            return claim
        try:
            return self._change(change, claim)
        except ChangeRefused as refused:
            return self._not_written(str(refused))
        except NotSynced as refused:
            return self._not_written(
                f"it was changed, but the disk did not confirm it ({_why(refused)})"
            )
        except OSError as refused:
            return self._not_written(_why(refused))
        finally:
            claim.release()

    def _change(self, change: Change, claim: HeldClaim) -> Outcome:
        found = self._read()
        text = NEW_FILE_TEXT if found.data is None else _decoded(found.data)
        changed = changed_text(text, change)
        if changed != text:
            self._replace(found, changed.encode(), claim)
            found = self._read()
        return SettingsWritten(settings=self._learn(found))

    def _replace(self, found: _Found, data: bytes, claim: HeldClaim) -> None:
        files = self._leaves.files
        path = files.real_path(self._path)  # a link to the file stays a link
        staged = stage_file(
            files,
            folder_of(path),
            self._leaves.entropy.fresh(),
            data,
            permissions=found.stat.mode if found.stat else NEW_FILE_PERMISSIONS,
        )
        try:
            self._last_look(found, claim)
        except BaseException:
            staged.discard()
            raise
        staged.put(path)

    def _last_look(self, found: _Found, claim: HeldClaim) -> None:
        if not claim.in_place():  # guard: CLAIM-1
            raise ChangeRefused("the claim was lost while it was written; try again")
        if self._stat() != found.stat:
            raise ChangeRefused("somebody changed the file while it was written; try again")

    def _not_written(self, reason: str) -> SettingsNotWritten:
        return SettingsNotWritten(path=self._path, reason=reason)


def _text_of(data: bytes) -> SettingsText:
    if len(data) > FILE_BYTES_MAX:
        return SettingsText(table={}, broken=f"it has more than {FILE_BYTES_MAX:,} bytes")
    return read_text(data)


def _decoded(data: bytes) -> str:
    broken = _text_of(data).broken
    if broken:
        raise ChangeRefused(f"{broken}; correct the file first")
    return data.decode("utf-8-sig")


def _holder(busy: ClaimBusy) -> str:
    if busy.holder is None:
        return "another host"
    return f"another host (process {busy.holder.process.pid})"


def _why(error: OSError) -> str:
    return error.strerror or str(error)
