"""How turns begin: from a start that is fit, over a model that is there, to a durable prompt."""

from msgspec.structs import replace

from tenure.actors.turn_budget import timer_of
from tenure.actors.turn_state import (
    EarlyStop,
    Idle,
    Ledger,
    Preparing,
    Prompt,
    PromptSaved,
    Run,
    SavingPrompt,
    State,
)
from tenure.messages.base import Refusal
from tenure.messages.content import TextBlock, UserBlock, UserMessage
from tenure.messages.entries import MessageEntry
from tenure.messages.session import AppendEntries
from tenure.messages.tokens import SessionId, TurnId, turn_number, turn_session
from tenure.messages.turn import PromptEmpty, PromptTooLarge, RunTurn, StopCause
from tenure.messages.turn_effects import PrepareTurn, TurnPrepared
from tenure.runtime.step import AskId, Step, Taken

PROMPT_BYTES_MAX = 4 * 1024 * 1024
EARLY_STOPS_KEPT_MAX = 64
"""Stops that came before their turn; the oldest is forgotten first."""


def unfit(message: RunTurn) -> Refusal | None:
    """Why a prompt is no prompt; None where it is one."""
    if not message.text.strip() and not message.images:
        return PromptEmpty()
    size = len(message.text.encode("utf-8", "surrogatepass"))
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


def begin(
    prompt: Prompt, asker: AskId | None, ledger: Ledger, queue: tuple[Prompt, ...]
) -> Step[State]:
    """The first step of a turn: is there a model, and which tools are there?"""
    run = Run(prompt=prompt, ledger=ledger, queue=queue)
    prepare = PrepareTurn(turn_id=prompt.turn_id, model=prompt.model, overrides=prompt.overrides)
    return Step[State](Preparing(run, asker)).do(prepare)


def go_on(ledger: Ledger, queue: tuple[Prompt, ...]) -> Step[State]:
    """Begin with what waits; its asker has been told that it waits."""
    if queue:
        return begin(queue[0], None, ledger, queue[1:])
    return Step(Idle(ledger))


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
    content: tuple[UserBlock, ...] = (TextBlock(text=run.prompt.text), *run.prompt.images)
    user = UserMessage(content=content, timestamp=taken.now_ms)
    append = AppendEntries(
        token=run.token, entries=(MessageEntry(message=user),), turn_id=run.turn_id
    )
    saving = SavingPrompt(ready, asker)
    step = Step[State](saving).ask("session", append, re=PromptSaved(turn_id=run.turn_id))
    return step.do(*timer_of(ready))


# --- the ledger ----------------------------------------------------------------------------


def early_stop(ledger: Ledger, turn: TurnId) -> EarlyStop | None:
    return next((each for each in ledger.early if each.turn_id == turn), None)


def with_early_stop(ledger: Ledger, turn: TurnId, cause: StopCause) -> Ledger:
    early = (*ledger.early, EarlyStop(turn, cause))[-EARLY_STOPS_KEPT_MAX:]
    return replace(ledger, early=early)


def has_come(ledger: Ledger, turn: TurnId) -> bool:
    """Whether a stop for this turn is late: a turn of another session is over, too."""
    other = turn_session(turn) != ledger.session_id
    return other or turn_number(turn) <= ledger.last_turn


def counted(ledger: Ledger, session_id: SessionId, last_turn: int) -> Ledger:
    """The ledger of a session whose turns up to this number have come."""
    if session_id != ledger.session_id:
        return Ledger(session_id, last_turn)
    last = max(ledger.last_turn, last_turn)
    early = tuple(each for each in ledger.early if turn_number(each.turn_id) > last)
    return Ledger(session_id, last, early)
