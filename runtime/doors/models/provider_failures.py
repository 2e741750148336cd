"""What went wrong with a provider, as one of our kinds, in words without a secret."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tenure.messages.models import FailureKind, ModelFailure
from tenure.runtime.doors.models.names import ModelName
from tenure.runtime.doors.models.providers import KEYS, OPTIONAL_KEYS

WORDS_CHARS_MAX = 300

BY_CLASS: tuple[tuple[str, FailureKind], ...] = (
    ("ModelContextWindowExceededError", "context_exceeded"),
    ("ModelAuthenticationError", "auth"),
    ("ModelQuotaExceededError", "invalid"),
    ("ModelRateLimitError", "rate_limit"),
    ("ModelUnavailableError", "overloaded"),
    ("ModelServerError", "overloaded"),
    ("ModelConnectionError", "transport"),
    ("ModelRequestTimeout", "transport"),
    ("ContentFilterError", "refused"),
    ("ModelRequestRejectedError", "invalid"),
    ("UnexpectedModelBehavior", "invalid"),
    ("UserError", "invalid"),
)
"""The library's categories, the particular before the general.

By name: a library that lacks a category (they grew over time) then still loads,
and the status below decides.
"""

CONTEXT_CODES = frozenset({"context_length_exceeded", "context_window_exceeded"})

CONTEXT_WORDS = re.compile(
    r"context[_ ](length|window|size)|maximum context|prompt is too long|too many tokens"
    r"|exceeds? the (available )?context|input is too long|reduce the length",
    re.IGNORECASE,
)

FILTER_CODES = frozenset({"content_filter", "content_policy_violation"})

_SECRETS = re.compile(
    r"\b(?:sk|pk|key|api)-[\w*.-]{4,}|\bBearer\s+\S+|\bAIza[\w-]{10,}|(?<=://)[^/\s@]+@",
    re.IGNORECASE,
)


class Unreadable(Exception):
    """What came over the connection is not of the shape that the interface promises."""


def failure_of(error: BaseException, name: ModelName, key: str) -> ModelFailure:
    """The failure that an exception of the library or of an SDK stands for.

    Args:
        key: the key that was sent, so that no echo of it passes.
    """
    kind = _kind(error)
    return ModelFailure(
        kind=kind,
        reason=_reason(kind, error, name, key),
        retry_after_ms=_retry_after_ms(error),
    )


def scrubbed(text: str, key: str) -> str:
    """The text without keys, on one line, not long."""
    if len(key) >= 4:
        text = text.replace(key, "[key]")
    return " ".join(_SECRETS.sub("[key]", text).split())[:WORDS_CHARS_MAX]


def _kind(error: BaseException) -> FailureKind:
    names = {cls.__name__ for cls in type(error).__mro__}
    kind = next((kind for cls, kind in BY_CLASS if cls in names), None)
    status = getattr(error, "status_code", None)
    code = getattr(error, "provider_error_code", None) or _of_body(error, "code")
    words = f"{_of_body(error, 'message')} {error}"
    if kind in ("invalid", None) or kind == "auth":
        if code in CONTEXT_CODES or (status in (400, 413, 422) and CONTEXT_WORDS.search(words)):
            return "context_exceeded"
        if code in FILTER_CODES:
            return "refused"
    if kind is not None:
        return kind
    if isinstance(status, int):
        return _kind_of_status(status)
    if "ModelAPIError" in names or any(_is_transport(cause) for cause in _chain(error)):
        return "transport"
    return "bug"


def _kind_of_status(status: int) -> FailureKind:
    if status in (401, 403):
        return "auth"
    if status == 429:
        return "rate_limit"
    if status == 408:
        return "transport"
    return "overloaded" if status >= 500 else "invalid"


def _is_transport(error: BaseException) -> bool:
    """Whether the connection failed, or what came over it could not be read."""
    if isinstance(error, Unreadable | json.JSONDecodeError | UnicodeDecodeError | OSError):
        return True
    module = type(error).__module__.partition(".")[0]
    return module in ("httpx", "httpx2", "httpcore", "httpcore2", "h11")


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _reason(kind: FailureKind, error: BaseException, name: ModelName, key: str) -> str:
    said = scrubbed(_of_body(error, "message") or _plain(error), key)
    variable = KEYS.get(name.provider) or OPTIONAL_KEYS.get(name.provider)
    where = f" at {name.base_url}" if name.base_url else ""
    match kind:
        case "auth":
            check = f"check {variable}" if variable else "check the key"
            return f"{name.provider}{where} does not accept the key; {check}"
        case "rate_limit":
            return f"{name.provider} asks for fewer requests: {said}"
        case "overloaded":
            return f"{name.provider}{where} has trouble of its own: {said}"
        case "context_exceeded":
            return f"the conversation is too long for {name.name}: {said}"
        case "transport":
            return f"the connection to {name.provider}{where} failed: {said}"
        case "refused":
            return f"{name.provider} declined the content: {said}"
        case "invalid":
            return f"{name.provider}{where} did not take the request: {said}"
    return f"{type(error).__name__}: {said}"


def _plain(error: BaseException) -> str:
    status = getattr(error, "status_code", None)
    if status is not None:
        return f"HTTP status {status}"
    return str(error) or type(error).__name__


def _of_body(error: BaseException, field: str) -> str:
    """A field of the error that the provider sent, whichever way it was wrapped."""
    body: Any = getattr(error, "body", None)
    for _ in range(2):
        if isinstance(body, dict) and isinstance(body.get("error"), dict):
            body = body["error"]
    value = body.get(field) if isinstance(body, dict) else None
    return value if isinstance(value, str) else ""


def _retry_after_ms(error: BaseException) -> int:
    seconds = getattr(error, "retry_after", None)
    return max(int(seconds * 1000), 0) if isinstance(seconds, int | float) else 0
