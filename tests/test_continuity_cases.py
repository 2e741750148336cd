"""The table of weaknesses and bugs is whole, and names tests that there are."""

import pytest
from continuity_cases import B_LAST, CASES, OF_OTHER_PARTS, W_LAST
from sources import functions, tree

EVERY = {f"W{n}" for n in range(1, W_LAST + 1)} | {f"B{n}" for n in range(1, B_LAST + 1)}
EVERY |= {"B20b"}


@pytest.mark.parametrize("case", sorted(CASES))
def test_a_case_names_tests_that_there_are(case: str) -> None:
    for test in CASES[case]:
        file, _, name = test.partition("::")
        assert name in {each.name for each in functions(tree(f"tests/{file}"))}, test


def test_every_case_is_shown_or_named_as_missing_once() -> None:
    missing = [case for cases in OF_OTHER_PARTS.values() for case in cases]
    assert len(missing) == len(set(missing))
    assert set(missing) & set(CASES) == set()
    assert set(missing) | set(CASES) == EVERY
