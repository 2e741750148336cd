"""tenure: the runtime under an AI-agent host.  Every state has one owner.

`from tenure import Host` is the embedding API.  Importing this module is cheap:
names are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tenure.messages.approval import Allow as Allow
    from tenure.messages.approval import ApprovalRequest as ApprovalRequest
    from tenure.messages.approval import Deny as Deny
    from tenure.messages.approval import Stop as Stop
    from tenure.messages.limits import Budget as Budget
    from tenure.runtime.errors import Refused as Refused
    from tenure.runtime.errors import TenureError as TenureError
    from tenure.runtime.host import Host as Host
    from tenure.runtime.host import Seat as Seat

_HOMES = {
    "Allow": "tenure.messages.approval",
    "ApprovalRequest": "tenure.messages.approval",
    "Deny": "tenure.messages.approval",
    "Stop": "tenure.messages.approval",
    "Budget": "tenure.messages.limits",
    "Refused": "tenure.runtime.errors",
    "TenureError": "tenure.runtime.errors",
    "Host": "tenure.runtime.host",
    "Seat": "tenure.runtime.host",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'tenure' has no attribute {name!r}")
    return getattr(import_module(home), name)
