"""The suite is repeatable: property tests draw the same examples in every run.

`HYPOTHESIS_PROFILE=search pytest` looks for new ones.
"""

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
