"""The user's browser: one leaf door.  It blocks."""

import webbrowser
from typing import Protocol


class Browser(Protocol):
    def open(self, url: str) -> bool:
        """Show an address to the user; False where there is no browser."""
        ...


class SystemBrowser:
    """What this machine opens addresses with."""

    def open(self, url: str) -> bool:
        try:
            return webbrowser.open(url)
        except webbrowser.Error:
            return False


class NoBrowser:
    """A machine without one."""

    def open(self, url: str) -> bool:
        return False
