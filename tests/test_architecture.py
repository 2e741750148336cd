"""ARCHITECTURE.md and the code say the same, and owners keep to themselves what is theirs.

Where a table is outdated: `python -m tenure.runtime.testing.architecture` writes it.
"""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache

import pytest
from sources import FOLDERS, ROOT, base_names, classes, files, imported, text, tree

from tenure.messages.base import Command, Effect, Outcome
from tenure.messages.tokens import HOST_ROLES, SEAT_ROLES
from tenure.runtime.invariants import INVARIANTS, MUTATIONS, Mutation
from tenure.runtime.system import BETWEEN_OWNERS, TAKEN_BY
from tenure.runtime.testing.architecture import (
    PAGE,
    WITNESSES,
    blocks_of,
    tables_of,
    witnesses_text,
)
from tenure.runtime.testing.architecture_facts import Facts, witnesses_of
from tenure.runtime.testing.checkout import find_checkout
from tenure.runtime.testing.guards import all_guards
from tenure.runtime.testing.guards_source import Guard

REWRITE = "outdated: run `python -m tenure.runtime.testing.architecture`"

INVARIANT_IDS = [each.id for each in INVARIANTS]
ACTOR_FILES = [file for file in files("actors") if not file.endswith("__init__.py")]
MESSAGE_FILES = [file for file in files("messages") if not file.endswith("__init__.py")]


@cache
def facts() -> Facts:
    return Facts(find_checkout())


@cache
def guards() -> tuple[Guard, ...]:
    return tuple(all_guards(find_checkout()))


@cache
def tables() -> dict[str, str]:
    return tables_of(find_checkout())


@cache
def witnesses() -> dict[str, tuple[str, ...]]:
    return witnesses_of(find_checkout())


# --- the page ------------------------------------------------------------------------------


def test_every_owner_has_a_section_and_nothing_else_has_an_owners_section() -> None:
    headings = re.findall(r"^### (\w+Actor)$", text(PAGE), re.MULTILINE)
    owners = [owner.__name__ for owner in facts().owners.values()]
    assert sorted(headings) == sorted(owners)


def test_the_page_has_every_table_once() -> None:
    names = re.findall(r"^<!-- table: (.*?) -->$", text(PAGE), re.MULTILINE)
    assert sorted(names) == sorted(tables())
    assert len(blocks_of(text(PAGE))) == len(names), "a table has no `<!-- end -->`"


@pytest.mark.parametrize("table", sorted(tables()))
def test_a_table_of_the_page_is_as_the_code_says(table: str) -> None:
    assert blocks_of(text(PAGE)).get(table) == tables()[table], REWRITE


def test_every_file_that_the_page_names_is_there() -> None:
    named = set(
        re.findall(r"`((?:actors|messages|runtime|tests|docs|examples)/[\w/.-]*)", text(PAGE))
    )
    assert sorted(name for name in named if not (ROOT / name).exists()) == []
    assert named


# --- owners, messages, effects ---------------------------------------------------------------


def test_every_role_has_one_owner_whose_file_has_its_name() -> None:
    assert sorted(facts().owners) == sorted((*SEAT_ROLES, *HOST_ROLES))


def test_every_command_is_taken_by_an_owner_whose_step_has_a_case_for_it() -> None:
    commands = {message for message in facts().messages.values() if issubclass(message, Command)}
    assert sorted(each.__name__ for each in commands ^ set(TAKEN_BY)) == []
    assert commands >= BETWEEN_OWNERS
    unhandled = [
        command.__name__
        for command, role in TAKEN_BY.items()
        if command.__name__ not in _cases(f"actors/{role}.py")
    ]
    assert unhandled == []


def _cases(file: str) -> set[str]:
    return {
        node.cls.id
        for node in ast.walk(tree(file))
        if isinstance(node, ast.MatchClass) and isinstance(node.cls, ast.Name)
    }


def test_every_effect_is_carried_out_and_wanted_by_somebody() -> None:
    effects = {name for name, message in facts().messages.items() if issubclass(message, Effect)}
    assert effects == set(facts().handlers)
    assert [row.name for row in facts().effect_rows if not row.wanted_by] == []


def test_every_message_is_said_by_somebody_and_taken_by_somebody() -> None:
    rows = facts().message_rows
    assert [row.name for row in rows if not row.said_by] == []
    assert [row.name for row in rows if not row.taken_by] == []


def test_every_effect_that_fails_gives_an_outcome_of_its_own() -> None:
    said = {
        name: ast.unparse(returned)
        for name, returned in _annotated_failures().items()
        if issubclass(facts().messages[name], Effect)
    }
    assert set(said.values()) == {Outcome.__name__}


def _annotated_failures() -> dict[str, ast.expr]:
    return {
        node.name: each.returns
        for file in MESSAGE_FILES
        if file != "messages/base.py"
        for node in classes(tree(file))
        for each in node.body
        if isinstance(each, ast.FunctionDef) and each.name == "failed" and each.returns
    }


# --- invariants, guards, witnesses -------------------------------------------------------------


def test_no_invariant_is_declared_twice() -> None:
    assert len(INVARIANT_IDS) == len(set(INVARIANT_IDS))


def test_every_guard_cites_an_invariant_that_is_declared() -> None:
    cited = {guard.invariant for guard in guards()}
    cited |= {guard.redundant_with for guard in guards() if guard.redundant_with}
    assert sorted(cited - set(INVARIANT_IDS)) == []


@pytest.mark.parametrize("invariant", INVARIANT_IDS)
def test_an_invariant_has_a_guard_or_a_mutation_that_breaks_it(invariant: str) -> None:
    broken_by = {guard.invariant for guard in guards()} | {each.invariant for each in MUTATIONS}
    assert invariant in broken_by


@pytest.mark.parametrize("invariant", INVARIANT_IDS)
def test_an_invariant_has_a_witness(invariant: str) -> None:
    assert witnesses().get(invariant, ()) != ()


def test_witnesses_mark_themselves_and_are_listed_in_both_directions() -> None:
    marked = witnesses()
    assert sorted(set(marked) - set(INVARIANT_IDS)) == [], "marked for no invariant"
    assert text(WITNESSES) == witnesses_text(marked), REWRITE


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name)
def test_a_mutation_breaks_one_place_of_a_declared_invariant(mutation: Mutation) -> None:
    assert mutation.invariant in INVARIANT_IDS
    assert text(mutation.file).count(mutation.before) == 1
    ast.parse(text(mutation.file).replace(mutation.before, mutation.after))


# --- who knows whom --------------------------------------------------------------------------

PURE_MODULES = {"collections.abc", "enum", "functools", "itertools", "math", "posixpath", "re"}
TYPING = {"dataclasses", "typing"}


def _strangers(file: str, allowed: tuple[str, ...]) -> list[str]:
    """What a file imports beside these modules; a name ending in a dot is a package."""
    return sorted(
        {
            name
            for _, name in imported(file)
            if not any(
                name == each or name.startswith(each if each[-1] in "._" else f"{each}.")
                for each in allowed
            )
        }
    )


@pytest.mark.parametrize("file", ACTOR_FILES)
def test_an_actor_imports_messages_steps_and_its_own_modules(file: str) -> None:
    owner = next(
        stem for stem, owner in facts().owners.items() if owner.__name__ == facts().owner_of(file)
    )
    own = (f"tenure.actors.{owner}.", f"tenure.actors.{owner}_")
    runtime = ("tenure.runtime.step", "tenure.runtime.owner")
    allowed = ("msgspec", "tenure.messages.", *runtime, *own, *PURE_MODULES, *TYPING)
    assert _strangers(file, allowed) == []


@pytest.mark.parametrize("file", MESSAGE_FILES)
def test_messages_import_msgspec_the_standard_library_and_each_other(file: str) -> None:
    allowed = ("msgspec", "tenure.messages.", "hashlib", *PURE_MODULES, *TYPING)
    assert _strangers(file, allowed) == []
    assert {name.partition(".")[0] for name in allowed[2:]} <= sys.stdlib_module_names


@pytest.mark.parametrize("file", [file for file in files("runtime") if "/system" not in file])
def test_the_machinery_names_no_owner(file: str) -> None:
    owners = {owner.__name__ for owner in facts().owners.values()}
    assert [name for _, name in imported(file) if name.startswith("tenure.actors")] == []
    named = {node.id for node in ast.walk(tree(file)) if isinstance(node, ast.Name)}
    assert sorted(named & owners) == []


def test_states_of_an_owner_are_made_in_its_own_files_only() -> None:
    """The wiring takes the owners' classes and nothing else of their modules."""
    owners = {f"tenure.actors.{stem}.{owner.__name__}" for stem, owner in facts().owners.items()}
    wiring = {name for _, name in imported("runtime/system.py") if "actors" in name}
    assert sorted(wiring - owners) == []
    assert wiring == owners


# --- one comparison per token ------------------------------------------------------------------


def _compared(file: str) -> Iterator[str]:
    """Both sides of every `==`, `!=`, `in` and `not in`, and of every `<`, as source text."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
                if not isinstance(operator, ast.Is | ast.IsNot):
                    yield ast.unparse(left)
                    yield ast.unparse(right)


def _compares(file: str, *endings: str) -> list[str]:
    return [
        side
        for side in _compared(file)
        if any(re.search(rf"(^|[._]){re.escape(ending)}$", side) for ending in endings)
    ]


OTHERS = ("runtime/doors/", "runtime/cli/", "runtime/testing/")
"""Doors compare what lies on the disk; programs stand outside a host."""

DECIDING = [file for file in files(*FOLDERS) if not file.startswith(OTHERS)]


def test_only_the_session_actor_compares_a_session_token() -> None:
    """A comparison of anything named `token`; a door compares epochs on disk."""
    assert {file for file in DECIDING if _compares(file, "token")} == {"actors/session.py"}


def test_only_the_turn_actor_compares_the_turn_that_runs() -> None:
    """A comparison of `run.turn_id`; other owners look their own requests up by turn id."""
    comparing = {file for file in DECIDING if _compares(file, "run.turn_id")}
    assert comparing == {"actors/turn.py"}


def test_only_the_approval_actor_matches_a_request() -> None:
    """A comparison of anything named `request_id`."""
    comparing = {file for file in DECIDING if _compares(file, "request_id")}
    assert {facts().part_of(file) for file in comparing} == {"ApprovalActor"}


# --- steps are pure ------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ACTOR_FILES)
def test_a_step_never_waits(file: str) -> None:
    waits = ast.Await | ast.AsyncFor | ast.AsyncWith | ast.AsyncFunctionDef | ast.Yield
    found = [node for node in ast.walk(tree(file)) if isinstance(node, waits)]
    assert [node.lineno for node in found] == []


@pytest.mark.parametrize("file", ACTOR_FILES)
def test_a_state_is_frozen(file: str) -> None:
    """A step makes a new state: one that raises half-way has changed nothing."""
    loose = [
        node.name
        for node in classes(tree(file))
        if "Struct" in base_names(node)
        and not any(
            each.arg == "frozen" and ast.unparse(each.value) == "True" for each in node.keywords
        )
    ]
    assert loose == []


@pytest.mark.parametrize("stem", sorted(facts().owners))
def test_an_actors_file_points_to_its_section_and_ends_with_its_owner(stem: str) -> None:
    module = tree(f"actors/{stem}.py")
    owner = facts().owners[stem].__name__
    assert f"ARCHITECTURE.md, section {owner}" in " ".join(
        (ast.get_docstring(module) or "").split()
    )
    last = module.body[-1]
    assert isinstance(last, ast.ClassDef)
    assert last.name == owner
    assert len(last.body) == 2, "an owner names its step and its first state, and nothing else"
