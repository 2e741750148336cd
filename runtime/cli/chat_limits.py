"""What a chat says about the next prompt alone, and about what was used."""

from typing import get_args

import click
from msgspec.structs import replace

from tenure.messages.limits import Overrides
from tenure.messages.models import Thinking
from tenure.runtime.cli.screen import Screen
from tenure.runtime.cli.usage import usage_lines
from tenure.runtime.seat import Seat

HELP = """\
/model NAME   the model of the next prompt alone
/thinking L   how much the model thinks in the next prompt: off, minimal, low, medium,
              high, xhigh
/budget K N   a bound for the next prompt: usd, tokens, requests, tool-calls, seconds
/usage        what this session has used"""

_BOUNDS = {
    "usd": "usd_max",
    "tokens": "tokens_max",
    "requests": "requests_max",
    "tool-calls": "tool_calls_max",
    "seconds": "wall_time_s_max",
}


class NextPrompt:
    """One-shot overrides.  A turn that began uses them up; one that was refused does not."""

    def __init__(self, standing: Overrides) -> None:
        self._standing = standing
        self.model = ""
        self.overrides = standing

    def used(self) -> None:
        self.model, self.overrides = "", self._standing

    def say(self, word: str, text: str) -> str | None:
        """What to tell about a command; None where it is not one of these."""
        match word:
            case "/model":
                self.model = text
                return f"the next prompt goes to {text}" if text else "the usual model again"
            case "/thinking":
                return self._think(text)
            case "/budget":
                return self._bound(text)
            case _:
                return None

    def _think(self, text: str) -> str:
        levels: tuple[Thinking, ...] = get_args(Thinking)
        for level in levels:
            if level == (text or "default"):
                self.overrides = replace(self.overrides, thinking=level)
                return f"thinking in the next prompt: {level}"
        return f"/thinking takes one of: {', '.join(levels)}"

    def _bound(self, text: str) -> str:
        kind, _, amount = text.partition(" ")
        field = _BOUNDS.get(kind)
        if field is None:
            return f"/budget takes a kind ({', '.join(_BOUNDS)}) and a number"
        whole = kind in ("tokens", "requests", "tool-calls")
        number = click.IntRange(min=1) if whole else click.FloatRange(min=0, min_open=True)
        try:
            value = number(amount.strip())
        except click.UsageError as wrong:
            return f"/budget {kind}: {wrong.message}"
        budget = replace(self.overrides.budget, **{field: value})
        self.overrides = replace(self.overrides, budget=budget)
        return f"the next prompt may use {amount.strip()} {kind}"


async def show_usage(seat: Seat, screen: Screen) -> None:
    said = list(usage_lines(await seat.usage()))
    for line in said or ["nothing was used yet"]:
        screen.note(line)
