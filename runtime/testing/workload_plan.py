"""A plan made of a seed: the same seed gives the same plan on every machine."""

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar, cast

from tenure.messages.approval import Allow, Choice, Deny, Stop
from tenure.messages.models import FailureKind
from tenure.messages.settings import Mode, Rule
from tenure.runtime.testing.workload import (
    Answer,
    AnswerPlan,
    AnyOp,
    Append,
    ChangeMode,
    ChangeModel,
    ChangeRule,
    ClockBack,
    CloseHost,
    CloseSeat,
    CrashOwner,
    DiskTrouble,
    EditFile,
    Fail,
    Flood,
    Garbage,
    KillHost,
    Look,
    Misroute,
    Move,
    Park,
    Plan,
    PowerLoss,
    Prompt,
    ReadSessions,
    Say,
    Stall,
    StopNamed,
    StopProcess,
    StopUnnamed,
    Swap,
    ToolUse,
    TroubleKind,
    TroublePlace,
    Use,
)
from tenure.runtime.testing.workloads import WORKLOADS
from tenure.runtime.testing.workloads.base import HOSTS, SEATS, Op, Workload

T = TypeVar("T")

SEATS_ALONE = "seats"
CLIENTS_MAX = 4
OPS_MIN, OPS_MAX = 7, 16
PAUSES_MS = (0, 0, 0, 1, 5, 20, 60, 300, 900)
PATHS = ("notes.md", "notes.md", "plan.md", "sub/deep.md", "notes-old.md")
BAD_PATHS = ("../outside.txt", "/outside/secret.txt", ".tenure/settings.toml", "link/secret.txt")
TOOLS = ("write", "write", "edit", "read", "ls", "search", "rename", "delete",
         "slow", "poke", "stubborn", "broken", "no_such_tool")  # fmt: skip
RULED_TOOLS = ("write", "edit", "poke", "stubborn", "delete")
KINDS: tuple[FailureKind, ...] = (
    "auth", "rate_limit", "overloaded", "context_exceeded", "transport", "refused", "invalid",
    "transport", "overloaded", "bug",
)  # fmt: skip
CHOICES: tuple[Choice, ...] = (
    Allow(),
    Allow(),
    Allow(),
    Allow(scope="session"),
    Allow(scope="always"),
    Deny(),
    Deny(reason="allow it"),
    Deny(scope="session"),
    Deny(scope="always", reason="stop"),
    Stop(),
)
TROUBLES: tuple[TroubleKind, ...] = (
    "full", "append_fails", "sync_fails", "short_write", "read_only", "rename_fails",
    "open_fails", "cut_fails", "kill_before", "kill_during", "kill_after",
    "kill_before", "kill_during", "kill_after",
)  # fmt: skip

CRASHING = ("session", "turn", "turn", "approval", "settings")
PLACES: tuple[tuple[TroublePlace, ...], ...] = (
    ("session", "session", "session", "claim", "seat", "seat", "settings", "any"),
    ("settings", "settings", "settings", "any"),
)


WEIGHTS = {
    "prompt": 30.0, "stop": 8, "cancel": 4, "swap": 10, "append": 9, "park": 3, "look": 5,
    "answer": 4, "close_seat": 2, "change": 3, "read": 1, "misroute": 0.5, "flood": 0,
    "process": 4, "power": 2, "disk": 6, "crash": 3, "clock": 1, "edit": 2,
}  # fmt: skip
"""How often each operation comes in a usual run."""
THEMES: dict[str, dict[str, float]] = {
    "usual": {},
    "swaps": {"swap": 30, "append": 25, "park": 8, "close_seat": 5, "disk": 10},
    "approvals": {"prompt": 40, "answer": 15, "change": 12, "stop": 14, "swap": 8, "disk": 2},
    "disk": {"append": 25, "disk": 22, "edit": 8, "swap": 14, "park": 6},
    "owners": {"crash": 16, "process": 2, "power": 1},
    "machine": {"process": 12, "power": 8, "read": 4, "disk": 12},
    "settings": {"change": 30, "look": 14, "disk": 14, "crash": 6},
}
"""What some runs have more of: rare meetings need crowds."""


def plan_of(seed: int, workload: str = SEATS_ALONE) -> Plan:
    """What happens in the run of this seed of a workload."""
    return Planner(seed, None if workload == SEATS_ALONE else WORKLOADS[workload]).plan()


class Planner:
    """Draws one plan.  Workloads of other parts draw their operations with it."""

    def __init__(self, seed: int, workload: Workload | None = None) -> None:
        self._seed = seed
        self._workload = workload
        place = "plan" if workload is None else f"plan/{workload.name}"
        self._chance = random.Random(f"{place}/{seed}")
        # Half of the runs have one host; the other half have two on one disk.
        self._hosts = self._chance.choice((1, 2))
        if workload is not None and workload.hosts == "two":
            self._hosts = 2
        self._seats = self._chance.choice((1, 1, 2, 3))
        self._clients = self._chance.randint(2, CLIENTS_MAX)
        self._haste = self._chance.choice((0.0, 0.3, 0.7))
        themes = THEMES if workload is None else workload.themes
        self._weights = {**WEIGHTS, **themes[self._chance.choice(tuple(themes))]}
        self._texts = 0

    def plan(self) -> Plan:
        chance = self._chance
        ops = [self._op() for _ in range(chance.randint(OPS_MIN, OPS_MAX))]
        if not any(isinstance(op, Prompt) for op in ops):
            ops.insert(0, self._prompt())
        rules: tuple[Rule, ...] = ("ask", "ask", "ask", "allow", "deny")
        return Plan(
            workload=SEATS_ALONE if self._workload is None else self._workload.name,
            seed=self._seed,
            approver=chance.choice(("callable", "clients")),
            mutating=chance.choice(rules),
            settings=self._settings(),
            sockets="none" if self._workload is None else self._workload.sockets,
            answers=tuple(self._answer_plan() for _ in range(chance.randint(1, 4))),
            summaries=() if self._workload is None else self._summaries(),
            ops=tuple(ops),
        )

    def _summaries(self) -> tuple[Move, ...]:
        """How summaries go, whoever writes them."""
        slow = Say(pieces=3, pause_ms=400)
        return tuple(self.one((Say(), slow, slow, self._move())) for _ in range(3))

    def _settings(self) -> dict[str, Any]:
        """Of the workload, and where tools may work."""
        dirs: list[str] = self._chance.choice(([], [], [], ["sub"], ["notes"]))
        settings = {} if self._workload is None else self._workload.settings(self)
        return settings | ({"approval": {"working_dirs": dirs}} if dirs else {})

    def _op(self) -> AnyOp:
        makes: dict[str, Callable[[], Op]] = {
            "prompt": self._prompt, "stop": self._stop, "cancel": self._cancel,
            "swap": self._swap, "append": self._append, "park": self._park, "look": self._look,
            "answer": self._answer, "close_seat": self._close_seat, "change": self._change,
            "read": self._read, "misroute": self._misroute, "flood": self._flood,
            "process": self._process, "power": self._power, "disk": self._disk,
            "crash": self._crash, "clock": self._clock, "edit": self._edit,
        }  # fmt: skip
        if self._workload is not None:
            for name, draw in self._workload.draws.items():
                makes[name] = partial(draw, self)
        weights = [self._weights.get(name, 0) for name in makes]
        (name,) = self._chance.choices(list(makes), weights)
        return cast(AnyOp, makes[name]())

    # --- for every workload ----------------------------------------------------------------------

    def one(self, things: Sequence[T]) -> T:
        """One of them; say a thing twice to have it twice as often."""
        return self._chance.choice(things)

    def who(self) -> dict[str, Any]:
        """The fields of every `Op`."""
        return {
            "client": self._chance.randrange(self._clients),
            "after_ms": self.one(PAUSES_MS),
            "beside": self._chance.random() < self._haste,
        }

    def host(self) -> int:
        """The number of one of the hosts."""
        return self._chance.randrange(min(self._hosts, len(HOSTS)))

    def place(self) -> dict[str, Any]:
        """The fields of every `AtSeat`."""
        seat = self._chance.randrange(min(self._seats, len(SEATS)))
        return {**self.who(), "host": self.host(), "seat": seat}

    def text(self, what: str) -> str:
        """A text that no other operation of the plan has."""
        self._texts += 1
        return f"{what}{self._texts}"

    def token(self) -> Literal["none", "current", "stale"]:
        """Which token a command carries."""
        tokens: tuple[Literal["none", "current", "stale"], ...] = (
            "none", "none", "none", "current", "current", "stale",
        )  # fmt: skip
        return self.one(tokens)

    # --- operations ------------------------------------------------------------------------------

    def _prompt(self) -> AnyOp:
        moves = tuple(self._move() for _ in range(self.one((1, 2, 2, 3, 4))))
        text = self.text("prompt")
        if self._chance.random() < 0.03:
            text = " "
        return Prompt(
            **self.place(),
            text=text,
            moves=moves,
            token=self.token(),
            when_busy=self.one(("refuse", "queue", "queue")),
            key=self.one(("", "", "", f"key of {text}", "prompt key")),
            model=self.one(("",) * 30 + ("no-such:model",)),
            size=self.one(("usual",) * 60 + ("huge",)),
            wait=self.one(("end", "end", "reply")),
        )

    def _stop(self) -> AnyOp:
        return StopNamed(
            **self.place(),
            which=self.one(("running", "running", "running", "late", "early", "queued", "foreign")),
        )

    def _cancel(self) -> AnyOp:
        return StopUnnamed(**self.place(), token=self.token())

    def _swap(self) -> AnyOp:
        return Swap(
            **self.place(),
            to=self.one(
                ("new", "new", "known", "known", "missing", "newest", "of_other_seat", "same")
            ),
            pick=self._chance.randrange(4),
            name=self.one(("", "", "named")),
        )

    def _append(self) -> AnyOp:
        return Append(
            **self.place(),
            text=self.text("entry"),
            entries=self.one((0, 1, 1, 1, 3)),
            token=self.one(("current", "current", "current", "stale")),
            key=self.one(("", "", "k1", "k2")),
        )

    def _park(self) -> AnyOp:
        return Park(**self.place())

    def _look(self) -> AnyOp:
        return Look(
            **self.place(),
            at=self.one(("session", "turn", "approvals", "settings", "policy", "unhandled")),
        )

    def _answer(self) -> AnyOp:
        return Answer(
            **self.place(),
            which=self.one(("open", "open", "closed", "of_other_seat", "unknown")),
            choice=self.one(CHOICES),
        )

    def _close_seat(self) -> AnyOp:
        return CloseSeat(**self.place())

    def _change(self) -> AnyOp:
        modes: tuple[Mode, ...] = ("safe", "yolo", "plan")
        rules: tuple[Rule, ...] = ("allow", "ask", "deny")
        match self._chance.randrange(5):
            case 0 | 1:
                return ChangeMode(**self.who(), host=self.host(), mode=self.one(modes))
            case 2:
                return ChangeModel(**self.who(), host=self.host())
            case _:
                tool = self.one(RULED_TOOLS)
                return ChangeRule(**self.who(), host=self.host(), tool=tool, rule=self.one(rules))

    def _read(self) -> AnyOp:
        return ReadSessions(**self.who())

    def _misroute(self) -> AnyOp:
        owners: tuple[Literal["session", "turn", "approval", "settings"], ...] = (
            "session", "turn", "approval", "settings",
        )  # fmt: skip
        return Misroute(**self.place(), owner=self.one(owners))

    def _flood(self) -> AnyOp:
        return Flood(**self.place(), asks=2_500)

    # --- accidents -------------------------------------------------------------------------------

    def _process(self) -> AnyOp:
        match self._chance.randrange(4):
            case 0 | 1:
                return KillHost(**self.who(), host=self.host())
            case 2:
                return CloseHost(**self.who(), host=self.host())
            case _:
                for_ms = self.one((50, 400, 3_000, 40_000))
                return StopProcess(**self.who(), host=self.host(), for_ms=for_ms)

    def _power(self) -> AnyOp:
        return PowerLoss(**self.who())

    def _disk(self) -> AnyOp:
        return DiskTrouble(
            **self.who(),
            kind=self.one(TROUBLES),
            at=self.one(PLACES[self._weights["change"] >= 30]),
            nth=self._chance.randint(1, 6),
            for_ms=self.one((10, 200, 2_000)),
        )

    def _crash(self) -> AnyOp:
        return CrashOwner(
            **self.who(),
            host=self.host(),
            owner=self.one(CRASHING if self._workload is None else self._workload.crashing),
            nth=self._chance.randint(1, 8),
        )

    def _clock(self) -> AnyOp:
        return ClockBack(**self.who(), ms=self.one((5, 3_600_000)))

    def _edit(self) -> AnyOp:
        pick = self._chance.randrange(4)
        return EditFile(
            **self.who(),
            pick=pick,
            how=self.one(("append", "append", "truncate", "delete", "garble")),
        )

    # --- what models and users do ----------------------------------------------------------------

    def _move(self) -> Move:
        match self._chance.choices(range(5), (5, 9, 3, 1, 1))[0]:
            case 0:
                return Say(
                    pieces=self.one((0, 1, 3)),
                    pause_ms=self.one((0, 0, 10, 200)),
                    stop=self.one(("stop", "stop", "stop", "length")),
                )
            case 1:
                calls = tuple(self._use() for _ in range(self.one((1, 1, 2, 3))))
                stops: tuple[Literal["toolUse", "length"], ...] = ("toolUse",) * 9 + ("length",)
                return Use(calls=calls, stop=self.one(stops))
            case 2:
                return Fail(
                    kind=self.one(KINDS),
                    pieces=self.one((0, 1)),
                    retry_after_ms=self.one((0, 0, 700, 500_000)),
                )
            case 3:
                return Stall(when_cancelled=self.one(("ends", "late")))
            case _:
                return Garbage(
                    kind=self.one(("no_done", "raises", "no_event", "bad_arguments", "same_ids"))
                )

    def _use(self) -> ToolUse:
        path = self.one(BAD_PATHS) if self._chance.random() < 0.08 else self.one(PATHS)
        return ToolUse(
            tool=self.one(TOOLS),
            path=path,
            text=self.text("line"),
            ms=self.one((0, 10, 200, 2_000)),
        )

    def _answer_plan(self) -> AnswerPlan:
        hows: tuple[Literal["once", "twice", "wrong_seat_first", "never"], ...] = (
            "once", "once", "once", "once", "twice", "wrong_seat_first", "never",
        )  # fmt: skip
        return AnswerPlan(
            choice=self.one(CHOICES), after_ms=self.one(PAUSES_MS), how=self.one(hows)
        )
