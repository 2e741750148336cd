"""Guard removal: every form of a guard is found and taken away, and witnesses are believed."""

import ast
from pathlib import Path

import msgspec
import pytest

from tenure.runtime.testing.architecture import UnknownTable, witnesses_text, written_page
from tenure.runtime.testing.architecture_facts import witnesses_of
from tenure.runtime.testing.checkout import Checkout, NoCheckout
from tenure.runtime.testing.guards import main, unsound_of
from tenure.runtime.testing.guards_run import Breakage, Copy, judge_all
from tenure.runtime.testing.guards_source import BadGuard, Guard, guards_of, without


def removed(source: str) -> str:
    """The source without its guards; it must still be Python."""
    mended = without(source, guards_of("a.py", source))
    ast.parse(mended)
    return mended


def one(source: str) -> Guard:
    (guard,) = guards_of("a.py", source)
    return guard


# --- forms of guards -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "without_it"),
    [
        ("if a == 'ä' and b:  # guard: X-1", "if False:  # guard: X-1"),
        ("if a:  # guard: X-1 keeps", "if True:  # guard: X-1 keeps"),
        ("while a:  # guard: X-1", "while False:  # guard: X-1"),
        ("if (\n    a\n    and b\n):  # guard: X-1", "if (\n    False\n):  # guard: X-1"),
    ],
)
def test_condition_is_replaced_and_the_rest_of_the_line_stays(line: str, without_it: str) -> None:
    assert removed(f"{line}\n    pass\n") == f"{without_it}\n    pass\n"


def test_second_branch_is_taken_away_alone() -> None:
    source = "if a:\n    pass\nelif b:  # guard: X-1\n    pass\n"
    assert removed(source) == "if a:\n    pass\nelif False:  # guard: X-1\n    pass\n"


def test_arm_of_a_match_never_matches_any_more() -> None:
    source = (
        "match a:\n    case B(c=1) | D():  # guard: X-1\n        pass\n    case _:\n        pass\n"
    )
    assert "    case B(c=1) | D() if False:  # guard: X-1\n" in removed(source)


def test_condition_of_an_arm_is_replaced() -> None:
    source = "match a:\n    case B(c=c) if c > 1:  # guard: X-1\n        pass\n"
    assert "    case B(c=c) if False:  # guard: X-1\n" in removed(source)


def test_choice_between_two_values_takes_the_second() -> None:
    assert removed("a = b if c else d  # guard: X-1\n") == "a = b if False else d  # guard: X-1\n"


def test_filter_lets_everything_through() -> None:
    source = "a = [b for b in c if b.good]  # guard: X-1\n"
    assert removed(source) == "a = [b for b in c if True]  # guard: X-1\n"


def test_statement_is_left_out() -> None:
    assert removed("if a:\n    b.add(c)  # guard: X-1\n") == "if a:\n    pass  # guard: X-1\n"


def test_guard_knows_where_it_stands() -> None:
    guarded = "        if c:  # guard: X-2 redundant with Y-3\n            d\n"
    source = f"class A:\n    def b(self):\n{guarded}"
    guard = one(source)
    assert (guard.invariant, guard.line, guard.function) == ("X-2", 3, "A.b")
    assert guard.redundant_with == "Y-3"


def test_innermost_condition_is_meant() -> None:
    source = "if a:\n    if b:  # guard: X-1\n        c\n"
    assert removed(source) == "if a:\n    if False:  # guard: X-1\n        c\n"


def test_text_that_only_speaks_of_guards_is_none() -> None:
    assert guards_of("a.py", '"""Ends with `# guard: X-1`."""\nif a:  # a guard: no\n    b\n') == []


@pytest.mark.parametrize(
    "source",
    [
        "if a:  # guard: X1\n    b\n",
        "if a:  # guard: X-1 maybe\n    b\n",
        "a = 1  # guard: X-1\n",
        "match a:\n    case B():  # guard: X-1 keeps\n        pass\n",
    ],
)
def test_comment_that_cannot_be_carried_out_is_an_error(source: str) -> None:
    with pytest.raises(BadGuard, match=r"a\.py:\d"):
        guards_of("a.py", source)


# --- witnesses ---------------------------------------------------------------------------------

WITNESSES = """
import pytest

pytestmark = [pytest.mark.real, pytest.mark.witness("X-3")]

@pytest.mark.witness("X-1", "X-2")
@pytest.mark.parametrize("a", [1, 2])
def test_one(a): ...

@pytest.mark.witness("X-2")
class TestMany:
    @pytest.mark.witness("X-1")
    async def test_two(self): ...

def no_test(): ...
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A very small checkout, with a package, a guard and its tests."""
    root = tmp_path / "checkout"
    for folder in ("actors", "messages", "runtime", "tests", ".dev/tenure"):
        (root / folder).mkdir(parents=True)
    for folder in ("actors", "messages", "runtime"):
        (root / folder / "__init__.py").write_text("")
        (root / ".dev/tenure" / folder).symlink_to(f"../../{folder}")
    (root / "runtime/_package.py").write_text("")
    (root / ".dev/tenure/__init__.py").symlink_to("../../runtime/_package.py")
    (root / ".dev/tenure/testing").mkdir()
    (root / ".dev/tenure/testing/__init__.py").symlink_to("../../../runtime/_package.py")
    (root / "runtime/bus.py").write_text(
        "def even(n):\n    if n % 2:  # guard: X-1\n        return False\n    return True\n"
    )
    (root / "tests/test_even.py").write_text(
        "from tenure.runtime.bus import even\n\n"
        "def test_two():\n    assert even(2)\n\n"
        "def test_three():\n    assert not even(3)\n"
    )
    (root / "ARCHITECTURE.md").write_text("# A page\n")
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\ntestpaths = ['tests']\n")
    return Checkout(root)


def test_marks_of_modules_classes_and_functions_are_collected(checkout: Checkout) -> None:
    (checkout.root / "tests/test_a.py").write_text(WITNESSES)
    one, two = "tests/test_a.py::test_one", "tests/test_a.py::TestMany::test_two"
    assert witnesses_of(checkout) == {"X-1": (one, two), "X-2": (one, two), "X-3": (one, two)}


def test_list_of_witnesses_says_the_same() -> None:
    found = {"X-1": ("tests/test_a.py::test_one", "tests/test_a.py::test_two")}
    decoded = msgspec.json.decode(witnesses_text(found), type=dict[str, tuple[str, ...]])
    assert decoded == found


def _breakage(name: str, text: str) -> Breakage:
    return Breakage(invariant="X-1", name=name, changed={"runtime/bus.py": text})


def test_breakages_are_judged_by_what_the_witnesses_say(checkout: Checkout, tmp_path: Path) -> None:
    source = checkout.text("runtime/bus.py")
    guard = without(source, guards_of("runtime/bus.py", source))
    breakages = [
        _breakage("its guard is gone", guard),
        _breakage("nothing is broken", source + "\n"),
        _breakage("it is no Python", "def even(n:\n"),
        Breakage(invariant="X-2", name="nobody watches", changed={}),
    ]
    copies = [Copy(checkout, tmp_path / "one"), Copy(checkout, tmp_path / "two")]
    assert copies[0].check() == ""
    said = judge_all(copies, breakages, {"X-1": ["tests/test_even.py"]}, lambda verdict: None)
    assert [verdict.fate for verdict in said] == ["caught", "survived", "unusable", "no_witness"]
    assert said[0].witness == "tests/test_even.py::test_three"
    assert [verdict.holds for verdict in said] == [True, False, False, False]
    # The checkout was not touched, and the copies are whole again.
    assert checkout.text("runtime/bus.py") == source
    assert [(copy.root / "runtime/bus.py").read_text() for copy in copies] == [source, source]


def test_witness_that_fails_although_nothing_is_broken_is_not_believed(
    checkout: Checkout, tmp_path: Path
) -> None:
    (checkout.root / "tests/test_odd.py").write_text(
        "import pytest\n\n"
        "@pytest.mark.parametrize('n', ['1 - 1', '2'])\n"
        "def test_wrong(n):\n    assert n == '2'\n\n"
        "def test_right():\n    assert True\n"
    )
    wrong, right = "tests/test_odd.py::test_wrong", "tests/test_odd.py::test_right"
    copy = Copy(checkout, tmp_path / "copy")
    assert unsound_of(copy, [wrong, right]) == {wrong}
    with pytest.raises(BadGuard, match="cannot be run"):
        unsound_of(copy, ["tests/test_odd.py::test_gone"])


# --- the page ------------------------------------------------------------------------------------


def test_only_what_stands_between_the_marks_is_written_anew() -> None:
    page = "# A\n<!-- table: one -->\nold\n<!-- end -->\ntext\n"
    written = written_page(page, {"one": "new\n"})
    assert written == "# A\n<!-- table: one -->\nnew\n<!-- end -->\ntext\n"
    assert written_page(written, {"one": "new\n"}) == written


def test_table_that_nobody_writes_is_an_error() -> None:
    with pytest.raises(UnknownTable, match="no table 'two'; there are: one"):
        written_page("<!-- table: two -->\n<!-- end -->\n", {"one": ""})


def test_folder_that_is_no_checkout_is_told_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(NoCheckout, match=r"ARCHITECTURE\.md"):
        Checkout(tmp_path)


def test_unknown_invariant_is_a_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--only", "NOBODY-1"])
    assert left.value.code == 2
    assert "no invariant NOBODY-1" in capsys.readouterr().err
