"""TURN-8: what a turn builds on is durable before it goes on."""

import json
from typing import Any

from tenure.messages.base import Effect, Message
from tenure.messages.queue import PromptEdited, PromptQueued, PromptSuspended, RunPrompt
from tenure.messages.tokens import SessionId, turn_session
from tenure.messages.turn import RunTurn
from tenure.messages.turn_effects import CallModel, RunTool
from tenure.runtime.step import Step, Taken
from tenure.runtime.testing.checkers.content import (
    calls_and_results,
    durable_of,
    entries_of,
    holds,
)
from tenure.runtime.testing.checkers.paths import Paths


class Durable(Paths):
    """Looks at the durable bytes of the session whenever a model or a tool is called."""

    invariants = ("TURN-8",)
    roles = ("session", "turn")

    def __init__(self) -> None:
        super().__init__()
        self._texts: dict[str, str] = {}
        self._waiting: dict[str, str] = {}

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        super().stepped(host, owner, message, taken, step)
        for event in step.events:
            if isinstance(event, PromptQueued | PromptEdited | PromptSuspended):
                self._waiting[event.item_id] = event.text
        match message:
            case RunTurn(turn_id=turn_id, text=text):
                self._texts[turn_id] = text
            case RunPrompt(turn_id=turn_id, item_id=item) if item in self._waiting:
                self._texts[turn_id] = self._waiting[item]
            case _:
                pass

    def effect_started(self, host: str, owner: str, number: int, effect: Effect) -> None:
        super().effect_started(host, owner, number, effect)
        match effect:
            case CallModel(turn_id=turn_id, session_id=session_id):
                self._model_called(turn_id, session_id)
            case RunTool(turn_id=turn_id, call_id=call_id):
                data = self._durable(turn_session(turn_id))
                if data is not None and not holds(data, call_id):
                    self.report("TURN-8", f"{call_id} runs, and its message is not durable")
            case _:
                pass

    def _durable(self, session: SessionId) -> bytes | None:
        """None where nothing can be said: something else changed the file."""
        path = self.paths.get(session, "")
        return None if path in self.foreign else durable_of(self.disk, path) or b""

    def _model_called(self, turn_id: str, session: SessionId) -> None:
        data = self._durable(session)
        if data is None:
            return
        # A turn that is resumed has no prompt of its own.
        text = self._texts.get(turn_id)
        if text is not None and json.dumps(text, ensure_ascii=False).encode() not in data:
            self.report("TURN-8", f"the model is called for {turn_id} before its prompt is durable")
        calls, results = calls_and_results(entries_of(data))
        for call in calls:
            if call not in results:
                self.report("TURN-8", f"the model is called before the result of {call} is durable")
