"""Workloads: what simulated runs do with the parts of a host, one module for each part.

A new one is a module here, its operations in `workload.AnyOp`, and a line in `WORKLOADS`.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from tenure.runtime.testing.workloads import compaction, handover, queue, sessions
from tenure.runtime.testing.workloads.base import Op, Workload

WORKLOADS: dict[str, Workload] = {
    each.name: each
    for each in (sessions.WORKLOAD, compaction.WORKLOAD, handover.WORKLOAD, queue.WORKLOAD)
}
"""All but the seats themselves, whose operations come in every workload."""

PERFORMERS: dict[type[Op], Callable[[Any, Any], Awaitable[None]]] = {
    op: performer for each in WORKLOADS.values() for op, performer in each.does.items()
}
"""How each operation of theirs is done."""
