"""TurnActor: one turn at a time, from the prompt to its end, and every way to stop it.

    Idle -> Preparing -> SavingPrompt -> Calling <-> Retrying
    Calling -> SavingAnswer -> Acting -> Calling ... -> Ending -> Idle
    any of these -> Stopping... -> Ending -> Idle      a stop
    ... -> Drained -> Idle                             a drain, before a swap

ARCHITECTURE.md, section TurnActor.
"""

from msgspec.structs import replace

from tenure.actors.turn_end import (
    EARLY_STOPS_KEPT_MAX,
    begin,
    begin_stop,
    end_with,
    finish,
    go_on,
    not_run,
    settle_tools,
    stop,
)
from tenure.actors.turn_model import call_model, on_model_done, on_model_failed
from tenure.actors.turn_state import (
    Acting,
    AnswerSaved,
    Call,
    CallDecided,
    Calling,
    CallsWereSettled,
    Done,
    Drained,
    EarlyStop,
    Ending,
    EndSaved,
    Finished,
    Idle,
    Ledger,
    Preparing,
    Prompt,
    PromptSaved,
    Recovering,
    ResultsSaved,
    Retrying,
    Run,
    Running,
    SavingAnswer,
    SavingPrompt,
    State,
    Stopped,
    StoppingModel,
    StoppingPrompt,
    StoppingSave,
    StoppingTools,
    Undecided,
)
from tenure.actors.turn_tools import (
    act,
    find,
    mark_saved,
    on_decided,
    on_results_saved,
    on_tool_outcome,
    result_of,
)
from tenure.messages.approval import (
    CallAllowed,
    CallDenied,
    CallStopped,
    DecisionTaken,
)
from tenure.messages.base import Message, Refusal, Reply
from tenure.messages.bus import Answered, OwnerStarted, Unhandled
from tenure.messages.content import (
    AssistantMessage,
    TextBlock,
    Usage,
    UserBlock,
    UserMessage,
    calls_of,
    text_of,
)
from tenure.messages.entries import MessageEntry
from tenure.messages.session import Appended, AppendEntries, CallsSettled, SettleCalls
from tenure.messages.tokens import TurnId, turn_number, turn_session
from tenure.messages.turn import (
    AbandonDrain,
    AttachSession,
    DrainTurn,
    GetTurn,
    ModelAnswered,
    ModelCallDone,
    ModelCallFailed,
    ModelDelta,
    ModelUnavailable,
    PromptEmpty,
    PromptTooLarge,
    RunTurn,
    StopActiveTurn,
    StopTurn,
    TextDelta,
    ThinkingDelta,
    ToolCallDone,
    ToolCallFailed,
    TurnAccepted,
    TurnBusy,
    TurnDrained,
    TurnEnded,
    TurnNotPrepared,
    TurnNotRunning,
    TurnNotStarted,
    TurnPrepared,
    TurnQueued,
    TurnStarted,
    TurnStopping,
    TurnView,
    WaitOver,
)
from tenure.runtime.owner import Owner
from tenure.runtime.step import AskId, Held, Step, Taken

PROMPT_BYTES_MAX = 4 * 1024 * 1024
QUEUED_MAX = 100
"""Prompts that wait behind a running turn; a further one is refused."""

RunOutcome = (
    TurnPrepared
    | TurnNotPrepared
    | ModelDelta
    | ModelCallDone
    | ModelCallFailed
    | ToolCallDone
    | ToolCallFailed
    | WaitOver
)
Saved = PromptSaved | AnswerSaved | ResultsSaved | EndSaved


def turn_step(state: State, message: Message, taken: Taken) -> Step[State]:
    """Decide one message.  Starts and stops first, then what the run waits for."""
    if isinstance(state, Recovering):
        return on_recovering(state, message, taken)
    match message:
        case RunTurn():
            return on_run(state, message, taken)
        case StopTurn():
            return on_stop(state, message, taken)
        case StopActiveTurn(cause=cause):
            if isinstance(state, Idle | Drained):
                return Step[State](state).answer(taken.asker, TurnNotRunning(turn_id=None))
            return stop(state, cause, taken.asker, taken)
        case DrainTurn():
            return on_drain(state, message, taken)
        case AbandonDrain():
            if isinstance(state, Drained):
                return go_on(state.ledger, state.queue)
            return Step[State](state)
        case AttachSession():
            return on_attach(state, message)
        case GetTurn():
            return on_get(state, taken)
        case OwnerStarted(incarnation=incarnation):
            return on_started(state, incarnation)
        case (
            TurnPrepared()
            | TurnNotPrepared()
            | ModelDelta()
            | ModelCallDone()
            | ModelCallFailed()
            | ToolCallDone()
            | ToolCallFailed()
            | WaitOver()
        ):
            return on_outcome(state, message, taken)
        case Answered(re=CallDecided() as decided, reply=reply):
            return on_call_decided(state, decided, reply, taken)
        case Answered(re=PromptSaved() | AnswerSaved() | ResultsSaved() | EndSaved() as saved):
            return on_saved(state, saved, message.reply, taken)
        case _:
            return Step[State](state).answer(taken.asker, Unhandled(message=type(message).__name__))


# --- starts and stops --------------------------------------------------------------------


def on_run(state: State, message: RunTurn, taken: Taken) -> Step[State]:
    """A start whose token the SessionActor has checked."""
    refusal = _unfit(message)
    if refusal is not None:
        return Step(state).answer(taken.asker, refusal)
    prompt = Prompt(message.turn_id, message.token, message.text, message.images, message.model)
    match state:
        case Idle(ledger):
            early = _early(ledger, message.turn_id)
            if early is not None:
                refused = TurnNotStarted(turn_id=message.turn_id, cause=early.cause)
                return Step[State](Idle(_over(ledger, message.turn_id))).answer(
                    taken.asker, refused
                )
            return begin(prompt, taken.asker, ledger, ())
        case Drained() | Recovering():
            # The SessionActor holds starts during a swap: this cannot come from it.
            return Step[State](state).answer(taken.asker, TurnBusy(turn_id=message.turn_id))
        case _:
            run = state.run
            early = _early(run.ledger, message.turn_id)
            if early is not None:
                refused = TurnNotStarted(turn_id=message.turn_id, cause=early.cause)
                return Step[State](state).answer(taken.asker, refused)
            full = len(run.queue) >= QUEUED_MAX
            if message.when_busy == "refuse" or full:  # guard: TURN-1
                return Step[State](state).answer(taken.asker, TurnBusy(turn_id=run.turn_id))
            queued = replace(state, run=replace(run, queue=(*run.queue, prompt)))
            position = len(run.queue) + 1
            return Step[State](queued).answer(
                taken.asker, TurnQueued(turn_id=message.turn_id, position=position)
            )


def on_stop(state: State, message: StopTurn, taken: Taken) -> Step[State]:
    """A stop hits the turn that it names, or none."""
    match state:
        case Idle(ledger) | Drained(ledger):
            return _not_running(state, ledger, message, None, taken)
        case Recovering():
            return Step[State](state).answer(taken.asker, TurnNotRunning(turn_id=None))
        case _:
            run = state.run
            if message.turn_id != run.turn_id:  # guard: TURN-2
                return _stop_queued(state, run, message, taken)
            return stop(state, message.cause, taken.asker, taken)


def on_drain(state: State, message: DrainTurn, taken: Taken) -> Step[State]:
    """Before a swap: stop what runs, keep what waits, and answer when nothing runs."""
    match state:
        case Idle(ledger):
            drained = Drained(ledger, ())
            return Step[State](drained).answer(taken.asker, TurnDrained())
        case Drained(queue=queue):
            texts = tuple(prompt.text for prompt in queue)
            return Step[State](state).answer(taken.asker, TurnDrained(queued=texts))
        case Recovering():
            return Step(Recovering((*state.held, Held(message, taken))))
        case _:
            return begin_stop(state, message.cause, (taken.asker,), taken)


def on_attach(state: State, message: AttachSession) -> Step[State]:
    """The seat's session, perhaps another one: what was held of the old one is over."""
    ledger = Ledger(session_id=message.session_id, last_turn=message.last_turn)
    match state:
        case Idle():
            return Step(Idle(ledger))
        case Drained(queue=queue):
            step = Step[State](Idle(ledger))
            for prompt in queue:
                step = step.emit(
                    TurnEnded(turn_id=prompt.turn_id, stop_reason="stopped", cause="swap")
                )
            return step
        case Recovering():
            return Step(state)
        case _:
            # The same session was opened again under a running turn, whose token is stale
            # now: its next append is refused and ends it.
            return Step(state)


def on_get(state: State, taken: Taken) -> Step[State]:
    name = type(state).__name__
    match state:
        case Idle() | Recovering():
            view = TurnView(state=name, turn_id=None, queued=(), usage=Usage())
        case Drained(queue=queue):
            texts = tuple(prompt.text for prompt in queue)
            view = TurnView(state=name, turn_id=None, queued=texts, usage=Usage())
        case _:
            run = state.run
            view = TurnView(
                state=name,
                turn_id=run.turn_id,
                queued=tuple(prompt.text for prompt in run.queue),
                usage=run.usage,
            )
    return Step[State](state).answer(taken.asker, view)


# --- a restarted owner -------------------------------------------------------------------


def on_started(state: State, incarnation: int) -> Step[State]:
    """The first incarnation has nothing to mend; a later one has its calls settled."""
    if incarnation == 1:
        return Step(state)
    recovering = Step[State](Recovering())
    return recovering.ask("session", SettleCalls(), re=CallsWereSettled())


def on_recovering(state: Recovering, message: Message, taken: Taken) -> Step[State]:
    match message:
        case Answered(re=CallsWereSettled(), reply=reply):
            ledger = Ledger()
            if isinstance(reply, CallsSettled):
                ledger = Ledger(reply.token.session_id, reply.last_turn)
            step = Step[State](Idle(ledger))
            for held in state.held:
                step = step.then(turn_step, held.message, held.taken)
            return step
        case RunTurn() | DrainTurn():
            return Step(Recovering((*state.held, Held(message, taken))))
        case StopTurn() | StopActiveTurn():
            return Step[State](state).answer(taken.asker, TurnNotRunning(turn_id=None))
        case GetTurn():
            return on_get(state, taken)
        case AttachSession(session_id=session_id, last_turn=last_turn):
            return Step[State](Idle(Ledger(session_id, last_turn)))
        case _:
            return Step[State](state)


# --- what the run waits for ----------------------------------------------------------------


def on_outcome(state: State, outcome: RunOutcome, taken: Taken) -> Step[State]:
    """Only the current turn's outcomes count."""
    if isinstance(state, Idle | Drained | Recovering):
        return Step(state)
    if outcome.turn_id != state.run.turn_id:  # guard: TURN-4
        return Step(state)
    match state, outcome:
        case Preparing(run, asker), TurnPrepared():
            return _save_prompt(run, asker, outcome, taken)
        case Preparing(run, asker), TurnNotPrepared(model=model, reason=reason):
            return _cannot_start(run, asker, ModelUnavailable(model=model, reason=reason))
        case Calling(run), ModelDelta(call=call) if call == run.calls:
            return Step[State](state).emit(_delta(outcome))
        case ((Calling(run) | StoppingModel(run)), ModelCallDone(call=call)) if call == run.calls:
            return on_model_done(state, outcome.message, taken)
        case ((Calling(run) | StoppingModel(run)), ModelCallFailed(call=call)) if call == run.calls:
            return on_model_failed(state, outcome, taken)
        case Retrying(run, attempt), WaitOver(call=call) if call == run.calls:
            return call_model(run, attempt)
        case Acting(), ToolCallDone() | ToolCallFailed():
            return _tool_ended(state, outcome, taken)
        case StoppingTools(), ToolCallDone() | ToolCallFailed():
            return _tool_stopped(state, outcome, taken)
        case _:
            return Step(state)


def on_call_decided(state: State, decided: CallDecided, reply: Reply, taken: Taken) -> Step[State]:
    """A decision takes effect on its own call of the current turn, or is superseded."""
    if isinstance(state, Acting) and state.run.turn_id == decided.turn_id:
        call = find(state.calls, decided.call_id)
        if call is not None and isinstance(call.status, Undecided):
            if isinstance(reply, CallStopped):
                step = stop(state, "approval", None, taken)
                return step.tell(
                    "approval", DecisionTaken(request_id=reply.request_id, fate="applied")
                )
            return on_decided(state, call, reply, taken)
    if isinstance(reply, CallAllowed | CallDenied | CallStopped) and reply.request_id is not None:
        late = DecisionTaken(request_id=reply.request_id, fate="superseded")
        return Step[State](state).tell("approval", late)
    return Step(state)


def on_saved(state: State, saved: Saved, reply: Reply, taken: Taken) -> Step[State]:
    """An append of the current turn was answered: go on only if it is durable."""
    if isinstance(state, Idle | Drained | Recovering) or state.run.turn_id != saved.turn_id:
        return Step(state)
    if not isinstance(reply, Appended):  # guard: TURN-8
        return _not_saved(state, reply)
    match state, saved:
        case SavingPrompt(run, asker), PromptSaved():
            return _started(call_model(run, attempt=1), run, asker)
        case StoppingPrompt(run, cause, drainers, asker), PromptSaved():
            return _started(finish(run, Stopped(cause), drainers), run, asker)
        case SavingAnswer(run, message), AnswerSaved():
            return _answered(run, message, taken)
        case StoppingSave(run, cause, drainers, owed), AnswerSaved():
            results = tuple(MessageEntry(message=not_run(call, cause, taken)) for call in owed)
            return end_with(run, Stopped(cause), results, drainers)
        case Acting(), ResultsSaved(call_ids=call_ids):
            return on_results_saved(state, call_ids, taken)
        case StoppingTools(calls=calls), ResultsSaved(call_ids=call_ids):
            return settle_tools(replace(state, calls=mark_saved(calls, call_ids)))
        case Ending(run, end, drainers), EndSaved():
            return finish(run, end, drainers)
        case _:
            return Step(state)


# --- pure helpers ------------------------------------------------------------------------


def _unfit(message: RunTurn) -> Refusal | None:
    if not message.text.strip() and not message.images:
        return PromptEmpty()
    size = len(message.text.encode("utf-8", "surrogatepass"))
    if size > PROMPT_BYTES_MAX:
        return PromptTooLarge(bytes_given=size, bytes_max=PROMPT_BYTES_MAX)
    return None


def _early(ledger: Ledger, turn: TurnId) -> EarlyStop | None:
    return next((each for each in ledger.early if each.turn_id == turn), None)


def _over(ledger: Ledger, turn: TurnId) -> Ledger:
    """A turn that was stopped before it began is over, like one that ran."""
    early = tuple(each for each in ledger.early if each.turn_id != turn)
    last = max(ledger.last_turn, turn_number(turn))
    return Ledger(turn_session(turn), last, early)


def _not_running(
    state: State, ledger: Ledger, message: StopTurn, running: TurnId | None, taken: Taken
) -> Step[State]:
    """Too late, or too early: an early stop is remembered and answers its start."""
    same = turn_session(message.turn_id) == ledger.session_id
    if not same or turn_number(message.turn_id) <= ledger.last_turn:
        return Step(state).answer(taken.asker, TurnNotRunning(turn_id=running))
    early = (*ledger.early, EarlyStop(message.turn_id, message.cause))[-EARLY_STOPS_KEPT_MAX:]
    kept = replace(ledger, early=early)
    if isinstance(state, Idle | Drained):
        remembered: State = replace(state, ledger=kept)
    elif isinstance(state, Recovering):
        remembered = state
    else:
        remembered = replace(state, run=replace(state.run, ledger=kept))
    return Step(remembered).answer(taken.asker, TurnStopping(turn_id=message.turn_id))


def _stop_queued(state: State, run: Run, message: StopTurn, taken: Taken) -> Step[State]:
    """A stop for a prompt that waits takes it out of the queue; the running turn goes on."""
    named = tuple(prompt for prompt in run.queue if prompt.turn_id == message.turn_id)
    if not named or isinstance(state, Idle | Drained | Recovering):
        return _not_running(state, run.ledger, message, run.turn_id, taken)
    rest = tuple(prompt for prompt in run.queue if prompt.turn_id != message.turn_id)
    step = Step[State](replace(state, run=replace(run, queue=rest)))
    ended = TurnEnded(turn_id=message.turn_id, stop_reason="stopped", cause=message.cause)
    texts = tuple(prompt.text for prompt in named)
    return step.emit(ended).answer(
        taken.asker, TurnStopping(turn_id=message.turn_id, dropped=texts)
    )


def _save_prompt(
    run: Run, asker: AskId | None, prepared: TurnPrepared, taken: Taken
) -> Step[State]:
    ready = replace(run, model=prepared.model, system=prepared.system, tools=prepared.tools)
    prompt = run.prompt
    content: tuple[UserBlock, ...] = (TextBlock(text=prompt.text), *prompt.images)
    user = UserMessage(content=content, timestamp=taken.now_ms)
    append = AppendEntries(
        token=run.token, entries=(MessageEntry(message=user),), turn_id=run.turn_id
    )
    saving = SavingPrompt(ready, asker)
    return Step[State](saving).ask("session", append, re=PromptSaved(turn_id=run.turn_id))


def _started(step: Step[State], run: Run, asker: AskId | None) -> Step[State]:
    """The prompt is durable: its asker is told, and the start comes before what follows."""
    started = TurnStarted(turn_id=run.turn_id, token=run.token, model=run.model)
    accepted = TurnAccepted(turn_id=run.turn_id, token=run.token)
    first = Step[State](step.state).answer(asker, accepted).emit(started)
    return Step(
        step.state,
        first.replies + step.replies,
        first.events + step.events,
        step.mail,
        step.effects,
    )


def _answered(run: Run, message: AssistantMessage, taken: Taken) -> Step[State]:
    """The assistant's message is durable: run its tools, or end."""
    answered = ModelAnswered(
        turn_id=run.turn_id, text=text_of(message), model=message.model, usage=message.usage
    )
    if calls_of(message):
        step = act(run, message, taken)
    elif message.stop_reason == "length":
        step = finish(run, Finished("max_tokens"), ())
    else:
        step = finish(run, Finished("end_turn"), ())
    return Step(step.state, step.replies, (answered, *step.events), step.mail, step.effects)


def _tool_ended(state: Acting, outcome: ToolCallDone | ToolCallFailed, taken: Taken) -> Step[State]:
    call = find(state.calls, outcome.call_id)
    if call is None or not isinstance(call.status, Running):
        return Step(state)
    return on_tool_outcome(state, call, outcome, taken)


def _tool_stopped(
    state: StoppingTools, outcome: ToolCallDone | ToolCallFailed, taken: Taken
) -> Step[State]:
    call = find(state.calls, outcome.call_id)
    if call is None or not isinstance(call.status, Running):
        return Step(state)
    done = replace(call, status=Done(result_of(call, outcome, taken)))
    calls: tuple[Call, ...] = tuple(
        done if each.call_id == done.call_id else each for each in state.calls
    )
    return settle_tools(replace(state, calls=calls))


def _cannot_start(run: Run, asker: AskId | None, refusal: Refusal) -> Step[State]:
    """Nothing was written: the asker is told why, and what waits is tried."""
    step = go_on(run.ledger, run.queue)
    if asker is not None:
        return step.answer(asker, refusal)
    ended = TurnEnded(turn_id=run.turn_id, stop_reason="error", error=refusal.remedy)
    return Step(step.state, step.replies, (ended, *step.events), step.mail, step.effects)


def _not_saved(state: State, reply: Reply) -> Step[State]:
    """What the turn said could not be made durable: it ends here, and says so."""
    why = reply.remedy if isinstance(reply, Refusal) else f"unexpected {type(reply).__name__}"
    match state:
        case SavingPrompt(run, asker) if isinstance(reply, Refusal):
            return _cannot_start(run, asker, reply)
        case StoppingPrompt(run, cause, drainers, asker) if isinstance(reply, Refusal):
            step = finish(run, Stopped(cause), drainers, error=why)
            return step.answer(asker, reply)
        case Ending(run, end, drainers):
            return finish(run, end, drainers, error=why)
        case StoppingSave(run, cause, drainers) | StoppingTools(run, cause, drainers):
            return finish(run, Stopped(cause), drainers, error=why)
        case SavingAnswer(run) | Acting(run):
            step = finish(run, Finished("session_lost", error=why), ())
            if isinstance(state, Acting):
                for call in state.calls:
                    if isinstance(call.status, Running):
                        step = step.cancel(f"tool {run.turn_id} {call.call_id}")
            return step
        case _:
            return Step(state)


def _delta(delta: ModelDelta) -> TextDelta | ThinkingDelta:
    if delta.kind == "thinking":
        return ThinkingDelta(turn_id=delta.turn_id, text=delta.text)
    return TextDelta(turn_id=delta.turn_id, text=delta.text)


class TurnActor(Owner):
    step = staticmethod(turn_step)
    first = Idle
