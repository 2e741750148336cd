"""The queue of a seat: how prompts come to wait, change, are let go and come in again.

A change is durable before it is answered, and what waits is delivered once: the
entry that says a prompt also ends its wait (TURN-10).
"""

from msgspec.structs import replace

from tenure.actors.turn_end import after
from tenure.actors.turn_fates import end_stream, end_wait, hold, note_returned, without
from tenure.actors.turn_holdings import ledger_of, queue_of, with_queue
from tenure.actors.turn_ledger import counted
from tenure.actors.turn_start import begin, go_on, unfit
from tenure.actors.turn_state import (
    Busy,
    Idle,
    Preparing,
    Prompt,
    Ready,
    Reentering,
    Resting,
    SavingPrompt,
    State,
    Stopped,
    Stopping,
)
from tenure.actors.turn_steering import redirect_is_due
from tenure.actors.turn_stop import begin_stop
from tenure.actors.turn_waiting import (
    Adding,
    Armed,
    ItemAdded,
    ItemCancelled,
    ItemChanged,
    ItemReentered,
    Kept,
    Queue,
    Queued,
)
from tenure.messages.base import Refusal, Reply
from tenure.messages.bus import Unhandled
from tenure.messages.queue import (
    QUEUE_BYTES_MAX,
    QUEUE_ITEMS_MAX,
    Add,
    ArmQueue,
    Cancel,
    ChangeQueue,
    Delivery,
    Edit,
    Gone,
    Move,
    PromptCancelled,
    PromptEdited,
    PromptGone,
    PromptMoved,
    PromptQueued,
    PromptReleased,
    QueueChanged,
    QueuedPrompt,
    QueueFull,
    QueueItem,
    QueueReleased,
    QueueView,
    RunPrompt,
    entry_of,
    moved,
    place_for,
)
from tenure.messages.session import Appended, AppendEntries, Stale
from tenure.messages.tokens import QueueItemId, turn_id, turn_number, turn_session
from tenure.messages.turn import RunTurn, TurnQueued, WhenBusy
from tenure.runtime.step import Step, Taken

ItemMark = ItemAdded | ItemChanged | ItemCancelled | ItemReentered

DELIVERIES: dict[WhenBusy, Delivery] = {
    "queue": "next_turn",
    "steer": "next_step",
    "follow_up": "turn_end",
    "redirect": "redirect",
}


# --- prompts come to wait ----------------------------------------------------------------


def enqueue(state: Busy | Reentering, message: RunTurn, taken: Taken) -> Step[State]:
    """A prompt that is to wait: it is written first, and answered when it is durable."""
    prompt = QueuedPrompt(
        item_id=QueueItemId(taken.fresh),
        delivery=DELIVERIES[message.when_busy],
        text=message.text,
        images=message.images,
        model=message.model,
        overrides=message.overrides,
    )
    queue = queue_of(state)
    full = over_bounds(queue, prompt.bytes_given, 1)
    if full is not None:
        return Step[State](state).answer(taken.asker, full)
    item = Armed(prompt, message.turn_id, message.token)
    waiting = replace(queue, adding=(*queue.adding, Adding(item, taken.asker)))
    append = AppendEntries(token=message.token, entries=(entry_of(Add(item=prompt)),))
    step = Step[State](with_queue(state, waiting))
    return step.ask("session", append, re=ItemAdded(item_id=prompt.item_id))


def over_bounds(queue: Queue, more_bytes: int, more_items: int) -> QueueFull | None:
    """Whether so much more is too much."""
    prompts = [item.prompt for item in queue.items] + [each.item.prompt for each in queue.adding]
    size = sum(prompt.bytes_given for prompt in prompts) + more_bytes
    if len(prompts) + more_items <= QUEUE_ITEMS_MAX and size <= QUEUE_BYTES_MAX:
        return None
    return QueueFull(
        items=len(prompts),
        items_max=QUEUE_ITEMS_MAX,
        bytes_given=size,
        bytes_max=QUEUE_BYTES_MAX,
    )


def on_added(state: State, mark: ItemAdded, reply: Reply, taken: Taken) -> Step[State]:
    """It waits durably, or was refused; who dropped it meanwhile has answered its asker."""
    queue = queue_of(state)
    found = next((e for e in queue.adding if e.item.prompt.item_id == mark.item_id), None)
    if found is None:
        return Step(state)
    rest = tuple(each for each in queue.adding if each is not found)
    if not isinstance(reply, Appended):  # guard: TURN-10
        refused = Step[State](with_queue(state, replace(queue, adding=rest)))
        return refused.answer(found.asker, _refusal(reply))
    prompt = found.item.prompt
    at = place_for(tuple(item.prompt.delivery for item in queue.items), prompt.delivery)
    items = (*queue.items[:at], found.item, *queue.items[at:])
    queued = TurnQueued(
        turn_id=found.item.turn_id,
        position=at + 1,
        item_id=prompt.item_id,
        delivery=prompt.delivery,
    )
    said = PromptQueued(
        item_id=prompt.item_id, delivery=prompt.delivery, text=prompt.text, position=at + 1
    )
    step = Step[State](with_queue(state, Queue(items, rest))).answer(found.asker, queued)
    return take_up(step.emit(said), taken)


def take_up(step: Step[State], taken: Taken) -> Step[State]:
    """What is due now: the next turn where nothing runs, a redirect where a turn runs."""
    state = step.state
    if isinstance(state, Idle):
        return after(step, go_on(state.ledger, state.queue))
    if isinstance(state, Resting | Preparing | SavingPrompt | Stopping):
        # A turn that is about to begin is made way for when its prompt is durable.
        return step
    if redirect_is_due(state.run.queue):
        return after(step, begin_stop(state, Stopped("redirect"), (), taken))
    return step


# --- changes -----------------------------------------------------------------------------


def on_change(state: Ready, message: ChangeQueue, taken: Taken) -> Step[State]:
    """Change a prompt that waits.  What is taken out is out at once, so that it cannot start."""
    queue, change = queue_of(state), message.change
    at = queue.at(change.item_id)
    if at < 0:
        gone = PromptGone(item_id=change.item_id)
        return Step[State](state).answer(taken.asker, gone)
    item = queue.items[at]
    if isinstance(change, Cancel):
        return _cancel(state, message, item, at, taken)
    if isinstance(change, Edit):
        prompt = item.prompt
        more = replace(prompt, text=change.text).bytes_given - prompt.bytes_given
        refusal = unfit(change.text, prompt.images) or over_bounds(queue, max(more, 0), 0)
        if refusal is not None:
            return Step[State](state).answer(taken.asker, refusal)
    append = AppendEntries(token=message.token, entries=(entry_of(change),))
    return Step[State](state).ask("session", append, re=ItemChanged(taken.asker, change))


def on_changed(state: State, mark: ItemChanged, reply: Reply) -> Step[State]:
    """The change is durable: it counts, unless the prompt has gone meanwhile."""
    queue, change = queue_of(state), mark.change
    at = queue.at(change.item_id)
    if not isinstance(reply, Appended):
        return Step[State](state).answer(mark.asker, _refusal(reply))
    if at < 0:
        return Step[State](state).answer(mark.asker, PromptGone(item_id=change.item_id))
    item = queue.items[at]
    match change:
        case Edit(text=text):
            item = replace(item, prompt=replace(item.prompt, text=text))
            items = (*queue.items[:at], item, *queue.items[at + 1 :])
            step = Step[State](with_queue(state, replace(queue, items=items)))
            step = step.emit(PromptEdited(item_id=change.item_id, text=text))
        case Move(position=position):
            items = moved(queue.items, at, position)
            step = Step[State](with_queue(state, replace(queue, items=items)))
            to = queue_of(step.state).at(change.item_id) + 1
            step = step.emit(PromptMoved(item_id=change.item_id, position=to))
    changed = QueueChanged(item_id=change.item_id, text=item.prompt.text)
    return step.answer(mark.asker, changed)


def on_cancelled(state: State, mark: ItemCancelled, reply: Reply, taken: Taken) -> Step[State]:
    """It is out of the file, too; or it stands there still, and so it waits again."""
    prompt = mark.item.prompt
    if isinstance(reply, Appended):
        changed = QueueChanged(item_id=prompt.item_id, text=prompt.text)
        said = PromptCancelled(item_id=prompt.item_id, text=prompt.text)
        step = Step[State](state).answer(mark.asker, changed).emit(said)
        if isinstance(mark.item, Armed):
            step = end_stream(step, mark.item, "stopped", "user")
        return step
    queue = queue_of(state)
    if queue.at(prompt.item_id) >= 0:  # the session was opened again, and found it
        return Step[State](state).answer(mark.asker, _refusal(reply))
    items = (*queue.items[: mark.at], mark.item, *queue.items[mark.at :])
    back = Step[State](with_queue(state, replace(queue, items=items)))
    return take_up(back.answer(mark.asker, _refusal(reply)), taken)


def on_arm(state: Ready, message: ArmQueue, taken: Taken) -> Step[State]:
    """What is held is due from now on, each with a turn number of its own."""
    queue = queue_of(state)
    session_id, number = message.token.session_id, message.last_turn
    items: list[Armed | Kept] = []
    step = Step[State](state)
    for item in queue.items:
        if isinstance(item, Kept) and number < message.last_turn + QUEUE_ITEMS_MAX:
            number += 1
            step = step.emit(PromptReleased(item_id=item.prompt.item_id))
            items.append(Armed(item.prompt, turn_id(session_id, number), message.token))
        else:
            items.append(item)
    rearmed: State = with_queue(state, replace(queue, items=tuple(items)))
    armed = step.to(rearmed)
    released = QueueReleased(released=number - message.last_turn)
    return take_up(armed.answer(taken.asker, released), taken)


# --- prompts that are due ------------------------------------------------------------------


def on_run_prompt(state: Ready, message: RunPrompt, taken: Taken) -> Step[State]:
    """The SessionActor has compared its token: it begins, if it is still the one that is due."""
    queue = queue_of(state)
    at = queue.at(message.item_id)
    due = isinstance(state, Reentering) and state.item_id == message.item_id
    if not due or at < 0:  # guard: TURN-5
        gone = PromptGone(item_id=message.item_id)
        return Step[State](state).answer(taken.asker, gone)
    waited = queue.items[at].prompt
    prompt = Prompt(
        message.turn_id,
        message.token,
        waited.text,
        waited.images,
        waited.model,
        waited.overrides,
        Queued(waited),
    )
    turn = message.turn_id
    ledger = counted(ledger_of(state), turn_session(turn), turn_number(turn))
    return begin(prompt, taken.asker, ledger, without(queue, message.item_id))


def on_reentered(state: State, mark: ItemReentered, reply: Reply) -> Step[State]:
    """It was not let in: a stale one goes back to its sender, any other is held."""
    if not isinstance(state, Reentering) or state.item_id != mark.item_id:
        return Step(state)
    queue = state.queue
    item = queue.items[queue.at(mark.item_id)]
    assert isinstance(item, Armed)
    if isinstance(reply, Stale):
        then = go_on(state.ledger, without(queue, mark.item_id))
        step = end_wait(Step(then.state), item, "swap")
        if reply.current.session_id == item.token.session_id:
            step = note_returned(step, (mark.item_id,), reply.current)
        return after(step, then)
    why = _refusal(reply).remedy
    items = tuple(Kept(each.prompt) if each is item else each for each in queue.items)
    then = go_on(state.ledger, replace(queue, items=items))
    return after(hold(Step(then.state), item, why), then)


def on_item(state: State, mark: ItemMark, reply: Reply, taken: Taken) -> Step[State]:
    """An ask about one prompt that waits, or waited, is answered."""
    match mark:
        case ItemAdded():
            return on_added(state, mark, reply, taken)
        case ItemChanged():
            return on_changed(state, mark, reply)
        case ItemCancelled():
            return on_cancelled(state, mark, reply, taken)
        case ItemReentered():
            return on_reentered(state, mark, reply)


def with_found(queue: Queue, found: tuple[QueuedPrompt, ...]) -> Queue:
    """The queue with what else the transcript says to wait: held."""
    known = {item.prompt.item_id for item in queue.items}
    known |= {each.item.prompt.item_id for each in queue.adding}
    more = tuple(Kept(each) for each in found if each.item_id not in known)
    return replace(queue, items=(*queue.items, *more))


def view_of(queue: Queue) -> QueueView:
    items = tuple(
        QueueItem(
            item_id=item.prompt.item_id,
            position=at,
            delivery=item.prompt.delivery,
            standing="waiting" if isinstance(item, Armed) else "held",
            text=item.prompt.text,
            images=len(item.prompt.images),
            model=item.prompt.model,
        )
        for at, item in enumerate(queue.items, 1)
    )
    return QueueView(items=items)


# --- pure helpers ------------------------------------------------------------------------


def _cancel(
    state: Ready, message: ChangeQueue, item: Armed | Kept, at: int, taken: Taken
) -> Step[State]:
    item_id = item.prompt.item_id
    rest = without(queue_of(state), item_id)
    record = entry_of(Gone(item_id=item_id, fate="cancelled"))
    append = AppendEntries(token=message.token, entries=(record,))
    change = message.change
    assert isinstance(change, Cancel)
    mark = ItemCancelled(taken.asker, change, item, at)
    step = _next_due(Step[State](with_queue(state, rest)), item_id)
    return step.ask("session", append, re=mark)


def _next_due(step: Step[State], gone: QueueItemId) -> Step[State]:
    """Where the one that was coming in has gone, the next one comes in."""
    state = step.state
    if isinstance(state, Reentering) and state.item_id == gone:
        return after(step, go_on(state.ledger, state.queue))
    return step


def _refusal(reply: Reply) -> Refusal:
    return reply if isinstance(reply, Refusal) else Unhandled(message=type(reply).__name__)
