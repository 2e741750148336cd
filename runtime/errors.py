"""The exceptions of tenure, named by whose fault it is.

    TenureError
     +-- Refused          an owner said no: the reply is inside; expected, and typed
     +-- HostClosed       you used a host after it was closed
     +-- BadRoot          the folder you named cannot be a workspace
     +-- StrangeHost      the host of another process says what this version does not know
     +-- OwnerBug         ours: a step raised, and the host runs in strict mode

Expected refusals are replies, not exceptions; `Refused` is raised only where a
Python caller expects an exception (an `async for` over a turn that never began).
"""

from tenure.messages.base import Refusal


class TenureError(Exception):
    """The root; never raised itself."""


class Refused(TenureError):
    """An owner refused.  `reply` is the typed refusal with what you need to go on."""

    def __init__(self, reply: Refusal) -> None:
        super().__init__(f"{type(reply).__name__}: {reply.remedy}")
        self.reply = reply


class HostClosed(TenureError):
    """The host is closed, or was never opened."""


class BadRoot(TenureError):
    """The workspace root is missing, not a folder, or cannot be read."""


class StrangeHost(TenureError):
    """A host of another process speaks another version, or what nobody can read."""


class OwnerBug(TenureError):
    """An owner's step raised and nothing in the test injected that."""
