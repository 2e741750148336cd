"""The tests that say that they are witnesses, by the invariant they watch.

Written by `python -m tenure.runtime.testing.architecture`.
"""

# ruff: noqa: E501
WITNESSES: dict[str, tuple[str, ...]] = {}
