"""Running another program to its end: one leaf door."""

import subprocess
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

OUTPUT_BYTES_MAX = 1_048_576


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A program that ended, or was ended because its time was over."""

    code: int
    """Its exit code; negative for the signal that ended it."""
    out: str
    err: str
    in_time: bool = True


class Programs(Protocol):
    def run(
        self,
        command: Sequence[str],
        *,
        folder: str,
        environment: Mapping[str, str],
        without: Sequence[str] = (),
        deadline_s: float,
    ) -> Ran:
        """Run a program without a terminal and without standard input.  Blocks.

        Args:
            environment: set on top of this process's own.
            without: beginnings of the names of variables that it must not inherit.

        Raises:
            FileNotFoundError: there is no such program.
            OSError: it could not be started.
        """
        ...


class SystemPrograms:
    """The programs of this machine, each in a process group of its own."""

    def run(
        self,
        command: Sequence[str],
        *,
        folder: str,
        environment: Mapping[str, str],
        without: Sequence[str] = (),
        deadline_s: float,
    ) -> Ran:
        import os
        import signal

        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(tuple(without))
        }
        process = subprocess.Popen(
            list(command),
            cwd=folder,
            env={**inherited, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        in_time = True
        try:
            out, err = process.communicate(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            in_time = False
            os.killpg(process.pid, signal.SIGKILL)  # it is the leader of its own group
            out, err = process.communicate()
        return Ran(code=process.returncode, out=_text(out), err=_text(err), in_time=in_time)


class NoPrograms:
    """A machine without any program."""

    def run(
        self,
        command: Sequence[str],
        *,
        folder: str,
        environment: Mapping[str, str],
        without: Sequence[str] = (),
        deadline_s: float,
    ) -> Ran:
        raise FileNotFoundError(2, "there is no such program here", command[0])


NO_PROGRAMS = NoPrograms()


def _text(data: bytes) -> str:
    return data[:OUTPUT_BYTES_MAX].decode("utf-8", "replace")
