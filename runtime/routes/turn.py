"""The commands of the TurnActor."""

from tenure.messages.base import Command
from tenure.messages.handover import DetachSession
from tenure.messages.queue import ArmQueue, ChangeQueue, ContinueTurn, GetQueue, RunPrompt
from tenure.messages.subagents import StopCall
from tenure.messages.turn import (
    AbandonDrain,
    AttachSession,
    DrainTurn,
    GetTurn,
    RunTurn,
    StopActiveTurn,
    StopTurn,
)

TAKEN: tuple[type[Command], ...] = (
    RunTurn,
    StopTurn,
    StopActiveTurn,
    DrainTurn,
    AbandonDrain,
    AttachSession,
    DetachSession,
    GetTurn,
    StopCall,
    GetQueue,
    RunPrompt,
    ContinueTurn,
    ChangeQueue,
    ArmQueue,
)

BETWEEN_OWNERS: tuple[type[Command], ...] = (
    RunTurn,
    StopActiveTurn,
    DrainTurn,
    AbandonDrain,
    AttachSession,
    DetachSession,
    RunPrompt,
    ContinueTurn,
    ChangeQueue,
    ArmQueue,
)
"""These only owners send each other: from outside they would go round a check."""
