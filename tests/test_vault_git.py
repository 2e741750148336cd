"""Committing a handoff: only its file, only when asked, and the user's index is left alone."""

import subprocess
from pathlib import Path

import pytest

from tenure.messages.handoff import HandoffSaved, HandoffText, SaveHandoff, StageResult
from tenure.runtime.doors.blocking import blocking_leaves
from tenure.runtime.system_alone import handoff_alone

pytestmark = pytest.mark.real


def git(folder: Path, *words: str) -> str:
    ran = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """A vault in a repository with a half-done change, a staged one and a secret."""
    folder = tmp_path / "vault"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "config", "user.name", "a")
    git(folder, "config", "user.email", "a@b")
    (folder / "kept.txt").write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    (folder / "kept.txt").write_text("half done\n")
    (folder / "staged.txt").write_text("staged\n")
    git(folder, "add", "staged.txt")
    (folder / ".env").write_text("SECRET=1\n")
    return folder


def sleep(vault: Path, *stages: str) -> tuple[HandoffSaved, StageResult]:
    alone = handoff_alone(blocking_leaves(), str(vault), lambda event: None)
    text = HandoffText(working_on=("x",), next_steps=("y",))
    reply = alone.ask(SaveHandoff(text=text, stages=stages))  # type: ignore[arg-type]
    assert isinstance(reply, HandoffSaved)
    return reply, reply.stages["git"]


@pytest.mark.witness("HANDOFF-5")
def test_commit_has_the_handoffs_file_alone_and_leaves_the_index_as_it_was(vault: Path) -> None:
    before = git(vault, "status", "--porcelain")
    receipt, result = sleep(vault, "git")
    assert result.status == "ok", result
    name = Path(receipt.path).relative_to(vault).as_posix()
    assert git(vault, "show", "--name-only", "--format=", "HEAD").split() == [name]
    after = git(vault, "status", "--porcelain")
    assert [line for line in after.splitlines() if ".tenure" not in line] == before.splitlines()
    assert git(vault, "diff", "--cached", "--name-only").split() == ["staged.txt"]
    assert not [each for each in (vault / ".tenure").iterdir() if "git-index" in each.name]


@pytest.mark.witness("HANDOFF-5")
def test_nothing_is_committed_unless_it_is_asked_for(vault: Path) -> None:
    head = git(vault, "rev-parse", "HEAD")
    _, result = sleep(vault)
    assert result == StageResult(status="skipped", detail="not asked for")
    assert git(vault, "rev-parse", "HEAD") == head


@pytest.mark.witness("HANDOFF-5")
def test_hook_that_says_no_fails_the_stage_and_changes_nothing(vault: Path) -> None:
    hook = vault / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
    hook.chmod(0o755)
    head, index = git(vault, "rev-parse", "HEAD"), git(vault, "diff", "--cached")
    receipt, result = sleep(vault, "git")
    assert result.status == "failed"
    assert "not today" in result.detail
    assert Path(receipt.path).exists()
    assert (git(vault, "rev-parse", "HEAD"), git(vault, "diff", "--cached")) == (head, index)


def test_repository_is_the_vaults_and_not_that_of_the_current_folder(
    vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    monkeypatch.chdir(other)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    _, result = sleep(vault, "git")
    monkeypatch.delenv("GIT_DIR")
    assert result.status == "ok"
    assert git(vault, "log", "-1", "--format=%s").strip() == "Handoff 1"


def test_vault_outside_a_repository_and_an_ignored_file_are_skipped(
    vault: Path, tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    assert sleep(plain, "git")[1].status == "skipped"
    (vault / ".gitignore").write_text("handoffs/\n")
    assert sleep(vault, "git")[1] == StageResult(status="skipped", detail="git ignores the file")


def test_merge_that_is_under_way_is_not_concluded(vault: Path) -> None:
    head = git(vault, "rev-parse", "HEAD").strip()
    (vault / ".git" / "MERGE_HEAD").write_text(f"{head}\n")
    assert sleep(vault, "git")[1].status == "failed"
    assert git(vault, "rev-parse", "HEAD").strip() == head


def test_first_commit_of_a_repository_can_be_a_handoff(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "user.name", "a")
    git(tmp_path, "config", "user.email", "a@b")
    assert sleep(tmp_path, "git")[1].status == "ok"
    assert sleep(tmp_path, "git")[1].status == "ok"


def test_signing_that_cannot_be_done_fails_the_stage(vault: Path) -> None:
    git(vault, "config", "commit.gpgsign", "true")
    git(vault, "config", "gpg.program", "false")
    receipt, result = sleep(vault, "git")
    assert result.status == "failed"
    assert Path(receipt.path).exists()
