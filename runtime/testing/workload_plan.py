"""A plan made of a seed: the same seed gives the same plan on every machine."""

import random
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from tenure.messages.approval import Allow, Choice, Deny, Stop
from tenure.messages.models import FailureKind
from tenure.messages.settings import Mode, Rule
from tenure.runtime.testing.workload import (
    HOSTS,
    SEATS,
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

T = TypeVar("T")

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


def plan_of(seed: int) -> Plan:
    """What happens in the run of this seed."""
    return _Planner(seed).plan()


class _Planner:
    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._chance = random.Random(f"plan/{seed}")
        # Half of the runs have one host; the other half have two on one disk.
        self._hosts = self._chance.choice((1, 2))
        self._seats = self._chance.choice((1, 1, 2, 3))
        self._clients = self._chance.randint(2, CLIENTS_MAX)
        self._haste = self._chance.choice((0.0, 0.3, 0.7))
        self._theme = self._chance.choice(tuple(THEMES))
        self._texts = 0

    def plan(self) -> Plan:
        chance = self._chance
        ops = [self._op() for _ in range(chance.randint(OPS_MIN, OPS_MAX))]
        if not any(isinstance(op, Prompt) for op in ops):
            ops.insert(0, self._prompt())
        rules: tuple[Rule, ...] = ("ask", "ask", "ask", "allow", "deny")
        return Plan(
            seed=self._seed,
            approver=chance.choice(("callable", "clients")),
            mutating=chance.choice(rules),
            working_dirs=chance.choice(((), (), (), ("sub",), ("notes",))),
            answers=tuple(self._answer_plan() for _ in range(chance.randint(1, 4))),
            ops=tuple(ops),
        )

    def _op(self) -> AnyOp:
        weights = WEIGHTS | THEMES[self._theme]
        makes: dict[str, Callable[[], AnyOp]] = {
            "prompt": self._prompt, "stop": self._stop, "cancel": self._cancel,
            "swap": self._swap, "append": self._append, "park": self._park, "look": self._look,
            "answer": self._answer, "close_seat": self._close_seat, "change": self._change,
            "read": self._read, "misroute": self._misroute, "flood": self._flood,
            "process": self._process, "power": self._power, "disk": self._disk,
            "crash": self._crash, "clock": self._clock, "edit": self._edit,
        }  # fmt: skip
        (name,) = self._chance.choices(list(makes), [weights[name] for name in makes])
        return makes[name]()

    def _one(self, things: Sequence[T]) -> T:
        return self._chance.choice(things)

    def _who(self) -> dict[str, Any]:
        return {
            "client": self._chance.randrange(self._clients),
            "after_ms": self._one(PAUSES_MS),
            "beside": self._chance.random() < self._haste,
        }

    def _host(self) -> int:
        return self._chance.randrange(min(self._hosts, len(HOSTS)))

    def _place(self) -> dict[str, Any]:
        seat = self._chance.randrange(min(self._seats, len(SEATS)))
        return {**self._who(), "host": self._host(), "seat": seat}

    def _text(self, what: str) -> str:
        self._texts += 1
        return f"{what}{self._texts}"

    def _token(self) -> Literal["none", "current", "stale"]:
        tokens: tuple[Literal["none", "current", "stale"], ...] = (
            "none", "none", "none", "current", "current", "stale",
        )  # fmt: skip
        return self._one(tokens)

    # --- operations ------------------------------------------------------------------------------

    def _prompt(self) -> AnyOp:
        moves = tuple(self._move() for _ in range(self._one((1, 2, 2, 3, 4))))
        text = self._text("prompt")
        if self._chance.random() < 0.03:
            text = " "
        return Prompt(
            **self._place(),
            text=text,
            moves=moves,
            token=self._token(),
            when_busy=self._one(("refuse", "queue", "queue")),
            key=self._one(("", "", "", f"key of {text}", "prompt key")),
            model=self._one(("",) * 30 + ("no-such:model",)),
            size=self._one(("usual",) * 60 + ("huge",)),
            wait=self._one(("end", "end", "reply")),
        )

    def _stop(self) -> AnyOp:
        return StopNamed(
            **self._place(),
            which=self._one(
                ("running", "running", "running", "late", "early", "queued", "foreign")
            ),
        )

    def _cancel(self) -> AnyOp:
        return StopUnnamed(**self._place(), token=self._token())

    def _swap(self) -> AnyOp:
        return Swap(
            **self._place(),
            to=self._one(
                ("new", "new", "known", "known", "missing", "newest", "of_other_seat", "same")
            ),
            pick=self._chance.randrange(4),
            name=self._one(("", "", "named")),
        )

    def _append(self) -> AnyOp:
        return Append(
            **self._place(),
            text=self._text("entry"),
            entries=self._one((0, 1, 1, 1, 3)),
            token=self._one(("current", "current", "current", "stale")),
            key=self._one(("", "", "k1", "k2")),
        )

    def _park(self) -> AnyOp:
        return Park(**self._place())

    def _look(self) -> AnyOp:
        return Look(
            **self._place(),
            at=self._one(("session", "turn", "approvals", "settings", "policy", "unhandled")),
        )

    def _answer(self) -> AnyOp:
        return Answer(
            **self._place(),
            which=self._one(("open", "open", "closed", "of_other_seat", "unknown")),
            choice=self._one(CHOICES),
        )

    def _close_seat(self) -> AnyOp:
        return CloseSeat(**self._place())

    def _change(self) -> AnyOp:
        modes: tuple[Mode, ...] = ("safe", "yolo", "plan")
        rules: tuple[Rule, ...] = ("allow", "ask", "deny")
        match self._chance.randrange(5):
            case 0 | 1:
                return ChangeMode(**self._who(), host=self._host(), mode=self._one(modes))
            case 2:
                return ChangeModel(**self._who(), host=self._host())
            case _:
                tool = self._one(RULED_TOOLS)
                return ChangeRule(
                    **self._who(), host=self._host(), tool=tool, rule=self._one(rules)
                )

    def _read(self) -> AnyOp:
        return ReadSessions(**self._who())

    def _misroute(self) -> AnyOp:
        owners: tuple[Literal["session", "turn", "approval", "settings"], ...] = (
            "session", "turn", "approval", "settings",
        )  # fmt: skip
        return Misroute(**self._place(), owner=self._one(owners))

    def _flood(self) -> AnyOp:
        return Flood(**self._place(), asks=2_500)

    # --- accidents -------------------------------------------------------------------------------

    def _process(self) -> AnyOp:
        match self._chance.randrange(4):
            case 0 | 1:
                return KillHost(**self._who(), host=self._host())
            case 2:
                return CloseHost(**self._who(), host=self._host())
            case _:
                for_ms = self._one((50, 400, 3_000, 40_000))
                return StopProcess(**self._who(), host=self._host(), for_ms=for_ms)

    def _power(self) -> AnyOp:
        return PowerLoss(**self._who())

    def _disk(self) -> AnyOp:
        return DiskTrouble(
            **self._who(),
            kind=self._one(TROUBLES),
            at=self._one(PLACES[self._theme == "settings"]),
            nth=self._chance.randint(1, 6),
            for_ms=self._one((10, 200, 2_000)),
        )

    def _crash(self) -> AnyOp:
        return CrashOwner(
            **self._who(),
            host=self._host(),
            owner=self._one(("session", "turn", "turn", "approval", "settings")),
            nth=self._chance.randint(1, 8),
        )

    def _clock(self) -> AnyOp:
        return ClockBack(**self._who(), ms=self._one((5, 3_600_000)))

    def _edit(self) -> AnyOp:
        pick = self._chance.randrange(4)
        return EditFile(
            **self._who(),
            pick=pick,
            how=self._one(("append", "append", "truncate", "delete", "garble")),
        )

    # --- what models and users do ----------------------------------------------------------------

    def _move(self) -> Move:
        match self._chance.choices(range(5), (5, 9, 3, 1, 1))[0]:
            case 0:
                return Say(
                    pieces=self._one((0, 1, 3)),
                    pause_ms=self._one((0, 0, 10, 200)),
                    stop=self._one(("stop", "stop", "stop", "length")),
                )
            case 1:
                calls = tuple(self._use() for _ in range(self._one((1, 1, 2, 3))))
                stops: tuple[Literal["toolUse", "length"], ...] = ("toolUse",) * 9 + ("length",)
                return Use(calls=calls, stop=self._one(stops))
            case 2:
                return Fail(
                    kind=self._one(KINDS),
                    pieces=self._one((0, 1)),
                    retry_after_ms=self._one((0, 0, 700, 500_000)),
                )
            case 3:
                return Stall(when_cancelled=self._one(("ends", "late")))
            case _:
                return Garbage(
                    kind=self._one(("no_done", "raises", "no_event", "bad_arguments", "same_ids"))
                )

    def _use(self) -> ToolUse:
        path = self._one(BAD_PATHS) if self._chance.random() < 0.08 else self._one(PATHS)
        return ToolUse(
            tool=self._one(TOOLS),
            path=path,
            text=self._text("line"),
            ms=self._one((0, 10, 200, 2_000)),
        )

    def _answer_plan(self) -> AnswerPlan:
        hows: tuple[Literal["once", "twice", "wrong_seat_first", "never"], ...] = (
            "once", "once", "once", "once", "twice", "wrong_seat_first", "never",
        )  # fmt: skip
        return AnswerPlan(
            choice=self._one(CHOICES), after_ms=self._one(PAUSES_MS), how=self._one(hows)
        )
