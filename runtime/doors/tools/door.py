"""The tools door: carries out `RunTool` and `PreviewCall`.

A wrong call is no failure of the effect.  Unknown tool, wrong arguments, a path
that leads out, a disk that refuses: each becomes an error *result*, which tells
the model what to do, and the turn goes on.
"""

import inspect
from contextlib import suppress
from typing import cast

import msgspec

from tenure.messages.approval import CallNotPreviewed, CallPreviewed, Preview, PreviewCall
from tenure.messages.base import Outcome
from tenure.messages.checkpoints import FileImage
from tenure.messages.content import TextBlock, UserBlock
from tenure.messages.models import INVALID_JSON, ToolSpec
from tenure.messages.turn_effects import RunTool, ToolCallDone
from tenure.runtime.doors.checkpoints.keeping import FileKeeping
from tenure.runtime.doors.checkpoints.store import CHECKPOINT_BYTES_MAX, Store
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.tools.asking import Ask, Asking, AskingTool, AskUserTool
from tenure.runtime.doors.tools.moving import Delete, Rename
from tenure.runtime.doors.tools.reading import List, Read
from tenure.runtime.doors.tools.searching import Search
from tenure.runtime.doors.tools.subagent import NAME as SUBAGENT
from tenure.runtime.doors.tools.subagent import Subagents
from tenure.runtime.doors.tools.tool import (
    AnyTool,
    AsyncTool,
    PreviewingTool,
    Tool,
    ToolCall,
    ToolRefused,
    ToolResult,
    error_result,
)
from tenure.runtime.doors.tools.writing import Edit, Write

__all__ = ["AnyTool", "Tools"]

RESULT_CHARS_MAX = 50_000
INVALID_SHOWN_CHARS = 200


class Tools:
    """All tools of a host.

    Args:
        root: the workspace; an absolute path.
        extra: the embedder's own.  One with the name of a workspace tool takes
            its place.
        unlisted: tools that a turn is offered only where they have something to give.

    Raises:
        ValueError: two of `extra` have one name.
    """

    def __init__(
        self,
        leaves: Leaves,
        root: str,
        extra: tuple[AnyTool, ...] = (),
        unlisted: tuple[AnyTool, ...] = (),
    ) -> None:
        self._workers = leaves.workers
        self._files = leaves.files
        self._root = root
        files, entropy = leaves.files, leaves.entropy
        own: tuple[AnyTool, ...] = (
            Read(files, root),
            List(files, root),
            Search(files, leaves.clock, root),
            Write(files, entropy, root),
            Edit(files, entropy, root),
            Rename(files, root),
            Delete(files, entropy, root),
            AskUserTool(),
        )
        self.asking = Asking()
        self._tools = {tool.spec.name: tool for tool in (*own, *unlisted)}
        self._unlisted = frozenset(tool.spec.name for tool in unlisted)
        self._unlisted -= {tool.spec.name for tool in extra}
        self._subagents: Subagents | None = None
        self._own = frozenset(self._tools) - {tool.spec.name for tool in extra}
        self._tools |= {tool.spec.name: tool for tool in extra}
        names = [tool.spec.name for tool in extra]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"more than one tool is named {', '.join(twice)}")
        self.store = Store(files, entropy, root)
        specs = {name: tool.spec for name, tool in self._tools.items()}
        self.keeping = FileKeeping(leaves, root, self.store, specs)

    def let_run(self, subagents: Subagents) -> None:
        """Offer subagents, too, unless the embedder has a tool of that name."""
        if SUBAGENT not in self._tools:
            self._subagents = subagents

    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is offered."""
        listed = (tool for name, tool in self._tools.items() if name not in self._unlisted)
        specs = tuple(tool.spec for tool in listed)
        return specs if self._subagents is None else (*specs, self._subagents.spec)

    async def run(self, effect: RunTool, context: Context) -> Outcome:
        """Run one call.

        A cancel reaches an async tool; a blocking one runs to its end, and only
        its result is dropped.
        """
        call = ToolCall(
            tool=effect.tool,
            arguments=effect.arguments,
            expects=effect.expects,
            turn_id=effect.turn_id,
            call_id=effect.call_id,
        )
        ask = self.asking.of(effect, context)
        if self._subagents is not None and effect.tool == SUBAGENT:
            result = await self._of_subagent(self._subagents, effect, context)
        else:
            result = await self._allowed_result(effect, call, ask)
        after: tuple[FileImage, ...] = ()
        if effect.checkpoint:
            with suppress(OSError):  # nobody knows then, and the undo says so
                after = await self._workers.run(self.keeping.after, effect, result)
        result = _capped(result)
        return ToolCallDone(
            turn_id=effect.turn_id,
            call_id=effect.call_id,
            content=result.content,
            is_error=result.is_error,
            details=result.details,
            after=after,
        )

    async def _allowed_result(self, effect: RunTool, call: ToolCall, ask: Ask) -> ToolResult:
        """The result, where the files are those that were allowed."""
        if effect.paths:
            try:
                same = await self._workers.run(self.keeping.same_files, effect)
            except OSError as refused:
                return error_result(_reason(refused))
            if not same:  # guard: APPROVE-4
                return error_result(
                    "not run: a link on the way to its files leads elsewhere than when the "
                    "call was allowed. Look at the path and make the call again"
                )
        return await self._result(call, ask)

    async def preview(self, effect: PreviewCall, context: Context) -> Outcome:
        """Work out what a call would do; it changes nothing."""
        call = ToolCall(tool=effect.tool, arguments=effect.arguments)
        try:
            tool = self._found(call)
            if not isinstance(tool, PreviewingTool):
                raise ToolRefused(f"{effect.tool} shows no preview")
            preview: Preview = await self._workers.run(self._previewed, tool, call)
        except (ToolRefused, OSError) as refused:
            return CallNotPreviewed(request_id=effect.request_id, reason=_reason(refused))
        return CallPreviewed(request_id=effect.request_id, preview=preview)

    def _previewed(self, tool: PreviewingTool, call: ToolCall) -> Preview:
        """What a call would do, and whether it can be undone."""
        preview = tool.preview(call)
        spec = self._tools[call.tool].spec
        if not spec.follows_links:
            return preview  # a name that is moved keeps its bytes
        try:
            size = self._files.stat(f"{self._root.rstrip('/')}/{preview.path}").size
        except OSError:
            return preview
        if size <= CHECKPOINT_BYTES_MAX:
            return preview
        note = (
            f"{preview.summary}. It cannot be undone: the file has {size:,} bytes, and what it "
            f"holds is kept up to {CHECKPOINT_BYTES_MAX:,}"
        )
        return msgspec.structs.replace(preview, summary=note)

    async def _of_subagent(
        self, subagents: Subagents, effect: RunTool, context: Context
    ) -> ToolResult:
        ask = self.asking.of(effect, context)

        async def run_call(call: ToolCall) -> ToolResult:
            return _capped(await self._result(call, ask))

        try:
            return await subagents.run(effect, context, run_call)
        except ToolRefused as refused:
            return error_result(str(refused))

    async def _result(self, call: ToolCall, ask: Ask) -> ToolResult:
        try:
            tool = self._found(call)
            if isinstance(tool, AskingTool):
                return await tool.run_asking(call, ask)
            if inspect.iscoroutinefunction(tool.run):
                return await cast(AsyncTool, tool).run(call)
            return await self._workers.run(cast(Tool, tool).run, call)
        except OSError as refused:
            if call.tool not in self._own:
                return error_result(_reason(refused))
            # The workspace tools change a file whole or not at all.
            return error_result(f"{_reason(refused)}; nothing was changed")
        except Exception as refused:
            return error_result(_reason(refused))

    def _found(self, call: ToolCall) -> AnyTool:
        tool = self._tools.get(call.tool)
        if tool is None:
            names = ", ".join(spec.name for spec in self.specs())
            raise ToolRefused(f"there is no tool {call.tool!r}; the tools are: {names}")
        if INVALID_JSON in call.arguments:
            raw = str(call.arguments[INVALID_JSON])
            raise ToolRefused(
                f"the arguments of {call.tool} were no valid JSON object; nothing was run. "
                f"Write them again as one JSON object. They began: {raw[:INVALID_SHOWN_CHARS]!r}"
            )
        return tool


def _reason(error: Exception) -> str:
    """One text for the model."""
    if isinstance(error, ToolRefused):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"the file system refused: {error.strerror}"
    return f"the tool failed: {type(error).__name__}: {error}"


def _capped(result: ToolResult) -> ToolResult:
    """The result with its texts cut to what a conversation can hold, and storable as JSON."""
    room = RESULT_CHARS_MAX
    content: list[UserBlock] = []
    for block in result.content:
        if isinstance(block, TextBlock):
            text = block.text.encode("utf-8", "backslashreplace").decode()
            kept, room = text[:room], max(0, room - len(text))
            left_out = len(text) - len(kept)
            note = f"\n[{left_out:,} more characters left out; ask for less at once]"
            content.append(TextBlock(text=kept + note if left_out else text))
        else:
            content.append(block)
    return ToolResult(content=tuple(content), is_error=result.is_error, details=result.details)
