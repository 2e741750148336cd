"""An answer for always is written into the policy, by its one writer, once it took effect."""

from typing import Literal

from tenure.actors.approval_replies import outcome_of, resolved
from tenure.actors.approval_state import (
    Answering,
    Gate,
    Remembering,
    RuleSaved,
    find,
    with_stage,
    without_stage,
)
from tenure.messages.approval import Applied
from tenure.messages.base import Reply
from tenure.messages.settings import SettingsSaved, SetToolPolicy
from tenure.messages.tokens import RequestId
from tenure.runtime.step import Step


def remember(state: Gate, stage: Answering, rule: Literal["allow", "deny"]) -> Step[Gate]:
    """Have the rule written by the one writer of the policy."""
    remembering = Remembering(stage.request_id, stage.call, stage.user)
    step = Step(with_stage(state, remembering)).emit(resolved(stage, outcome_of(stage.choice)))
    change = SetToolPolicy(tool=stage.call.tool.name, rule=rule)
    return step.ask("settings", change, re=RuleSaved(request_id=stage.request_id))


def on_rule_saved(state: Gate, request_id: RequestId, reply: Reply) -> Step[Gate]:
    stage = find(state, request_id)
    if not isinstance(stage, Remembering):
        return Step(state)
    remembered = isinstance(reply, SettingsSaved)
    reply = Applied(request_id=request_id, remembered=remembered)
    return Step(without_stage(state, stage)).answer(stage.user, reply)
