"""The suite is repeatable: property tests draw the same examples in every run.

`HYPOTHESIS_PROFILE=search pytest` looks for new ones.
"""

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(autouse=True, scope="module")
def nothing_is_left_to_be_collected() -> Iterator[None]:
    """What simulated worlds leave behind ends with its module.

    The collector would else come by at any moment, also inside of Python's parser, which
    takes what runs there for a broken count of its own depth (`SystemError`).
    """
    yield
    gc.collect()
