"""A process that takes claims as it is told on stdin, one command a line, and answers each."""

import errno
import os
import signal
import subprocess
import sys

from tenure.runtime.doors.claims import ClaimBusy, ClaimRecord, Claims, HeldClaim
from tenure.runtime.doors.leaves import system_leaves


def say(*words: object) -> None:
    print(*words, flush=True)


def take(claims: Claims, path: str) -> HeldClaim | None:
    try:
        taken = claims.take(path)
    except OSError as refused:
        say("error", errno.errorcode[refused.errno or 0])
        return None
    if isinstance(taken, ClaimBusy):
        say("busy", taken.holder.process.pid if taken.holder else "unknown")
        return None
    say("held", taken.record.epoch if taken.record else "new")
    return taken


def fork() -> None:
    """The child says its pid once it runs, and then does nothing until it is killed."""
    if os.fork() == 0:
        say("child", os.getpid())
        while True:
            signal.pause()


def main() -> None:
    path = sys.argv[1]
    claims = Claims(system_leaves(), host_id=f"host-{os.getpid()}")
    held: HeldClaim | None = None
    say("ready", os.getpid())
    for line in sys.stdin:
        match line.split():
            case ["take"]:
                held = take(claims, path)
            case ["write", epoch] if held is not None:
                held.write(ClaimRecord(epoch=int(epoch), holder=claims.me()))
                say("written")
            case ["release"] if held is not None:
                held.release()
                say("released")
            case ["fork"]:
                fork()
            case ["spawn"]:
                child = subprocess.Popen(["sleep", "600"], close_fds=False)
                say("child", child.pid)
            case ["be-nobody"]:
                os.setgroups([])
                os.setegid(65534)
                os.seteuid(65534)
                say("nobody")
            case _:
                say("unknown", line.strip())


main()
