"""Undo on a whole host: files come back, also after a crash, and nobody's work is lost."""

from typing import Any

import pytest
from seat_world import Seated, seated

from tenure.messages.approval import Allow, ApprovalRequested, ApprovalResolved
from tenure.messages.checkpoints import (
    CHECKPOINT,
    CannotUndo,
    ChangedSince,
    ChangeUndone,
    NothingToUndo,
    NotTheLast,
    UndoChange,
    UndoShown,
)
from tenure.messages.models import ModelToolCall
from tenure.runtime.testing.world import ROOT

FREE = {"approval": {"mode": "yolo"}}


def does(name: str, call_id: str = "c1", **arguments: Any) -> ModelToolCall:
    return ModelToolCall(id=call_id, name=name, arguments=arguments)


def put(s: Seated, path: str, data: bytes) -> None:
    s.world.disk.put(f"{ROOT}/{path}", data)


def has(s: Seated, path: str) -> bytes | None:
    full = f"{ROOT}/{path}"
    return s.world.disk.content(full) if full in s.world.disk.paths() else None


def undo(s: Seated, **wishes: Any) -> Any:
    return s.ask(UndoChange(**wishes))


def phases(s: Seated) -> list[str]:
    return [line["data"]["phase"] for line in s.lines() if line.get("customType") == CHECKPOINT]


def audits(s: Seated) -> list[tuple[str, str]]:
    return [
        (line["data"]["decision"], line["data"]["by"])
        for line in s.lines()
        if line.get("customType") == "tenure/audit"
    ]


# --- the way back ----------------------------------------------------------------------------


def test_written_file_gets_its_old_content_back() -> None:
    with seated([does("write", path="a.md", content="new")], "done", settings=FREE) as s:
        put(s, "a.md", b"old")
        s.run()
        assert has(s, "a.md") == b"new"
        reply = undo(s)
        assert isinstance(reply, ChangeUndone), reply
        assert has(s, "a.md") == b"old"
        assert phases(s) == ["intent", "result", "undo", "undone"]
        assert isinstance(undo(s), NothingToUndo)


def test_created_file_goes_and_so_do_the_folders_that_were_made_for_it() -> None:
    with seated([does("write", path="x/y/a.md", content="new")], "done", settings=FREE) as s:
        put(s, "b.md", b"b")
        s.run()
        assert isinstance(undo(s), ChangeUndone)
        assert has(s, "x/y/a.md") is None
        assert "x" not in s.world.disk.folder(ROOT).names


def test_edited_deleted_and_renamed_files_come_back_newest_first() -> None:
    edit = does("edit", "c1", path="a.md", edits=[{"oldText": "one", "newText": "two"}])
    steps = [edit, does("rename", "c2", path="b.md", newPath="sub/c.md")]
    steps.append(does("delete", "c3", path="d.md"))
    with seated(steps, "done", settings=FREE) as s:
        for name in ("a", "b", "d"):
            put(s, f"{name}.md", b"one " + name.encode())
        s.run()
        assert (has(s, "a.md"), has(s, "b.md"), has(s, "d.md")) == (b"two a", None, None)
        assert isinstance(undo(s), ChangeUndone)
        assert has(s, "d.md") == b"one d"
        assert isinstance(undo(s), ChangeUndone)
        assert (has(s, "b.md"), has(s, "sub/c.md")) == (b"one b", None)
        assert isinstance(undo(s), ChangeUndone)
        assert has(s, "a.md") == b"one a"
        assert isinstance(undo(s), NothingToUndo)


def test_undo_is_shown_before_it_is_made() -> None:
    with seated([does("write", path="a.md", content="new\n")], "done", settings=FREE) as s:
        put(s, "a.md", b"old\n")
        s.run()
        shown = undo(s, only_show="yes")
        assert isinstance(shown, UndoShown)
        assert ("-new" in shown.steps[0].diff, "+old" in shown.steps[0].diff) == (True, True)
        assert has(s, "a.md") == b"new\n"
        assert isinstance(undo(s, checkpoint="another"), NotTheLast)
        assert isinstance(undo(s, checkpoint=shown.record.checkpoint), ChangeUndone)


@pytest.mark.witness("APPROVE-7")
def test_file_that_somebody_changed_since_is_left_alone_unless_it_is_forced() -> None:
    with seated([does("write", path="a.md", content="new")], "done", settings=FREE) as s:
        put(s, "a.md", b"old")
        s.run()
        put(s, "a.md", b"mine")
        refused = undo(s)
        assert isinstance(refused, ChangedSince)
        assert "a.md" in refused.remedy
        assert has(s, "a.md") == b"mine"
        assert isinstance(undo(s, when_changed="overwrite"), ChangeUndone)
        assert has(s, "a.md") == b"old"
        kept = [
            s.world.disk.content(path)
            for path in s.world.disk.paths()
            if path.startswith(f"{ROOT}/.tenure/checkpoints/")
        ]
        assert b"mine" in kept


def test_tool_that_failed_leaves_nothing_to_undo() -> None:
    call = does("edit", path="a.md", edits=[{"oldText": "no such text", "newText": "x"}])
    with seated([call], "done", settings=FREE) as s:
        put(s, "a.md", b"old")
        s.run()
        assert isinstance(undo(s), NothingToUndo)


def test_change_that_somebody_took_back_is_passed_over() -> None:
    calls = [
        does("write", "c1", path="a.md", content="new"),
        does("write", "c2", path="b.md", content="new"),
    ]
    with seated(calls, "done", settings=FREE) as s:
        put(s, "a.md", b"old")
        put(s, "b.md", b"old")
        s.run()
        put(s, "b.md", b"old")
        reply = undo(s)
        assert isinstance(reply, ChangeUndone)
        assert reply.record.paths == ("a.md",)


def test_large_file_is_not_kept_and_its_preview_says_so() -> None:
    big = b"x" * 16_777_217
    call = does("write", path="big.md", content="new")
    with seated([call], "done") as s:
        put(s, "big.md", big)
        turn = s.prompt()
        s.until(lambda: bool(s.said(ApprovalRequested)))
        request = s.said(ApprovalRequested)[0].request
        assert request.preview is not None
        assert "cannot be undone" in request.preview.summary
        s.do(s.seat.answer(request.request_id, Allow()))
        s.world.run(turn)
        assert has(s, "big.md") == b"new"
        refused = undo(s)
        assert isinstance(refused, CannotUndo)
        assert "16,777,217" in refused.reason


# --- after a restart -------------------------------------------------------------------------


@pytest.mark.witness("APPROVE-7")
def test_undo_survives_the_end_of_the_host() -> None:
    with seated([does("write", path="a.md", content="new")], "done", settings=FREE) as s:
        put(s, "a.md", b"old")
        s.run()
        s.host.kill()
        again = s.host.again()
        seat = s.world.run(again.seat())
        assert isinstance(s.world.ask(again, UndoChange()), ChangeUndone)
        assert has(s, "a.md") == b"old"
        assert seat.token.session_id == s.seat.token.session_id


# --- the audit -------------------------------------------------------------------------------


def test_every_decision_is_in_the_transcript() -> None:
    calls = [does("read", "c1", path="a.md"), does("write", "c2", path="a.md", content="x")]
    with seated(calls, "done") as s:
        put(s, "a.md", b"old")
        turn = s.prompt()
        s.until(lambda: bool(s.said(ApprovalRequested)))
        request = s.said(ApprovalRequested)[0].request
        s.do(s.seat.answer(request.request_id, Allow(scope="session")))
        s.world.run(turn)
        s.settle()
        assert audits(s) == [("allowed", "default"), ("allowed", "person")]
        records = [line["data"] for line in s.lines() if line.get("customType") == "tenure/audit"]
        assert (records[1]["scope"], records[1]["paths"]) == ("session", ["a.md"])
        assert "content" not in str(records)


def test_request_that_nobody_answers_in_time_is_denied_and_a_late_answer_is_told() -> None:
    expiring = {"approval": {"expires_s": 30}}
    call = does("write", path="a.md", content="x")
    with seated([call], "done", settings=expiring) as s:
        s.run()
        request = s.said(ApprovalRequested)[0].request
        assert request.expires_ms == request.asked_ms + 30_000
        assert [event.outcome for event in s.said(ApprovalResolved)] == ["expired"]
        late = s.do(s.seat.answer(request.request_id, Allow()))
        assert type(late).__name__ == "Expired"
        assert has(s, "a.md") is None
        s.settle()
        assert audits(s) == [("expired", "expiry")]


def test_link_that_leads_out_of_the_working_dirs_is_asked_for() -> None:
    bounded = {"approval": {"working_dirs": ["notes"], "mutating": "allow"}}
    call = does("write", path="notes/link/a.md", content="x")
    with seated([call], "done", settings=bounded) as s:
        put(s, "notes/a.md", b"")
        put(s, "other/b.md", b"")
        s.world.disk.put_link(f"{ROOT}/notes/link", f"{ROOT}/other")
        turn = s.prompt()
        s.until(lambda: bool(s.said(ApprovalRequested)))
        s.do(s.seat.stop())
        s.world.run(turn)
        assert has(s, "other/a.md") is None
