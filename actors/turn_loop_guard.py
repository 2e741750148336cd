"""The loop guard: a turn whose tool batches come again and again, with the same results.

Calls are equal by name and arguments, whatever the order of the keys; results by
what the model was shown.  Anything that differs, and an answer without calls,
begins the count anew; so does every prompt, as the count is the run's.
"""

import msgspec
from msgspec.structs import replace

from tenure.actors.turn_state import Call, Loop, Run, Saved
from tenure.messages.approval import digest_of

EQUAL_BATCHES_MAX = 4
"""So many equal batches with equal results in a row stop the turn."""


def noted(run: Run, calls: tuple[Call, ...]) -> Run:
    """The run after a batch whose results are all durable."""
    digest = _digest(calls)
    equal = run.loop.equal_batches + 1 if digest == run.loop.digest else 1
    return replace(run, loop=Loop(digest, equal))


def is_looping(run: Run) -> bool:
    return run.loop.equal_batches >= EQUAL_BATCHES_MAX


def why_stopped(calls: tuple[Call, ...]) -> str:
    """One sentence for people: what came again, and what to do."""
    names = ", ".join(dict.fromkeys(call.block.name for call in calls))
    return (
        f"the model called {names} {EQUAL_BATCHES_MAX} times in a row with the same arguments "
        "and got the same results; say what it should do otherwise"
    )


def _digest(calls: tuple[Call, ...]) -> str:
    batch = [
        {
            "call": digest_of(call.block.name, call.block.arguments),
            "content": msgspec.to_builtins(call.status.result.content),
            "is_error": call.status.result.is_error,
        }
        for call in calls
        if isinstance(call.status, Saved)
    ]
    return digest_of("batch", {"calls": batch})
