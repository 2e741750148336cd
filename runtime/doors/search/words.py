"""The words of a text, as the keyword index has them and as a query asks for them.

Words are folded (case, accents, width).  Scripts that are written without spaces give
every pair of neighbours, and the last character alone, so that a word of one or two
characters is found wherever it stands.
"""

import unicodedata
from collections.abc import Iterator

import regex

_ASCII = regex.compile(r"[a-z0-9]+")
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー々"
_RUNS = regex.compile(rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])[\p{{L}}\p{{M}}\p{{N}}])+")
_IS_UNSPACED = regex.compile(rf"[{_UNSPACED}]")
_ACCENTS = regex.compile(r"[\u0300-\u036f]+")

WORD_CHARS_MAX = 64


def words_of(text: str) -> list[str]:
    """All words in their order, folded."""
    if text.isascii():
        return [word[:WORD_CHARS_MAX] for word in _ASCII.findall(text.lower())]
    return list(_words(folded(text)))


def folded(text: str) -> str:
    """Without case, accents and width; what is composed in two ways is the same."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", apart)).casefold()


def _words(text: str) -> Iterator[str]:
    for run in _RUNS.findall(text):
        if _IS_UNSPACED.match(run):
            yield from (run[at : at + 2] for at in range(len(run)))
        else:
            yield run[:WORD_CHARS_MAX]


def is_unspaced(word: str) -> bool:
    """Whether a word is a piece of a script that is written without spaces."""
    return _IS_UNSPACED.match(word) is not None
