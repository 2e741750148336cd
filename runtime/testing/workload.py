"""What happens in one simulated run, as data: a `Plan` of operations.

A plan is made of a seed (`workload_plan.plan_of`), run (`workload_run.run_plan`),
written into the file of a failing run, and made shorter by leaving operations out.
"""

from typing import Any, Literal

import msgspec

from tenure.messages.approval import Choice
from tenure.messages.models import FailureKind
from tenure.messages.settings import Mode, Rule
from tenure.runtime.testing.workloads.base import AtSeat, Op
from tenure.runtime.testing.workloads.compaction import CompactionOp
from tenure.runtime.testing.workloads.handover import HandoverOp
from tenure.runtime.testing.workloads.queue import QueueOp
from tenure.runtime.testing.workloads.sessions import SessionOp

# --- what the model of a turn does, call by call ---------------------------------------------


class Say(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An answer in pieces."""

    pieces: int = 1
    pause_ms: int = 0
    stop: Literal["stop", "length"] = "stop"


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call that a planned answer makes."""

    tool: str
    path: str = ""
    text: str = ""
    ms: int = 0


class Use(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Tool calls, all in one message."""

    calls: tuple[ToolUse, ...]
    stop: Literal["toolUse", "length"] = "toolUse"


class Fail(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The call fails, after a piece of text or at once."""

    kind: FailureKind
    pieces: int = 0
    retry_after_ms: int = 0


class Stall(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Says nothing more until it is cancelled; `late` goes on speaking even then."""

    when_cancelled: Literal["ends", "late"] = "ends"


class Garbage(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What no model should do."""

    kind: Literal["no_done", "raises", "no_event", "bad_arguments", "same_ids"]


Move = Say | Use | Fail | Stall | Garbage

# --- operations of clients -------------------------------------------------------------------


class Prompt(AtSeat, frozen=True, kw_only=True):
    """Start a turn."""

    text: str
    """Unique in its plan."""
    moves: tuple[Move, ...]
    token: Literal["none", "current", "stale"] = "none"
    when_busy: Literal["refuse", "queue"] = "refuse"
    key: str = ""
    model: str = ""
    size: Literal["usual", "huge"] = "usual"
    wait: Literal["reply", "end"] = "end"


class StopNamed(AtSeat, frozen=True, kw_only=True):
    """Stop a turn by its id."""

    which: Literal["running", "late", "early", "queued", "foreign"]


class StopUnnamed(AtSeat, frozen=True, kw_only=True):
    """Cancel whatever turn runs."""

    token: Literal["none", "current", "stale"] = "none"


class Swap(AtSeat, frozen=True, kw_only=True):
    """Open another session in the seat."""

    to: Literal["new", "known", "missing", "newest", "of_other_seat", "same"]
    pick: int = 0
    """Which of the known sessions."""
    name: str = ""


class Append(AtSeat, frozen=True, kw_only=True):
    """Append entries of a client."""

    text: str
    entries: int = 1
    token: Literal["current", "stale"] = "current"
    key: str = ""


class Park(AtSeat, frozen=True, kw_only=True):
    """Park the seat."""


class Look(AtSeat, frozen=True, kw_only=True):
    """Ask what the seat has, and what waits for an answer."""

    at: Literal["session", "turn", "approvals", "settings", "policy", "unhandled"]


class Answer(AtSeat, frozen=True, kw_only=True):
    """Answers some request, open or not, by hand."""

    which: Literal["open", "closed", "of_other_seat", "unknown"]
    choice: Choice


class CloseSeat(AtSeat, frozen=True, kw_only=True):
    """Close the seat."""


class ChangeMode(Op, frozen=True, kw_only=True):
    """Change the approval mode."""

    host: int
    mode: Mode


class ChangeRule(Op, frozen=True, kw_only=True):
    """Change the rule of one tool."""

    host: int
    tool: str
    rule: Rule


class ChangeModel(Op, frozen=True, kw_only=True):
    """Change the model of turns that name none."""

    host: int


class Misroute(AtSeat, frozen=True, kw_only=True):
    """A command that this owner does not take, past the host's own check."""

    owner: Literal["session", "turn", "approval", "settings"]


class Flood(AtSeat, frozen=True, kw_only=True):
    """More commands at once than a mailbox holds."""

    asks: int


class ReadSessions(Op, frozen=True, kw_only=True):
    """A process that only reads lists and reads everything."""


# --- accidents -------------------------------------------------------------------------------


class KillHost(Op, frozen=True, kw_only=True):
    """Kill the process of a host."""

    host: int


class CloseHost(Op, frozen=True, kw_only=True):
    """Close a host in order."""

    host: int


class StopProcess(Op, frozen=True, kw_only=True):
    """SIGSTOP, and SIGCONT after a while."""

    host: int
    for_ms: int


class PowerLoss(Op, frozen=True, kw_only=True):
    """The power fails: every process dies, and what was not synced may be lost."""


TroubleKind = Literal[
    "full", "append_fails", "sync_fails", "short_write", "read_only", "rename_fails",
    "open_fails", "cut_fails", "kill_before", "kill_during", "kill_after",
]  # fmt: skip


TroublePlace = Literal["session", "claim", "seat", "settings", "any"]


class DiskTrouble(Op, frozen=True, kw_only=True):
    """The `nth` call from now that fits goes wrong."""

    kind: TroubleKind
    at: TroublePlace
    nth: int = 1
    for_ms: int = 0
    """How long a lasting fault lasts."""


class CrashOwner(Op, frozen=True, kw_only=True):
    """The next step of an owner raises."""

    host: int
    owner: str
    """Its role: `turn` for the turn owner of any seat."""
    nth: int = 1


class ClockBack(Op, frozen=True, kw_only=True):
    """The wall clock goes back."""

    ms: int


class EditFile(Op, frozen=True, kw_only=True):
    """Another program changes a transcript."""

    pick: int
    how: Literal["append", "truncate", "delete", "garble"]


SeatOp = (
    Prompt | StopNamed | StopUnnamed | Swap | Append | Park | Look | Answer | CloseSeat
    | ChangeMode | ChangeRule | ChangeModel | ReadSessions | Misroute | Flood
    | KillHost | CloseHost | StopProcess | PowerLoss | DiskTrouble | CrashOwner
    | ClockBack | EditFile
)  # fmt: skip

AnyOp = SeatOp | SessionOp | CompactionOp | HandoverOp | QueueOp
"""Whatever a plan may hold: the operations of seats, and those of each other workload."""

# --- the plan --------------------------------------------------------------------------------


class AnswerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one request: the plan's list is gone through again and again."""

    choice: Choice
    after_ms: int = 0
    how: Literal["once", "twice", "wrong_seat_first", "never"] = "once"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    workload: str = "seats"
    """Its name in `workloads.WORKLOADS`, or `seats`."""
    seed: int
    approver: Literal["callable", "clients"]
    """Whether hosts have an approver of their own, or clients answer over the bus."""
    mutating: Rule
    """The policy that the hosts begin with."""
    settings: dict[str, Any] = {}
    """Of every host, in the layout of `settings.toml`."""
    sockets: Literal["none", "listen"] = "none"
    """Whether other processes can speak to the hosts."""
    answers: tuple[AnswerPlan, ...]
    summaries: tuple[Move, ...] = ()
    """What the model does when a summary is asked for: gone through again and again."""
    ops: tuple[AnyOp, ...]

    @property
    def name(self) -> str:
        """`17`, or `sessions/17`: what one can ask for again."""
        return str(self.seed) if self.workload == "seats" else f"{self.workload}/{self.seed}"
