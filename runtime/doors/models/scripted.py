"""`scripted`: a model that says what it was told to say.  For tests, also on the command line.

A script is a list of answers, used in order: the first model call of a session
takes the first, the next call the second, also where a call fails.  Each session
that this process talks to starts at the beginning.

On the command line the script is a JSON file, `--model scripted:FILE`:

    {"answers": [
        "A whole answer as one piece of text.",
        [{"text": "In "}, {"text": "pieces."}],
        [{"thinking": "They want the notes.", "signature": "opaque"},
         {"call": {"name": "read", "arguments": {"path": "notes.md"}, "id": "c1"}}],
        [{"text": "Half of "}, {"wait": "file:/tmp/go"}, {"text": "an answer."}],
        [{"text": "Cut "}, {"fail": {"kind": "transport", "reason": "cut", "retry_after_ms": 0}}],
        [{"text": "Told to be "}, {"done": {"stop_reason": "length",
            "usage": {"input": 10, "output": 5, "totalTokens": 15}, "model": "acme-1"}}]
    ]}

An answer is a string or a list of steps; a step is an object with one of

    text       a piece of the answer
    thinking   a piece of thought; `signature` beside it seals it
    call       a tool call: `name`, `arguments` (an object, or a string for arguments
               that are no JSON), `id` (may be left out)
    wait       `file:PATH`: hold the turn open here until the file exists; a relative
               path starts at the script's folder
    fail       end the call with this failure: `kind`, `reason`, `retry_after_ms`
    done       end the answer: `stop_reason`, `usage`, `model`; may be left out

In Python an answer is a string or a list whose items are strings, model events,
`ModelFailure`s, exceptions, or `asyncio.Event`s to wait for.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec

from tenure.messages.content import StopReason, Usage
from tenure.messages.models import (
    ModelCallError,
    ModelDone,
    ModelEvent,
    ModelFailure,
    ModelRequest,
    ModelText,
    ModelThinking,
    ModelToolCall,
)
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.models.answer import failed
from tenure.runtime.doors.models.names import NotAvailable

SCRIPT_BYTES_MAX = 16 * 1024 * 1024
WAIT_S = 0.02
"""Between two looks for a file that is waited for."""

Wait = Callable[[], Awaitable[None]]

ScriptStep = str | ModelEvent | ModelFailure | Exception | asyncio.Event | Wait
ScriptAnswer = str | Sequence[ScriptStep]


class Scripted:
    """A model that gives the answers of a script in order.

    `requests` holds what it was asked, for tests to look at.
    """

    def __init__(self, answers: Sequence[ScriptAnswer]) -> None:
        self._answers = tuple(answers)
        self._calls: dict[str, int] = {}
        self.requests: list[ModelRequest] = []

    def __call__(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        number = self._calls.get(request.session_id, 0)
        self._calls[request.session_id] = number + 1
        self.requests.append(request)
        return self._events(number)

    async def _events(self, number: int) -> AsyncIterator[ModelEvent]:
        if number >= len(self._answers):
            raise failed(
                "invalid",
                f"the script has {len(self._answers)} answers and this is call {number + 1}; "
                "add an answer to it",
            )
        answer = self._answers[number]
        for step in (answer,) if isinstance(answer, str) else answer:
            match step:
                case str():
                    yield ModelText(text=step)
                case ModelFailure():
                    raise ModelCallError(step)
                case Exception():
                    raise step
                case asyncio.Event():
                    await step.wait()
                case ModelDone():
                    yield step
                    return
                case ModelText() | ModelThinking() | ModelToolCall():
                    yield step
                case _:
                    await step()
        yield ModelDone(provider="tenure", model="scripted", api="scripted")


class _Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] | str = {}
    id: str = ""


class _Done(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    stop_reason: StopReason = "stop"
    usage: Usage = Usage()
    model: str = "scripted"


class _TextStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: str


class _ThinkingStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    thinking: str
    signature: str = ""


class _CallStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    call: _Call


class _WaitStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    wait: str


class _FailStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    fail: ModelFailure


class _DoneStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    done: _Done


_STEPS: dict[str, type[msgspec.Struct]] = {
    "text": _TextStep,
    "thinking": _ThinkingStep,
    "call": _CallStep,
    "wait": _WaitStep,
    "fail": _FailStep,
    "done": _DoneStep,
}


async def load(path: str, leaves: Leaves) -> Scripted:
    """Read a script from a JSON file.

    Raises:
        NotAvailable: it cannot be read, or it is no script; says where.
    """
    path = await leaves.workers.run(leaves.files.real_path, path)
    try:
        data = await leaves.workers.run(_read, leaves, path)
        script = msgspec.json.decode(data)
    except OSError as error:
        raise NotAvailable(f"the script {path} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise NotAvailable(f"the script {path} is not JSON: {error}") from error
    answers = script.get("answers") if isinstance(script, dict) else script
    if not isinstance(answers, list):
        raise NotAvailable(f'the script {path} must be {{"answers": [...]}}')
    folder = path.rpartition("/")[0]
    return Scripted(
        [
            _answer(raw, f"{path}, answer {number}", folder, leaves)
            for number, raw in enumerate(answers, 1)
        ]
    )


def _read(leaves: Leaves, path: str) -> bytes:
    file = leaves.files.open(path, "read")
    try:
        return file.read_at(0, SCRIPT_BYTES_MAX)
    finally:
        file.close()


def _answer(raw: Any, where: str, folder: str, leaves: Leaves) -> ScriptAnswer:
    if isinstance(raw, str):
        return raw
    if not isinstance(raw, list):
        raise NotAvailable(f"{where}: an answer is a string or a list of steps")
    return [
        _step(step, f"{where}, step {number}", folder, leaves) for number, step in enumerate(raw, 1)
    ]


def _step(raw: Any, where: str, folder: str, leaves: Leaves) -> ScriptStep:
    if isinstance(raw, str):
        return raw
    kind = next((kind for kind in _STEPS if isinstance(raw, dict) and kind in raw), None)
    if kind is None:
        raise NotAvailable(f"{where}: a step is a string or has one of {', '.join(_STEPS)}")
    try:
        step = msgspec.convert(raw, _STEPS[kind])
    except msgspec.ValidationError as error:
        raise NotAvailable(f"{where}: {error}") from error
    match step:
        case _TextStep():
            return step.text
        case _ThinkingStep():
            return ModelThinking(text=step.thinking, signature=step.signature)
        case _CallStep(call=call):
            return ModelToolCall(id=call.id, name=call.name, arguments=call.arguments)
        case _FailStep():
            return step.fail
        case _DoneStep(done=done):
            return ModelDone(
                stop_reason=done.stop_reason,
                usage=done.usage,
                model=done.model,
                provider="tenure",
                api="scripted",
            )
        case _WaitStep():
            return _file_wait(step.wait, where, folder, leaves)
    raise NotAvailable(f"{where}: this step is not known")


def _file_wait(target: str, where: str, folder: str, leaves: Leaves) -> Wait:
    scheme, _, path = target.partition(":")
    if scheme != "file" or not path:
        raise NotAvailable(f"{where}: wait is file:PATH")
    absolute = path if path.startswith("/") else f"{folder}/{path}"

    async def wait() -> None:
        while not await leaves.workers.run(_exists, leaves, absolute):
            await leaves.clock.sleep(WAIT_S)

    return wait


def _exists(leaves: Leaves, path: str) -> bool:
    try:
        leaves.files.stat(path)
    except OSError:
        return False
    return True
