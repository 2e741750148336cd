"""What the tests of providers share: the server as a process, and a call of it."""

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from model_world import World

from tenure.messages.content import AssistantMessage, ChatMessage, UserMessage
from tenure.messages.models import ToolSpec
from tenure.messages.turn_effects import ModelCallDone, ModelCallFailed, TurnPrepared

SERVER = Path(__file__).parent / "servers" / "provider.py"

SECRET = "sk-tenure-test-0123456789abcdef"
KEYS = {
    "OPENAI_API_KEY": SECRET,
    "ANTHROPIC_API_KEY": SECRET,
    "OPENAI_COMPATIBLE_API_KEY": SECRET,
}


class Server:
    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)

    def last(self) -> dict[str, Any]:
        """The last request."""
        seen: dict[str, Any] = self.get("/seen")[-1]
        return seen

    def chat(self, model: str) -> str:
        return f"openai-compatible:{model}@{self.url}/v1"

    def responses(self, model: str) -> str:
        return f"openai:{model}@{self.url}/v1"

    def anthropic(self, model: str) -> str:
        return f"anthropic:{model}@{self.url}"


@contextmanager
def running_server() -> Iterator[Server]:
    process = subprocess.Popen(
        [sys.executable, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin
    assert process.stdout
    try:
        port = int(process.stdout.readline().removeprefix("port "))
        yield Server(port)
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


def answer(
    model: str, *messages: ChatMessage, tools: tuple[ToolSpec, ...] = ()
) -> AssistantMessage:
    outcome, _ = called(model, *messages, tools=tools)
    assert isinstance(outcome, ModelCallDone), outcome
    return outcome.message


def failure(model: str) -> ModelCallFailed:
    outcome, _ = called(model)
    assert isinstance(outcome, ModelCallFailed), outcome
    assert SECRET not in repr(outcome)
    return outcome


def called(
    model: str, *messages: ChatMessage, tools: tuple[ToolSpec, ...] = ()
) -> tuple[ModelCallDone | ModelCallFailed, World]:
    world = World(environ=KEYS, messages=messages or (UserMessage(content="Hello?"),), tools=tools)

    async def scene() -> ModelCallDone | ModelCallFailed:
        prepared = await world.prepare(model)
        assert isinstance(prepared, TurnPrepared), prepared
        return await world.call(model)

    return asyncio.run(scene()), world
