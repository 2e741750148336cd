"""How turns begin: from a start that is fit, over a model that is there, to a durable prompt."""

from msgspec.structs import replace

from tenure.actors.turn_budget import timer_of
from tenure.actors.turn_entries import resumed
from tenure.actors.turn_ledger import Ledger
from tenure.actors.turn_state import (
    Idle,
    Preparing,
    Prompt,
    PromptSaved,
    Reentering,
    Run,
    SavingPrompt,
    State,
)
from tenure.actors.turn_waiting import ItemReentered, Queue, Queued, Resumed
from tenure.messages.base import Refusal
from tenure.messages.content import ImageBlock, TextBlock, UserBlock, UserMessage
from tenure.messages.entries import EntryBody, MessageEntry
from tenure.messages.queue import DELIVERED_KEY, AdmitPrompt, QueuedPrompt
from tenure.messages.session import AppendEntries
from tenure.messages.turn import PromptEmpty, PromptTooLarge, RunTurn
from tenure.messages.turn_effects import PrepareTurn, TurnPrepared
from tenure.runtime.step import AskId, Step, Taken

PROMPT_BYTES_MAX = 4 * 1024 * 1024


def unfit(text: str, images: tuple[ImageBlock, ...]) -> Refusal | None:
    """Why a prompt is no prompt; None where it is one."""
    if not text.strip() and not images:
        return PromptEmpty()
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > PROMPT_BYTES_MAX:
        return PromptTooLarge(bytes_given=size, bytes_max=PROMPT_BYTES_MAX)
    return None


def prompt_of(message: RunTurn) -> Prompt:
    return Prompt(
        message.turn_id,
        message.token,
        message.text,
        message.images,
        message.model,
        message.overrides,
    )


def begin(prompt: Prompt, asker: AskId | None, ledger: Ledger, queue: Queue) -> Step[State]:
    """The first step of a turn: is there a model, and which tools are there?"""
    run = Run(prompt=prompt, ledger=ledger, queue=queue)
    prepare = PrepareTurn(turn_id=prompt.turn_id, model=prompt.model, overrides=prompt.overrides)
    return Step[State](Preparing(run, asker)).do(prepare)


def go_on(ledger: Ledger, queue: Queue) -> Step[State]:
    """What is due comes in again through the SessionActor, which compares its token."""
    due = queue.armed
    if not due:
        return Step(Idle(ledger, queue))
    item_id, turn_id = due[0].prompt.item_id, due[0].turn_id
    start = AdmitPrompt(item_id=item_id, turn_id=turn_id, token=due[0].token)
    reentering = Step[State](Reentering(ledger, queue, item_id, turn_id))
    return reentering.ask("session", start, re=ItemReentered(item_id=item_id))


def save_prompt(run: Run, asker: AskId | None, prepared: TurnPrepared, taken: Taken) -> Step[State]:
    """The prompt is written before the model is called (TURN-8)."""
    ready = replace(
        run,
        model=prepared.model,
        system=prepared.system,
        tools=prepared.tools,
        window=prepared.window,
        rules=prepared.rules,
        fallback=tuple(each for each in prepared.rules.retries.fallback if each != prepared.model),
        noted_model=prepared.model,
        began_ms=taken.now_ms,
    )
    key = ""
    entry: EntryBody
    match run.prompt.origin:
        case Resumed(turn_id=turn_id):
            entry = resumed(run.turn_id, turn_id)
        case Queued(prompt=prompt):
            entry, key = said(prompt.text, prompt.images, taken), delivery_key(prompt)
        case _:
            entry = said(run.prompt.text, run.prompt.images, taken)
    append = AppendEntries(
        token=run.token, entries=(entry,), turn_id=run.turn_id, idempotency_key=key
    )
    saving = SavingPrompt(ready, asker)
    step = Step[State](saving).ask("session", append, re=PromptSaved(turn_id=run.turn_id))
    return step.do(*timer_of(ready))


def said(text: str, images: tuple[ImageBlock, ...], taken: Taken) -> MessageEntry:
    content: tuple[UserBlock, ...] = (TextBlock(text=text), *images)
    return MessageEntry(message=UserMessage(content=content, timestamp=taken.now_ms))


def delivery_key(prompt: QueuedPrompt) -> str:
    """What makes the message entry the end of the prompt's wait, once and for all."""
    return f"{DELIVERED_KEY}{prompt.item_id}"
