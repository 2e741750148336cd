"""What a server says when it refuses: the `WWW-Authenticate` header, as a `Challenge`.

Read after RFC 9110 (several challenges in one header, quoted strings), RFC 6750
(`error`, `scope`) and RFC 9728 (`resource_metadata`).  The header comes from a
stranger: what makes no sense in it counts as not said.
"""

import re
from typing import Literal

from tenure.messages.mcp_auth import Challenge

HEADER_CHARS_MAX = 8_192
SCOPES_MAX = 64

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PART = re.compile(
    rf"\s*,*\s*(?:(?P<name>{_TOKEN})\s*=\s*(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|"
    rf"(?P<plain>[^\s,\"]+))(?=\s*(?:,|$))|(?P<scheme>{_TOKEN})(?:\s+|(?=,)|$))"
)
_SCOPE = re.compile(r"[\x21\x23-\x5B\x5D-\x7E]{1,256}")
_ERROR = re.compile(r"[\x20-\x21\x23-\x5B\x5D-\x7E]{1,64}")


def challenge_of(status: Literal[401, 403], header: str) -> Challenge:
    """The bearer challenge of a header; one that says nothing where there is none.

    Args:
        header: the value of `WWW-Authenticate`; several, joined with commas.
    """
    said = _bearer(header[:HEADER_CHARS_MAX])
    error = said.get("error", "")
    return Challenge(
        status=status,
        error=error if _ERROR.fullmatch(error) else "",
        scopes=scopes_in(said.get("scope", "")),
        resource_metadata=said.get("resource_metadata", ""),
    )


def scopes_in(text: str) -> tuple[str, ...]:
    """The scopes of a list with spaces, once each; what is no scope is left out."""
    found = (each for each in text.split(" ") if _SCOPE.fullmatch(each))
    return tuple(dict.fromkeys(found))[:SCOPES_MAX]


def _bearer(header: str) -> dict[str, str]:
    said: dict[str, str] = {}
    in_bearer = False
    at = 0
    while at < len(header):
        part = _PART.match(header, at)
        if part is None or part.end() == at:
            break
        at = part.end()
        if part["scheme"] is not None:
            if said:
                break
            in_bearer = part["scheme"].lower() == "bearer"
        elif in_bearer:
            value = part["plain"]
            if value is None:
                value = re.sub(r"\\(.)", r"\1", part["quoted"])
            said.setdefault(part["name"].lower(), value)
    return said
