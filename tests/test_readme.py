"""What the README and the examples show, done as they show it."""

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click import Group
from sources import ROOT

from tenure.runtime.cli.main import COMMANDS
from tenure.runtime.cli.main import tenure as command

README = (ROOT / "README.md").read_text()
EXAMPLES = ROOT / "examples"

pytestmark = pytest.mark.real


def block(language: str, number: int = 0) -> str:
    """A code block of the README."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)[number]


def run_python(*args: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, *args], cwd=cwd, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder of notes with one line about pricing."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(4):
        (folder / f"note-{number}.md").write_text("# Tea\n\nWater at 90 degrees.\n")
    price = random.randrange(100, 1_000)
    (folder / "meeting.md").write_text(f"# Monday\n\nDecided about pricing: {price} euros.\n")
    return folder


def test_the_program_of_the_readme_prints_typed_events_up_to_the_end(notes: Path) -> None:
    printed = run_python("-c", block("python"), cwd=notes.parent).splitlines()
    decided = (notes / "meeting.md").read_text().splitlines()[2]
    assert printed[-1].startswith("TurnEnded(")
    assert "stop_reason='end_turn'" in printed[-1]
    assert any("ModelAnswered(" in line and decided in line for line in printed)
    assert len(list((notes / ".tenure" / "sessions").iterdir())) == 1


def test_the_first_example_is_the_program_of_the_readme() -> None:
    assert (EXAMPLES / "twelve_lines.py").read_text() == block("python")


def test_the_first_command_of_the_readme_finds_the_notes_about_pricing(tmp_path: Path) -> None:
    install, _, run = block("sh").strip().partition(" && ")
    assert install == "pip install ."
    prompt = re.fullmatch(r'tenure run "(.*)" --root (\S+)', run)
    assert prompt is not None
    notes = ROOT / prompt[2]
    copy = tmp_path / "notes"
    subprocess.run(["cp", "-r", str(notes), str(copy)], check=True)
    answer = run_python(
        "-m", "tenure.runtime.cli.main", "run", prompt[1], "--new", "--root", "notes", cwd=tmp_path
    )
    cited = re.findall(r"^(\S+\.md):(\d+)$", answer, re.MULTILINE)
    assert cited
    for path, line in cited:
        around = (copy / path).read_text().splitlines()[int(line) - 1 :][:8]
        assert any("pricing" in each.lower() for each in around), f"{path}:{line}"


def test_the_model_of_the_example_calls_a_tool_and_answers(notes: Path) -> None:
    printed = run_python(str(EXAMPLES / "own_model.py"), str(notes), cwd=notes)
    assert printed == "There are 5 names here, the first is meeting.md.\n"


def test_the_approver_of_the_example_lets_drafts_be_written_and_nothing_else(notes: Path) -> None:
    printed = run_python(str(EXAMPLES / "own_approver.py"), str(notes), cwd=notes)
    assert "+a shelf in the bakery" in printed
    assert "files are written under drafts/ only" in printed
    assert (notes / "drafts" / "idea.md").read_text() == "a shelf in the bakery\n"
    assert not (notes / "idea.md").exists()


def test_the_commands_of_the_readme_are_those_that_there_are() -> None:
    told = {
        name.removeprefix("tenure ").rstrip() for name in re.findall(r"`(tenure [a-z ]+)", README)
    }
    there = set()
    context = command.make_context("tenure", [], resilient_parsing=True)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        there |= (
            {f"{name} {each}" for each in found.commands} if isinstance(found, Group) else {name}
        )
    assert told == there


def test_the_settings_of_the_readme_have_nothing_that_is_not_understood(tmp_path: Path) -> None:
    from tenure.runtime.doors.settings_layout import read_text, settings_of

    text = read_text(block("toml").encode())
    settings = settings_of("settings.toml", str(tmp_path), text, {})
    assert settings.problems == ()
    assert settings.policy.tools == {"write": "allow"}


def test_every_command_that_an_error_or_a_page_names_is_there() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "ARCHITECTURE.md"]
    pages += [
        path for name in ("actors", "messages", "runtime") for path in (ROOT / name).rglob("*.py")
    ]
    told = {
        word for path in pages for word in re.findall(r"`tenure ([a-z]+)", path.read_text("utf-8"))
    }
    assert told - set(COMMANDS) == set()
