"""The states of a seat's turn, one struct each: a field exists only where it means something."""

from typing import Literal

import msgspec

from tenure.actors.turn_ledger import Ledger
from tenure.actors.turn_waiting import Armed, Direct, Origin, Queue
from tenure.messages.content import (
    AssistantMessage,
    ImageBlock,
    ToolCallBlock,
    ToolResultMessage,
    Usage,
)
from tenure.messages.entries import CustomEntry
from tenure.messages.limits import Overrides, Spent, TurnRules
from tenure.messages.models import ToolSpec
from tenure.messages.tokens import CallId, QueueItemId, SessionToken, TurnId
from tenure.messages.turn import StopCause, TurnStopReason
from tenure.messages.turn_effects import ModelCallFailed
from tenure.runtime.step import AskId, Held


class Prompt(msgspec.Struct, frozen=True):
    """An accepted start."""

    turn_id: TurnId
    token: SessionToken
    text: str
    images: tuple[ImageBlock, ...]
    model: str
    overrides: Overrides = Overrides()
    origin: Origin = Direct()


Room = Literal["open", "spent"]
"""spent: a compaction did not help, or could not be made: this turn asks for no more room."""

Relief = Literal["unused", "used"]
"""used: this model call was refused as too long before, and room was made for it."""


class Loop(msgspec.Struct, frozen=True):
    """How often the last tool batch came in a row."""

    digest: str = ""
    """Of its calls and their results; empty before the first batch."""
    equal_batches: int = 0


class Run(msgspec.Struct, frozen=True):
    """One running turn."""

    prompt: Prompt
    ledger: Ledger
    queue: Queue = Queue()
    """What is delivered to this turn, or starts when it has ended."""
    model: str = ""
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    window: int = 0
    """Tokens that the model can read; 0 where nobody knows."""
    room: Room = "open"
    relief: Relief = "unused"
    calls: int = 0
    """Model calls so far, retries included."""
    usage: Usage = Usage(priced=True)
    loop: Loop = Loop()
    rules: TurnRules = TurnRules()
    by_children: Spent = Spent()
    """What subagents of the turn used."""
    fallback: tuple[str, ...] = ()
    """The models that are left to fall back on."""
    noted_model: str = ""
    """The model that the transcript names for this turn; another one is noted with its answer."""
    tool_calls: int = 0
    """Tool calls that were made, or decided on."""
    began_ms: int = 0

    @property
    def turn_id(self) -> TurnId:
        return self.prompt.turn_id

    @property
    def token(self) -> SessionToken:
        return self.prompt.token

    def tool(self, name: str) -> ToolSpec | None:
        return next((tool for tool in self.tools if tool.name == name), None)


# --- tool calls of one assistant message: one status each ------------------------------------


class Waiting(msgspec.Struct, frozen=True):
    """Its wave has not come."""


class Undecided(msgspec.Struct, frozen=True):
    """The ApprovalActor was asked."""


class Allowed(msgspec.Struct, frozen=True):
    """It may run once every call of its wave is decided."""

    expects: str
    paths: tuple[str, ...] = ()
    checkpoint: str = ""


class Running(msgspec.Struct, frozen=True):
    checkpoint: str = ""
    """Names what its files held before; empty where there is nothing to undo."""


class Done(msgspec.Struct, frozen=True):
    """It has a result that is not durable yet."""

    result: ToolResultMessage
    also: tuple[CustomEntry, ...] = ()
    """What is written with the result."""


class Saving(msgspec.Struct, frozen=True):
    result: ToolResultMessage
    also: tuple[CustomEntry, ...] = ()


class Saved(msgspec.Struct, frozen=True):
    result: ToolResultMessage


Status = Waiting | Undecided | Allowed | Running | Done | Saving | Saved


class Call(msgspec.Struct, frozen=True):
    block: ToolCallBlock
    status: Status

    @property
    def call_id(self) -> CallId:
        return CallId(self.block.id)


# --- how a turn ends -------------------------------------------------------------------------


class Finished(msgspec.Struct, frozen=True):
    """It came to its own end, or could not go on."""

    stop_reason: TurnStopReason
    error: str = ""


class Stopped(msgspec.Struct, frozen=True):
    """Somebody stopped it."""

    cause: StopCause
    why: str = ""
    """What there is to say beyond the cause."""


End = Finished | Stopped


class Drainer(msgspec.Struct, frozen=True):
    """Who waits until nothing runs, and what for."""

    asker: AskId | None
    cause: StopCause


# --- states ----------------------------------------------------------------------------------


class Idle(msgspec.Struct, frozen=True):
    ledger: Ledger = Ledger()
    queue: Queue = Queue()
    """Only what is held, or on its way to the disk."""


class Reentering(msgspec.Struct, frozen=True):
    """A prompt that waited is due: its token is being compared.  It still stands in the queue."""

    ledger: Ledger
    queue: Queue
    item_id: QueueItemId
    turn_id: TurnId


class Recovering(msgspec.Struct, frozen=True):
    """Calls without a result are being settled: after a restart, or a save that failed."""

    ledger: Ledger
    queue: Queue
    held: tuple[Held, ...] = ()


class Preparing(msgspec.Struct, frozen=True):
    """Model and tools are looked up; nothing is written yet."""

    run: Run
    asker: AskId | None


class SavingPrompt(msgspec.Struct, frozen=True):
    run: Run
    asker: AskId | None


class MakingRoom(msgspec.Struct, frozen=True):
    """The window may be full: whether there is room for the next call is being seen to."""

    run: Run


class Overflown(msgspec.Struct, frozen=True):
    """The provider said that the conversation is too long: room is being made."""

    run: Run
    failure: ModelCallFailed


class Calling(msgspec.Struct, frozen=True):
    """The model speaks."""

    run: Run
    attempt: int
    """1 for the first."""


class Retrying(msgspec.Struct, frozen=True):
    """The model call failed; time passes before the next attempt."""

    run: Run
    attempt: int
    """The one that comes."""


class SavingAnswer(msgspec.Struct, frozen=True):
    run: Run
    message: AssistantMessage


class Acting(msgspec.Struct, frozen=True):
    """Tool calls are decided, run and saved."""

    run: Run
    calls: tuple[Call, ...]


class Delivering(msgspec.Struct, frozen=True):
    """A prompt for the running turn is on its way to the disk; then the model is called."""

    run: Run
    item: Armed


class StoppingPrompt(msgspec.Struct, frozen=True):
    """The prompt is in flight: its asker is told when it is durable."""

    run: Run
    end: End
    drainers: tuple[Drainer, ...]
    asker: AskId | None


class StoppingRoom(msgspec.Struct, frozen=True):
    """The compaction is being stopped; its last word is awaited."""

    run: Run
    end: End
    drainers: tuple[Drainer, ...]


class StoppingModel(msgspec.Struct, frozen=True):
    """The model call was cancelled; its last word is awaited."""

    run: Run
    end: End
    drainers: tuple[Drainer, ...]


class StoppingSave(msgspec.Struct, frozen=True):
    """The answer is in flight; then its calls are settled."""

    run: Run
    end: End
    drainers: tuple[Drainer, ...]
    owed: tuple[ToolCallBlock, ...]
    """The calls, which have no result."""


class StoppingDelivery(msgspec.Struct, frozen=True):
    """A prompt for the running turn is in flight; then the turn ends."""

    run: Run
    end: End
    drainers: tuple[Drainer, ...]
    item: Armed


class StoppingTools(msgspec.Struct, frozen=True):
    """The tools were cancelled; their last words, and an append in flight, are awaited."""

    run: Run
    end: End
    drainers: tuple[Drainer, ...]
    calls: tuple[Call, ...]


class Ending(msgspec.Struct, frozen=True):
    """The last entries of the turn are on their way to the disk."""

    run: Run
    end: End
    drainers: tuple[Drainer, ...]


class Drained(msgspec.Struct, frozen=True):
    """Nothing runs and nothing starts: until the swap is decided, or for good."""

    ledger: Ledger
    queue: Queue
    cause: StopCause


Stopping = (
    StoppingPrompt
    | StoppingRoom
    | StoppingModel
    | StoppingSave
    | StoppingDelivery
    | StoppingTools
    | Ending
)
Begun = (
    SavingPrompt
    | MakingRoom
    | Overflown
    | Calling
    | Retrying
    | SavingAnswer
    | Acting
    | Delivering
    | Stopping
)
"""Something was written, or is on its way."""
Busy = Preparing | Begun

Quiet = Idle | Drained | Reentering
Ready = Quiet | Busy
"""Every state in which a command is taken at once."""
State = Recovering | Ready
Resting = Quiet | Recovering
"""Every state in which no turn runs."""


# --- what the owner wrote on its asks ----------------------------------------------------------


class CallsWereSettled(msgspec.Struct, frozen=True):
    pass


class PromptSaved(msgspec.Struct, frozen=True):
    turn_id: TurnId


class RoomMade(msgspec.Struct, frozen=True):
    turn_id: TurnId


class AnswerSaved(msgspec.Struct, frozen=True):
    turn_id: TurnId


class ResultsSaved(msgspec.Struct, frozen=True):
    turn_id: TurnId
    call_ids: tuple[CallId, ...]


class EndSaved(msgspec.Struct, frozen=True):
    turn_id: TurnId


class CallDecided(msgspec.Struct, frozen=True):
    turn_id: TurnId
    call_id: CallId


class QuestionPut(msgspec.Struct, frozen=True):
    turn_id: TurnId
    call_id: CallId
    number: int
