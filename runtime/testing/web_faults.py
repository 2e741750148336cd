"""What a simulated server is asked and answers, and what can go wrong between the two."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

import msgspec

from tenure.messages.tokens import ProcessName


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRequest:
    """One request, as the server gets it and as watchers see it."""

    process: ProcessName
    """Who asks; a real server does not know."""
    number: int
    """Counts the requests of one net, from 1."""
    method: str
    url: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def origin(self) -> str:
        """`https://host:port`, the port only where it is not the usual one."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.url).query, keep_blank_values=True))

    @property
    def form(self) -> dict[str, str]:
        """The fields of a form that was posted."""
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class WebResponse:
    """An answer."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | AsyncIterator[bytes] = b""
    """Whole, or in pieces as they come."""


WebServer = Callable[[WebRequest], Awaitable[WebResponse]]
"""A server: an async callable.  Its state lives where you keep it; no host's death ends it."""

# --- faults ----------------------------------------------------------------------------------


class NotConnected(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing listens: refused at once, or `silent` until the client has waited long enough."""

    how: Literal["refused", "silent"] = "refused"


class RequestLost(msgspec.Struct, frozen=True, kw_only=True):
    """It is sent and never reaches the server: the connection breaks, or is `silent`."""

    how: Literal["broken", "silent"] = "broken"


class AnswerLost(msgspec.Struct, frozen=True, kw_only=True):
    """The server has done it; its answer never comes."""

    how: Literal["broken", "silent"] = "broken"


class AnswerSlow(msgspec.Struct, frozen=True, kw_only=True):
    """The answer comes late, and each piece of it."""

    ms: int


class AnswerCut(msgspec.Struct, frozen=True, kw_only=True):
    """The connection breaks after so many bytes of the body."""

    bytes_kept: int


class RequestDoubled(msgspec.Struct, frozen=True, kw_only=True):
    """The server gets it twice, as from a proxy that tries again; its second answer comes."""


class PiecesDoubled(msgspec.Struct, frozen=True, kw_only=True):
    """Every piece of the answer comes twice, as from a stream that was resumed too early."""


class Garbled(msgspec.Struct, frozen=True, kw_only=True):
    """The body is something else: a page of a hotel's network."""

    body: bytes = b"<html>Please accept our terms.</html>"


class StatusInstead(msgspec.Struct, frozen=True, kw_only=True):
    """Something in between answers: before the server saw it, or after it had done it."""

    status: int
    when: Literal["before", "after"] = "before"
    headers: dict[str, str] = {}
    body: bytes = b""


class KillAsking(msgspec.Struct, frozen=True, kw_only=True):
    """The asking process dies: before the request leaves it, or after the server has done it."""

    when: Literal["before", "after"]


WebFault = (
    NotConnected | RequestLost | AnswerLost | AnswerSlow | AnswerCut | RequestDoubled
    | PiecesDoubled | Garbled | StatusInstead | KillAsking
)  # fmt: skip


class WebRule(msgspec.Struct, frozen=True, kw_only=True):
    """Which request a fault hits: the `nth` that matches, and where `lasting` all later ones."""

    fault: WebFault
    url_has: str = ""
    """What its URL contains; empty for any."""
    method: str = ""
    pid: int = 0
    """Of which process; 0 for any."""
    nth: int = 1
    hits: Literal["once", "lasting"] = "once"

    def matches(self, request: WebRequest) -> bool:
        return (
            self.url_has in request.url
            and self.method in ("", request.method)
            and self.pid in (0, request.process.pid)
        )


class WebRules:
    """Rules for `net.before`; the first that hits decides, and every rule counts every match."""

    def __init__(self, *rules: WebRule) -> None:
        self._rules = rules
        self._matched = [0] * len(rules)

    def __call__(self, request: WebRequest) -> WebFault | None:
        hit: WebFault | None = None
        for place, rule in enumerate(self._rules):
            if not rule.matches(request):
                continue
            self._matched[place] += 1
            matched = self._matched[place]
            due = matched == rule.nth or (rule.hits == "lasting" and matched > rule.nth)
            if due and hit is None:
                hit = rule.fault
        return hit


FAULTS: tuple[WebFault, ...] = (
    NotConnected(), NotConnected(how="silent"), RequestLost(), RequestLost(how="silent"),
    AnswerLost(), AnswerLost(how="silent"), AnswerSlow(ms=50), AnswerSlow(ms=5_000),
    AnswerCut(bytes_kept=0), AnswerCut(bytes_kept=10), RequestDoubled(), PiecesDoubled(),
    Garbled(), StatusInstead(status=503), StatusInstead(status=502, when="after"),
    StatusInstead(status=429, headers={"retry-after": "2"}), StatusInstead(status=500),
)  # fmt: skip
"""What `SeededWebFaults` chooses from."""


class SeededWebFaults:
    """For `net.before`: one request in so many goes wrong, as chance will have it."""

    def __init__(
        self, chance: random.Random, one_in: int = 6, faults: tuple[WebFault, ...] = FAULTS
    ) -> None:
        self._chance = chance
        self._one_in = one_in
        self._faults = faults

    def __call__(self, request: WebRequest) -> WebFault | None:
        if self._chance.randrange(self._one_in):
            return None
        return self._chance.choice(self._faults)
