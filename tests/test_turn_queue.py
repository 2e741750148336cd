"""What waits in a seat: durable first, delivered once, changed, given back, held."""

import pytest
from steps import A, B, DrivenSession, DrivenTurn, answer, call, token, tool

from tenure.messages.content import TextBlock
from tenure.messages.entries import CustomEntry, MessageEntry
from tenure.messages.queue import (
    DELIVERED_KEY,
    QUEUE_BYTES_MAX,
    AdmitPrompt,
    ArmQueue,
    Cancel,
    CancelPrompt,
    ChangeQueue,
    ContinueTurn,
    Edit,
    EditPrompt,
    FollowUpTurn,
    GetQueue,
    Move,
    MovePrompt,
    NothingToResume,
    PromptCancelled,
    PromptDelivered,
    PromptEdited,
    PromptGone,
    PromptMoved,
    PromptQueued,
    PromptReleased,
    PromptReturned,
    PromptSuspended,
    QueueChanged,
    QueuedPrompt,
    QueueFull,
    QueueItem,
    QueueReleased,
    QueueView,
    RedirectTurn,
    ReleaseQueue,
    ResumeTurn,
    RunPrompt,
    SteerTurn,
)
from tenure.messages.session import AppendEntries, AppendFailed, CallsSettled, SettleCalls, Stale
from tenure.messages.tokens import QueueItemId, turn_id
from tenure.messages.turn import (
    TURN_ENTRY,
    AbandonDrain,
    AttachSession,
    DrainTurn,
    RunTurn,
    StopActiveTurn,
    TurnAccepted,
    TurnBusy,
    TurnNotStarted,
    TurnQueued,
    TurnStarted,
    TurnStopping,
)
from tenure.messages.turn_effects import CallModel, PrepareTurn
from tenure.runtime.step import AskId


def queue_in(turn: DrivenTurn) -> tuple[QueueItem, ...]:
    view = turn.reply_to(turn.ask(GetQueue()))
    assert isinstance(view, QueueView)
    return view.items


def texts(turn: DrivenTurn) -> list[str]:
    return [item.text for item in queue_in(turn)]


def item_of(turn: DrivenTurn, asker: AskId) -> QueueItemId:
    reply = turn.reply_to(asker)
    assert isinstance(reply, TurnQueued), reply
    return reply.item_id


def change(turn: DrivenTurn, what: Edit | Move | Cancel) -> AskId:
    return turn.ask(ChangeQueue(token=token(), change=what))


def prompts_written(turn: DrivenTurn) -> list[str]:
    """What was said to the model, in order."""
    said = []
    for message in turn.written:
        if message.__struct_config__.tag == "user":
            said.append(message.content[0].text)
    return said


def waits(text: str, delivery: str = "next_turn") -> QueuedPrompt:
    return QueuedPrompt(item_id=QueueItemId(text), delivery=delivery, text=text)  # type: ignore[arg-type]


# --- accepted once durable -------------------------------------------------------------------


@pytest.mark.witness("TURN-10")
def test_prompt_that_waits_is_accepted_only_once_it_is_durable() -> None:
    turn = DrivenTurn().to_calling()
    asker = turn.run("second", when_busy="queue")
    assert turn.reply_to(asker) is None
    assert texts(turn) == []
    turn.noted()
    assert isinstance(turn.reply_to(asker), TurnQueued)
    assert texts(turn) == ["second"]
    assert [each.text for each in turn.said(PromptQueued)] == ["second"]


@pytest.mark.witness("TURN-10")
def test_prompt_that_could_not_be_written_is_refused_and_never_starts() -> None:
    turn = DrivenTurn().to_calling()
    asker = turn.run("second", when_busy="queue")
    turn.refused(AppendFailed(reason="no space"))
    assert turn.reply_to(asker) == AppendFailed(reason="no space")
    turn.says(answer())
    turn.saved()
    assert (turn.name, len(turn.wanted(PrepareTurn))) == ("Idle", 1)


def test_prompt_that_becomes_durable_after_the_turn_starts_the_next() -> None:
    turn = DrivenTurn().to_calling()
    asker = turn.run("late", when_busy="follow_up")
    turn.says(answer())
    # The answer's append is behind the prompt's.
    turn.noted()
    turn.saved()
    assert isinstance(turn.reply_to(asker), TurnQueued)
    assert turn.name in ("Delivering", "Preparing")


def test_queue_refuses_what_is_too_much_by_its_bytes() -> None:
    turn = DrivenTurn().to_calling()
    text = "x" * (4 * 1024 * 1024)
    for _ in range(QUEUE_BYTES_MAX // len(text)):
        turn.queue(text)
    refusal = turn.reply_to(turn.queue("one byte more"))
    assert isinstance(refusal, QueueFull)
    assert refusal.bytes_given > refusal.bytes_max == QUEUE_BYTES_MAX


# --- steer and follow-up -----------------------------------------------------------------------


def test_steer_is_said_behind_the_tools_of_a_step_and_before_the_next_call() -> None:
    turn = DrivenTurn(tool("read")).to_acting(call("c1"))
    steer = turn.queue("look at b instead", "steer")
    assert isinstance(turn.reply_to(steer), TurnQueued)
    turn.allows("c1")
    turn.runs("c1")
    calls = len(turn.wanted(CallModel))
    turn.saved()
    assert (turn.name, len(turn.wanted(CallModel))) == ("Delivering", calls)
    turn.saved()
    assert (turn.name, len(turn.wanted(CallModel))) == ("Calling", calls + 1)
    assert prompts_written(turn) == ["go", "look at b instead"]
    assert [each.turn_id for each in turn.said(PromptDelivered)] == [turn_id(A, 1)]
    assert len(turn.said(TurnStarted)) == 1


def test_steer_keeps_a_turn_going_that_would_stop() -> None:
    turn = DrivenTurn().to_calling()
    turn.queue("and b?", "steer")
    turn.says(answer())
    turn.saved()
    assert turn.ended == []
    turn.saved()
    assert turn.name == "Calling"
    turn.says(answer())
    turn.saved()
    assert [each.stop_reason for each in turn.ended] == ["end_turn"]


def test_follow_up_waits_until_the_turn_would_stop() -> None:
    turn = DrivenTurn(tool("read")).to_acting(call("c1"))
    turn.queue("then summarise", "follow_up")
    turn.allows("c1")
    turn.runs("c1")
    turn.saved()
    assert (turn.name, texts(turn)) == ("Calling", ["then summarise"])
    turn.says(answer())
    turn.saved()
    turn.saved()
    assert (turn.name, prompts_written(turn)) == ("Calling", ["go", "then summarise"])
    assert turn.ended == []


def test_steers_are_said_one_at_a_time_and_before_follow_ups() -> None:
    turn = DrivenTurn().to_calling()
    turn.queue("f", "follow_up")
    turn.queue("s1", "steer")
    turn.queue("s2", "steer")
    for _ in range(3):
        turn.says(answer())
        turn.saved()
        turn.saved()
    assert prompts_written(turn) == ["go", "s1", "s2", "f"]
    assert len(turn.wanted(CallModel)) == 4


@pytest.mark.parametrize("when_busy", ["steer", "follow_up", "redirect"])
def test_what_is_said_while_nothing_runs_starts_a_turn(when_busy: str) -> None:
    turn = DrivenTurn()
    asker = turn.run("hello", when_busy=when_busy)
    turn.prepared()
    turn.saved()
    assert isinstance(turn.reply_to(asker), TurnAccepted)


def test_delivery_that_cannot_be_written_ends_the_turn_and_holds_what_was_to_be_said() -> None:
    turn = DrivenTurn().to_calling()
    turn.queue("and b?", "steer")
    turn.says(answer())
    turn.saved()
    turn.refused(AppendFailed(reason="no space"))
    assert [each.text for each in turn.said(PromptSuspended)] == ["and b?"]
    turn.answer(SettleCalls, CallsSettled(token=token(), settled=0, last_turn=1))
    assert (turn.name, [item.standing for item in queue_in(turn)]) == ("Idle", ["held"])


def test_what_was_to_be_said_to_a_turn_that_failed_is_held_and_prompts_go_on() -> None:
    turn = DrivenTurn().to_calling()
    turn.queue("and b?", "steer")
    turn.queue("next", "queue")
    turn.fails("auth")
    turn.saved()
    assert [each.stop_reason for each in turn.ended] == ["error"]
    assert [each.text for each in turn.said(PromptSuspended)] == ["and b?"]
    assert turn.wanted(PrepareTurn)[-1].turn_id == turn_id(A, 3)


@pytest.mark.witness("TURN-10")
def test_entry_that_says_a_prompt_ends_its_wait() -> None:
    turn = DrivenTurn().to_calling()
    item = item_of(turn, turn.queue("and b?", "steer"))
    turn.says(answer())
    turn.saved()
    append, _ = turn.waiting_for(AppendEntries)
    assert append.idempotency_key == f"{DELIVERED_KEY}{item}"
    assert isinstance(append.entries[0], MessageEntry)


# --- redirect ------------------------------------------------------------------------------------


def redirected() -> DrivenTurn:
    turn = DrivenTurn().to_calling()
    turn.queue("first", "redirect")
    return turn


def fail_cancelled(turn: DrivenTurn, number: int = 1) -> None:
    turn.fails("cancelled", number, partial=(TextBlock(text="half"),))
    turn.saved()


@pytest.mark.witness("TURN-5")
def test_redirects_are_delivered_in_their_order() -> None:
    turn = redirected()
    turn.queue("second", "redirect")
    turn.queue("waits", "queue")
    assert texts(turn) == ["first", "second", "waits"]
    fail_cancelled(turn)
    turn.prepared(2)
    turn.saved()  # "first" is durable, and so is that the next redirect took its turn's place
    turn.saved()
    turn.prepared(3)
    turn.saved()
    assert prompts_written(turn) == ["go", "first", "second"]
    assert [(each.turn_id, each.cause) for each in turn.ended] == [
        (turn_id(A, 1), "redirect"),
        (turn_id(A, 2), "redirect"),
    ]
    assert (turn.name, texts(turn)) == ("Calling", ["waits"])


def test_redirect_stops_the_turn_only_once_it_is_durable() -> None:
    turn = DrivenTurn().to_calling()
    turn.run("other", when_busy="redirect")
    assert turn.cancelled == []
    turn.noted()
    assert turn.cancelled == [turn.wanted(CallModel)[0].key]
    assert turn.name == "StoppingModel"


@pytest.mark.witness("TURN-5")
def test_prompt_that_is_due_comes_in_again_and_a_stale_one_goes_back() -> None:
    turn = redirected()
    turn.lets_in = False
    fail_cancelled(turn)
    start, _ = turn.waiting_for(AdmitPrompt)
    assert (start.turn_id, start.token, turn.name) == (turn_id(A, 2), token(), "Reentering")
    turn.answer(AdmitPrompt, Stale(current=token(A, 2)))
    assert [each.text for each in turn.said(PromptReturned)] == ["first"]
    assert [each.turn_id for each in turn.ended] == [turn_id(A, 1), turn_id(A, 2)]
    assert (turn.name, len(turn.wanted(PrepareTurn))) == ("Idle", 1)


@pytest.mark.witness("TURN-5")
def test_prompt_that_comes_in_late_or_twice_starts_nothing() -> None:
    turn = redirected()
    turn.lets_in = False
    fail_cancelled(turn)
    start, _ = turn.waiting_for(AdmitPrompt)
    turn.ask(DrainTurn())
    late = RunPrompt(item_id=start.item_id, turn_id=start.turn_id, token=start.token)
    assert turn.reply_to(turn.ask(late)) == PromptGone(item_id=start.item_id)
    turn.tell(AbandonDrain())
    turn.let_in()
    assert turn.name == "Preparing"
    assert turn.reply_to(turn.ask(late)) == PromptGone(item_id=start.item_id)
    assert len(turn.wanted(PrepareTurn)) == 2


def test_redirect_while_the_first_prompt_is_written_lets_it_be_written() -> None:
    turn = DrivenTurn()
    asker = turn.run()
    turn.prepared()
    turn.queue("other", "redirect")
    turn.saved()
    assert isinstance(turn.reply_to(asker), TurnAccepted)
    assert turn.wanted(CallModel) == []
    turn.saved()
    assert [each.cause for each in turn.ended] == ["redirect"]
    assert turn.wanted(PrepareTurn)[-1].turn_id == turn_id(A, 2)


# --- stops and swaps ------------------------------------------------------------------------------


@pytest.mark.witness("TURN-3")
def test_stop_drops_every_kind_and_gives_the_texts_back() -> None:
    turn = DrivenTurn().to_calling()
    for text, kind in (("s", "steer"), ("f", "follow_up"), ("q", "queue")):
        turn.queue(text, kind)  # type: ignore[arg-type]
    stopping = turn.stop()
    assert isinstance(stopping, TurnStopping)
    assert stopping.dropped == ("s", "f", "q")
    assert [each.text for each in turn.said(PromptReturned)] == ["s", "f", "q"]
    fail_cancelled(turn)
    assert (turn.name, texts(turn)) == ("Idle", [])


def test_stop_refuses_what_is_still_on_its_way_to_the_disk() -> None:
    turn = DrivenTurn().to_calling()
    asker = turn.run("late", when_busy="steer")
    turn.stop()
    assert turn.reply_to(asker) == TurnNotStarted(turn_id=turn_id(A, 2), cause="user")
    turn.noted()
    assert texts(turn) == []


def test_stop_is_written_so_that_it_does_not_look_like_a_crash() -> None:
    turn = DrivenTurn(tool("read")).to_acting(call("c1"))
    turn.stop()
    append, _ = turn.waiting_for(AppendEntries)
    last = append.entries[-1]
    assert isinstance(last, CustomEntry)
    assert (last.custom_type, last.data["phase"], last.data["cause"]) == (
        TURN_ENTRY,
        "stopped",
        "user",
    )


def test_cancel_without_an_id_while_a_prompt_comes_in_drops_it() -> None:
    turn = redirected()
    turn.lets_in = False
    fail_cancelled(turn)
    reply = turn.reply_to(turn.ask(StopActiveTurn(cause="user")))
    assert reply == TurnStopping(turn_id=turn_id(A, 2), dropped=("first",))
    assert turn.name == "Idle"


@pytest.mark.witness("TURN-5")
def test_swap_gives_back_what_was_not_delivered() -> None:
    turn = redirected()
    turn.queue("second", "redirect")
    drain = turn.ask(DrainTurn())
    fail_cancelled(turn)
    held = turn.reply_to(drain)
    back = tuple(each.item_id for each in held.queued)  # type: ignore[union-attr]
    turn.tell(AttachSession(token=token(B), last_turn=0, returned=back))
    assert [each.text for each in turn.said(PromptReturned)] == ["first", "second"]
    assert (turn.name, texts(turn)) == ("Idle", [])


def test_swap_within_the_session_writes_down_what_it_gave_back() -> None:
    turn = redirected()
    turn.ask(DrainTurn())
    fail_cancelled(turn)
    (item,) = queue_in(turn)
    found = QueuedPrompt(item_id=item.item_id, delivery=item.delivery, text=item.text)
    turn.tell(
        AttachSession(token=token(A, 2), last_turn=2, queue=(found,), returned=(item.item_id,))
    )
    append = turn.sent(AppendEntries)[-1]
    assert append.token == token(A, 2)
    assert append.entries[0].data["fate"] == "returned"  # type: ignore[union-attr]
    assert texts(turn) == []


# --- held -----------------------------------------------------------------------------------------


@pytest.mark.witness("TURN-10")
def test_queue_that_is_found_in_a_session_is_held_and_nothing_starts() -> None:
    turn = DrivenTurn()
    turn.tell(AttachSession(token=token(), last_turn=0, queue=(waits("one"), waits("two"))))
    assert (turn.name, turn.wanted(PrepareTurn)) == ("Idle", [])
    assert [item.standing for item in queue_in(turn)] == ["held", "held"]
    turn.run("now")
    turn.prepared()
    turn.saved()
    turn.says(answer())
    turn.saved()
    assert (turn.name, texts(turn)) == ("Idle", ["one", "two"])


def test_release_starts_what_was_held_in_its_order() -> None:
    turn = DrivenTurn()
    turn.tell(AttachSession(token=token(), last_turn=4, queue=(waits("one"), waits("two"))))
    released = turn.reply_to(turn.ask(ArmQueue(token=token(), last_turn=4)))
    assert released == QueueReleased(released=2)
    assert len(turn.said(PromptReleased)) == 2
    turn.prepared(5)
    turn.saved()
    turn.says(answer(), 5)
    turn.saved()
    turn.prepared(6)
    turn.saved()
    assert prompts_written(turn) == ["one", "two"]


def test_restarted_owner_holds_what_its_session_says_to_wait() -> None:
    turn = DrivenTurn()
    from tenure.messages.bus import OwnerStarted

    turn.tell(OwnerStarted(incarnation=2))
    settled = CallsSettled(token=token(), settled=0, last_turn=3, queue=(waits("one"),))
    turn.answer(SettleCalls, settled)
    assert (turn.name, [item.standing for item in queue_in(turn)]) == ("Idle", ["held"])


def test_session_that_is_opened_again_ends_the_streams_of_what_it_holds() -> None:
    turn = DrivenTurn().to_calling()
    item = item_of(turn, turn.queue("second"))
    found = QueuedPrompt(item_id=item, delivery="next_turn", text="second")
    turn.tell(AttachSession(token=token(A, 2), last_turn=2, queue=(found,)))
    ended = [each for each in turn.ended if each.turn_id == turn_id(A, 2)]
    assert [each.stop_reason for each in ended] == ["session_lost"]
    assert [item.standing for item in queue_in(turn)] == ["held"]


def test_prompt_that_cannot_start_is_held() -> None:
    from tenure.messages.turn_effects import TurnNotPrepared

    turn = DrivenTurn().to_calling()
    turn.queue("second")
    turn.says(answer())
    turn.saved()
    turn.tell(TurnNotPrepared(turn_id=turn_id(A, 2), model="acme", reason="no key"))
    assert [each.stop_reason for each in turn.ended] == ["end_turn", "error"]
    assert [(item.text, item.standing) for item in queue_in(turn)] == [("second", "held")]


# --- changes --------------------------------------------------------------------------------------


def test_edit_counts_once_it_is_durable() -> None:
    turn = DrivenTurn().to_calling()
    item = item_of(turn, turn.queue("second"))
    asker = change(turn, Edit(item_id=item, text="better"))
    assert (turn.reply_to(asker), texts(turn)) == (None, ["second"])
    turn.noted()
    assert turn.reply_to(asker) == QueueChanged(item_id=item, text="better")
    assert (texts(turn), len(turn.said(PromptEdited))) == (["better"], 1)


def test_move_changes_the_order_in_which_prompts_start() -> None:
    turn = DrivenTurn().to_calling()
    turn.queue("a")
    item = item_of(turn, turn.queue("b"))
    asker = change(turn, Move(item_id=item, position=1))
    turn.noted()
    assert turn.reply_to(asker) == QueueChanged(item_id=item, text="b")
    assert (texts(turn), [each.position for each in turn.said(PromptMoved)]) == (["b", "a"], [1])


def test_prompt_that_is_taken_out_cannot_start_while_that_is_written() -> None:
    turn = DrivenTurn().to_calling()
    item = item_of(turn, turn.queue("second"))
    asker = change(turn, Cancel(item_id=item))
    turn.says(answer())
    assert texts(turn) == []
    turn.noted()
    assert turn.reply_to(asker) == QueueChanged(item_id=item, text="second")
    turn.saved()
    assert (turn.name, len(turn.said(PromptCancelled))) == ("Idle", 1)


def test_prompt_that_could_not_be_taken_out_waits_where_it_was() -> None:
    turn = DrivenTurn().to_calling()
    turn.queue("a")
    item = item_of(turn, turn.queue("b"))
    turn.queue("c")
    asker = change(turn, Cancel(item_id=item))
    turn.refused(AppendFailed(reason="no space"))
    assert turn.reply_to(asker) == AppendFailed(reason="no space")
    assert texts(turn) == ["a", "b", "c"]


def test_change_of_a_prompt_that_has_gone_says_so() -> None:
    turn = DrivenTurn().to_calling()
    nobody = QueueItemId("nobody")
    for what in (Edit(item_id=nobody, text="x"), Move(item_id=nobody, position=1)):
        assert turn.reply_to(change(turn, what)) == PromptGone(item_id=nobody)
    assert turn.reply_to(change(turn, Cancel(item_id=nobody))) == PromptGone(item_id=nobody)


# --- resume ---------------------------------------------------------------------------------------


def test_resumed_turn_calls_the_model_without_a_new_prompt() -> None:
    turn = DrivenTurn(last_turn=3)
    go_on = ContinueTurn(turn_id=turn_id(A, 4), token=token(), model="", resumes=turn_id(A, 3))
    asker = turn.ask(go_on)
    turn.prepared(4)
    turn.saved()
    assert isinstance(turn.reply_to(asker), TurnAccepted)
    assert (turn.name, turn.written) == ("Calling", [])
    second = ContinueTurn(turn_id=turn_id(A, 5), token=token(), model="", resumes=turn_id(A, 3))
    assert turn.reply_to(turn.ask(second)) == TurnBusy(turn_id=turn_id(A, 4))


# --- through the SessionActor --------------------------------------------------------------------


WISHES = [
    SteerTurn(text="x", token=token(A, 0)),
    FollowUpTurn(text="x", token=token(A, 0)),
    RedirectTurn(text="x", token=token(A, 0)),
    EditPrompt(item_id=QueueItemId("q"), text="x", token=token(A, 0)),
    MovePrompt(item_id=QueueItemId("q"), position=1, token=token(A, 0)),
    CancelPrompt(item_id=QueueItemId("q"), token=token(A, 0)),
    ReleaseQueue(token=token(A, 0)),
    ResumeTurn(token=token(A, 0)),
]


@pytest.mark.witness("TURN-6")
@pytest.mark.witness("SESSION-2")
@pytest.mark.parametrize("wish", WISHES, ids=lambda wish: type(wish).__name__)
def test_wish_for_a_session_that_is_not_current_is_refused(wish: SteerTurn) -> None:
    session = DrivenSession()
    assert session.reply_to(session.ask(wish)) == Stale(current=token())
    assert session.mail == []


@pytest.mark.witness("TURN-5")
def test_prompt_that_is_due_is_let_in_only_while_its_token_is_current() -> None:
    session = DrivenSession()
    item = QueueItemId("q")
    due = AdmitPrompt(item_id=item, turn_id=turn_id(A, 1), token=token())
    asker = session.ask(due)
    assert session.forwarded(RunPrompt) == [
        (RunPrompt(item_id=item, turn_id=turn_id(A, 1), token=token()), asker)
    ]
    stale = AdmitPrompt(item_id=item, turn_id=turn_id(A, 1), token=token(A, 0))
    assert session.reply_to(session.ask(stale)) == Stale(current=token())


def test_each_wish_is_handed_on_with_its_delivery() -> None:
    session = DrivenSession()
    for wish in (SteerTurn(text="a"), FollowUpTurn(text="b"), RedirectTurn(text="c", model="m")):
        session.ask(wish)
    runs = [run for run, _ in session.forwarded(RunTurn)]
    assert [(run.text, run.when_busy, run.model) for run in runs] == [
        ("a", "steer", ""),
        ("b", "follow_up", ""),
        ("c", "redirect", "m"),
    ]
    assert [run.turn_id for run in runs] == [turn_id(A, number) for number in (1, 2, 3)]


def test_resume_is_handed_on_only_where_a_turn_was_interrupted() -> None:
    session = DrivenSession()
    assert session.reply_to(session.ask(ResumeTurn())) == NothingToResume()
