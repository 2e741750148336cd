"""What the commands of `tenure index` do."""

from dataclasses import dataclass
from typing import Any, Literal

from tenure.messages.index import CancelIndex, IndexChanged, IndexRunOther
from tenure.messages.index_work import (
    ActiveNote,
    Everything,
    Folder,
    IndexProgress,
    IndexReady,
    IndexResult,
    IndexRunId,
    IndexScope,
    IndexWork,
    NoRun,
    RunActive,
    RunCancelled,
    RunComplete,
    RunFailed,
    RunSkipped,
    Tagged,
)
from tenure.runtime.cli.reaching import outside, refuse
from tenure.runtime.cli.screen import (
    JsonScreen,
    Screen,
    print_json,
    print_note,
    print_text,
    screen_of,
)
from tenure.runtime.cli.terminal import Interrupts, visible
from tenure.runtime.cli.turns import EXIT_DONE, EXIT_FAILED
from tenure.runtime.doors.search.results import SearchFailed
from tenure.runtime.errors import Refused
from tenure.runtime.finding import host_of_holder
from tenure.runtime.host import Host

UNREAD_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildWish:
    """What `tenure index build` was told."""

    kind: str
    name: str
    consent: Literal["none", "remote"]
    large: Literal["ask", "go"]
    only: Literal["build", "estimate"]

    @property
    def scope(self) -> IndexScope:
        """What is to be indexed."""
        match self.kind:
            case "folder":
                return Folder(path=self.name)
            case "tag":
                return Tagged(tag=self.name)
            case "note":
                return ActiveNote(path=self.name)
            case _:
                return Everything()


async def build_index(root: str, wish: BuildWish, form: str, interrupts: Interrupts) -> int:
    screen = screen_of(form)
    interrupts.first(interrupts.end)
    async with Host.open(root) as host:
        try:
            if wish.only == "estimate":
                _show(screen, work := await host.index.estimate(wish.scope), work_line(work))
                return EXIT_DONE
            result = await host.index.build(
                wish.scope, consent=wish.consent, large=wish.large, told=told_on_stderr
            )
        except Refused as refused:
            return refuse(screen, refused.reply)
    _show(screen, result, result_line(result))
    return EXIT_DONE if isinstance(result, RunComplete | RunSkipped) else EXIT_FAILED


async def watch_index(
    root: str, consent: Literal["none", "remote"], form: str, interrupts: Interrupts
) -> int:
    screen = screen_of(form)
    interrupts.first(interrupts.end)
    async with Host.open(root) as host:
        try:
            async for result in host.index.watch(consent=consent):
                _show(screen, result, result_line(result))
        except Refused as refused:
            return refuse(screen, refused.reply)
    return EXIT_DONE


async def search_index(root: str, text: str, limit: int, offset: int, form: str) -> int:
    screen = screen_of(form)
    async with Host.open(root) as host:
        found = await host.index.search(text, limit=limit, offset=offset)
    if isinstance(found, SearchFailed):
        if isinstance(screen, JsonScreen):
            print_json(found)
        print_note(f"tenure: {found.remedy}")
        return EXIT_FAILED
    for note in found.notes:
        screen.note(note)
    if isinstance(screen, JsonScreen):
        print_json(found)
        return EXIT_DONE if found.hits else EXIT_FAILED
    for hit in found.hits:
        print_text(f"{visible(hit.path)}  {hit.score:.2f}\n")
        for passage in hit.passages:
            print_text(f"  {passage.line}: {visible(passage.snippet)}\n")
    if not found.hits:
        screen.note("nothing was found")
        return EXIT_FAILED
    return EXIT_DONE


async def show_status(root: str, form: str) -> int:
    screen = screen_of(form)
    async with Host.open(root) as host:
        try:
            status = await host.index.status()
        except Refused as refused:
            return refuse(screen, refused.reply)
    index = status.index
    if isinstance(index, IndexReady):
        line = (
            f"{index.notes:,} notes in {index.chunks:,} chunks, {index.model.id}, "
            f"generation {index.generation}, {index.bytes:,} bytes"
        )
    else:
        line = "there is no index; `tenure index build` makes one"
    lines = [line, *([index.problem] if index.problem else [])]
    run = status.run
    if isinstance(run, RunActive):
        pid = f"process {run.holder.process.pid}" if run.holder is not None else "a process"
        lines.append(f"{pid} is indexing: {progress_line(run.progress)}")
    elif not isinstance(run, NoRun):
        lines.append(f"the last run: {result_line(run)}")
    _show(screen, status, "\n".join(lines))
    return EXIT_DONE


async def cancel_run(root: str, form: str) -> int:
    screen = screen_of(form)
    async with outside() as leaves, Host.open(root) as host:
        try:
            status = await host.index.status()
            run = status.run
            if not isinstance(run, RunActive) or run.holder is None:
                nothing = IndexRunOther(asked=status.run_id, running=IndexRunId(""))
                return refuse(screen, nothing)
            async with await host_of_holder(leaves, run.holder) as remote:
                reply = await remote.ask(CancelIndex(run_id=status.run_id))
        except Refused as refused:
            return refuse(screen, refused.reply)
    if not isinstance(reply, IndexChanged):
        return refuse(screen, reply)
    _show(screen, reply, f"{reply.now} run {reply.run_id}")
    return EXIT_DONE


async def verify_files(root: str, form: str) -> int:
    screen = screen_of(form)
    async with Host.open(root) as host:
        report = await host.index.verify()
    told = "sound" if report.sound else f"{len(report.problems)} problems"
    lines = [
        f"{report.path}: {told}; generation {report.generation}, {report.notes:,} notes, "
        f"{report.chunks:,} chunks, {report.files} files, {report.bytes:,} bytes",
        *(f"  {problem}" for problem in report.problems),
        *(f"  not used: {name}" for name in report.unused),
    ]
    _show(screen, report, "\n".join(lines))
    return EXIT_DONE if report.sound else EXIT_FAILED


async def collect(root: str, form: str) -> int:
    screen = screen_of(form)
    async with Host.open(root) as host:
        try:
            collected = await host.index.collect()
        except Refused as refused:
            return refuse(screen, refused.reply)
    _show(screen, collected, f"{len(collected.files)} files, {collected.bytes:,} bytes removed")
    return EXIT_DONE


# --- what is shown -------------------------------------------------------------------------


def told_on_stderr(told: IndexWork | IndexProgress) -> None:
    if isinstance(told, IndexProgress):
        print_note(progress_line(told))
        return
    print_note(work_line(told))
    for line in told.recovered:
        print_note(line)
    for unread in told.unread[:UNREAD_SHOWN]:
        print_note(f"not indexed: {visible(unread.path)}: {unread.reason}")
    if told.unread_count > UNREAD_SHOWN:
        print_note(f"not indexed: {told.unread_count - UNREAD_SHOWN:,} more")


def work_line(work: IndexWork) -> str:
    where = f", seen by {work.remote}" if work.remote and work.to_embed else ""
    return (
        f"{work.notes:,} notes, {work.changed:,} new or changed, {work.removed:,} gone; "
        f"{work.to_embed:,} chunks for {work.model.id}, about {work.tokens:,} tokens{where}"
    )


def progress_line(progress: IndexProgress) -> str:
    left = f", {progress.left_s:,.0f} s to go" if progress.left_s else ""
    rate = f" ({progress.chunks_per_s:,.0f} a second{left})" if progress.chunks_per_s else ""
    return f"{progress.done:,} of {progress.total:,} chunks{rate}"


def result_line(result: IndexResult) -> str:
    match result:
        case RunComplete():
            unread = f", {result.unread:,} could not be read" if result.unread else ""
            return (
                f"complete: {result.notes:,} notes in {result.chunks:,} chunks, "
                f"{result.embedded:,} embedded{unread}"
            )
        case RunSkipped(reason=reason):
            return f"skipped: {reason}"
        case RunCancelled(done=done, total=total):
            return f"cancelled after {done:,} of {total:,} chunks, which are kept"
        case RunFailed(reason=reason):
            return f"failed: {reason}"


def _show(screen: Screen, value: Any, text: str) -> None:
    if isinstance(screen, JsonScreen):
        print_json(value)
    else:
        print_text(f"{text}\n")
