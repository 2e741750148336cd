"""Writes the tables of ARCHITECTURE.md, and the list of witnesses, from the code.

    python -m tenure.runtime.testing.architecture [--check]

What stands between `<!-- table: NAME -->` and `<!-- end -->` is written anew; the
rest of the page is for people to write.  `runtime/witnesses.json` lists the tests
that mark themselves as witnesses.  With `--check` nothing is written, and the
exit code is 1 where something would be.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from importlib import reload

import msgspec

from tenure.runtime import invariants as declared
from tenure.runtime.invariants import Invariant
from tenure.runtime.testing.architecture_facts import Facts, witnesses_of
from tenure.runtime.testing.checkout import Checkout, NoCheckout, find_checkout
from tenure.runtime.testing.guards import all_guards
from tenure.runtime.testing.guards_source import Guard

PAGE = "ARCHITECTURE.md"
WITNESSES = "runtime/witnesses.json"

_BLOCK = re.compile(
    r"(?P<begin><!-- table: (?P<name>[^>]*?) -->\n)(?P<body>.*?)(?P<end><!-- end -->)", re.DOTALL
)


class UnknownTable(Exception):
    """ARCHITECTURE.md asks for a table that nobody writes."""


def written_page(page: str, tables: dict[str, str]) -> str:
    """The page with its tables written anew.

    Raises:
        UnknownTable: it has a block of another name.
    """

    def table(block: re.Match[str]) -> str:
        name = block["name"]
        if name not in tables:
            known = ", ".join(sorted(tables))
            raise UnknownTable(f"{PAGE}: no table {name!r}; there are: {known}")
        return f"{block['begin']}{tables[name]}{block['end']}"

    return _BLOCK.sub(table, page)


def blocks_of(page: str) -> dict[str, str]:
    """The tables that a page has now, by name."""
    return {block["name"]: block["body"] for block in _BLOCK.finditer(page)}


def tables_of(checkout: Checkout) -> dict[str, str]:
    """Every table, by the name of its block."""
    facts = Facts(checkout)
    guards = all_guards(checkout)
    keepers = dict.fromkeys(each.owner for each in declared.INVARIANTS)
    tables = {
        f"invariants of {keeper}": invariant_table(
            [each for each in declared.INVARIANTS if each.owner == keeper], guards
        )
        for keeper in keepers
    }
    tables["messages"] = message_table(facts)
    tables["effects"] = effect_table(facts)
    return tables


def message_table(facts: Facts) -> str:
    """Name, kind, who says it, who takes it, and its file."""
    rows = sorted(facts.message_rows, key=lambda row: (row.file, row.kind, row.name))
    return _table(
        ("message", "kind", "said by", "taken by", "file"),
        (
            (
                f"`{row.name}`",
                row.kind,
                ", ".join(row.said_by),
                f"`{row.taken_by[0]}`" if row.kind == "Effect" else ", ".join(row.taken_by),
                row.file.removeprefix("messages/"),
            )
            for row in rows
        ),
    )


def effect_table(facts: Facts) -> str:
    """Effect, how it runs, who wants it, who carries it out."""
    return _table(
        ("effect", "runs", "wanted by", "carried out by"),
        (
            (
                f"`{row.name}`",
                "beside the others" if row.concurrent else "in order",
                ", ".join(row.wanted_by),
                f"`{row.handler}`",
            )
            for row in facts.effect_rows
        ),
    )


def invariant_table(invariants: Sequence[Invariant], guards: Sequence[Guard]) -> str:
    """Id, what holds, its guards and mutations, and its witnesses."""
    return _table(
        ("id", "what holds", "kept by", "witnesses"),
        (
            (
                each.id,
                each.text,
                "; ".join((*_guards(each, guards), *_mutations(each))),
                "; ".join(f"`{test.removeprefix('tests/')}`" for test in each.witnesses),
            )
            for each in invariants
        ),
    )


def _guards(invariant: Invariant, guards: Sequence[Guard]) -> list[str]:
    mine = [guard for guard in guards if guard.invariant == invariant.id]
    return list(dict.fromkeys(f"`{guard.file}` `{guard.function}`" for guard in mine))


def _mutations(invariant: Invariant) -> list[str]:
    mine = [each for each in declared.MUTATIONS if each.invariant == invariant.id]
    return [f"`{each.file}`, by construction (broken by: {each.name})" for each in mine]


def witnesses_text(found: dict[str, tuple[str, ...]]) -> str:
    """The text of `runtime/witnesses.json`."""
    data = msgspec.json.encode(found)
    return msgspec.json.format(data, indent=2).decode() + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines
    )


def outdated(checkout: Checkout) -> dict[str, str]:
    """The files that differ from the code, with the text that they should have."""
    found = witnesses_text(witnesses_of(checkout))
    wanted = {}
    if checkout.text(WITNESSES) != found:
        wanted[WITNESSES] = found
    page = checkout.text(PAGE)
    written = written_page(page, tables_of(checkout))
    if page != written:
        wanted[PAGE] = written
    return wanted


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tenure.runtime.testing.architecture")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if outdated")
    given = parser.parse_args(arguments)
    try:
        checkout = find_checkout()
        changed = outdated(checkout)
        if WITNESSES in changed and not given.check:
            # The tables show the witnesses, so they are read again first.
            (checkout.root / WITNESSES).write_text(changed[WITNESSES], "utf-8")
            print(f"{WITNESSES} written")
            reload(declared)
            changed = outdated(checkout)
    except (NoCheckout, UnknownTable) as problem:
        print(problem, file=sys.stderr)
        return 2
    for file, text in changed.items():
        if not given.check:
            (checkout.root / file).write_text(text, "utf-8")
        print(f"{file} {'is outdated' if given.check else 'written'}")
    return 1 if given.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
