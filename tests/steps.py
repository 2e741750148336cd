"""For step tests: an owner's step driven by hand, and the messages that it is driven with."""

from typing import Any, Generic, Literal, TypeVar

import msgspec

from tenure.actors.approval import Gate, approval_step
from tenure.actors.session import session_step
from tenure.actors.session_state import Live, Quiet, session_of
from tenure.actors.turn import turn_step
from tenure.actors.turn_ledger import Ledger
from tenure.actors.turn_state import Idle, Reentering
from tenure.messages.approval import (
    Allow,
    AnswerApproval,
    ApprovalRequest,
    ApprovalRequested,
    CallAllowed,
    Choice,
    DecideCall,
    NoteDecision,
    digest_of,
)
from tenure.messages.base import Command, Effect, Event, Message, Reply
from tenure.messages.bus import Answered
from tenure.messages.content import AssistantMessage, TextBlock, ToolCallBlock, UserMessage
from tenure.messages.entries import CustomEntry, EntryBody, MessageEntry
from tenure.messages.limits import Overrides, TurnRules
from tenure.messages.models import FailureKind, ModelFailure, ToolSpec
from tenure.messages.queue import QUEUE_ENTRY, AdmitPrompt, QueuedText, RunPrompt
from tenure.messages.session import (
    Appended,
    AppendEntries,
    Damage,
    GetSession,
    OpenSession,
    SessionNotFound,
    SessionView,
)
from tenure.messages.settings import GetPolicy, Policy
from tenure.messages.tokens import CallId, EntryId, QueueItemId, SessionId, SessionToken, turn_id
from tenure.messages.transcripts import (
    AppendRecords,
    Opened,
    RecordsAppended,
    SeatNoted,
    TranscriptNotOpened,
    TranscriptOpened,
)
from tenure.messages.turn import (
    DrainTurn,
    RunTurn,
    StopCause,
    StopTurn,
    TurnDrained,
    TurnEnded,
    WhenBusy,
)
from tenure.messages.turn_effects import (
    CallModel,
    ModelCallDone,
    ModelCallFailed,
    ToolCallDone,
    TurnPrepared,
)
from tenure.runtime.step import Ask, AskId, Cancel, Forward, Step, StepFunction, Taken

S = TypeVar("S")
C = TypeVar("C", bound=Command)
E = TypeVar("E", bound=Event)
F = TypeVar("F", bound=Effect)

NOW_MS = 1_700_000_000_000
A, B = SessionId("session-a"), SessionId("session-b")


class Driven(Generic[S]):
    """One owner's step and all that it decided so far."""

    def __init__(self, step: StepFunction[S], state: S) -> None:
        self._step = step
        self._taken = 0
        self.state = state
        self.replies: list[tuple[AskId, Reply]] = []
        self.events: list[Event] = []
        self.mail: list[Any] = []
        self.effects: list[Effect] = []
        self._open: list[Ask] = []

    def tell(self, message: Message, asker: AskId | None = None) -> Step[S]:
        """Have a message handled; the last step is given back."""
        self._taken += 1
        taken = Taken(asker, NOW_MS, f"{self._taken:016x}")
        step = self._step(self.state, message, taken)
        self.state = step.state
        self.replies.extend(step.replies)
        self.events.extend(step.events)
        self.mail.extend(step.mail)
        self.effects.extend(step.effects)
        self._open.extend(mail for mail in step.mail if isinstance(mail, Ask))
        return step

    def ask(self, message: Message) -> AskId:
        """Have a message handled that somebody waits for."""
        asker = AskId(1_000 + self._taken)
        self.tell(message, asker)
        return asker

    def reply_to(self, asker: AskId) -> Reply | None:
        """The one answer that this asker got; None for none yet."""
        mine = [reply for who, reply in self.replies if who == asker]
        assert len(mine) <= 1, f"answered {len(mine)} times"
        return mine[0] if mine else None

    def waiting_for(self, kind: type[C]) -> tuple[C, msgspec.Struct]:
        """The oldest open ask of this kind, and what the owner wrote on it."""
        for each in self._open:
            if isinstance(each.message, kind):
                return each.message, each.re
        raise AssertionError(f"no open {kind.__name__}: {self._open}")

    def answer(self, kind: type[C], reply: Reply) -> Step[S]:
        """Answer the oldest open ask of this kind."""
        message, re = self.waiting_for(kind)
        self._open = [each for each in self._open if each.message is not message]
        return self.answered(re, reply)

    def answered(self, re: msgspec.Struct, reply: Reply) -> Step[S]:
        """Deliver the answer to an ask on which this was written."""
        return self.tell(Answered(re=re, reply=reply))

    def open_asks(self, kind: type[C]) -> list[C]:
        return [each.message for each in self._open if isinstance(each.message, kind)]

    def sent(self, kind: type[C]) -> list[C]:
        """Every command of this kind that was told, asked or forwarded."""
        messages = [mail.message for mail in self.mail if not isinstance(mail, Cancel)]
        return [message for message in messages if isinstance(message, kind)]

    def forwarded(self, kind: type[C]) -> list[tuple[C, AskId | None]]:
        return [
            (mail.message, mail.asker)
            for mail in self.mail
            if isinstance(mail, Forward) and isinstance(mail.message, kind)
        ]

    @property
    def cancelled(self) -> list[str]:
        return [mail.key for mail in self.mail if isinstance(mail, Cancel)]

    def wanted(self, kind: type[F]) -> list[F]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def said(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]


# --- what messages hold --------------------------------------------------------------------


def token(session_id: SessionId = A, epoch: int = 1) -> SessionToken:
    return SessionToken(session_id=session_id, epoch=epoch)


def opened(session_id: SessionId = A, epoch: int = 1, **known: Any) -> Opened:
    return Opened(
        token=token(session_id, epoch),
        path=f"/work/.tenure/sessions/{session_id}.jsonl",
        leaf=known.get("leaf"),
        seq=known.get("seq", 0),
        entries=known.get("entries", 0),
        last_turn=known.get("last_turn", 0),
        keys=known.get("keys", ()),
        damage=Damage(),
        settled=known.get("settled", 0),
    )


def said(text: str) -> EntryBody:
    return MessageEntry(message=UserMessage(content=text))


def call(call_id: str, name: str = "read", **arguments: Any) -> ToolCallBlock:
    return ToolCallBlock(id=call_id, name=name, arguments=arguments)


def answer(text: str = "done", *calls: ToolCallBlock, **fields: Any) -> AssistantMessage:
    content = ((TextBlock(text=text),) if text else ()) + calls
    reason = "toolUse" if calls else "stop"
    return AssistantMessage(content=content, **({"stop_reason": reason} | fields))


def tool(name: str, **fields: Any) -> ToolSpec:
    return ToolSpec(
        name=name, description=name, parameters={"type": "object", "properties": {}}, **fields
    )


def is_queue_append(message: Message) -> bool:
    return isinstance(message, AppendEntries) and all(
        isinstance(entry, CustomEntry) and entry.custom_type == QUEUE_ENTRY
        for entry in message.entries
    )


def waiting(*texts: str) -> tuple[QueuedText, ...]:
    """What a drain holds, named by its texts."""
    return tuple(QueuedText(item_id=QueueItemId(text), text=text) for text in texts)


def texts_in(reply: Reply | None) -> tuple[str, ...]:
    """The texts that a drain holds."""
    assert isinstance(reply, TurnDrained), reply
    return tuple(each.text for each in reply.queued)


# --- a turn, driven by hand ------------------------------------------------------------------


class DrivenTurn(Driven[Any]):
    """A TurnActor's step at session A, and the ways in which doors and owners answer it."""

    def __init__(self, *tools: ToolSpec, last_turn: int = 0) -> None:
        super().__init__(turn_step, Idle(Ledger(session_id=A, last_turn=last_turn)))
        self.tools = tools
        self.rules = TurnRules()
        self.minted = last_turn
        self.lets_in = True
        """Whether prompts that are due are let in by themselves."""

    @property
    def name(self) -> str:
        """The class name of the state."""
        return type(self.state).__name__

    def run(self, text: str = "go", **fields: Any) -> AskId:
        """A start, as the SessionActor hands it on, with the next turn number."""
        self.minted += 1
        images = fields.pop("images", ())
        model = fields.pop("model", "")
        when_busy = fields.pop("when_busy", "refuse")
        return self.ask(
            RunTurn(
                overrides=fields.pop("overrides", Overrides()),
                turn_id=turn_id(A, self.minted),
                token=token(),
                text=text,
                images=images,
                model=model,
                when_busy=when_busy,
            )
        )

    def queue(self, text: str, when_busy: WhenBusy = "queue") -> AskId:
        """A prompt that is to wait, and is durable."""
        asker = self.run(text, when_busy=when_busy)
        if self.reply_to(asker) is None:
            self.noted()
        return asker

    def noted(self) -> None:
        """The newest change of the queue is durable."""
        newest = [each for each in self._open if is_queue_append(each.message)][-1]
        self._open.remove(newest)
        self.answered(newest.re, Appended(token=token(), entry_ids=(EntryId("q"),), seq=1))

    def tell(self, message: Message, asker: AskId | None = None) -> Step[Any]:
        """As in any owner; what is due comes in again at once, where `lets_in` says so."""
        step = super().tell(message, asker)
        if self.lets_in and isinstance(self.state, Reentering):
            self.let_in()
        return step

    def let_in(self) -> None:
        """The SessionActor finds the token of the prompt that is due current."""
        start, _ = self.waiting_for(AdmitPrompt)
        self._open = [each for each in self._open if each.message is not start]
        self.tell(RunPrompt(item_id=start.item_id, turn_id=start.turn_id, token=start.token))

    def stop(self, number: int = 1, cause: StopCause = "user") -> Reply | None:
        return self.reply_to(self.ask(StopTurn(turn_id=turn_id(A, number), cause=cause)))

    def prepared(self, number: int = 1, rules: TurnRules | None = None) -> None:
        turn = turn_id(A, number)
        self.tell(
            TurnPrepared(
                turn_id=turn, model="m", system="s", tools=self.tools, rules=rules or self.rules
            )
        )

    def saved(self) -> None:
        """The oldest append is durable."""
        entries, _ = self.waiting_for(AppendEntries)
        ids = tuple(EntryId(f"e{place}") for place in range(len(entries.entries)))
        self.answer(AppendEntries, Appended(token=token(), entry_ids=ids, seq=len(ids)))

    def refused(self, reply: Reply) -> None:
        self.answer(AppendEntries, reply)

    def says(self, message: AssistantMessage, number: int = 1) -> None:
        """The model call that runs ends with this message."""
        self.tell(ModelCallDone(turn_id=turn_id(A, number), call=self._call(), message=message))

    def fails(self, kind: FailureKind = "transport", number: int = 1, **fields: Any) -> None:
        failure = ModelFailure(kind=kind, reason="no", retry_after_ms=fields.get("after_ms", 0))
        self.tell(
            ModelCallFailed(
                turn_id=turn_id(A, number),
                call=self._call(),
                failure=failure,
                partial=fields.get("partial", ()),
            )
        )

    def allows(self, call_id: str) -> None:
        """The policy alone lets this call run."""
        self.decides(call_id, None)

    def decides(self, call_id: str, reply: Reply | None) -> None:
        for each in list(self._open):
            message = each.message
            if isinstance(message, DecideCall) and message.call_id == call_id:
                self._open.remove(each)
                digest = digest_of(message.tool.name, message.arguments)
                allowed = CallAllowed(
                    call_id=message.call_id, digest=digest, expects="", request_id=None
                )
                self.answered(each.re, reply or allowed)
                return
        raise AssertionError(f"{call_id} is not being decided")

    def runs(self, call_id: str, text: str = "ok", number: int = 1) -> None:
        """The tool ends with this result."""
        self.tell(
            ToolCallDone(
                turn_id=turn_id(A, number), call_id=CallId(call_id), content=(TextBlock(text=text),)
            )
        )

    def to_calling(self) -> "DrivenTurn":
        """A turn whose model speaks."""
        self.run()
        self.prepared()
        self.saved()
        return self

    def to_acting(self, *calls: ToolCallBlock) -> "DrivenTurn":
        """A turn whose calls are being decided."""
        self.to_calling()
        self.says(answer("", *calls))
        self.saved()
        return self

    @property
    def written(self) -> list[Any]:
        """The messages of every append that was asked for, in order."""
        entries = [entry for append in self.sent(AppendEntries) for entry in append.entries]
        return [entry.message for entry in entries if isinstance(entry, MessageEntry)]

    @property
    def ended(self) -> list[TurnEnded]:
        return self.said(TurnEnded)

    def _call(self) -> int:
        return self.wanted(CallModel)[-1].call


# --- a session, driven by hand ---------------------------------------------------------------


class DrivenSession(Driven[Any]):
    """A SessionActor's step with session A live, and the ways in which its doors answer it."""

    def __init__(self, state: Any = None) -> None:
        first = Live(session_of(opened(), 0), Quiet()) if state is None else state
        super().__init__(session_step, first)

    @property
    def name(self) -> str:
        """The class name of the state."""
        return type(self.state).__name__

    @property
    def here(self) -> SessionToken:
        """The token of the session that the seat has now."""
        view = self.reply_to(self.ask(GetSession()))
        assert isinstance(view, SessionView), view
        return view.token

    def append(self, text: str = "x", **fields: Any) -> AskId:
        of = fields.pop("of", token())
        return self.ask(AppendEntries(token=of, entries=(said(text),), **fields))

    def load(self, **known: Any) -> None:
        """The transcript that is being opened is open."""
        session_id = known.pop("session_id", B)
        self.tell(TranscriptOpened(opened=opened(session_id, **known)))

    def not_loaded(self) -> SessionNotFound:
        refusal = SessionNotFound(session_id=B, searched="/work")
        self.tell(TranscriptNotOpened(refusal=refusal))
        return refusal

    def drained(self, *queued: str) -> None:
        self.answer(DrainTurn, TurnDrained(queued=waiting(*queued)))

    def noted(self) -> None:
        self.tell(SeatNoted())

    def written(self, session_id: SessionId = A) -> None:
        """The append in flight is durable."""
        self.tell(RecordsAppended(session_id=session_id))

    def batch(self) -> list[str]:
        """The texts of the newest batch that went to the disk."""
        records = self.wanted(AppendRecords)[-1].records
        return [str(record.body.message.content) for record in records]  # type: ignore[union-attr]

    def swap_to(self, session_id: SessionId = B) -> AskId:
        """A whole swap."""
        asker = self.ask(OpenSession(session_id=session_id))
        self.load(session_id=session_id)
        self.drained()
        self.noted()
        return asker


# --- the gate, driven by hand ----------------------------------------------------------------

WRITE = tool("write", label="Write")


class DrivenApproval(Driven[Gate]):
    """An ApprovalActor's step, asked about the calls of turn 1 of session A."""

    def __init__(self, of: ToolSpec = WRITE) -> None:
        super().__init__(approval_step, Gate())
        self._tool = of

    def decide(self, call_id: str, **arguments: Any) -> AskId:
        """The turn asks whether a call may run."""
        session_id = arguments.pop("session", A)
        of = arguments.pop("of", self._tool)
        return self.ask(
            DecideCall(
                token=token(session_id),
                turn_id=turn_id(session_id, 1),
                call_id=CallId(call_id),
                tool=of,
                arguments=arguments,
            )
        )

    def policy(self, policy: Policy) -> None:
        """The settings owner answers the oldest question for the policy."""
        self.answer(GetPolicy, policy)

    def open(self, call_id: str, **arguments: Any) -> AskId:
        """The policy says ask, and the user was asked; the turn waits."""
        asker = self.decide(call_id, **arguments)
        self.policy(Policy(version="1"))
        return asker

    def request(self, call_id: str = "") -> ApprovalRequest:
        """What the user was asked about this call; without one the first question."""
        requests = [event.request for event in self.said(ApprovalRequested)]
        return next(each for each in requests if call_id in ("", each.call_id))

    def says(self, choice: Choice, call_id: str = "") -> AskId:
        """The user answers, and the policy has not changed meanwhile."""
        request_id = self.request(call_id).request_id
        asker = self.ask(AnswerApproval(request_id=request_id, choice=choice))
        if isinstance(choice, Allow):
            self.policy(Policy(version="1"))
        return asker

    def taken(self, fate: Literal["applied", "superseded"], call_id: str = "") -> None:
        """The turn says what became of the answer."""
        self.tell(NoteDecision(request_id=self.request(call_id).request_id, fate=fate))
