"""The only wiring: which owners there are, who carries out their effects, what goes where."""

from collections.abc import Mapping
from types import ModuleType

from tenure.actors.approval import ApprovalActor
from tenure.actors.compaction import CompactionActor
from tenure.actors.handoff import HandoffActor
from tenure.actors.index_writer import IndexWriterActor
from tenure.actors.installer import InstallerActor
from tenure.actors.mcp_auth import McpAuthActor
from tenure.actors.session import SessionActor
from tenure.actors.settings import SettingsActor
from tenure.actors.turn import TurnActor
from tenure.messages.approval import (
    AskUser,
    AwaitExpiry,
    PreviewCall,
)
from tenure.messages.base import Command, Event
from tenure.messages.checkpoints import (
    KeepFiles,
    PlanUndo,
    ResolveCall,
    RestoreFiles,
)
from tenure.messages.compaction import (
    FindCompaction,
    PlanCompaction,
    SummariseConversation,
)
from tenure.messages.handoff_effects import (
    DeliverBrief,
    NoteHandoffStages,
    RunHandoffStage,
    SummariseBrief,
    UseVault,
    WriteHandoff,
)
from tenure.messages.handover import ForgetSeat
from tenure.messages.index_effects import (
    ClaimIndex,
    CommitIndex,
    EmbedChunks,
    EstimateIndex,
    ReadIndexStatus,
    ReleaseIndex,
    ScanNotes,
    StoreChunks,
    SweepIndex,
)
from tenure.messages.install_effects import (
    ChangePackages,
    CheckPackages,
    FetchPackage,
    FindPackageSource,
    LoadPackages,
)
from tenure.messages.limits import ReadSpending
from tenure.messages.mcp_auth_effects import (
    AuthorizeServer,
    ListCredentials,
    NoteScopes,
    ReadCredential,
    RefreshCredential,
    RemoveCredential,
    SweepCredentials,
)
from tenure.messages.questions import AnswerTool, PutToUser
from tenure.messages.settings import (
    PolicyChanged,
    ReadSettings,
    WriteSettings,
)
from tenure.messages.subagents import GateChild
from tenure.messages.tokens import Role
from tenure.messages.transcripts import (
    AlterTranscript,
    AppendRecords,
    ChangeStored,
    CloseTranscript,
    FindEntry,
    NoteSeat,
    OpenTranscript,
    ReadSeat,
    SettleTranscript,
)
from tenure.messages.turn_effects import (
    CallModel,
    KeepTime,
    PrepareTurn,
    RunTool,
    Wait,
)
from tenure.runtime.effects import Handlers
from tenure.runtime.host_doors import Doors, Wishes, WithSettings
from tenure.runtime.routes import (
    approval,
    compaction,
    handoff,
    index_writer,
    installer,
    mcp_auth,
    session,
    settings,
    turn,
)
from tenure.runtime.supervisor import OwnerSpec

_ROUTES: Mapping[Role, ModuleType] = {
    "session": session,
    "turn": turn,
    "compaction": compaction,
    "approval": approval,
    "settings": settings,
    "handoff": handoff,
    "index_writer": index_writer,
    "installer": installer,
    "mcp_auth": mcp_auth,
}

TAKEN_BY: Mapping[type[Command], Role] = {
    command: role for role, routes in _ROUTES.items() for command in routes.TAKEN
}
"""Which owner takes which command."""

BETWEEN_OWNERS: frozenset[type[Command]] = frozenset(
    command for routes in _ROUTES.values() for command in routes.BETWEEN_OWNERS
)
"""Commands that only owners send each other: from outside they would go round a check."""

EVENT_ROUTES: Mapping[type[Event], Role] = {PolicyChanged: "approval"}
"""Events that are mail, too: to every owner of that role."""


def _handlers_of_the_index(doors: Doors) -> Handlers:
    return {
        ClaimIndex: doors.index.writer.claim,
        ScanNotes: doors.index.writer.scan,
        EmbedChunks: doors.index.writer.embed,
        StoreChunks: doors.index.writer.store,
        CommitIndex: doors.index.writer.commit,
        ReleaseIndex: doors.index.writer.release,
        ReadIndexStatus: doors.index.writer.status,
        EstimateIndex: doors.index.writer.estimate,
        SweepIndex: doors.index.writer.sweep,
    }


def _approval_handlers(doors: Doors) -> Handlers:
    """What an approval wants: of the user, of time, and of the files of calls."""
    return {
        PreviewCall: doors.tools.preview,
        AskUser: doors.approver.ask,
        AwaitExpiry: doors.pause.expire,
        ResolveCall: doors.tools.keeping.resolve,
        KeepFiles: doors.tools.keeping.keep,
        PlanUndo: doors.undoing.plan,
        RestoreFiles: doors.undoing.restore,
    }


def handlers_of(doors: Doors, wishes: Wishes) -> Handlers:
    """Who carries out which effect."""
    settings = WithSettings(doors, wishes)
    return {
        ReadSeat: doors.transcripts.read_seat,
        OpenTranscript: doors.transcripts.open,
        AppendRecords: doors.transcripts.append,
        NoteSeat: doors.transcripts.note_seat,
        ForgetSeat: doors.transcripts.forget_seat,
        CloseTranscript: doors.transcripts.close,
        FindEntry: doors.keeping.find_entry,
        AlterTranscript: doors.keeping.alter,
        ChangeStored: doors.keeping.change_stored,
        SettleTranscript: doors.transcripts.settle,
        FindCompaction: doors.transcripts.find_compaction,
        PrepareTurn: settings.prepare,
        PlanCompaction: settings.plan,
        SummariseConversation: doors.summaries.summarise,
        CallModel: doors.models.call,
        Wait: doors.pause.wait,
        KeepTime: doors.pause.keep_time,
        ReadSpending: doors.spendings.read,
        **_approval_handlers(doors),
        ReadSettings: doors.settings.read,
        WriteSettings: doors.settings.write,
        WriteHandoff: doors.vault.write_handoff,
        RunHandoffStage: doors.vault.run_stage,
        NoteHandoffStages: doors.vault.note_stages,
        UseVault: doors.vault.use,
        DeliverBrief: doors.vault.deliver,
        SummariseBrief: doors.vault.summarise,
        FindPackageSource: doors.packages.find_source,
        FetchPackage: doors.packages.fetch,
        ChangePackages: doors.packages.change,
        LoadPackages: doors.packages.load,
        CheckPackages: doors.packages.check,
        **_handlers_of_tools(doors),
        **_handlers_of_the_index(doors),
        **_handlers_of_sign_ins(doors),
    }


def _handlers_of_tools(doors: Doors) -> Handlers:
    return {
        RunTool: doors.tools.run,
        PreviewCall: doors.tools.preview,
        AskUser: doors.approver.ask,
        PutToUser: doors.approver.put,
        AnswerTool: doors.tools.asking.answer,
        GateChild: doors.subagents.gate,
    }


def _handlers_of_sign_ins(doors: Doors) -> Handlers:
    return {
        ReadCredential: doors.credentials.read,
        RefreshCredential: doors.credentials.refresh,
        NoteScopes: doors.credentials.note,
        RemoveCredential: doors.credentials.remove,
        ListCredentials: doors.credentials.list,
        SweepCredentials: doors.credentials.sweep,
        AuthorizeServer: doors.sign_ins.authorize,
    }


def host_owners(doors: Doors) -> tuple[OwnerSpec, ...]:
    """Started first, stopped last."""
    return (
        OwnerSpec(role="settings", owner=SettingsActor),
        OwnerSpec(role="handoff", owner=HandoffActor),
        OwnerSpec(role="mcp_auth", owner=McpAuthActor),
        OwnerSpec(role="installer", owner=InstallerActor),
        OwnerSpec(role="index_writer", owner=IndexWriterActor, let_go=doors.index.writer.let_go),
    )


def seat_owners(doors: Doors) -> tuple[OwnerSpec, ...]:
    """In the order in which they start; the session stops last, with everything written."""
    return (
        OwnerSpec(role="session", owner=SessionActor, let_go=doors.transcripts.release_seat),
        OwnerSpec(role="approval", owner=ApprovalActor),
        OwnerSpec(role="compaction", owner=CompactionActor),
        OwnerSpec(role="turn", owner=TurnActor),
    )
