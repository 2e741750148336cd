"""Plain orders: what the librarian does when it is told to, word for word."""

import re

import msgspec

HELP = """\
I am the librarian of this workspace. I am not a language model: I find, quote and \
carry out plain orders, and I make nothing up.

Ask a question, and I look for its key words in all files and quote what I find.
Or tell me:

- read FILE  (or: read FILE lines 10-20)
- list, or list FOLDER
- search for WORDS  (in quotes: exactly so)
- write FILE: TEXT  (or: create FILE with TEXT)
- append to FILE: TEXT
- replace OLD with NEW in FILE
- rename FILE to FILE
- delete FILE

Put a name or text with blanks into quotes. For free conversation choose a language \
model, for example openai:NAME, anthropic:NAME or ollama:NAME."""


class Help(msgspec.Struct, frozen=True, kw_only=True):
    """Who are you, and what can you do?"""


class Read(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    """Empty for the file that was spoken of last."""
    first: int = 1
    last: int = 0
    """0 for as much as is good to show."""


class List(msgspec.Struct, frozen=True, kw_only=True):
    path: str = "."


class Search(msgspec.Struct, frozen=True, kw_only=True):
    text: str


class Write(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    text: str


class Append(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    text: str


class Replace(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    old: str
    new: str


class Rename(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    new_path: str


class Delete(msgspec.Struct, frozen=True, kw_only=True):
    path: str


Order = Help | Read | List | Search | Write | Append | Replace | Rename | Delete

ORDER_CHARS_MAX = 400
"""A longer line is no order; only the text to be written may be long."""

_OPENING = re.compile(
    r"^(?:please|kindly|(?:can|could|would|will) you(?: please)?|now)[\s,]+", re.I
)

_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "«": "»", "„": "“", "\u2018": "\u2019"}
_QUOTED = "|".join(f"{a}[^{b}\\n]+{b}" for a, b in _QUOTES.items())
_PATH = rf"(?P<{{0}}>{_QUOTED}|[^\s\"'`“«:]\S*?)"
_FILE = r"(?:the\s+)?(?:(?P<said>file|folder|directory|note)\s+)?"
_END = r"[\s.!?]*$"


def _form(pattern: str) -> re.Pattern[str]:
    """A form of order; `{path}` and the like in it stand for a path."""
    for name in ("path", "new"):
        pattern = pattern.replace("{" + name + "}", _PATH.format(name))
    return re.compile("^" + pattern.replace("{file}", _FILE), re.IGNORECASE | re.DOTALL)


_HELP = _form(
    r"(?:help|\?|hello|hi|hey|hallo|hola|bonjour|hilfe|ayuda|aide|ciao|who are you|what are you"
    r"|what can you do|what can i (?:ask|say|do)|are you (?:an? )?(?:language model|ai|llm|human)"
    r"|how do you work)" + _END
)
_IT = _form(
    r"(?:read|show|open|cat)\s+(?:me\s+)?(?:it|that|this|that file|this file|the file)" + _END
)
_READ = _form(
    r"(?:read|show|open|cat|view|print|display|lies|zeige|lis|lee)\s+(?:me\s+)?{file}{path}"
    r"(?:\s*,?\s+(?:from\s+)?lines?\s+(?P<first>\d+)(?:\s*(?:-|\u2013|to|until)\s*(?P<last>\d+))?)?"
    + _END
)
_LIST = _form(
    r"(?:ls|dir|list)(?:\s+(?:all\s+)?(?:the\s+)?(?:files|folders|everything|all))?"
    r"(?:\s+(?:(?:in|of|from|under)\s+)?{file}{path})?" + _END
)
_LIST_HERE = _form(
    r"(?:what|which)(?:'s|\u2019s|\s+is|\s+are)?\s*(?:the\s+)?(?:files|folders|notes)?\s*"
    r"(?:is|are|do (?:i|we|you) have|there|here|in (?:this|the|my) (?:folder|workspace|directory)"
    r"|\s)+" + _END
)
_SEARCH = _form(
    r"(?:search|grep|find|look|suche|cherche|busca)(?:\s+(?:for|nach|up|me))*\s+(?P<text>.+?)"
    + _END
)
_WRITE = _form(
    r"(?:write|create|make|save|add)\s+(?:(?:a|an|the)\s+)?(?:new\s+)?(?:(?P<said>file|note)\s+)?"
    r"(?:called\s+|named\s+|to\s+)?{path}\s*"
    r"(?::|\s+with(?:\s+(?:the\s+)?(?:content|contents|text|words))?\s*:?(?=\s)"
    r"|\s+(?:saying|containing)\s*:?(?=\s))[ \t]*\n?(?P<text>.*)$"
)
_APPEND = _form(
    r"(?:append|add)\s+to\s+{file}{path}\s*(?::|\s+the\s+(?:line|text)\s*:?(?=\s))"
    r"[ \t]*\n?(?P<text>.*)$"
)
_APPEND_TO = _form(
    rf"(?:append|add)\s+(?P<text>{_QUOTED})\s+(?:to|at the end of)\s+{{file}}{{path}}" + _END
)
_REPLACE = _form(
    rf"(?:replace|substitute|change)\s+(?P<old>{_QUOTED}|.+?)\s+(?:with|by|to|into)\s+"
    rf"(?P<text>{_QUOTED}|.*?)\s+in\s+{{file}}{{path}}" + _END
)
_RENAME = _form(r"(?P<verb>rename|move|mv)\s+{file}{path}\s+(?:to|as|into)\s+{new}" + _END)
_DELETE = _form(r"(?P<verb>delete|remove|rm|erase)\s+{file}{path}" + _END)


def order_of(prompt: str) -> Order | None:
    """The order in a prompt; None where it is a question or anything else."""
    text = _OPENING.sub("", prompt.strip(), count=1)
    head = text[:ORDER_CHARS_MAX]
    if written := _write_order(text, head):
        return written
    if "\n" in text or len(text) > ORDER_CHARS_MAX:
        return None
    text = _without_please(" ".join(text.split()))
    if _HELP.match(text):
        return Help()
    if _IT.match(text):
        return Read(path="")
    if _LIST_HERE.match(text):
        return List()
    for form, make in (
        (_REPLACE, _replace),
        (_RENAME, _rename),
        (_DELETE, _delete),
        (_LIST, _list),
        (_READ, _read),
        (_SEARCH, _search),
    ):
        if (m := form.match(text)) and (order := make(m)):
            return order
    return None


def looks_like_a_path(text: str) -> bool:
    """Whether a word without quotes can only be meant as a file: it has a dot or a slash inside."""
    return bool(
        re.fullmatch(r"(?!https?:)[^\s:*?\"<>|]*(?:[^\s./]\.[^\s./]|/)[^\s:*?\"<>|]*", text)
    )


def _without_please(text: str) -> str:
    bare = text.rstrip(" .!?")
    return bare[:-6].rstrip(" ,") if bare.lower().endswith((" please", ",please")) else text


def _write_order(text: str, head: str) -> Order | None:
    """An order with a text to write, which may be long and have many lines.

    Args:
        head: the beginning of `text`, in which everything but that text must stand.
    """
    if m := _APPEND.match(head):
        return Append(path=_plain(m["path"]), text=_content(text[m.start("text") :]))
    if text == head and (m := _APPEND_TO.match(head)):
        return Append(path=_plain(m["path"]), text=_plain(m["text"]))
    m = _WRITE.match(head)
    if m and (_meant(m["path"]) or m["said"]):
        return Write(path=_plain(m["path"]), text=_content(text[m.start("text") :]))
    return None


def _replace(m: re.Match[str]) -> Order | None:
    if not _meant(m["path"]) and not m["said"]:
        return None
    return Replace(path=_plain(m["path"]), old=_plain(m["old"]), new=_plain(m["text"]))


def _rename(m: re.Match[str]) -> Order | None:
    named = m["said"] or m["verb"].lower() != "move"
    if not named and not (_meant(m["path"]) or _meant(m["new"])):
        return None
    return Rename(path=_plain(m["path"]), new_path=_plain(m["new"]))


def _delete(m: re.Match[str]) -> Order | None:
    if m["verb"].lower() in ("remove", "erase") and not (_meant(m["path"]) or m["said"]):
        return None
    return Delete(path=_plain(m["path"]))


def _list(m: re.Match[str]) -> Order | None:
    return List(path=_plain(m["path"])) if m["path"] else List()


def _read(m: re.Match[str]) -> Order | None:
    first = int(m["first"] or 1)
    return Read(path=_plain(m["path"]), first=max(first, 1), last=int(m["last"] or 0))


def _search(m: re.Match[str]) -> Order | None:
    return Search(text=m["text"])


def _meant(path: str) -> bool:
    return path[:1] in _QUOTES or looks_like_a_path(path)


def _plain(text: str) -> str:
    """Without the quotes around it."""
    if len(text) > 2 and _QUOTES.get(text[0]) == text[-1]:
        return text[1:-1]
    return text


def _content(text: str) -> str:
    """The text of a file: a code fence or quotes around it are not meant."""
    fenced = re.fullmatch(r"\s*```[^\n]*\n(.*?)\n?```\s*", text, re.DOTALL)
    text = fenced[1] if fenced else _plain(text.strip()) if "\n" not in text.strip() else text
    return text.rstrip("\n") + "\n"
