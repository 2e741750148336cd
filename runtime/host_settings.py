"""The settings of a root, as an embedder reads and changes them."""

from tenure.messages.base import Command
from tenure.messages.settings import (
    GetSettings,
    Mode,
    Rule,
    SetMode,
    SetModel,
    Settings,
    SettingsSaved,
    SetToolPolicy,
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
        """Remember a rule for one tool."""
        return await self._change(SetToolPolicy(tool=tool, rule=rule))

    async def set_model(self, model: str, base_url: str = "") -> Settings:
        """Change the model of turns that name none."""
        return await self._change(SetModel(model=model, base_url=base_url))

    async def _change(self, command: Command) -> Settings:
        reply = await self._ask(command)
        if isinstance(reply, SettingsSaved):
            return reply.settings
        raise refused(reply)
