"""One small change that breaks what holds by construction."""

import msgspec


class Mutation(msgspec.Struct, frozen=True, kw_only=True):
    """How an invariant that holds by construction would be broken."""

    invariant: str
    name: str
    """What the change does: a sentence without its full stop."""
    file: str
    """From the root of the repository: `actors/turn.py`."""
    before: str
    """Occurs exactly once in the file."""
    after: str
