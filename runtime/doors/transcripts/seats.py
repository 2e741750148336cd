"""Seat records: which session a seat has, read only by restarts within the same host."""

import msgspec

from tenure.messages.tokens import SessionId
from tenure.runtime.doors.claims import make_folders_durably, replace_durably
from tenure.runtime.doors.transcripts.ground import Ground
from tenure.runtime.doors.transcripts.storage import folder_of, read_all


class SeatRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The content of a seat record."""

    session_id: str


def read_seat(ground: Ground, seat: str) -> SessionId | None:
    """The session that the seat had; None where nothing was noted.

    Raises:
        OSError, msgspec.MsgspecError, UnicodeDecodeError: the record cannot be read.
    """
    try:
        data = read_all(ground.leaves.files, ground.layout.seat(ground.host_id, seat))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return SessionId(msgspec.json.decode(data, type=SeatRecord).session_id)


def write_seat(ground: Ground, seat: str, session_id: SessionId) -> None:
    """Write a seat record, durably.

    Raises:
        OSError: the old record, or none, is in place.
    """
    path = ground.layout.seat(ground.host_id, seat)
    make_folders_durably(ground.leaves.files, folder_of(path))
    data = msgspec.json.encode(SeatRecord(session_id=session_id)) + b"\n"
    replace_durably(ground.leaves.files, path, data)


def forget_seat(ground: Ground, seat: str) -> None:
    """Remove a seat record, durably; harmless where there is none.

    Raises:
        OSError: it may still be in place.
    """
    path = ground.layout.seat(ground.host_id, seat)
    try:
        ground.leaves.files.remove(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    ground.leaves.files.sync_folder(folder_of(path))


def forget_host(ground: Ground) -> None:
    """Remove the folder of this host with its seat records; harmless where there is none.

    Only a restart within this host reads them, and it has ended.

    Raises:
        OSError: a part of it may still be in place.
    """
    files, folder = ground.leaves.files, ground.layout.host(ground.host_id)
    try:
        names = files.list(f"{folder}/seats")
    except (FileNotFoundError, NotADirectoryError):
        return
    for name, _ in names:
        files.remove(f"{folder}/seats/{name}")
    files.remove_folder(f"{folder}/seats")
    files.remove_folder(folder)
