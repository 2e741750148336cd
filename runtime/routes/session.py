"""The commands of the SessionActor."""

from tenure.messages.base import Command
from tenure.messages.checkpoints import UndoChange
from tenure.messages.compaction import Compact, SettlePasses, Uncompact
from tenure.messages.handover import HandOverSession
from tenure.messages.limits import GetSpending
from tenure.messages.queue import (
    AdmitPrompt,
    CancelPrompt,
    EditPrompt,
    FollowUpTurn,
    MovePrompt,
    RedirectTurn,
    ReleaseQueue,
    ResumeTurn,
    SteerTurn,
)
from tenure.messages.session import (
    AppendEntries,
    CancelTurn,
    ContinueSession,
    GetSession,
    OpenNewSession,
    OpenSession,
    ParkSeat,
    SettleCalls,
    StartTurn,
)
from tenure.messages.session_ops import (
    ClearSessions,
    DeleteSession,
    ForkSession,
    RenameSession,
    RewindSession,
    RewriteSession,
    SetLabel,
)

TAKEN: tuple[type[Command], ...] = (
    OpenSession,
    OpenNewSession,
    ContinueSession,
    AppendEntries,
    StartTurn,
    CancelTurn,
    SettleCalls,
    ParkSeat,
    HandOverSession,
    GetSession,
    GetSpending,
    RenameSession,
    SetLabel,
    ForkSession,
    RewindSession,
    DeleteSession,
    ClearSessions,
    RewriteSession,
    Compact,
    Uncompact,
    SettlePasses,
    SteerTurn,
    FollowUpTurn,
    RedirectTurn,
    ResumeTurn,
    EditPrompt,
    MovePrompt,
    CancelPrompt,
    ReleaseQueue,
    AdmitPrompt,
    UndoChange,
)

BETWEEN_OWNERS: tuple[type[Command], ...] = (
    SettleCalls,
    SettlePasses,
    AdmitPrompt,
)
"""These only owners send each other: from outside they would go round a check."""
