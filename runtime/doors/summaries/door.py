"""The summaries door: plans a compaction and writes its summary.  It stores nothing."""

from functools import partial
from typing import Protocol

import msgspec

from tenure.messages.base import Outcome
from tenure.messages.compaction import (
    CompactionNotPlanned,
    CompactionPlanned,
    ConversationNotSummarised,
    ConversationSummarised,
    PlanCompaction,
    SummariseConversation,
    Summary,
)
from tenure.messages.content import AssistantMessage
from tenure.messages.models import RETRYABLE, ModelCallError
from tenure.messages.settings import CompactionRules
from tenure.messages.tokens import SessionId
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.models.names import LIBRARIAN
from tenure.runtime.doors.summaries.planning import NotPlanned, plan_of
from tenure.runtime.doors.summaries.prompts import SYSTEM
from tenure.runtime.doors.summaries.summarising import (
    Folded,
    Unfolded,
    by_model,
    by_rule,
    folded_of,
)
from tenure.runtime.doors.transcripts.conversation import History

SAME = "same"
"""The setting that takes the turn's own model for summaries."""
PART_S_MAX = 60.0
"""How long a model may take for one part."""
ATTEMPTS_MAX = 2
RETRY_S = 1.0
RETRY_S_MAX = 10.0
"""A provider that asks for more is not waited for: the rule is there at once."""

_NOT_OPEN = "the session is not open in this host"


class HistorySource(Protocol):
    """Where a conversation is read; the transcripts door."""

    def history(self, session_id: SessionId) -> History: ...


class ModelSource(Protocol):
    """Who writes summaries; the models door."""

    @property
    def default(self) -> str: ...

    async def ask(
        self, model: str, system: str, prompt: str, session_id: SessionId, within_s: float
    ) -> AssistantMessage: ...

    async def window(self, model: str) -> int: ...


class Summaries:
    """The handlers of `PlanCompaction` and `SummariseConversation`."""

    def __init__(self, leaves: Leaves, transcripts: HistorySource, models: ModelSource) -> None:
        self._leaves = leaves
        self._transcripts = transcripts
        self._models = models

    async def plan(
        self, effect: PlanCompaction, rules: CompactionRules, context: Context
    ) -> Outcome:
        """Read the conversation as it is now, and decide."""
        try:
            history = self._transcripts.history(effect.session_id)
        except LookupError:
            return _not_planned(effect, NotPlanned(reason="unreadable", said=_NOT_OPEN))
        window = effect.window or await self.window(effect.model, rules)
        work = partial(plan_of, history, effect.trigger, window, rules)
        found = await self._leaves.workers.run(work)
        if isinstance(found, NotPlanned):
            return _not_planned(effect, found)
        summariser = self._summariser(effect.model, rules)
        known = await self._window_of(summariser, effect.model, window) if summariser else 0
        plan = msgspec.structs.replace(found, summariser=summariser, summariser_window=known)
        return CompactionPlanned(pass_id=effect.pass_id, plan=plan)

    async def summarise(self, effect: SummariseConversation, context: Context) -> Outcome:
        """By the model of the plan; by rule where there is none, or where it fails."""
        try:
            history = self._transcripts.history(effect.session_id)
            folded = await self._leaves.workers.run(folded_of, history, effect.plan)
        except LookupError:
            return ConversationNotSummarised(pass_id=effect.pass_id, reason=_NOT_OPEN)
        except Unfolded as changed:
            return ConversationNotSummarised(pass_id=effect.pass_id, reason=str(changed))
        summary = await self._summary(effect, folded)
        return ConversationSummarised(pass_id=effect.pass_id, summary=summary)

    async def window(self, model: str, rules: CompactionRules) -> int:
        """Tokens that a turn's model can read: as it is set, else as it is known; 0 for neither."""
        return rules.window or await self._models.window(model)

    # --- how -----------------------------------------------------------------------------------

    async def _summary(self, effect: SummariseConversation, folded: Folded) -> Summary:
        plan, problem = effect.plan, ""
        if plan.summariser:
            say = partial(self._say, effect)
            try:
                return await by_model(folded, effect.instructions, plan.summariser_window, say)
            except ModelCallError as error:
                problem = f"{error.failure.kind}: {error.failure.reason}"
        work = partial(by_rule, folded, effect.instructions, problem)
        return await self._leaves.workers.run(work)

    async def _say(self, effect: SummariseConversation, prompt: str) -> AssistantMessage:
        attempt = 1
        while True:
            try:
                return await self._models.ask(
                    effect.plan.summariser, SYSTEM, prompt, effect.session_id, PART_S_MAX
                )
            except ModelCallError as error:
                wait_s = max(RETRY_S, error.failure.retry_after_ms / 1000)
                hopeless = error.failure.kind not in RETRYABLE or wait_s > RETRY_S_MAX
                if hopeless or attempt >= ATTEMPTS_MAX:
                    raise
            attempt += 1
            await self._leaves.clock.sleep(wait_s)

    def _summariser(self, model: str, rules: CompactionRules) -> str:
        """The model string; empty for the rule.  The librarian quotes, it does not summarise."""
        chosen = rules.model
        if chosen == SAME:
            chosen = model or self._models.default
        return "" if chosen == LIBRARIAN else chosen

    async def _window_of(self, summariser: str, model: str, window: int) -> int:
        if summariser == (model or self._models.default):
            return window
        return await self._models.window(summariser)


def _not_planned(effect: PlanCompaction, why: NotPlanned) -> CompactionNotPlanned:
    return CompactionNotPlanned(pass_id=effect.pass_id, reason=why.reason, said=why.said)
