"""The librarian as a model: what it says next, from what stands in the conversation."""

from collections.abc import AsyncIterator

from tenure.messages.content import Usage
from tenure.messages.models import (
    ModelDone,
    ModelEvent,
    ModelRequest,
    ModelText,
    ModelToolCall,
)
from tenure.runtime.doors.models.librarian.carrying import carry_out
from tenure.runtime.doors.models.librarian.orders import Search, order_of
from tenure.runtime.doors.models.librarian.quotes import pieces_of
from tenure.runtime.doors.models.librarian.searching import answer_question
from tenure.runtime.doors.models.librarian.speech import Calls, Say
from tenure.runtime.doors.models.librarian.turn import Turn, turn_of

ROUNDS_MAX = 5
"""Rounds of tool calls for one prompt.  No way through the code needs as many."""


async def librarian(request: ModelRequest) -> AsyncIterator[ModelEvent]:
    """The next message: tool calls, or an answer in small pieces."""
    turn = turn_of(request)
    speech = next_speech(turn)
    match speech:
        case Calls(calls=calls):
            for number, (tool, arguments) in enumerate(calls, 1):
                call_id = f"librarian_{len(turn.rounds) + 1}_{number}"
                yield ModelToolCall(id=call_id, name=tool, arguments=arguments)
        case Say(text=text):
            for piece in pieces_of(text):
                yield ModelText(text=piece)
    # It costs nothing, and that is known.
    yield ModelDone(usage=Usage(priced=True), model="librarian", provider="tenure", api="librarian")


def next_speech(turn: Turn) -> Say | Calls:
    """What to do now; the same for the same conversation."""
    speech = _next(turn)
    if isinstance(speech, Say):
        return speech
    missing = sorted({tool for tool, _ in speech.calls} - turn.tools)
    if missing:
        return Say(text=f"I cannot do that here: there is no tool named {', '.join(missing)}.")
    if len(turn.rounds) >= ROUNDS_MAX:
        return Say(text="I have looked often enough and did not come to an end; ask another way.")
    return speech


def _next(turn: Turn) -> Say | Calls:
    order = order_of(turn.prompt)
    if order is not None and not isinstance(order, Search):
        speech = carry_out(order, turn)
        if speech is not None:
            return speech
    # What is no order, or named no file after all, is a question.
    text = order.text if isinstance(order, Search) else turn.prompt
    return answer_question(text, turn)
