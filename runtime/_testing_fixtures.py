"""The pytest plugin of the test harness: `pytest_plugins = ["tenure.testing.fixtures"]`."""

from tenure.runtime.testing.fixtures import *  # noqa: F403
