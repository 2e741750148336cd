"""The source files of the package as the tests about them see them: paths, texts, trees."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("actors", "messages", "runtime")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def files(*folders: str) -> tuple[str, ...]:
    """The Python files below these folders, from the root of the checkout, in order."""
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return tuple(sorted(path.relative_to(ROOT).as_posix() for path in found))


@cache
def text(file: str) -> str:
    return (ROOT / file).read_text("utf-8")


@cache
def tree(file: str) -> ast.Module:
    return ast.parse(text(file), file)


def functions(node: ast.AST) -> Iterator[Function]:
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            yield each


def classes(node: ast.AST) -> Iterator[ast.ClassDef]:
    for each in ast.walk(node):
        if isinstance(each, ast.ClassDef):
            yield each


def imported(file: str) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a file imports, also inside functions."""
    for node in ast.walk(tree(file)):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield node.lineno, alias.name
            case ast.ImportFrom(module=str(module), names=names):
                for alias in names:
                    yield node.lineno, f"{module}.{alias.name}"


def base_names(node: ast.ClassDef) -> set[str]:
    """The last part of each base: `Struct` for `msgspec.Struct`."""
    return {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}
