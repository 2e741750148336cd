"""What `tenure replay` does."""

import click

from tenure.runtime.cli.screen import print_json, print_note
from tenure.runtime.cli.turns import EXIT_DONE, EXIT_FAILED
from tenure.runtime.doors.files import RealFiles
from tenure.runtime.testing.replay import NoTrace, replay

READ_BYTES = 1 << 20


async def replay_file(path: str, form: str) -> int:
    """Print how it went; gives the exit code."""
    try:
        result = replay(_read(path).split(b"\n"))
    except NoTrace as problem:
        print_note(f"tenure: {path}: {problem}")
        return EXIT_FAILED
    if form == "json":
        print_json(result)
    else:
        click.echo(str(result))
    return EXIT_DONE if result.ok else EXIT_FAILED


def _read(path: str) -> bytes:
    file = RealFiles().open(path, "read")
    try:
        parts: list[bytes] = []
        read = 0
        while part := file.read_at(read, READ_BYTES):
            parts.append(part)
            read += len(part)
        return b"".join(parts)
    finally:
        file.close()
