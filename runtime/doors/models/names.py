"""Model strings: `PROVIDER:NAME`, with `@URL` behind it where the place is not the usual one.

    librarian
    scripted:answers.json
    openai:gpt-5
    openai-compatible:qwen3@http://127.0.0.1:8080/v1

The full string names a model completely, so a turn that was prepared with one
calls the same model at the same place even if the settings change meanwhile.
"""

import re
from typing import Self
from urllib.parse import urlsplit

import msgspec

from tenure.messages.models import FailureKind

HOST = "host"
"""Names the callable that the embedding host gave."""

LIBRARIAN = "librarian"

KNOWN = (
    "librarian",
    "scripted:FILE",
    "openai:NAME",
    "anthropic:NAME",
    "ollama:NAME",
    "openai-compatible:NAME (with a base URL)",
)

_PLACE = re.compile(r"@(?=https?://)", re.IGNORECASE)


class NotAvailable(Exception):
    """This model cannot be called as things are; `reason` says what to do."""

    def __init__(self, reason: str, kind: FailureKind = "invalid") -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind: FailureKind = kind


class ModelName(msgspec.Struct, frozen=True, kw_only=True):
    provider: str
    """`openai`, or the whole string where there is no colon."""
    name: str = ""
    base_url: str = ""

    def __str__(self) -> str:
        text = f"{self.provider}:{self.name}" if self.name else self.provider
        return f"{text}@{self.base_url}" if self.base_url else text

    def at(self, base_url: str) -> Self:
        """The same model at another place.

        Raises:
            NotAvailable: not a URL that can be used, or one that holds a secret.
        """
        return msgspec.structs.replace(self, base_url=_checked(base_url))


def parsed(text: str) -> ModelName:
    """Read a model string.

    Raises:
        NotAvailable: it is empty, or its URL cannot be used.
    """
    head, *place = _PLACE.split(text.strip(), maxsplit=1)
    if not head:
        raise NotAvailable(f"no model is named; known are {', '.join(KNOWN)}")
    provider, _, name = head.partition(":")
    base_url = _checked(place[0]) if place else ""
    return ModelName(provider=provider.strip(), name=name.strip(), base_url=base_url)


def _checked(base_url: str) -> str:
    """The URL without a slash at its end.  It stands in transcripts, so it may hold no secret."""
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme.lower() not in ("http", "https") or not host:
        raise NotAvailable("the base URL must look like http://HOST:PORT/v1 or https://HOST/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise NotAvailable(
            "the base URL must hold no user, password or query: it is written into transcripts. "
            "Put the key into the environment"
        )
    return base_url.rstrip("/")
