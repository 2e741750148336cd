"""The keyring of the operating system: one leaf door.  Every call blocks.

It comes with the library `keyring` (extra `keyring`), which need not be there,
and on many machines without a desktop the library finds nothing to keep things
in.  Then there is no keyring, and that is no error.
"""

from typing import Any, Protocol

PURPOSE = "tenure"
"""Under this name the user finds our entries in his keyring."""


class KeyringFailed(OSError):
    """The keyring is there, and refused: locked, cancelled by the user, or broken."""


class Keyring(Protocol):
    def usable(self) -> bool:
        """Whether there is a keyring that keeps things."""
        ...

    def get(self, name: str) -> str | None:
        """Raises `KeyringFailed`."""
        ...

    def put(self, name: str, value: str) -> None:
        """Raises `KeyringFailed`."""
        ...

    def remove(self, name: str) -> None:
        """Harmless where there is nothing.  Raises `KeyringFailed`."""
        ...


class NoKeyring:
    """A machine without one."""

    def usable(self) -> bool:
        return False

    def get(self, name: str) -> str | None:
        raise KeyringFailed("there is no keyring here")

    def put(self, name: str, value: str) -> None:
        raise KeyringFailed("there is no keyring here")

    def remove(self, name: str) -> None:
        raise KeyringFailed("there is no keyring here")


class SystemKeyring:
    """What the library finds on this machine."""

    def usable(self) -> bool:
        library = _library()
        if library is None:
            return False
        try:
            # A backend without a place of its own says so by its priority.
            return float(library.get_keyring().priority) >= 1
        except Exception:  # a backend may raise anything of its own
            return False

    def get(self, name: str) -> str | None:
        value = _asked("read", "get_password", name)
        return None if value is None else str(value)

    def put(self, name: str, value: str) -> None:
        _asked("written", "set_password", name, value)

    def remove(self, name: str) -> None:
        if self.get(name) is not None:
            _asked("removed", "delete_password", name)


def _library() -> Any:
    try:
        import keyring
    except ImportError:
        return None
    return keyring


def _asked(done: str, call: str, *args: str) -> Any:
    library = _library()
    if library is None:
        raise KeyringFailed("the library `keyring` is not installed: pip install 'tenure[keyring]'")
    try:
        return getattr(library, call)(PURPOSE, *args)
    except Exception as error:  # a backend may raise anything; its text may hold what it was given
        kind = type(error).__name__
        raise KeyringFailed(f"the keyring could not be {done} ({kind}); unlock it") from None
