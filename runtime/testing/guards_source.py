"""Finds the guards in the source, and writes the source without one.

A guard is a condition whose line ends with `# guard: ID`.  What it keeps out is
its body, so it is taken away by putting `False` in its place.  Where its body is
the good path, and the refusal is what follows, it says `# guard: ID keeps`, and
`True` is put there.  The forms are:

    if <refused>:  # guard: ID
    case <pattern>:  # guard: ID
    value = <one> if <condition> else <other>  # guard: ID
    ... for each in many if <allowed>  # guard: ID         always `True`
    <a statement>  # guard: ID                             taken out

`# guard: ID redundant with ID2` says that a guard of ID2 alone suffices.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

import msgspec

_COMMENT = re.compile(
    r"#\s*guard:\s*(?P<id>[A-Z]+-\d+)(?P<keeps> keeps)?(?: redundant with (?P<other>[A-Z]+-\d+))?$"
)


class BadGuard(Exception):
    """A line cites an invariant in a way that cannot be read."""


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """One guard in the source."""

    invariant: str
    file: str
    line: int
    """From 1."""
    function: str
    """`Claims.take`: where it stands."""
    redundant_with: str = ""
    """Another invariant whose guards suffice; empty where this one is needed."""
    start: int
    """In the bytes of the file: where what is replaced begins."""
    end: int
    instead: str
    """What is put there to take the guard away."""


class _Span(msgspec.Struct, frozen=True):
    """What can be replaced, and the lines on which its comment may stand."""

    line_first: int
    line_last: int
    start: int
    end: int
    instead: str
    keeps: str


def guards_of(file: str, source: str) -> list[Guard]:
    """The guards of one file, from its beginning to its end.

    Raises:
        BadGuard: a comment begins like a guard and is none, or stands at no condition.
    """
    found = list(_comments(file, source))
    if not found:
        return []
    tree = ast.parse(source, file)
    spans = list(_spans(tree, _offsets(source)))
    guards = []
    for line, comment in found:
        here = [span for span in spans if span.line_first <= line <= span.line_last]
        if not here:
            raise BadGuard(f"{file}:{line}: no condition on this line: {comment[0]}")
        span = max(here, key=lambda span: (span.line_first, -span.line_last, span.start))
        instead = span.keeps if comment["keeps"] else span.instead
        if not instead:
            raise BadGuard(f"{file}:{line}: this form cannot be one that keeps")
        guard = Guard(
            invariant=comment["id"],
            file=file,
            line=line,
            function=_function_at(tree, line),
            redundant_with=comment["other"] or "",
            start=span.start,
            end=span.end,
            instead=instead,
        )
        guards.append(guard)
    return guards


def without(source: str, guards: list[Guard]) -> str:
    """The source of one file with these guards of it taken away."""
    data = source.encode()
    for guard in sorted(guards, key=lambda guard: guard.start, reverse=True):
        data = data[: guard.start] + guard.instead.encode() + data[guard.end :]
    return data.decode()


def _comments(file: str, source: str) -> Iterator[tuple[int, re.Match[str]]]:
    if "guard:" not in source:
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and token.string.lstrip("# ").startswith("guard:"):
            match = _COMMENT.match(token.string)
            if match is None:
                raise BadGuard(f"{file}:{token.start[0]}: not a guard's comment: {token.string}")
            yield token.start[0], match


def _offsets(source: str) -> list[int]:
    """Where each line begins, in bytes; line 1 is at index 1."""
    offsets = [0, 0]
    for line in source.encode().split(b"\n"):
        offsets.append(offsets[-1] + len(line) + 1)
    return offsets


def _spans(tree: ast.Module, offsets: list[int]) -> Iterator[_Span]:
    for node in ast.walk(tree):
        match node:
            case ast.If() | ast.While():
                last = max(node.test.end_lineno or 0, node.body[0].lineno - 1)
                yield _condition(node.test, node.test.lineno, last, offsets)
            case ast.match_case():
                yield _arm(node, offsets)
            case ast.IfExp():
                last = node.end_lineno or node.lineno
                yield _condition(node.test, node.lineno, last, offsets)
            case ast.comprehension(ifs=[condition, *_]):
                last = condition.end_lineno or condition.lineno
                kept = _condition(condition, condition.lineno, last, offsets)
                yield msgspec.structs.replace(kept, instead="True")
            case ast.Expr() | ast.Raise() | ast.Assert():
                last = node.end_lineno or node.lineno
                start, end = _bounds(node, offsets)
                yield _Span(node.lineno, last, start, end, "pass", "")


def _condition(test: ast.expr, first: int, last: int, offsets: list[int]) -> _Span:
    start, end = _bounds(test, offsets)
    return _Span(first, last, start, end, "False", "True")


def _arm(case: ast.match_case, offsets: list[int]) -> _Span:
    first, last = case.pattern.lineno, case.body[0].lineno - 1
    if case.guard is not None:
        return _condition(case.guard, first, max(last, case.guard.end_lineno or 0), offsets)
    _, end = _bounds(case.pattern, offsets)
    return _Span(first, max(last, case.pattern.end_lineno), end, end, " if False", "")


def _bounds(node: ast.expr | ast.pattern | ast.stmt, offsets: list[int]) -> tuple[int, int]:
    end_line = node.end_lineno or node.lineno
    end_column = node.end_col_offset or 0
    return offsets[node.lineno] + node.col_offset, offsets[end_line] + end_column


def _function_at(tree: ast.Module, line: int) -> str:
    """The names of the classes and functions around a line."""
    names: list[str] = []
    body: list[ast.stmt] = tree.body
    while True:
        for node in body:
            inside = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if inside and node.lineno <= line <= (node.end_lineno or node.lineno):
                assert isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                names.append(node.name)
                body = node.body
                break
        else:
            return ".".join(names)
