"""What becomes of prompts that are not delivered: each is given back or held, and says so."""

from typing import TypeVar

from msgspec.structs import replace

from tenure.actors.turn_state import Prompt, Run, State
from tenure.actors.turn_waiting import Adding, Armed, Kept, Queue, Queued
from tenure.messages.queue import Gone, PromptReturned, PromptSuspended, QueuedPrompt, entry_of
from tenure.messages.session import AppendEntries
from tenure.messages.tokens import QueueItemId, SessionToken
from tenure.messages.turn import StopCause, TurnEnded, TurnNotStarted, TurnStopReason
from tenure.runtime.step import Step

S = TypeVar("S", bound=State)


def give_back(step: Step[S], queue: Queue, cause: StopCause) -> Step[S]:
    """Everything that was due, and what is on its way to the disk, is given back (TURN-3)."""
    for item in queue.armed:
        step = end_wait(step, item, cause)
    step = refuse_adding(step, queue.adding, cause)
    gone = (*queue.armed, *(each.item for each in queue.adding))
    if not gone:
        return step
    ids = tuple(item.prompt.item_id for item in gone)
    return note_returned(step, ids, gone[0].token)


def refuse_adding(step: Step[S], adding: tuple[Adding, ...], cause: StopCause) -> Step[S]:
    """Their askers have no receipt yet: they are told that nothing will come of it."""
    for each in adding:
        step = step.answer(each.asker, TurnNotStarted(turn_id=each.item.turn_id, cause=cause))
    return step


def end_wait(step: Step[S], item: Armed, cause: StopCause) -> Step[S]:
    """Say that a prompt is given back, and end the stream of whoever waits for its turn."""
    prompt = item.prompt
    said = PromptReturned(item_id=prompt.item_id, text=prompt.text, cause=cause)
    return end_stream(step.emit(said), item, "stopped", cause)


def hold(step: Step[S], item: Armed, reason: str) -> Step[S]:
    """Say that a prompt could not be delivered and stays where it is."""
    held = PromptSuspended(item_id=item.prompt.item_id, text=item.prompt.text, reason=reason)
    return end_stream(step.emit(held), item, "error", None, reason)


def end_stream(
    step: Step[S],
    item: Armed,
    stop_reason: TurnStopReason,
    cause: StopCause | None,
    error: str = "",
) -> Step[S]:
    """A prompt that was to be a turn of its own has readers who wait for its end."""
    if item.prompt.delivery not in ("next_turn", "redirect"):
        return step
    return step.emit(
        TurnEnded(turn_id=item.turn_id, stop_reason=stop_reason, cause=cause, error=error)
    )


def note_returned(step: Step[S], item_ids: tuple[QueueItemId, ...], token: SessionToken) -> Step[S]:
    """Until this is durable a crash shows them held, which loses nothing."""
    entries = tuple(entry_of(Gone(item_id=each, fate="returned")) for each in item_ids)
    return step.tell("session", AppendEntries(token=token, entries=entries))


def without(queue: Queue, item_id: QueueItemId) -> Queue:
    items = tuple(item for item in queue.items if item.prompt.item_id != item_id)
    return replace(queue, items=items)


def kept_first(run: Run, prompt: QueuedPrompt) -> Queue:
    """The run's queue with its own prompt at the head again, held."""
    return replace(run.queue, items=(Kept(prompt), *run.queue.items))


def armed_first(run: Run, prompt: QueuedPrompt) -> Queue:
    """The run's queue with its own prompt at the head again."""
    armed = Armed(prompt, run.turn_id, run.token)
    return replace(run.queue, items=(armed, *run.queue.items))


def waited(prompt: Prompt) -> QueuedPrompt | None:
    """The prompt as it waited; None where it came while nothing ran."""
    return prompt.origin.prompt if isinstance(prompt.origin, Queued) else None
