"""Where the data of a user lies that belongs to no workspace: one leaf door."""

import os
from collections.abc import Mapping


def user_data_folder(environ: Mapping[str, str] = os.environ) -> str:
    """`$XDG_DATA_HOME/tenure`, else `~/.local/share/tenure`; an absolute path.

    A relative `XDG_DATA_HOME` counts as not set, as its specification says.
    """
    data = environ.get("XDG_DATA_HOME", "")
    if not data.startswith("/"):
        home = environ.get("HOME", "")
        data = os.path.join(
            home if home.startswith("/") else os.path.expanduser("~"), ".local/share"
        )
    return f"{data.rstrip('/')}/tenure"
