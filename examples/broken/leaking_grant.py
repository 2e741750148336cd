"""An approval owner whose grants leak into another session, and the exploration that finds it.

The bug: "allow for this session" is remembered by the tool's name alone, so it holds
in the seat's next session too.

The test takes the owner's own step through every order of its messages: a call in
session A, the user's answer, the end of A, a call in session B.  Nothing is run; the
doors are a function that says how an effect may end.

    python examples/broken/leaking_grant.py
"""

from collections.abc import Sequence

from msgspec.structs import replace

from tenure.actors.approval import approval_step
from tenure.actors.approval_state import Gate, PolicyForCall
from tenure.actors.settings import Ready, settings_step
from tenure.messages.approval import (
    Allow,
    AnswerApproval,
    ApprovalRequested,
    AskUser,
    CallAllowed,
    DecideCall,
    EndSessionGrants,
    NoteDecision,
    UserNotAsked,
)
from tenure.messages.base import Command, Effect, Event, Message, Outcome
from tenure.messages.bus import Answered
from tenure.messages.models import ToolSpec
from tenure.messages.settings import Policy, ReadSettings, Settings, SettingsRead
from tenure.messages.tokens import CallId, SessionId, SessionToken, turn_id
from tenure.runtime.step import Step, StepFunction, Taken
from tenure.testing import Client, Done, Explored, Explorer, Moment

A, B = SessionId("session-a"), SessionId("session-b")
POLICY = Policy(version="1", mutating="ask")
WRITE = ToolSpec(name="write", description="Writes a file.", parameters={"type": "object"})


def broken_approval_step(state: Gate, message: Message, taken: Taken) -> Step[Gate]:
    match message:
        case EndSessionGrants():
            # The bug, first half: the grants outlive their session ...
            step = approval_step(state, message, taken)
            return step.to(replace(step.state, grants=state.grants))
        case Answered(re=PolicyForCall(request_id=request_id)):
            # ... second half: they are looked up by the tool alone.
            stage = next((each for each in state.stages if each.request_id == request_id), None)
            if stage is not None:
                session = stage.call.token.session_id
                grants = tuple(replace(grant, session_id=session) for grant in state.grants)
                state = replace(state, grants=grants)
    return approval_step(state, message, taken)


# --- the protocol ---------------------------------------------------------------------------------


def doors(effect: Effect, cancelled: bool) -> Sequence[Outcome]:
    """Every way in which an effect of these owners may end."""
    match effect:
        case ReadSettings():
            return [SettingsRead(settings=Settings(path="", policy=POLICY))]
        case AskUser(request=request):
            return [UserNotAsked(request_id=request.request_id, reason="")]
    raise AssertionError(f"this protocol has no {type(effect).__name__}")


def call_in(session: SessionId) -> DecideCall:
    return DecideCall(
        token=SessionToken(session_id=session, epoch=1),
        turn_id=turn_id(session, 1),
        call_id=CallId("c1"),
        tool=WRITE,
        arguments={},
    )


def asked_in_a(events: tuple[Event, ...]) -> ApprovalRequested | None:
    for event in events:
        if isinstance(event, ApprovalRequested) and event.request.token.session_id == A:
            return event
    return None


def allow_for_the_session(events: tuple[Event, ...]) -> Command | None:
    asked = asked_in_a(events)
    if asked is None:
        return None
    return AnswerApproval(request_id=asked.request.request_id, choice=Allow(scope="session"))


def applied(events: tuple[Event, ...]) -> Command | None:
    asked = asked_in_a(events)
    return asked and NoteDecision(request_id=asked.request.request_id, fate="applied")


CLIENTS = (
    Client("turn of A", (("approval", lambda events: call_in(A)), ("approval", applied))),
    Client("user", (("approval", allow_for_the_session),)),
    Client(
        "seat",
        (
            ("approval", lambda events: EndSessionGrants(session_id=A)),
            ("approval", lambda events: call_in(B)),
        ),
    ),
)


def a_grant_is_of_one_session(moment: Moment, done: Done | None) -> str:
    """Nobody answered for session B, so nothing may be allowed in it."""
    for asker, reply in moment.answers:
        if asker == "seat.1" and isinstance(reply, CallAllowed):
            return "a call of session B was allowed, and the user had been asked in session A only"
    return ""


def unwritten(step: StepFunction[Gate]) -> StepFunction[Gate]:
    """The owner without its audit: what is written into a transcript decides nothing here."""

    def stepped(state: Gate, message: Message, taken: Taken) -> Step[Gate]:
        done = step(state, message, taken)
        mail = tuple(each for each in done.mail if getattr(each, "to", "") != "session")
        return Step(done.state, done.replies, done.events, mail, done.effects)

    return stepped


def explore(step: StepFunction[Gate]) -> Explored:
    steps = {"approval": unwritten(step), "settings": settings_step}
    first = {"approval": Gate(), "settings": Ready(POLICY)}
    return Explorer(steps, first, doors, CLIENTS, [a_grant_is_of_one_session]).explore()


def look(step: StepFunction[Gate]) -> str:
    """What the exploration finds in an owner with this step; empty where it finds nothing."""
    findings = explore(step).findings
    if not findings:
        return ""
    shortest = min(findings, key=lambda finding: len(finding.schedule))
    schedule = [f"  {number}. {what}" for number, what in enumerate(shortest.schedule, 1)]
    return "\n".join([shortest.what, *schedule])


if __name__ == "__main__":
    print("the broken owner:", look(broken_approval_step), sep="\n")
    print("the owner as it is:", look(approval_step) or "nothing found", sep="\n")
    explored = explore(approval_step)
    print(f"{explored.states} states, {explored.schedules} schedules, {explored.ends} ends")
