"""What a query says: words, "phrases", -words that must not stand there, and filters.

Nothing of it reaches the keyword index as grammar: words are folded and quoted one by one.
"""

import re

import msgspec

from tenure.runtime.doors.search.words import words_of

QUERY_CHARS_MAX = 2_000
WORDS_MAX = 32

_PART = re.compile(
    r"(?P<minus>-)?(?:(?P<name>path|tag):)?(?:\"(?P<quoted>[^\"]*)\"?|(?P<bare>\S+))"
)


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """One question."""

    text: str
    """What a model is asked: everything but the filters and what must not be there."""
    words: tuple[str, ...]
    """Folded, each once."""
    phrases: tuple[tuple[str, ...], ...] = ()
    """Words that must stand side by side; one alone must stand there."""
    without: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    """A note's path must begin with, or hold, one of these."""
    tags: tuple[str, ...] = ()
    """A note must have all of these."""


class BadQuery(ValueError):
    """The query asks for nothing; the text says why."""


def parse_query(text: str) -> Query:
    """Raises `BadQuery`: it is empty, or too long."""
    if len(text) > QUERY_CHARS_MAX:
        raise BadQuery(f"the query is longer than {QUERY_CHARS_MAX:,} characters; shorten it")
    said: list[str] = []
    phrases: list[tuple[str, ...]] = []
    without: list[str] = []
    folders: list[str] = []
    tags: list[str] = []
    for part in _PART.finditer(text):
        quoted = part["quoted"] is not None
        value = part["quoted"] if quoted else part["bare"]
        if part["name"] == "path":
            folders.append(value.strip("/").lower())
        elif part["name"] == "tag":
            tags.append(value.lstrip("#").lower())
        elif part["minus"]:
            without += words_of(value)
        else:
            said.append(value)
            words = tuple(words_of(value))
            if quoted and words:
                phrases.append(words)
    whole = " ".join(said).strip()
    words = tuple(dict.fromkeys(words_of(whole)))[:WORDS_MAX]
    if not whole and not tags and not folders:
        raise BadQuery("the query is empty; give some words")
    return Query(
        text=whole,
        words=words,
        phrases=tuple(phrases),
        without=tuple(dict.fromkeys(without)),
        folders=tuple(folders),
        tags=tuple(tags),
    )
