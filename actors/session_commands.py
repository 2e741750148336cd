"""Every command that a SessionActor takes from others."""

from tenure.actors.session_ops import OpsCommand
from tenure.actors.session_swap import SwapCommand
from tenure.actors.session_turns import TurnWish
from tenure.messages.checkpoints import UndoChange
from tenure.messages.compaction import Compact, SettlePasses, Uncompact
from tenure.messages.handover import HandOverSession
from tenure.messages.session import AppendEntries, CancelTurn, ParkSeat, SettleCalls

SessionCommand = (
    SwapCommand
    | AppendEntries
    | TurnWish
    | CancelTurn
    | SettleCalls
    | SettlePasses
    | ParkSeat
    | HandOverSession
    | Compact
    | Uncompact
    | UndoChange
    | OpsCommand
)
