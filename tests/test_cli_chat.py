"""`tenure chat`: through a pipe line by line, and on a terminal with a person."""

import os
import pty
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_world import (
    TENURE,
    json_lines,
    of_type,
    records,
    started,
    tenure,
    transcripts,
    write_script,
)

WRITE = {"call": {"name": "write", "arguments": {"path": "new.md", "content": "one\n"}, "id": "c1"}}

STUBBORN = Path(__file__).parent / "processes" / "stubborn.py"

pytestmark = pytest.mark.real


class Terminal:
    """The other end of a process's terminal."""

    def __init__(self, descriptor: int, process: subprocess.Popen[bytes]) -> None:
        self._descriptor = descriptor
        self.process = process
        self._seen = ""
        self._from = 0

    def wait_for(self, text: str) -> None:
        """Read until this text comes, behind what was waited for before."""
        while (place := self._seen.find(text, self._from)) < 0:
            try:
                data = os.read(self._descriptor, 65_536)
            except OSError:  # the process is gone
                data = b""
            assert data, f"no {text!r} in:\n{self._seen}"
            self._seen += data.decode()
        self._from = place + len(text)

    def type(self, line: str) -> None:
        os.write(self._descriptor, line.encode() + b"\n")

    def press_ctrl_c(self) -> None:
        os.write(self._descriptor, b"\x03")


@contextmanager
def on_terminal(*command: str, cwd: Path) -> Iterator[Terminal]:
    """A process whose stdin, stdout, stderr and controlling terminal are ours to use."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command,
        cwd=cwd,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),  # becomes controlling
    )
    os.close(theirs)
    try:
        yield Terminal(ours, process)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


# --- through a pipe -----------------------------------------------------------------------------


def test_each_line_of_a_pipe_is_a_turn_and_the_last_needs_no_newline(tmp_path: Path) -> None:
    model = write_script(tmp_path / "s.json", ["first answer", "second answer"])
    done = tenure("chat", "--model", model, cwd=tmp_path, stdin="one\n\ntwo")
    assert done.returncode == 0
    assert done.stdout == "first answer\nsecond answer\n"
    (transcript,) = transcripts(tmp_path)
    roles = [entry["message"]["role"] for entry in records(transcript)]
    assert roles == ["user", "assistant", "user", "assistant"]


def test_a_refusal_does_not_end_the_chat(tmp_path: Path) -> None:
    done = tenure("chat", cwd=tmp_path, stdin="/open nothing\n/bogus\n/open\n/stop\nhelp\n")
    assert done.returncode == 0
    assert "no session 'nothing'" in done.stderr
    assert "'/bogus' is no command" in done.stderr
    assert "/open needs the id" in done.stderr
    assert "no turn runs" in done.stderr
    assert "I am the librarian" in done.stdout


def test_new_and_open_change_the_session_of_the_chat(tmp_path: Path) -> None:
    started = tenure("chat", "--json", cwd=tmp_path, stdin="help\n/new\nhelp\n")
    (opened,) = of_type("SessionOpened", json_lines(started.stdout))
    second = opened["token"]["session_id"]
    first = next(
        path for path in transcripts(tmp_path) if path.stem.partition("_")[2] != second
    ).stem.partition("_")[2]
    lines = f"/sessions\n/open {first[:8]}\nhelp\n/quit\nnever reached\n"
    done = tenure("chat", "--session", second, "--json", cwd=tmp_path, stdin=lines)
    assert done.returncode == 0
    events = json_lines(done.stdout)
    assert {each["id"] for each in of_type("SessionSummary", events)} == {first, second}
    assert of_type("TurnEnded", events)[0]["turn_id"].startswith(first)
    sizes = {path.stem.partition("_")[2]: len(records(path)) for path in transcripts(tmp_path)}
    assert sizes == {first: 4, second: 2}


def test_a_chat_through_a_pipe_asks_nobody_and_goes_on(tmp_path: Path) -> None:
    model = write_script(tmp_path / "s.json", [[WRITE], "went on"])
    done = tenure("chat", "--model", model, cwd=tmp_path, stdin="go\ny\n")
    assert "no terminal" in done.stderr
    assert "went on" in done.stdout
    assert not (tmp_path / "new.md").exists()


# --- on a terminal ------------------------------------------------------------------------------


def test_a_person_sees_the_diff_and_their_answer_decides(tmp_path: Path) -> None:
    model = write_script(tmp_path / "s.json", [[WRITE], "it was denied", [WRITE], "it was written"])
    with on_terminal(*TENURE, "chat", "--model", model, cwd=tmp_path) as terminal:
        terminal.wait_for("> ")
        terminal.type("go")
        terminal.wait_for("+one")
        terminal.wait_for("Allow?")
        terminal.type("n not this one")
        terminal.wait_for("Denied: not this one")
        terminal.wait_for("it was denied")
        assert not (tmp_path / "new.md").exists()
        terminal.wait_for("> ")
        terminal.type("go")
        terminal.wait_for("Allow?")
        terminal.type("always")
        terminal.wait_for("it was written")
        assert (tmp_path / "new.md").read_text() == "one\n"
        terminal.wait_for("> ")
        terminal.type("/quit")
        assert terminal.process.wait(30) == 0
    assert 'write = "allow"' in (tmp_path / ".tenure" / "settings.toml").read_text()


def test_ctrl_c_stops_the_turn_with_its_open_question_and_the_chat_goes_on(tmp_path: Path) -> None:
    model = write_script(tmp_path / "s.json", [[WRITE], "the next turn"])
    with on_terminal(*TENURE, "chat", "--model", model, cwd=tmp_path) as terminal:
        terminal.wait_for("> ")
        terminal.type("go")
        terminal.wait_for("Allow?")
        terminal.press_ctrl_c()
        terminal.wait_for("stopped")
        terminal.wait_for("> ")
        terminal.type("y")  # an answer that comes too late is a prompt like any other
        terminal.wait_for("the next turn")
        terminal.wait_for("> ")
        terminal.press_ctrl_c()
        terminal.wait_for("Ctrl-C again")
        terminal.press_ctrl_c()
        assert terminal.process.wait(30) == 130
    assert not (tmp_path / "new.md").exists()


def test_the_first_ctrl_c_stops_and_the_second_leaves_what_does_not_stop(tmp_path: Path) -> None:
    with started(sys.executable, str(STUBBORN), cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "stopping\n"
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == ""
        assert process.wait(30) == 130


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_ends_in_order_with_the_code_of_the_signal(
    tmp_path: Path, number: signal.Signals
) -> None:
    with started(sys.executable, str(STUBBORN), cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.read() == "ended in order\n"
        assert process.wait(30) == 128 + number


def test_a_prompt_from_stdin_still_asks_on_the_terminal(tmp_path: Path) -> None:
    model = write_script(tmp_path / "s.json", [[WRITE], "written"])
    (tmp_path / "prompt").write_text("go")
    shell = f"exec {shlex.join(TENURE)} run - --model {shlex.quote(model)} < prompt"
    with on_terminal("sh", "-c", shell, cwd=tmp_path) as terminal:
        terminal.wait_for("Allow?")
        terminal.type("y")
        terminal.wait_for("written")
        assert terminal.process.wait(30) == 0
    assert (tmp_path / "new.md").read_text() == "one\n"
