"""What befalls the hosts of a workload."""

from typing import TYPE_CHECKING

from tenure.runtime.testing.nodes import FileNode
from tenure.runtime.testing.troubles import LASTING
from tenure.runtime.testing.workload import (
    AnyOp,
    ClockBack,
    CloseHost,
    CrashOwner,
    DiskTrouble,
    EditFile,
    KillHost,
    PowerLoss,
    StopProcess,
)

if TYPE_CHECKING:
    from tenure.runtime.testing.workload_run import Run
    from tenure.runtime.testing.world import SimHost

FOREIGN_LINE = (
    b'{"type":"custom","id":"foreign%d","parentId":null,"timestamp":"","customType":"x"}\n'
)


class Accidents:
    """The accidents of one run."""

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._edits = 0

    async def do(self, op: AnyOp) -> None:
        run = self._run
        match op:
            case KillHost(host=number):
                if (host := self._alive(number)) is not None:
                    run.crashed("kill -9")
                    host.kill()
            case CloseHost(host=number):
                if (host := self._alive(number)) is not None:
                    run.crashed("closed")
                    await host.close()
            case StopProcess(host=number, for_ms=for_ms):
                if (host := self._alive(number)) is not None:
                    run.crashed("stopped")
                    host.stop()
                    await run.world.clock.sleep(for_ms / 1000)
                    host.resume()
            case PowerLoss():
                run.crashed("power loss")
                run.world.power_loss()
            case DiskTrouble(kind=kind, for_ms=for_ms):
                run.troubles.begin(op)
                if kind in LASTING:
                    await run.world.clock.sleep(for_ms / 1000)
                    run.troubles.end(op)
            case CrashOwner(host=number, owner=owner, nth=nth):
                if (host := self._alive(number)) is not None:
                    run.world.crashes.plan(host.process.name, owner, nth)
            case ClockBack(ms=ms):
                run.world.loop.wall_offset_ms -= ms
            case EditFile():
                self._edit(op)
            case _:
                raise TypeError(f"nobody knows how to do a {type(op).__name__}")

    def _alive(self, number: int) -> "SimHost | None":
        host = self._run.hosts[number]
        return host if host is not None and host.alive else None

    def _edit(self, op: EditFile) -> None:
        """As an editor or another agent would: at once, and without any lock."""
        run, disk = self._run, self._run.world.disk
        board = run.board
        there = [each for each in board.sessions if board.paths[each] in disk.paths()]
        if not there:
            return
        session_id = there[op.pick % len(there)]
        path = board.paths[session_id]
        run.edited.add(session_id)
        run.world.watchers.tell("edited", path)
        node = disk.file(path)
        match op.how:
            case "append":
                self._edits += 1
                node.append(FOREIGN_LINE % self._edits)
            case "truncate":
                node.truncate(max(0, len(node.content) - 40))
            case "garble":
                _garble(node)
            case "delete":
                place = disk.target(path)
                del place.folder.names[place.name]
                place.folder.durable.pop(place.name, None)
        node.sync()
        disk.touch(node)


def _garble(node: FileNode) -> None:
    middle = len(node.content) // 2
    node.content[middle : middle + 4] = b"\x00\xff\n{"
    node.durable[:] = node.content
    node.unsynced.clear()
