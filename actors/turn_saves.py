"""What a turn does when an append of its own was answered: only what is durable counts (TURN-8)."""

from msgspec.structs import replace

from tenure.actors.turn_end import (
    after,
    end_with,
    ended_of,
    finish,
    finish_unsaved,
    never_began,
    not_run,
)
from tenure.actors.turn_fates import waited
from tenure.actors.turn_state import (
    Acting,
    AnswerSaved,
    Busy,
    Ending,
    EndSaved,
    Finished,
    PromptSaved,
    ResultsSaved,
    Run,
    SavingAnswer,
    SavingPrompt,
    State,
    StoppingPrompt,
    StoppingSave,
    StoppingTools,
)
from tenure.actors.turn_steering import before_end, begun
from tenure.actors.turn_stop import lose, settle_tools, unsaved
from tenure.actors.turn_tools import act, mark_saved, on_results_saved
from tenure.messages.base import Refusal, Reply
from tenure.messages.bus import Unhandled
from tenure.messages.content import AssistantMessage, calls_of, text_of
from tenure.messages.entries import MessageEntry
from tenure.messages.queue import PromptDelivered
from tenure.messages.session import Appended
from tenure.messages.turn import ModelAnswered, TurnAccepted, TurnStarted
from tenure.runtime.step import AskId, Step, Taken

Saved = PromptSaved | AnswerSaved | ResultsSaved | EndSaved


def on_saved(state: Busy, saved: Saved, reply: Reply, taken: Taken) -> Step[State]:
    """An append of the current turn was answered: go on only if it is durable."""
    if not isinstance(reply, Appended):  # guard: TURN-8
        refusal = reply if isinstance(reply, Refusal) else Unhandled(message=type(reply).__name__)
        return _on_not_saved(state, refusal, taken)
    match state, saved:
        case SavingPrompt(run, asker), PromptSaved():
            return after(_started(run, asker), begun(run, taken))
        case StoppingPrompt(run, end, drainers, asker), PromptSaved():
            return after(_started(run, asker), end_with(run, end, (), drainers))
        case SavingAnswer(run, message), AnswerSaved():
            return _answered(run, message, taken)
        case StoppingSave(run, end, drainers, owed), AnswerSaved():
            results = tuple(MessageEntry(message=not_run(call, end, taken)) for call in owed)
            return end_with(run, end, results, drainers) if owed else finish(run, end, drainers)
        case Acting(), ResultsSaved(call_ids=call_ids):
            return on_results_saved(state, call_ids, taken)
        case StoppingTools(calls=calls), ResultsSaved(call_ids=call_ids):
            return settle_tools(replace(state, calls=mark_saved(calls, call_ids)))
        case Ending(run, end, drainers), EndSaved():
            return finish(run, end, drainers)
        case _:
            return Step(state)


def _on_not_saved(state: Busy, refusal: Refusal, taken: Taken) -> Step[State]:
    """What the turn said could not be made durable: it ends, and says so."""
    why = refusal.remedy
    match state:
        case SavingPrompt(run, asker):
            return never_began(run, asker, refusal, ended_of(run, Finished("error"), why), ())
        case StoppingPrompt(run, end, drainers, asker):
            return never_began(run, asker, refusal, ended_of(run, end, why), drainers)
        case SavingAnswer(run):
            return finish_unsaved(run, Finished("session_lost", error=why), (), why)
        case StoppingSave(run, end, drainers) | Ending(run, end, drainers):
            return finish_unsaved(run, end, drainers, why)
        case Acting(calls=calls):
            return lose(replace(state, calls=unsaved(calls)), why, taken)
        case StoppingTools(calls=calls):
            return settle_tools(replace(state, calls=unsaved(calls)))
        case _:
            return Step(state)


# --- pure helpers ------------------------------------------------------------------------


def _started(run: Run, asker: AskId | None) -> Step[State]:
    """The prompt is durable: its asker is told, and the start comes before what follows."""
    started = TurnStarted(turn_id=run.turn_id, token=run.token, model=run.model)
    accepted = TurnAccepted(turn_id=run.turn_id, token=run.token)
    step = Step[State](SavingPrompt(run, asker)).answer(asker, accepted).emit(started)
    prompt = waited(run.prompt)
    if prompt is None:
        return step
    return step.emit(PromptDelivered(item_id=prompt.item_id, turn_id=run.turn_id, text=prompt.text))


def _answered(run: Run, message: AssistantMessage, taken: Taken) -> Step[State]:
    """The assistant's message is durable: run its tools, or end."""
    answered = ModelAnswered(
        turn_id=run.turn_id, text=text_of(message), model=message.model, usage=message.usage
    )
    said = Step[State](SavingAnswer(run, message)).emit(answered)
    if calls_of(message):
        return after(said, act(run, message, taken))
    end = Finished("max_tokens" if message.stop_reason == "length" else "end_turn")
    return after(said, before_end(run, end, taken))
