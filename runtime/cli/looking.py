"""What the commands do that only look at sessions."""

import os
from collections.abc import Awaitable, Callable
from typing import Literal

from tenure.messages.base import Refusal
from tenure.runtime.cli.branches import print_tree
from tenure.runtime.cli.hosting import SaidNo, fail, session_of
from tenure.runtime.cli.listing import print_matches, print_sessions
from tenure.runtime.cli.screen import Screen, print_json, print_note, print_text, screen_of
from tenure.runtime.cli.story import print_story
from tenure.runtime.cli.turns import EXIT_DONE, EXIT_FAILED, EXIT_REFUSED
from tenure.runtime.doors.transcripts import Exported, SessionFound, Unreadable, Verification
from tenure.runtime.host import Host


async def list_sessions(root: str, form: str) -> int:
    async with Host.open(root) as host:
        print_sessions(await host.sessions.list(), screen_of(form))
    return EXIT_DONE


async def search_sessions(
    root: str, text: str, scope: Literal["titles", "everything"], form: str
) -> int:
    async with Host.open(root) as host:
        print_matches(await host.sessions.search(text, scope), screen_of(form))
    return EXIT_DONE


async def show_session(root: str, text: str, form: str) -> int:
    async def show(host: Host, found: SessionFound, screen: Screen) -> int:
        snapshot = await host.sessions.read(found.path)
        if form == "json":
            print_json(snapshot)
        else:
            print_story(snapshot)
        return EXIT_DONE

    return await with_session(root, text, form, show)


async def show_tree(root: str, text: str, form: str) -> int:
    async def show(host: Host, found: SessionFound, screen: Screen) -> int:
        tree = await host.sessions.tree(found.path)
        if form == "json":
            print_json(tree)
        else:
            print_tree(tree)
        return EXIT_DONE

    return await with_session(root, text, form, show)


async def export_session(
    root: str, text: str, kind: Literal["markdown", "json"], folder: str | None
) -> int:
    async def export(host: Host, found: SessionFound, screen: Screen) -> int:
        document = await host.sessions.export(found.path, kind)
        if not isinstance(document, Exported):
            print_note(document.remedy)
            return EXIT_FAILED
        if folder is None:
            print_text(document.text)
        else:
            print_text(write_document(document, folder) + "\n")
        return EXIT_DONE

    return await with_session(root, text, "text", export)


async def verify_session(root: str, text: str, form: str) -> int:
    async def verify(host: Host, found: SessionFound, screen: Screen) -> int:
        report = await host.sessions.verify(found.path)
        if form == "json":
            print_json(report)
        else:
            print_report(report)
        return EXIT_DONE if report.sound else EXIT_FAILED

    return await with_session(root, text, form, verify)


async def verify_sessions(root: str, form: str) -> int:
    """Check every session of a root; a file that cannot be read does not hide the others."""
    unsound = 0
    async with Host.open(root) as host:
        for summary in await host.sessions.list():
            try:
                report = await host.sessions.verify(summary.path)
            except FileNotFoundError:
                continue  # deleted since it was listed
            except (Unreadable, OSError) as error:
                unsound += 1
                print_note(f"{summary.path}: {error}")
                continue
            unsound += 0 if report.sound else 1
            if form == "json":
                print_json(report)
            else:
                print_report(report)
    return EXIT_FAILED if unsound else EXIT_DONE


async def with_session(
    root: str,
    text: str,
    form: str,
    work: Callable[[Host, SessionFound, Screen], Awaitable[int]],
) -> int:
    """Do something with the one session that is meant; none, or several, is a refusal."""
    screen = screen_of(form)
    async with Host.open(root) as host:
        try:
            found = await session_of(host, text)
        except SaidNo as said:
            screen.refusal(said.no)
            return EXIT_REFUSED
        try:
            return await work(host, found, screen)
        except Unreadable as error:
            fail(f"{found.path}: {error}")


def refused(reply: object, screen: Screen) -> int:
    """Print a reply that says no, and give the exit code."""
    if not isinstance(reply, Refusal):
        fail(f"an unexpected answer: {reply!r}")
    screen.refusal(reply)
    return EXIT_REFUSED


def print_report(report: Verification) -> None:
    """What a check found, line by line."""
    told = "sound" if report.sound else f"{len(report.problems)} problems"
    print_text(f"{report.path}: {told}\n")
    print_text(
        f"  {report.lines} lines, {report.bytes:,} bytes; {report.sealed} records with a sum "
        f"that fits, {report.foreign} without one; epoch {report.epoch}, "
        f"{report.calls} tool calls\n"
    )
    for problem in report.problems:
        print_text(f"  line {problem.line}: {problem.kind}: {problem.text}\n")


def write_document(document: Exported, folder: str) -> str:
    """Put the document into a folder, never over another file; gives its path.

    Raises:
        OSError: it cannot be written there.
    """
    stem, dot, suffix = document.file_name.rpartition(".")
    path, number = os.path.join(folder, document.file_name), 1
    while True:
        try:
            with open(path, "x", encoding="utf-8", errors="replace") as file:
                file.write(document.text)
        except FileExistsError:
            number += 1
            path = os.path.join(folder, f"{stem}-{number}{dot}{suffix}")
        else:
            return path
