"""The published pi coding agent opens what we write, and we open what it wrote.

Runs where node is there and TENURE_PI names a folder with the npm package
@mariozechner/pi-coding-agent in its node_modules.
"""

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from transcript_world import Seat, answer, result, user

from tenure.messages.content import AssistantMessage, Cost, TextBlock, ToolCallBlock, Usage
from tenure.messages.entries import CustomEntry, MessageEntry, ModelChangeEntry
from tenure.messages.transcripts import ById, Fresh
from tenure.runtime.doors.claims import Claims
from tenure.runtime.doors.leaves import Leaves, system_leaves
from tenure.runtime.doors.transcripts import Transcripts, read_session
from tenure.runtime.testing.workers import InlineWorkers

PACKAGE = (
    Path(os.environ.get("TENURE_PI", "/nowhere"))
    / "node_modules/@mariozechner/pi-coding-agent/dist"
)
NODE = shutil.which("node")

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(NODE is None, reason="node is not installed"),
    pytest.mark.skipif(
        not (PACKAGE / "cli.js").exists(),
        reason="TENURE_PI names no folder with @mariozechner/pi-coding-agent",
    ),
]

APPEND = """
import { SessionManager } from %(module)s;
const session = SessionManager.open(%(path)s);
const context = session.buildSessionContext();
%(body)s
console.log(JSON.stringify({
  id: session.getSessionId(), name: session.getSessionName() ?? null,
  leaf: session.getLeafId(),
  roles: context.messages.map((message) => message.role),
}));
"""
ANSWER = """session.appendMessage({role: "assistant", content: [{type: "text", text: "from pi"}],
  api: "a", provider: "p", model: "m", stopReason: "stop", timestamp: 5,
  usage: {input: 1, output: 2, cacheRead: 0, cacheWrite: 0, totalTokens: 3,
    cost: {input: 0.5, output: 1, cacheRead: 0, cacheWrite: 0, total: 1.5}}});"""
QUESTION = 'session.appendMessage({role: "user", content: "pi asks", timestamp: 4});'


def node(tmp_path, script):
    """What a script of pi's own module prints."""
    file = tmp_path / "script.mjs"
    file.write_text(script, encoding="utf-8")
    environment = {**os.environ, "HOME": str(tmp_path), "PI_OFFLINE": "1"}
    done = subprocess.run(
        [str(NODE), str(file)], env=environment, capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def pi(tmp_path, path, body):
    """Open a session with pi, do something, and tell what pi makes of it."""
    module = json.dumps((PACKAGE / "core/session-manager.js").as_uri())
    return node(tmp_path, APPEND % {"module": module, "path": json.dumps(path), "body": body})


@pytest.fixture
def host(tmp_path):
    """Opens seats of new hosts on real files, one after another."""
    leaves = system_leaves()
    root = tmp_path / "root"
    root.mkdir()
    inline = Leaves(
        clock=leaves.clock,
        entropy=leaves.entropy,
        files=leaves.files,
        locks=leaves.locks,
        processes=leaves.processes,
        sockets=leaves.sockets,
        web=leaves.web,
        workers=InlineWorkers(),
    )

    def seat():
        return Seat(Transcripts(inline, str(root), Claims(inline, "host"), "host"), inline, "main")

    yield seat
    asyncio.run(leaves.workers.close())


@pytest.fixture
def written(host):
    """A closed session with every kind of entry that we write."""
    seat = host()
    seat.open(Fresh(name="Pricing"))
    priced = AssistantMessage(
        content=(
            TextBlock(text="two\u2028lines \U0001f600"),
            ToolCallBlock(id="c2", name="n", arguments={"x": 2.0, "y": [0.1, "\ud83d"]}),
        ),
        usage=Usage(input=7, output=3, cost=Cost(input=0.25, total=2.0), priced=True),
    )
    seat.append(
        ModelChangeEntry(provider="librarian", model_id="librarian"),
        user("What did we decide?"),
        answer("Look", "c1"),
        result("c1", "notes"),
        MessageEntry(message=priced),
        result("c2"),
        CustomEntry(custom_type="tenure/plan", data={"steps": [1.0, 2.5]}),
        key="k",
        turn=1,
    )
    seat.close()
    return seat


def test_session_of_ours_is_exported_by_pi(tmp_path, written):
    out = tmp_path / "out.html"
    done = subprocess.run(
        [str(NODE), str(PACKAGE / "cli.js"), "--export", written.opened.path, str(out)],
        env={**os.environ, "HOME": str(tmp_path), "PI_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    assert out.stat().st_size > 10_000


def test_pi_sees_the_conversation_and_the_name(tmp_path, written):
    seen = pi(tmp_path, written.opened.path, "")
    assert seen == {
        "id": written.id,
        "name": "Pricing",
        "leaf": written.leaf,
        "roles": ["user", "assistant", "toolResult", "assistant", "toolResult"],
    }


def test_what_pi_appends_is_read_and_ours_stays_whole(tmp_path, written, host):
    seen = pi(tmp_path, written.opened.path, QUESTION + ANSWER)
    seat = host()
    opened = seat.open(ById(session_id=written.id))
    assert opened.leaf == seen["leaf"]
    assert opened.damage.count == 0
    assert opened.damage.unverified_records == 2
    assert opened.last_turn == 1
    assert seat.texts()[-2:] == ["user: pi asks", "assistant: from pi"]
    seat.append(user("and on"))
    assert pi(tmp_path, opened.path, "")["roles"][-1] == "user"


def test_session_without_an_answer_that_pi_writes_twice_is_read_once(tmp_path, host):
    first = host()
    path = first.open(Fresh()).path
    first.append(user("one"))
    first.close()
    pi(tmp_path, path, QUESTION + ANSWER)
    seat = host()
    opened = seat.open(ById(session_id=first.id))
    assert seat.texts() == ["user: one", "user: pi asks", "assistant: from pi"]
    assert opened.damage.count == 0


def test_lines_that_javascript_wrote_anew_keep_their_sums(tmp_path, written, host):
    path = written.opened.path
    before = Path(path).read_bytes()
    script = """
import { readFileSync, writeFileSync } from "node:fs";
const lines = readFileSync(%s, "utf8").split("\\n").slice(0, -1).map((line) => JSON.parse(line));
writeFileSync(%s, lines.map((line) => JSON.stringify(line) + "\\n").join(""));
console.log(lines.length);
"""
    assert node(tmp_path, script % (json.dumps(path), json.dumps(path))) == 9
    assert Path(path).read_bytes() == before
    assert read_session(host().leaves, path).damage.count == 0


def test_session_that_pi_made_is_opened(tmp_path, host):
    seat = host()
    folder = Path(seat.door._ground.layout.sessions)
    module = json.dumps((PACKAGE / "core/session-manager.js").as_uri())
    script = f"""
import {{ SessionManager }} from {module};
const session = SessionManager.create("/somewhere", {json.dumps(str(folder))});
{QUESTION}{ANSWER}
session.appendSessionInfo("made by pi");
const kept = session.getEntries()[1].id;
session.appendCompaction("the summary", kept, 100);
{QUESTION}
console.log(JSON.stringify({{ id: session.getSessionId() }}));
"""
    session_id = node(tmp_path, script)["id"]
    opened = seat.open(ById(session_id=session_id))
    assert opened.damage.count == 0
    assert opened.token.epoch == 1
    assert seat.texts() == [
        "user: <conversation-summary>\nthe summary\n</conversation-summary>",
        "assistant: from pi",
        "user: pi asks",
    ]
    assert read_session(seat.leaves, opened.path).summary.name == "made by pi"
