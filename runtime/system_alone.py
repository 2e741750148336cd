"""The wiring of one owner alone, for commands that need no host: see `runtime/alone.py`."""

from collections.abc import Callable

from tenure.actors.handoff import HandoffActor
from tenure.messages.base import Event
from tenure.messages.handoff_effects import (
    DeliverBrief,
    NoteHandoffStages,
    RunHandoffStage,
    SummariseBrief,
    UseVault,
    WriteHandoff,
)
from tenure.runtime.alone import Alone
from tenure.runtime.doors.claims import Claims
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.vault.door import Vault


def handoff_alone(leaves: Leaves, root: str, tell: Callable[[Event], None]) -> Alone:
    """The HandoffActor of one process.

    Args:
        leaves: such as block (`doors/blocking.py`).
        root: the vault; an absolute path with its links followed.
        tell: is called with every event.
    """
    vault = Vault(leaves, root, Claims(leaves, leaves.entropy.fresh()))
    return Alone(
        leaves,
        "handoff",
        HandoffActor.step,
        HandoffActor.first(),
        {
            WriteHandoff: vault.write_handoff,
            RunHandoffStage: vault.run_stage,
            NoteHandoffStages: vault.note_stages,
            UseVault: vault.use,
            DeliverBrief: vault.deliver,
            SummariseBrief: vault.summarise,
        },
        tell,
    )
