"""What a command line runs, as far as it can be told without running it.

Only the plain grammar is read: words, quotes, and commands joined by `;`, `&`,
`|` and line ends.  Whatever could run or touch something that is not written
there (substitutions, variables, redirections, groups, braces, a command word
with wildcards) makes the whole line one of which nothing is known.
"""

_JOINS = frozenset(";&|\n")
_UNKNOWN = frozenset("$`<>(){}")
_WILD = frozenset("*?[")


def commands_of(line: str) -> tuple[tuple[str, ...], ...] | None:
    """The words of each command in a line; None where it cannot be told."""
    reader = _Reader(line)
    if not reader.read():
        return None
    commands = tuple(tuple(words) for words in reader.commands if words)
    if any(set(words[0]) & _WILD for words in commands):
        return None
    return commands


def readings_of(words: tuple[str, ...]) -> tuple[str, ...]:
    """Every command that the words may amount to.

    `sudo rm -r x`, `/bin/rm -r x` and `sh -c 'rm -r x'` run `rm`, too: each word
    is read as the beginning of a command, with and without its folder.
    """
    readings: list[str] = []
    for place, word in enumerate(words):
        rest = words[place + 1 :]
        readings.append(" ".join((word, *rest)))
        readings.append(" ".join((word.rpartition("/")[2], *rest)))
        inner = commands_of(word) if " " in word else None
        for command in inner or ():
            readings.append(" ".join(command))
    return tuple(readings)


class _Reader:
    """Reads one line, character by character."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._at = 0
        self._word = ""
        self._in_word = False
        self.commands: list[list[str]] = [[]]

    def read(self) -> bool:
        """Whether all of it is understood."""
        while self._at < len(self._line):
            char = self._line[self._at]
            self._at += 1
            if not self._take(char):
                return False
        self._end_word()
        return True

    def _take(self, char: str) -> bool:
        if char in _UNKNOWN:
            return False
        if char in _JOINS:
            self._end_word()
            self.commands.append([])
        elif char.isspace():
            self._end_word()
        elif char == "'":
            return self._quoted()
        elif char == '"':
            return self._double_quoted()
        elif char == "\\":
            return self._escaped()
        else:
            self._put(char)
        return True

    def _quoted(self) -> bool:
        end = self._line.find("'", self._at)
        if end < 0:
            return False
        self._put(self._line[self._at : end])
        self._at = end + 1
        return True

    def _double_quoted(self) -> bool:
        self._put("")
        while self._at < len(self._line):
            char = self._line[self._at]
            self._at += 1
            if char == '"':
                return True
            if char in "$`":
                return False
            if char == "\\" and not self._escaped_in_quotes():
                return False
            if char != "\\":
                self._put(char)
        return False

    def _escaped(self) -> bool:
        if self._at >= len(self._line) or self._line[self._at] == "\n":
            return False
        self._put(self._line[self._at])
        self._at += 1
        return True

    def _escaped_in_quotes(self) -> bool:
        if self._at >= len(self._line) or self._line[self._at] == "\n":
            return False
        follows = self._line[self._at]
        self._put(follows if follows in '$`"\\' else f"\\{follows}")
        self._at += 1
        return True

    def _put(self, text: str) -> None:
        self._word += text
        self._in_word = True

    def _end_word(self) -> None:
        if self._in_word:
            self.commands[-1].append(self._word)
        self._word, self._in_word = "", False
