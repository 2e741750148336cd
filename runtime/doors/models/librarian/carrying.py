"""Plain orders, carried out with tools."""

from typing import Any

from tenure.runtime.doors.models.librarian.orders import (
    HELP,
    Append,
    Delete,
    Help,
    List,
    Order,
    Read,
    Rename,
    Replace,
    Search,
    Write,
)
from tenure.runtime.doors.models.librarian.passages import notes_in, rows_in
from tenure.runtime.doors.models.librarian.quotes import cited_in
from tenure.runtime.doors.models.librarian.speech import Calls, Say, call
from tenure.runtime.doors.models.librarian.turn import Done, Turn

READ_LINES_MAX = 60
NAMES_MAX = 100
TAIL_LINES_MAX = 20

_NO_SUCH_FILE = ("does not exist", "is a folder", "is a file, not a folder")
"""How the workspace tools say that a name is not what was meant.  Nothing else is tried anew."""


def carry_out(order: Order, turn: Turn) -> Say | Calls | None:
    """The next step of an order; None where it turns out to be none."""
    match order:
        case Help():
            return Say(text=HELP)
        case Read():
            return _read(order, turn)
        case List():
            return _list(order, turn)
        case Append():
            return _append(order, turn)
        case Write():
            return _change(turn, "write", path=order.path, content=order.text)
        case Replace():
            edit = {"oldText": order.old, "newText": order.new}
            return _change(turn, "edit", path=order.path, edits=[edit])
        case Rename():
            return _change(turn, "rename", path=order.path, newPath=order.new_path)
        case Delete():
            return _change(turn, "delete", path=order.path)
        case Search():
            return None


def _change(turn: Turn, tool: str, **arguments: Any) -> Say | Calls:
    """One call that changes something; it is made once, whatever comes of it."""
    if not turn.of(tool):
        return call(tool, **arguments)
    (first, *_) = turn.of(tool)
    if first.is_error:
        return Say(text=f"That was not done: {_sentence(first)}")
    return Say(text=f"Done: {_sentence(first)}")


def _read(order: Read, turn: Turn) -> Say | Calls | None:
    path = order.path or _last_file(turn)
    if not path:
        return Say(text="I do not know which file you mean; name it.")
    if not turn.of("read"):
        last = order.last or order.first + READ_LINES_MAX - 1
        limit = max(min(last - order.first + 1, READ_LINES_MAX), 1)
        return call("read", path=path, offset=order.first, limit=limit)
    done = turn.of("read")[0]
    if not done.is_error:
        return Say(text=_shown(done, path))
    if "is a folder" in done.text:
        return _list(List(path=path), turn)
    return _not_found(done)


def _list(order: List, turn: Turn) -> Say | Calls | None:
    if not turn.of("ls"):
        return call("ls", path=order.path)
    done = turn.of("ls")[0]
    if done.is_error:
        return _not_found(done)
    where = "the workspace" if order.path == "." else order.path
    names = [row for row in done.text.split("\n") if row and not row.startswith("[")]
    if not names:
        return Say(text=f"There is nothing in {where}.")
    more = [f"… and {len(names) - NAMES_MAX:,} more"] if len(names) > NAMES_MAX else []
    return Say(text="\n".join((f"In {where}:", *names[:NAMES_MAX], *more, *notes_in(done.text))))


def _append(order: Append, turn: Turn) -> Say | Calls:
    """Read the file; write it if it is missing or empty, else add behind its last lines."""
    for tool in ("write", "edit"):
        if turn.of(tool):
            return _change(turn, tool)
    if not turn.of("read"):
        return call("read", path=order.path)
    done = turn.of("read")[0]
    if done.is_error and "does not exist" not in done.text:
        return Say(text=f"That was not done: {_sentence(done)}")
    rows = rows_in(done.text)
    if done.is_error or not rows:
        return call("write", path=order.path, content=order.text)
    note = " ".join(notes_in(done.text))
    if "go on with" in note or "CR LF" in note:
        why = "is too long" if "go on with" in note else "has CR LF line ends"
        return Say(text=f"I cannot append to {order.path}: it {why}. Edit it another way.")
    tail = _own_tail(list(rows.values()))
    if not tail:
        return Say(text=f"I cannot append to {order.path}: its end cannot be told from the rest.")
    added = f"{tail}\n{order.text.rstrip(chr(10))}"
    return call("edit", path=order.path, edits=[{"oldText": tail, "newText": added}])


def _own_tail(lines: list[str]) -> str:
    """The fewest last lines that stand in the file only once; empty where there are none."""
    whole = "\n".join(lines)
    for count in range(1, min(len(lines), TAIL_LINES_MAX) + 1):
        tail = "\n".join(lines[-count:])
        if tail.strip() and whole.count(tail) == 1 and whole.find(tail) == whole.rfind(tail):
            return tail
    return ""


def _shown(done: Done, path: str) -> str:
    rows = rows_in(done.text)
    notes = notes_in(done.text)
    if not rows:
        return done.text
    about = f"\n\n[{notes[-1]}]" if notes else f"\n\n[{path}]"
    return "\n".join(rows.values()) + about


def _not_found(done: Done) -> Say | None:
    """A name that is no file may have been a word of a question; a refusal is told."""
    if any(words in done.text for words in _NO_SUCH_FILE):
        return None
    return Say(text=f"That was not done: {_sentence(done)}")


def _last_file(turn: Turn) -> str:
    """The file that the last answer named first."""
    for answer in turn.earlier_answers:
        places = cited_in([answer])
        named = [row for row in answer.split("\n") if row in places]
        if named:
            return named[0].rpartition(":")[0]
    return ""


def _sentence(done: Done) -> str:
    text = done.text.strip() or "the tool said nothing"
    return text if text.endswith((".", "!", "?")) else text + "."
