"""The house rules that a reader relies on: sizes, names, and who touches the outside world."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from sources import (
    FOLDERS,
    ROOT,
    Function,
    base_names,
    classes,
    files,
    functions,
    imported,
    text,
    tree,
)

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 40

LEAF_DOORS = {
    f"runtime/doors/{name}.py"
    for name in (
        "clock",
        "entropy",
        "files",
        "locks",
        "processes",
        "programs",
        "sockets",
        "workers",
        "http",
        "browser",
        "keyring",
        "loopback",
        "user_data",
    )
}
COMMAND_LINE = (
    "runtime/cli/",
    "runtime/testing/architecture",
    "runtime/testing/checkout",
    "runtime/testing/guards",
)
"""Programs of their own: they stand outside a host and its simulated world."""

WORLD = {
    "datetime",
    "fcntl",
    "glob",
    "io",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "select",
    "shutil",
    "signal",
    "socket",
    "subprocess",
    "tempfile",
    "time",
    "uuid",
    "webbrowser",
}
PURE = {
    "io.BytesIO",
    "datetime.UTC",
    "datetime.date",
    "datetime.datetime",
    "datetime.timedelta",
    "datetime.timezone",
    "os.environ",  # the default of a parameter, so that a caller may give another
    "os.fsencode",
    "os.path.basename",
    "os.path.dirname",
    "os.path.join",
    "os.strerror",
    "random.Random",
    "uuid.UUID",
}
"""Names of these modules that look at nothing outside."""

CLOCK_CALLS = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today", "asyncio.sleep"}


# --- sizes -------------------------------------------------------------------------------


@pytest.mark.parametrize("file", files(*FOLDERS))
def test_file_is_short_enough_to_have_one_subject(file: str) -> None:
    lines = text(file).count("\n")
    assert lines <= FILE_LINES_MAX, f"{file} has {lines} lines: split it by subject"


@pytest.mark.parametrize("file", files(*FOLDERS))
def test_functions_are_short_enough_to_be_read_at_once(file: str) -> None:
    long = {each.name: _lines_of(each) for each in functions(tree(file))}
    assert {name: size for name, size in long.items() if size > FUNCTION_LINES_MAX} == {}


def _lines_of(function: Function) -> int:
    """Lines from `def` to the end; what its docstring takes is not counted."""
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None and first.end_lineno is not None:
        lines -= first.end_lineno - first.lineno + 1
    return lines


# --- names -------------------------------------------------------------------------------

BANNED = re.compile(r"(^|_|(?<=[a-z]))(Manager|Service|Helper|Util)s?(?=$|_|[A-Z])|^utils?$")
PARTICIPLE = re.compile(r"(ed|Begun|Back|Done|Gone|Known|Lost|Over|Shown|Taken|Written|Delta|ing)$")


@pytest.mark.parametrize("file", files(*FOLDERS))
def test_names_say_what_a_thing_is_and_not_that_it_helps(file: str) -> None:
    names = [file.rpartition("/")[2].removesuffix(".py")]
    names += [each.name for each in classes(tree(file))]
    names += [each.name for each in functions(tree(file))]
    assert [name for name in names if BANNED.search(name)] == []


def _messages() -> dict[str, tuple[str, ast.ClassDef]]:
    return {each.name: (file, each) for file in files("messages") for each in classes(tree(file))}


def _of_kind(*kinds: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for name, (file, node) in _messages().items():
        if file != "messages/base.py" and base_names(node) & set(kinds):
            yield name, node


def _words(name: str) -> set[str]:
    return {word.lower().rstrip("s") for word in re.findall("[A-Z][a-z0-9]*", name)}


def test_every_struct_of_the_vocabulary_says_that_it_is_frozen_and_keyword_only() -> None:
    structs = {"Struct"}
    careless = []
    for file in ("messages/base.py", *files("messages")):
        for node in classes(tree(file)):
            if not base_names(node) & structs:
                continue
            structs.add(node.name)
            said = {each.arg for each in node.keywords if ast.unparse(each.value) == "True"}
            if not {"frozen", "kw_only"} <= said:
                careless.append(f"{file}: {node.name}")
    assert careless == []
    assert len(structs) > 100


def test_commands_are_imperatives_and_queries_begin_with_get() -> None:
    commands = [name for name, _ in _of_kind("Command")]
    queries = [name for name, _ in _of_kind("Query")]
    assert [name for name in commands if PARTICIPLE.search(name)] == []
    assert [name for name in commands if name.startswith("Get")] == []
    assert [name for name in queries if not name.startswith("Get")] == []
    assert commands
    assert queries


def test_events_say_what_has_happened() -> None:
    events = [name for name, _ in _of_kind("Event")]
    assert [name for name in events if not PARTICIPLE.search(name)] == []
    assert events


def test_an_effect_says_how_it_fails_and_has_an_outcome_with_its_noun() -> None:
    outcomes = [name for name, _ in _of_kind("Outcome")]
    effects = dict(_of_kind("Effect"))
    silent = [
        name
        for name, node in effects.items()
        if "failed" not in {each.name for each in functions(node)}
    ]
    alone = [name for name in effects if not any(_words(name) & _words(each) for each in outcomes)]
    assert (silent, alone) == ([], [])
    assert effects


# --- the outside world ---------------------------------------------------------------------


def _is_door(file: str) -> bool:
    return file in LEAF_DOORS or file.startswith(COMMAND_LINE)


@pytest.mark.parametrize("file", [file for file in files(*FOLDERS) if not _is_door(file)])
def test_only_leaf_doors_touch_the_outside_world(file: str) -> None:
    touched = set(_touches(tree(file)))
    if file.startswith("runtime/testing/"):
        touched.discard("asyncio.sleep")  # on the simulator's loop, whose time is simulated
    assert sorted(touched) == [], f"{file} must go through a leaf door of runtime/doors/"


def _touches(module: ast.Module) -> Iterator[str]:
    """Names of world modules that are used, calls of `open`, and readings of a clock."""
    here = {
        alias.asname or alias.name
        for node in ast.walk(module)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name.partition(".")[0] in WORLD
    }
    inner = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Attribute)}
    for node in ast.walk(module):
        match node:
            case ast.ImportFrom(module=str(source), names=names) if source in WORLD:
                yield from (
                    f"{source}.{alias.name}"
                    for alias in names
                    if f"{source}.{alias.name}" not in PURE
                )
            case ast.Attribute() if id(node) not in inner:
                name = ast.unparse(node)
                if name.partition(".")[0] in here and not _is_pure(name):
                    yield name
            case ast.Call(func=ast.Name(id="open" | "input" | "print")):
                yield node.func.id
            case ast.Call(func=func, args=args) if ast.unparse(func) in CLOCK_CALLS:
                # `asyncio.sleep(0)` only lets others go first; no time passes.
                if [ast.unparse(each) for each in args] != ["0"]:
                    yield ast.unparse(func)


def _is_pure(name: str) -> bool:
    return any(name == pure or name.startswith(f"{pure}.") for pure in PURE)


def test_one_module_chooses_the_http_library() -> None:
    choosers = {
        file
        for file in files(*FOLDERS)
        for _, name in imported(file)
        if name.partition(".")[0] in {"httpx", "httpx2"}
    }
    assert choosers <= {"runtime/doors/http.py"}


@pytest.mark.parametrize("file", files("runtime/doors/transcripts"))
def test_transcripts_are_split_at_newline_bytes_only(file: str) -> None:
    # `splitlines` also splits at U+2028 and others, which a JSON string may hold raw.
    assert "splitlines(" not in text(file)


def test_top_level_names_are_never_imported_beside_the_package() -> None:
    """Two modules of one file would be two sets of classes, and no message would match."""
    program = """
import importlib, pkgutil, sys, tenure
for found in pkgutil.walk_packages(tenure.__path__, "tenure."):
    if found.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as missing:
        assert not missing.name.startswith("tenure"), missing
print(sorted({"actors", "messages", "runtime"} & set(sys.modules)), len(sys.modules))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("[] ")


# --- texts ---------------------------------------------------------------------------------

TEXTS = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in (
        "*.md",
        "*.toml",
        "*.py",
        ".ci/run",
        "docs/**/*.md",
        "examples/**/*.py",
        "actors/**/*.py",
        "messages/**/*.py",
        "runtime/**/*.py",
        "tests/**/*.py",
    )
    for path in ROOT.glob(pattern)
)
OF_ONE_MACHINE = (str(ROOT), sys.prefix)
"""Where this checkout and its environment live: nobody else has these paths."""
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME)\b")


@pytest.mark.parametrize("file", TEXTS)
def test_texts_name_no_path_of_one_machine_and_nothing_unfinished(file: str) -> None:
    found = [
        f"{file}:{number}: {line.strip()}"
        for number, line in enumerate(text(file).split("\n"), 1)
        if any(path in line for path in OF_ONE_MACHINE) or UNFINISHED.search(line)
    ]
    assert found == []


def _public(body: list[ast.stmt]) -> Iterator[ast.ClassDef | Function]:
    for node in body:
        if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
            yield node


def _undocumented(file: str) -> Iterator[str]:
    for node in _public(tree(file).body):
        if ast.get_docstring(node) is None:
            yield f"{file}: {node.name}"


def _undocumented_methods(file: str) -> Iterator[str]:
    for node in _public(tree(file).body):
        if isinstance(node, ast.ClassDef):
            for each in _public(node.body):
                if ast.get_docstring(each) is None:
                    yield f"{file}: {node.name}.{each.name}"


def test_everything_that_an_embedder_uses_is_documented() -> None:
    api = ("runtime/host.py", "runtime/seat.py", "runtime/host_sync.py")
    found = [each for file in (*api, *files("runtime/testing")) for each in _undocumented(file)]
    found += [each for file in api for each in _undocumented_methods(file)]
    assert found == []
