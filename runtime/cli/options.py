"""What several commands take: where the workspace is, which session, which model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import click

from tenure.messages.limits import Budget, Overrides
from tenure.messages.models import Thinking

NO_OVERRIDES = Overrides()
Approval = Literal["ask", "allow", "deny"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """Go on with the newest session; start one where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """Start a new session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Open the session whose id is, or begins with, this text."""

    text: str


Start = Newest | Fresh | Named


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What `run` and `chat` are told."""

    root: str
    start: Start
    model: str | None
    base_url: str
    approve: Approval
    form: Literal["text", "json"]
    overrides: Overrides = NO_OVERRIDES
    """Thinking and budget of every turn that it starts."""


def root_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--root",
        metavar="DIR",
        help="The workspace.  Default: the nearest folder upward that has .tenure/, else this one.",
    )(command)


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")(
        command
    )


BOUND = click.FloatRange(min=0, min_open=True)
COUNT = click.IntRange(min=1)

_CONVERSATION_OPTIONS = (
    root_option,
    click.option("--session", metavar="ID", help="Open this session; its first characters do."),
    click.option("--new", "fresh", is_flag=True, help="Start a new session."),
    click.option(
        "--model",
        metavar="MODEL",
        help="librarian, openai:NAME, anthropic:NAME, ollama:NAME, openai-compatible:NAME, "
        "scripted:FILE.  Default: the one in the settings, else librarian.",
    ),
    click.option("--base-url", metavar="URL", default="", help="Where the model is served."),
    click.option(
        "--approve",
        type=click.Choice(("ask", "allow", "deny")),
        default="ask",
        show_default=True,
        help="What becomes of calls that the settings say to ask about.  "
        "Without a terminal, ask denies.",
    ),
    click.option(
        "--thinking",
        type=click.Choice(("off", "minimal", "low", "medium", "high", "xhigh")),
        help="How much the model thinks.  Default: as in the settings.",
    ),
    click.option(
        "--budget-usd", type=BOUND, metavar="N", help="Stop a turn that has cost so much, in $."
    ),
    click.option(
        "--budget-tokens", type=COUNT, metavar="N", help="Stop a turn that used so many tokens."
    ),
    click.option(
        "--budget-requests", type=COUNT, metavar="N", help="Stop a turn after so many model calls."
    ),
    click.option(
        "--budget-tool-calls",
        type=COUNT,
        metavar="N",
        help="Stop a turn that wants more tool calls.",
    ),
    click.option("--budget-seconds", type=BOUND, metavar="N", help="Stop a turn that runs longer."),
    json_option,
)


def conversation_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of `run` and `chat`; see `conversation_of`."""
    for option in reversed(_CONVERSATION_OPTIONS):
        command = option(command)
    return command


def conversation_of(
    *,
    root: str | None,
    session: str | None,
    fresh: bool,
    model: str | None,
    base_url: str,
    approve: Approval,
    as_json: bool,
    **limits: Any,
) -> Conversation:
    """What was given on the command line; raises a usage error where it cannot be meant."""
    if fresh and session is not None:
        raise click.UsageError("--session opens a session and --new starts one: give one of them")
    if base_url and model == "librarian":
        raise click.UsageError(
            "--base-url says where a model is served, and librarian runs here: leave one out"
        )
    start: Start = Newest()
    if fresh:
        start = Fresh()
    elif session is not None:
        start = Named(text=session)
    return Conversation(
        root=workspace(root),
        start=start,
        model=model,
        base_url=base_url,
        approve=approve,
        form="json" if as_json else "text",
        overrides=overrides_of(**limits),
    )


def overrides_of(
    *,
    thinking: Thinking | None,
    budget_usd: float | None,
    budget_tokens: int | None,
    budget_requests: int | None,
    budget_tool_calls: int | None,
    budget_seconds: float | None,
) -> Overrides:
    """What `--thinking` and the budgets say; what was not given is as in the settings."""
    budget = Budget(
        usd_max=budget_usd or 0.0,
        tokens_max=budget_tokens or 0,
        requests_max=budget_requests or 0,
        tool_calls_max=budget_tool_calls or 0,
        wall_time_s_max=budget_seconds or 0.0,
    )
    return Overrides(thinking=thinking or "default", budget=budget)


def workspace(given: str | None) -> str:
    """The root that is meant: the given one, else the nearest folder upward with `.tenure/`."""
    if given is not None:
        return given
    from tenure.runtime.doors.files import RealFiles

    files = RealFiles()
    here = files.real_path(".")
    folder = here
    while True:
        try:
            if files.stat(f"{folder.rstrip('/')}/.tenure").kind == "folder":
                return folder
        except OSError:
            pass  # there is none here, or none that we may see
        if folder == "/":
            return here
        folder = folder.rpartition("/")[0] or "/"
