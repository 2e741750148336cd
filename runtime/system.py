"""The only wiring: which owners there are, who carries out their effects, what goes where."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from msgspec.structs import replace

from tenure.actors.approval import ApprovalActor
from tenure.actors.compaction import CompactionActor
from tenure.actors.handoff import HandoffActor
from tenure.actors.index_writer import IndexWriterActor
from tenure.actors.installer import InstallerActor
from tenure.actors.session import SessionActor
from tenure.actors.settings import SettingsActor
from tenure.actors.turn import TurnActor
from tenure.messages.approval import (
    AskUser,
    AwaitExpiry,
    PreviewCall,
)
from tenure.messages.base import Command, Event, Outcome
from tenure.messages.checkpoints import (
    CHECKPOINT,
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
from tenure.messages.limits import ReadSpending, Spent, TurnRules
from tenure.messages.models import Model
from tenure.messages.questions import AnswerTool, PutToUser
from tenure.messages.settings import (
    CompactionRules,
    PolicyChanged,
    ReadSettings,
    Settings,
    SettingsRead,
    WriteSettings,
)
from tenure.messages.subagents import GateChild
from tenure.messages.tokens import Role, SessionId, turn_session
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
    TurnPrepared,
    Wait,
)
from tenure.runtime.doors.approver import Approve, Approver, ReplyTo
from tenure.runtime.doors.checkpoints.undoing import Undoing
from tenure.runtime.doors.claims import Claims
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.models.door import Models
from tenure.runtime.doors.packages.door import PackagesDoor
from tenure.runtime.doors.packages.skill_tool import ReadSkill, with_skills
from tenure.runtime.doors.pause import Pause
from tenure.runtime.doors.search.wiring import IndexDoors, IndexWishes, open_index
from tenure.runtime.doors.settings_file import SettingsFile
from tenure.runtime.doors.summaries.door import Summaries
from tenure.runtime.doors.tools.door import AnyTool, Tools
from tenure.runtime.doors.tools.subagent import Subagents
from tenure.runtime.doors.transcripts import Transcripts
from tenure.runtime.doors.transcripts.customs import custom_fields
from tenure.runtime.doors.transcripts.keeping import Keeping
from tenure.runtime.doors.transcripts.spendings import Spendings
from tenure.runtime.doors.vault.door import Vault
from tenure.runtime.effects import Handlers
from tenure.runtime.routes import (
    approval,
    compaction,
    handoff,
    index_writer,
    installer,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """Every door that is built on the leaves, of one host."""

    claims: Claims
    transcripts: Transcripts
    keeping: Keeping
    spendings: Spendings
    tools: Tools
    subagents: Subagents
    models: Models
    summaries: Summaries
    settings: SettingsFile
    vault: Vault
    packages: PackagesDoor
    approver: Approver
    pause: Pause
    index: IndexDoors
    undoing: Undoing


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What an embedder may choose; see `Host.open`."""

    model: str | Model | None = None
    base_url: str = ""
    approve: Approve | None = None
    reply: ReplyTo | None = None
    tools: tuple[AnyTool, ...] = ()
    settings: Mapping[str, object] | None = None
    index: IndexWishes = field(default_factory=IndexWishes)


def open_doors(leaves: Leaves, root: str, host_id: str, wishes: Wishes) -> Doors:
    claims = Claims(leaves, host_id)
    transcripts = Transcripts(leaves, root, claims, host_id)
    packages = PackagesDoor(leaves, root, claims)
    tools = Tools(leaves, root, wishes.tools, unlisted=(ReadSkill(packages.loader),))
    default = "librarian" if wishes.model is None else wishes.model
    models = Models(leaves, transcripts, tools, default, wishes.base_url)
    settings = SettingsFile(leaves, root, claims, wishes.settings or {})
    subagents = Subagents(models, tools.specs)
    tools.let_run(subagents)

    def checkpoints_of(session_id: SessionId, seat: str) -> list[dict[str, Any]] | None:
        live = transcripts.held(session_id, seat)
        return None if live is None else custom_fields(live.tree, CHECKPOINT)

    return Doors(
        claims=claims,
        transcripts=transcripts,
        keeping=Keeping(leaves, transcripts),
        spendings=Spendings(leaves, transcripts),
        tools=tools,
        subagents=subagents,
        models=models,
        summaries=Summaries(leaves, transcripts, models),
        settings=settings,
        vault=Vault(leaves, root, claims),
        packages=packages,
        approver=Approver(wishes.approve, wishes.reply),
        pause=Pause(leaves.clock),
        index=open_index(leaves, root, claims, settings, wishes.index),
        undoing=Undoing(leaves, root, tools.store, checkpoints_of),
    )


class WithSettings:
    """Handlers that read the settings anew first: they may have changed by hand."""

    def __init__(self, doors: Doors, wishes: Wishes) -> None:
        self._doors = doors
        self._wishes = wishes
        self._last: Settings | None = None

    async def prepare(self, effect: PrepareTurn, context: Context) -> Outcome:
        """A host without a model of its own takes the one in the settings."""
        doors, wishes = self._doors, self._wishes
        found = await self._settings(context)
        if found is not None and wishes.model is None and not effect.model:
            doors.models.choose(found.model, wishes.base_url or found.base_url)
        prepared = await doors.models.prepare(effect, context)
        if not isinstance(prepared, TurnPrepared):
            return prepared
        prepared = with_skills(prepared, await doors.packages.load(LoadPackages(), context))
        prepared = replace(prepared, rules=self._rules(effect, found))
        rules = CompactionRules() if found is None else found.compaction
        if not rules.enabled:
            return prepared
        return replace(prepared, window=await doors.summaries.window(prepared.model, rules))

    async def plan(self, effect: PlanCompaction, context: Context) -> Outcome:
        """When, and by whom, is for the settings to say."""
        found = await self._settings(context)
        rules = CompactionRules() if found is None else found.compaction
        return await self._doors.summaries.plan(effect, rules, context)

    async def _settings(self, context: Context) -> Settings | None:
        outcome = await self._doors.settings.read(ReadSettings(), context)
        if isinstance(outcome, SettingsRead):
            self._last = outcome.settings
            return outcome.settings
        return None

    def _rules(self, effect: PrepareTurn, found: Settings | None) -> TurnRules:
        """What holds for the turn: what its prompt says, else the settings.

        Where the settings cannot be read, those that were read last go on to hold.
        """
        wished = effect.overrides
        session_id = turn_session(effect.turn_id)
        live = self._doors.transcripts.live(session_id)
        # Without it the prompt cannot be written either, and the turn ends there.
        spent = Spent() if live is None else live.spent.spending(session_id).total
        found = found or self._last
        if found is None:
            return TurnRules(turn=wished.budget, thinking=wished.thinking, spent=spent)
        return TurnRules(
            turn=wished.budget.over(found.budget.turn),
            session=found.budget.session,
            unpriced=found.budget.unpriced,
            spent=spent,
            retries=found.retries,
            thinking=found.thinking if wished.thinking == "default" else wished.thinking,
        )


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


def host_owners(doors: Doors) -> tuple[OwnerSpec, ...]:
    """Started first, stopped last."""
    return (
        OwnerSpec(role="settings", owner=SettingsActor),
        OwnerSpec(role="handoff", owner=HandoffActor),
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
