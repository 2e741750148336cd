"""Every door of one host, opened: what its owners' effects are carried out by."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from tenure.messages.base import Outcome
from tenure.messages.checkpoints import (
    CHECKPOINT,
)
from tenure.messages.compaction import (
    PlanCompaction,
)
from tenure.messages.install_effects import (
    LoadPackages,
)
from tenure.messages.limits import Spent, TurnRules
from tenure.messages.models import Model
from tenure.messages.settings import (
    CompactionRules,
    ReadSettings,
    Settings,
    SettingsRead,
)
from tenure.messages.tokens import SessionId, turn_session
from tenure.messages.turn_effects import (
    PrepareTurn,
    TurnPrepared,
)
from tenure.runtime.doors.approver import Approve, Approver, ReplyTo
from tenure.runtime.doors.checkpoints.undoing import Undoing
from tenure.runtime.doors.claims import Claims
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.mcp.credentials import Credentials
from tenure.runtime.doors.mcp.sign_in import SignIns
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
    credentials: Credentials
    sign_ins: SignIns


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
    credentials = Credentials(leaves, root, claims)
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
        credentials=credentials,
        sign_ins=SignIns(leaves, credentials),
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
