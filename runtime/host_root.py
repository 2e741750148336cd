"""What a folder must be to be a workspace.  Blocks: it runs in a worker."""

from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.errors import BadRoot


def checked_root(leaves: Leaves, root: str) -> str:
    """The root with its links followed.  Raises `BadRoot`."""
    try:
        real = leaves.files.real_path(root)
        kind = leaves.files.stat(real).kind
    except FileNotFoundError:
        raise BadRoot(f"{root}: there is no such folder; make it, or name another") from None
    except OSError as error:
        raise _unreadable(root, error) from error
    if kind != "folder":
        raise BadRoot(f"{root}: this is a {kind}, not a folder; name a folder")
    try:
        home = leaves.files.stat(f"{real.rstrip('/')}/.tenure").kind
    except FileNotFoundError:
        return real  # made on the first write
    except OSError as error:
        raise _unreadable(root, error) from error
    if home != "folder":
        raise BadRoot(f"{root}: its .tenure is a {home}, not a folder; move it away")
    return real


def _unreadable(root: str, error: OSError) -> BadRoot:
    return BadRoot(f"{root}: {error.strerror}; name a folder that you can read")
