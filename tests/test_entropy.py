"""The kernel's randomness, drawn ahead and never given out twice."""

import os

import pytest

from tenure.runtime.doors.entropy import FRESH_AHEAD, FRESH_DIGITS, SystemEntropy


def test_fresh_is_hexadecimal_and_never_repeats() -> None:
    entropy = SystemEntropy()
    drawn = [entropy.fresh() for _ in range(3 * FRESH_AHEAD + 1)]
    assert len(set(drawn)) == len(drawn)
    assert {len(each) for each in drawn} == {FRESH_DIGITS}
    assert set("".join(drawn)) == set("0123456789abcdef")


@pytest.mark.real
def test_forked_child_gives_out_nothing_that_its_parent_gives_out() -> None:
    entropy = SystemEntropy()
    entropy.fresh()  # the parent has drawn ahead
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, "".join(entropy.fresh() for _ in range(20)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    text = os.read(reading, 20 * FRESH_DIGITS).decode()
    os.close(reading)
    os.close(writing)
    theirs = {text[at : at + FRESH_DIGITS] for at in range(0, len(text), FRESH_DIGITS)}
    ours = {entropy.fresh() for _ in range(2 * FRESH_AHEAD)}
    assert len(theirs) == 20
    assert theirs.isdisjoint(ours)
