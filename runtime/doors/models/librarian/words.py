"""Key words: what of a question is worth looking for."""

import re
import unicodedata
from collections.abc import Callable, Iterable

from tenure.runtime.doors.models.librarian.stop_words import stop_words_for

WORDS_MAX = 6
WORD_CHARS_MAX = 80
QUESTION_CHARS_MAX = 4_000
"""Words further on (a pasted text) are not looked for."""

CJK_STOPS = re.compile(
    # Chinese: longer ones first.
    "为什么|是什么|什么时候|什么|怎么样|怎么|如何|哪里|哪些|哪个|哪儿|多少|我们|你们|他们|她们|"
    "关于|請問|请问|告诉|一下|这个|那个|這個|那個|可以|是否|有没有|沒有|没有|以及|还有|還有|"
    "關於|甚麼|什麼|為什麼|怎麼|[的了吗嗎呢吧是在有和与與把被对對我你他她它们們这那這哪谁誰也都]|"
    # Japanese: function words and endings are in Hiragana, which splits the words.
    "[\u3041-\u309f]+"
)

KOREAN_ENDINGS = (
    "에서는",
    "으로는",
    "에서",
    "에게",
    "으로",
    "이란",
    "까지",
    "부터",
    "에는",
    "은",
    "는",
    "이",
    "가",
    "을",
    "를",
    "에",
    "의",
    "로",
    "과",
    "와",
    "도",
)

ENDINGS: tuple[str, ...] = (
    "ciones", "ements", "ations", "ation", "ement", "tions", "ments", "ungen", "ingly", "ción",
    "ings", "ment", "tion", "edly", "ung", "ies", "ing", "ed", "es", "en", "er", "ly", "s", "e",
    "n",
)  # fmt: skip
"""Endings of Western European words, the long before the short."""


_QUOTED = re.compile(r"[\"“”«»„「『](.+?)[\"“”«»」』]")
_WORD = re.compile(r"\w+(?:[-_.@/+#]+\w+)*(?:\+\+|#)?")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f々]+")
_HANGUL = re.compile("^[\uac00-\ud7a3]+$")


def folded(text: str) -> str:
    """The text as it is compared: composed, upper and lower case the same."""
    return unicodedata.normalize("NFC", text).casefold()


def key_words(text: str) -> tuple[str, ...]:
    """What to look for, in the order of the question; quoted phrases stay whole.

    At most `WORDS_MAX`, the longest where there are more.
    """
    text = unicodedata.normalize("NFC", text[:QUESTION_CHARS_MAX])
    found = [" ".join(phrase.split()) for phrase in _QUOTED.findall(text)]
    loose = _WORD.findall(_QUOTED.sub(" ", text).replace("\u2019", "'"))
    stops = stop_words_for([folded(word) for word in loose])
    for word in loose:
        found += _parts(word, stops)
    distinct: dict[str, str] = {}
    for word in found:
        if 0 < len(word) <= WORD_CHARS_MAX:
            distinct.setdefault(folded(word), word)
    words = list(distinct.values())
    if len(words) > WORDS_MAX:
        kept = sorted(words, key=_weight, reverse=True)[:WORDS_MAX]
        words = [word for word in words if word in kept]
    return tuple(words)


def stem(word: str) -> str:
    """The beginning that other forms of a word share; the word itself where none is sure."""
    if " " in word or not word.isalpha() or is_cjk(word) or _HANGUL.match(word):
        return word
    for ending in ENDINGS:
        rest = word[: -len(ending)]
        if folded(word).endswith(ending) and len(rest) >= 4:
            return rest
    return word


def is_cjk(word: str) -> bool:
    return bool(_CJK.search(word))


class Finder:
    """Tells which of some words stand in a text.

    A word of letters stands only where a word of the text begins with it; a
    Chinese or Japanese one stands anywhere.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._patterns = {word: _pattern(word) for word in words}

    def words_in(self, text: str) -> frozenset[str]:
        hay = folded(text)
        return frozenset(word for word, found in self._patterns.items() if found(hay))


def _pattern(word: str) -> Callable[[str], object]:
    needle = folded(word)
    if is_cjk(word) or not needle[:1].isalnum():
        return lambda hay: needle in hay
    search = re.compile(rf"(?<![^\W_]){re.escape(needle)}").search
    # The plain look is much faster, and mostly enough to say no.
    return lambda hay: needle in hay and search(hay)


def _weight(word: str) -> int:
    """Long words say more; a sign of Chinese or Japanese as much as three letters."""
    return len(word) * (3 if is_cjk(word) else 1)


def _parts(word: str, stops: frozenset[str]) -> list[str]:
    if is_cjk(word):
        return _cjk_words(word, stops)
    if _HANGUL.match(word):
        return [_without_korean_ending(word)]
    if folded(word) in stops or (len(word) < 2 and not word.isdigit()):
        return []
    return [word.strip("_")]


def _cjk_words(run: str, stops: frozenset[str]) -> list[str]:
    """The words of a run without blanks: what the function words leave, long pieces in pairs."""
    words: list[str] = []
    for piece in _CJK.findall(run):
        for part in CJK_STOPS.split(piece):
            if not part:
                continue
            words.append(part)
            if len(part) > 3 and not _is_katakana(part):
                words += [part[i : i + 2] for i in range(0, len(part) - 1, 2)]
    others = [w for w in _CJK.sub(" ", run).split() if len(w) > 1]
    return words + [w for w in others if folded(w) not in stops]


def _is_katakana(text: str) -> bool:
    return all("\u30a0" <= sign <= "\u30ff" for sign in text)


def _without_korean_ending(word: str) -> str:
    for ending in KOREAN_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            return word[: -len(ending)]
    return word
