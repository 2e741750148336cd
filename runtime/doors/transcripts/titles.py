"""What an unnamed session is called: a few words of its first prompt.

The title is derived when it is needed and stored nowhere, so it never stands in
the way of a name, and a session that got its first prompt elsewhere has one, too.
"""

import re

WORDS_MAX = 8
CHARS_MAX = 60

_PREAMBLE = re.compile(r"\A\s*<context>.*?</context>\s*", re.DOTALL)
_COMMAND = re.compile(r"\A/(?:skill|template)\s+")
_CLOSING = " \t.,;:!?…-\u2013\u2014"


def without_preamble(text: str) -> str:
    """A prompt without the context that a host put before it."""
    return _PREAMBLE.sub("", text, count=1)


def auto_title(prompt: str) -> str:
    """At most 8 words and 60 characters of a prompt; empty where it says nothing."""
    text = _COMMAND.sub("", without_preamble(prompt).lstrip(), count=1)
    words = text.split()
    title = " ".join(words[:WORDS_MAX])
    if len(title) > CHARS_MAX:
        cut = title[:CHARS_MAX]
        title = (cut.rpartition(" ")[0] or cut[:-1]).rstrip(_CLOSING) + "…"
    else:
        title = title.rstrip(_CLOSING)
    return title[:1].upper() + title[1:]
