"""The settings of a root, as an embedder reads and changes them."""

from collections.abc import Sequence

from tenure.messages.base import Command
from tenure.messages.settings import (
    GetSettings,
    Mode,
    RemoveToolPolicy,
    Rule,
    SetChangeRule,
    SetExpiry,
    SetMode,
    SetModel,
    Settings,
    SettingsSaved,
    SetToolPolicy,
    SetWorkingDirs,
)
from tenure.runtime.seat import AskHost, refused


class HostSettings:
    """The settings of a root; every change goes through their one owner."""

    def __init__(self, ask: AskHost) -> None:
        self._ask = ask

    async def get(self) -> Settings:
        """All settings, read anew where the file changed."""
        reply = await self._ask(GetSettings())
        if isinstance(reply, Settings):
            return reply
        raise refused(reply)

    async def set_mode(self, mode: Mode) -> Settings:
        """Change the approval mode for every session of the root."""
        return await self._change(SetMode(mode=mode))

    async def set_tool_policy(self, tool: str, rule: Rule) -> Settings:
        """Remember a rule for one tool, or for `TOOL:PATTERN` (see messages/patterns.py).

        Raises:
            Refused: `SettingsNotSaved`, also where the pattern is none.
        """
        return await self._change(SetToolPolicy(tool=tool, rule=rule))

    async def remove_tool_policy(self, tool: str) -> Settings:
        """Forget the rule with this key.  Raises `Refused` where there is none."""
        return await self._change(RemoveToolPolicy(tool=tool))

    async def set_change_rule(self, rule: Rule) -> Settings:
        """The rule for tools that change something and have none of their own."""
        return await self._change(SetChangeRule(rule=rule))

    async def set_working_dirs(self, folders: Sequence[str]) -> Settings:
        """Folders below the root in which safe mode does not ask; none for no boundary."""
        return await self._change(SetWorkingDirs(folders=tuple(folders)))

    async def set_expiry(self, expires_s: int) -> Settings:
        """Deny a request that nobody answered in this many seconds; 0 for never."""
        return await self._change(SetExpiry(expires_s=expires_s))

    async def set_model(self, model: str, base_url: str = "") -> Settings:
        """Change the model of turns that name none."""
        return await self._change(SetModel(model=model, base_url=base_url))

    async def _change(self, command: Command) -> Settings:
        reply = await self._ask(command)
        if isinstance(reply, SettingsSaved):
            return reply.settings
        raise refused(reply)
