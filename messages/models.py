"""The model port's vocabulary, neutral between providers.

A model is an async callable `(ModelRequest) -> AsyncIterator[ModelEvent]`.  It
yields text and tool calls as they come and ends with one `ModelDone`; it raises
`ModelCallError` with a typed failure.  When its task is cancelled it stops at once.
"""

from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import msgspec

from tenure.messages.content import ChatMessage, StopReason, Usage

FailureKind = Literal[
    "auth",
    "rate_limit",
    "overloaded",
    "context_exceeded",
    "transport",
    "refused",
    "invalid",
    "cancelled",
    "bug",
]
"""auth: key missing or wrong.  rate_limit: 429.  overloaded: 5xx and 529.
context_exceeded: the conversation is too long.  transport: no connection, cut, too
slow.  refused: the provider declined the content.  invalid: the provider said the
request was wrong, or we could not read its answer.  cancelled: we stopped it.
bug: the model's own code raised."""

Thinking = Literal["default", "off", "minimal", "low", "medium", "high", "xhigh"]
"""How much a model is to think; `default` leaves it to the model, and a model that
lacks a level takes the nearest that it has."""

INVALID_JSON = "__invalid_json__"
"""The one argument of a tool call whose arguments were no JSON object: what the model wrote."""

RETRYABLE: frozenset[str] = frozenset({"rate_limit", "overloaded", "transport"})


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the model and the approval see it."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema of the arguments: an object."""
    label: str = ""
    """For people; empty takes the name."""
    mutating: bool = True
    """False only for what changes nothing."""
    sequential: bool = False
    """True: a batch with this tool runs one call after another."""
    previews: bool = False
    """True: a change to a file that can be shown before it is made."""
    path_arguments: tuple[str, ...] = ()
    """The arguments that name files, for the working-directory boundary and for undo."""
    command_argument: str = "command"
    """The argument, if there is one, that is a command line, for rules with a pattern."""
    follows_links: bool = True
    """False: it works on the name itself, as a rename does, and not on where a link leads."""


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    system: str
    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    session_id: str = ""
    """For a provider's prompt cache."""
    thinking: Thinking = "default"


class ModelText(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    text: str


class ModelThinking(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    text: str
    signature: str = ""


class ModelToolCall(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """One whole tool call."""

    id: str
    name: str
    arguments: dict[str, Any] | str
    """The arguments; a string where the model wrote no valid JSON object."""


class ModelDone(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """The end of a call.  Exactly one, last."""

    stop_reason: StopReason = "stop"
    usage: Usage = Usage()
    model: str = ""
    """The model that the provider says it used."""
    provider: str = ""
    api: str = ""
    provider_part: Any = None


ModelEvent = ModelText | ModelThinking | ModelToolCall | ModelDone

Model = Callable[[ModelRequest], AsyncIterator[ModelEvent]]


class ModelFailure(msgspec.Struct, frozen=True, kw_only=True):
    kind: FailureKind
    reason: str
    """One sentence for people; never a key."""
    retry_after_ms: int = 0
    """What the provider asked for; 0 for nothing."""


class ModelCallError(Exception):
    """Raised by a model for a failure that it can name."""

    def __init__(self, failure: ModelFailure) -> None:
        super().__init__(f"{failure.kind}: {failure.reason}")
        self.failure = failure
