"""How much a model can read, where the provider library knows it."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tenure.runtime.doors.models.names import ModelName

HOSTED = frozenset({"openai", "anthropic"})
"""Providers of ours whose models are the same everywhere.  A server of one's own decides itself."""


def window_of(name: ModelName) -> int:
    """Tokens that the model can read; 0 where nobody knows.  Slow at first: it imports a table."""
    if name.provider not in HOSTED or name.base_url or find_spec("genai_prices") is None:
        return 0
    try:
        snapshot: Any = import_module("genai_prices.data_snapshot").get_snapshot()
        _, found = snapshot.find_provider_model(name.name, None, name.provider, None)
        window = found.context_window
    except (ImportError, AttributeError, TypeError, ValueError, LookupError):
        # The table is not as we know it, or has no such model: then nobody knows.
        return 0
    return window if isinstance(window, int) and window > 0 else 0
