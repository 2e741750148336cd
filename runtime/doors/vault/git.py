"""Committing what we wrote, and nothing else, in the vault's own repository.

The commit is made from an index of its own, which holds the last commit and our files:
the user's index, with what is staged in it, is left alone, also when a hook says no.
Afterwards the entries of our files, and of no other, are set in the user's index.

These functions block: they run in a worker.
"""

from contextlib import suppress

from tenure.messages.handoff import StageResult
from tenure.runtime.doors.claims import make_folders_durably
from tenure.runtime.doors.programs import Programs, Ran
from tenure.runtime.doors.vault.names import one_line
from tenure.runtime.doors.vault.paths import VaultGround

DEADLINE_S = 30.0
UNDER_WAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD")


class GitSaidNo(Exception):
    """A git command failed."""


class Git:
    """The repository that the vault lies in.

    Args:
        unique: names the index of this commit.
    """

    def __init__(self, ground: VaultGround, programs: Programs, unique: str) -> None:
        self._ground = ground
        self._programs = programs
        self._index = f"{ground.home}/git-index-{unique}"

    def commit(self, paths: tuple[str, ...], message: str) -> StageResult:
        """Commit these files of the vault, as they are now."""
        try:
            refused = self._refused(paths)
            if refused is not None:
                return refused
            return self._commit(paths, message)
        except FileNotFoundError:
            return StageResult(status="failed", detail="git is not installed")
        except GitSaidNo as said:
            return StageResult(status="failed", detail=str(said))
        finally:
            for left in (self._index, f"{self._index}.lock"):
                with suppress(OSError):
                    self._ground.files.remove(left)

    def _refused(self, paths: tuple[str, ...]) -> StageResult | None:
        inside = self._run("rev-parse", "--show-toplevel")
        if inside.code != 0:
            return StageResult(status="skipped", detail="the vault is in no git repository")
        for name in UNDER_WAY:
            if self._run("rev-parse", "--quiet", "--verify", name).code == 0:
                detail = f"{name} is there: finish or abort what is under way, then commit"
                return StageResult(status="failed", detail=detail)
        if self._run("check-ignore", "--quiet", "--", *paths).code == 0:
            return StageResult(status="skipped", detail="git ignores the file")
        return None

    def _commit(self, paths: tuple[str, ...], message: str) -> StageResult:
        make_folders_durably(self._ground.files, self._ground.home)
        has_commits = self._run("rev-parse", "--quiet", "--verify", "HEAD").code == 0
        if has_commits:
            self._done("read-tree", "HEAD", own=True)
        self._done("add", "--", *paths, own=True)
        if has_commits and self._run("diff", "--cached", "--quiet", own=True).code == 0:
            return StageResult(status="ok", detail="it is committed already")
        self._done("commit", "--quiet", "--message", one_line(message), own=True)
        commit = self._run("rev-parse", "--short", "HEAD").out.strip()
        try:
            self._done("reset", "--quiet", "HEAD", "--", *paths)
        except GitSaidNo as said:
            return StageResult(
                status="ok", detail=f"committed as {commit}; your index was left alone: {said}"
            )
        return StageResult(status="ok", detail=f"committed as {commit}")

    def _done(self, *words: str, own: bool = False) -> None:
        ran = self._run(*words, own=own)
        if not ran.in_time:
            raise GitSaidNo(f"git {words[0]} did not end within {DEADLINE_S:.0f} s")
        if ran.code != 0:
            said = one_line(ran.err or ran.out) or f"exit code {ran.code}"
            raise GitSaidNo(f"git {words[0]}: {said[:500]}")

    def _run(self, *words: str, own: bool = False) -> Ran:
        environment = {
            "GIT_TERMINAL_PROMPT": "0",  # nobody is there to type a passphrase
            "GIT_EDITOR": "true",
        }
        if words[0] != "check-ignore":  # which refuses to be told so
            environment["GIT_LITERAL_PATHSPECS"] = "1"
        if own:  # guard: HANDOFF-5
            environment["GIT_INDEX_FILE"] = self._index
        return self._programs.run(
            ("git", *words),
            folder=self._ground.root,
            environment=environment,
            without=("GIT_DIR", "GIT_INDEX", "GIT_WORK_TREE", "GIT_PREFIX", "GIT_COMMON_DIR"),
            deadline_s=DEADLINE_S,
        )
