"""Questions: look for the key words, read around what was found, quote it."""

import re
from typing import Any

from tenure.runtime.doors.models.librarian.orders import HELP
from tenure.runtime.doors.models.librarian.passages import (
    Lines,
    Passage,
    Weights,
    hits_in,
    merged,
    notes_in,
    ranked,
    rows_in,
)
from tenure.runtime.doors.models.librarian.quotes import (
    QUOTE_LINES_MAX,
    SIGNED,
    cited_in,
    listed,
    quote,
)
from tenure.runtime.doors.models.librarian.speech import Calls, Say
from tenure.runtime.doors.models.librarian.turn import Done, Turn
from tenure.runtime.doors.models.librarian.words import Finder, key_words, stem

PASSAGES_MAX = 5
NAMED_FILES_MAX = 5
NAMES_DEPTH = 6
FOLLOWED_BACK_MAX = 3

_GOES_ON = re.compile(
    r"^\W*(?:and|but|so|ok|okay|what about|how about|what else|anything else|more|also|why|und|"
    r"et|y|e|en|mais|aber|pero|那么|那|还有|では|じゃあ|그리고|그럼)\b"
    r"|\b(?:it|that|this|those|them|they|he|she|there)\b[\s?.!]*$",
    re.IGNORECASE,
)


def answer_question(text: str, turn: Turn) -> Say | Calls:
    """The next step towards an answer: search, look again in other forms, read, tell."""
    weights, cited = _weights(text, turn)
    if not weights.words:
        return _overview(turn)
    searches = turn.of("search")
    if not searches:
        return Calls(calls=tuple(_searches(weights.words, turn)))
    if all(done.is_error for done in searches):
        return Say(text=f"I could not search: {searches[0].text.strip()}")
    lines = merged(hits_in(done.text) for done in searches if not done.is_error)
    # A word that stands nowhere is looked for once more by its beginning.
    found = _found_words(lines, turn)
    again = _stems(weights.words, searches, found)
    if again:
        return Calls(calls=again)
    weights = _as_found(weights, searches)
    best = ranked(lines, weights, cited)[:PASSAGES_MAX]
    reads = turn.of("read")
    if best and not reads and "read" in turn.tools:
        return Calls(calls=tuple(("read", _window(passage)) for passage in best))
    return Say(text=_told(best, _read_lines(reads, lines), weights, turn, bool(cited)))


def _weights(text: str, turn: Turn) -> tuple[Weights, frozenset[str]]:
    """The words to look for, and the places that are known already.

    A question that goes on from the one before ("and what about Y?") takes its
    words along.  One without words of its own ("more?") asks for what was not
    told yet.
    """
    asked = key_words(text)
    if asked and not _GOES_ON.search(text):
        return Weights(asked=asked), frozenset()
    before: tuple[str, ...] = ()
    for earlier in turn.earlier_prompts[:FOLLOWED_BACK_MAX]:
        before = key_words(earlier)
        if before:
            break
    if asked:
        return Weights(asked=asked, before=before), frozenset()
    return Weights(asked=before), cited_in(turn.earlier_answers)


def _searches(words: tuple[str, ...], turn: Turn) -> list[tuple[str, dict[str, Any]]]:
    calls: list[tuple[str, dict[str, Any]]] = [("search", {"query": word}) for word in words]
    if "ls" in turn.tools:
        # The name of a file says as much as its text.
        calls.append(("ls", {"path": ".", "depth": NAMES_DEPTH}))
    return calls


def _stems(
    words: tuple[str, ...], searches: tuple[Done, ...], found: frozenset[str]
) -> tuple[tuple[str, dict[str, Any]], ...]:
    searched = {str(done.call.arguments.get("query")) for done in searches}
    stems = [stem(word) for word in words if word not in found]
    return tuple(
        ("search", {"query": short}) for short in dict.fromkeys(stems) if short not in searched
    )


def _found_words(lines: Lines, turn: Turn) -> frozenset[str]:
    """The words that a search was made for and that stand somewhere."""
    finder = Finder({str(done.call.arguments.get("query")) for done in turn.of("search")})
    texts = (text for rows in lines.values() for text in rows.values())
    return frozenset().union(*map(finder.words_in, texts))


def _as_found(weights: Weights, searches: tuple[Done, ...]) -> Weights:
    """The words in the form in which they were found."""
    searched = {str(done.call.arguments.get("query")) for done in searches}

    def form(word: str) -> str:
        return short if (short := stem(word)) in searched else word

    return Weights(
        asked=tuple(dict.fromkeys(map(form, weights.asked))),
        before=tuple(dict.fromkeys(map(form, weights.before))),
    )


def _window(passage: Passage) -> dict[str, Any]:
    return {"path": passage.path, "offset": passage.first, "limit": QUOTE_LINES_MAX}


def _read_lines(reads: tuple[Done, ...], lines: Lines) -> Lines:
    """The lines around what was found; the found ones themselves where reading failed."""
    read = {path: dict(rows) for path, rows in lines.items()}
    for done in reads:
        if not done.is_error:
            read.setdefault(str(done.call.arguments.get("path")), {}).update(rows_in(done.text))
    return read


def _told(
    best: tuple[Passage, ...], lines: Lines, weights: Weights, turn: Turn, further: bool
) -> str:
    parts: list[str] = []
    names = _named_files(weights, turn, {passage.path for passage in best})
    if best:
        files = len({passage.path for passage in best})
        more = "more " if further else ""
        where = "1 file" if files == 1 else f"{files} files"
        parts.append(f"I found {more}this in {where}:")
        parts += [quote(passage, lines[passage.path]) for passage in best]
    else:
        what = "nothing more" if further else "nothing"
        parts.append(f"I found {what} about {listed(weights.words)} in the files here.")
    if names:
        parts.append("Files whose names fit:\n" + "\n".join(names))
    missing = _not_found(best, weights)
    if best and missing:
        parts.append(f"Not found there: {listed(missing)}.")
    trouble = _trouble(turn)
    if trouble:
        parts.append(f"The search was not complete: {trouble}.")
    searched = dict.fromkeys(str(done.call.arguments.get("query")) for done in turn.of("search"))
    parts.append(f"Searched for {listed(searched)}. {SIGNED}")
    return "\n\n".join(parts)


def _not_found(best: tuple[Passage, ...], weights: Weights) -> list[str]:
    present = frozenset().union(*(passage.words for passage in best))
    return [word for word in weights.asked if word not in present]


def _named_files(weights: Weights, turn: Turn, quoted: set[str]) -> list[str]:
    names = [
        row
        for done in turn.of("ls")
        if not done.is_error
        for row in done.text.split("\n")
        if row and not row.startswith("[") and row.rstrip("/") not in quoted
    ]
    finder = Finder(weights.asked)
    fit = [(name, len(finder.words_in(name))) for name in names]
    best = sorted((-count, name) for name, count in fit if count)
    return [name for _, name in best[:NAMED_FILES_MAX]]


def _trouble(turn: Turn) -> str:
    told = [
        note
        for done in turn.of("search")
        for note in notes_in(done.text)
        if not note.startswith("no line matches")
    ]
    told += [done.text.strip() for done in turn.of("search") if done.is_error]
    return "; ".join(dict.fromkeys(told))


def _overview(turn: Turn) -> Say | Calls:
    """A prompt without a word to look for: show what there is, and what can be asked."""
    if "ls" not in turn.tools or not turn.prompt.strip():
        return Say(text=HELP)
    if not turn.of("ls"):
        return Calls(calls=(("ls", {"path": "."}),))
    done = turn.of("ls")[0]
    what = f"I cannot list the folder: {done.text}" if done.is_error else f"Here is:\n{done.text}"
    return Say(
        text=f"There is no key word in that to look for. {what}\n\n"
        f"Ask about something by its name, or say “help”. {SIGNED}"
    )
