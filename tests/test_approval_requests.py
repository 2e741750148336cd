"""Requests: bound to one call, answered once, revoked with their turn, remembered when applied."""

from typing import Any

import pytest
from steps import NOW_MS, A, B, DrivenApproval, token, tool

from tenure.messages.approval import (
    Allow,
    AnswerApproval,
    Applied,
    ApprovalRequested,
    ApprovalResolved,
    ApprovalsOpen,
    AskUser,
    CallAllowed,
    CallDenied,
    CallNotPreviewed,
    CallPreviewed,
    CallStopped,
    Choice,
    Deny,
    EndSessionGrants,
    Expired,
    GetApprovals,
    NoteDecision,
    Preview,
    PreviewCall,
    RevokeApprovals,
    RevokeSeatApprovals,
    Stop,
    Superseded,
    UserAnswered,
    UserNotAsked,
    digest_of,
)
from tenure.messages.base import Message, Reply
from tenure.messages.bus import DeadlinePassed, OwnerStopped
from tenure.messages.settings import (
    GetPolicy,
    Policy,
    PolicyChanged,
    Settings,
    SettingsNotSaved,
    SettingsSaved,
    SetToolPolicy,
)
from tenure.messages.tokens import CallId, RequestId, turn_id

ASKING = Policy(version="1")
ALLOWING = Policy(version="2", mutating="allow")
DENYING = Policy(version="3", mutating="deny")
PREVIEW = Preview(path="a.md", diff="+x", digest="of the file", summary="1 line more")
TURN = turn_id(A, 1)
SCOPES = ("once", "session", "always")


def resolved(gate: DrivenApproval) -> list[str]:
    return [event.outcome for event in gate.said(ApprovalResolved)]


# --- asked -----------------------------------------------------------------------------------


def test_call_that_the_policy_allows_is_answered_without_a_question() -> None:
    gate = DrivenApproval()
    asker = gate.decide("c1", path="a.md")
    gate.policy(ALLOWING)
    digest = digest_of("write", {"path": "a.md"})
    allowed = CallAllowed(call_id=CallId("c1"), digest=digest, expects="", request_id=None)
    assert gate.reply_to(asker) == allowed
    assert (gate.events, gate.effects, gate.state.stages) == ([], [], ())


def test_call_that_the_policy_denies_is_answered_with_the_reason() -> None:
    gate = DrivenApproval()
    asker = gate.decide("c1")
    gate.policy(DENYING)
    denied = gate.reply_to(asker)
    assert isinstance(denied, CallDenied)
    assert (denied.request_id, denied.reason) == (None, "the policy denies this tool")


@pytest.mark.parametrize(
    "reply", [OwnerStopped(begun=True), DeadlinePassed(begun=True)], ids=["stopped", "deadline"]
)
def test_policy_that_cannot_be_read_denies(reply: Reply) -> None:
    gate = DrivenApproval()
    asker = gate.decide("c1")
    gate.answer(GetPolicy, reply)
    assert isinstance(gate.reply_to(asker), CallDenied)
    assert gate.state.stages == ()


def test_question_names_everything_that_its_answer_is_bound_to() -> None:
    gate = DrivenApproval()
    gate.decide("c1", path="a.md")
    gate.policy(ASKING)
    (event,) = gate.said(ApprovalRequested)
    request = event.request
    assert (request.token, request.turn_id, request.call_id) == (token(), TURN, "c1")
    assert (request.tool, request.label, request.arguments) == ("write", "Write", {"path": "a.md"})
    assert request.digest == digest_of("write", {"path": "a.md"})
    assert (request.policy_version, request.asked_ms) == ("1", NOW_MS)
    assert gate.wanted(AskUser) == [AskUser(request=request)]
    assert gate.reply_to(gate.ask(GetApprovals())) == ApprovalsOpen(requests=(request,))


def test_user_is_asked_when_it_can_be_seen_what_the_call_would_do() -> None:
    gate = DrivenApproval(tool("write", previews=True))
    asker = gate.decide("c1", path="a.md")
    gate.policy(ASKING)
    assert (gate.said(ApprovalRequested), len(gate.wanted(PreviewCall))) == ([], 1)
    request_id = gate.wanted(PreviewCall)[0].request_id
    gate.tell(CallPreviewed(request_id=request_id, preview=PREVIEW))
    assert gate.said(ApprovalRequested)[0].request.preview == PREVIEW
    gate.says(Allow())
    allowed = gate.reply_to(asker)
    assert isinstance(allowed, CallAllowed)
    assert allowed.expects == "of the file"


def test_call_that_cannot_be_previewed_is_asked_about_as_it_stands() -> None:
    gate = DrivenApproval(tool("write", previews=True))
    gate.decide("c1")
    gate.policy(ASKING)
    effect = gate.wanted(PreviewCall)[0]
    gate.tell(CallNotPreviewed(request_id=effect.request_id, reason="no match"))
    assert gate.said(ApprovalRequested)[0].request.preview is None


@pytest.mark.witness("APPROVE-1")
@pytest.mark.parametrize("moment", ["looking", "open"])
def test_call_that_is_being_decided_is_not_asked_about_twice(moment: str) -> None:
    gate = DrivenApproval()
    first = gate.decide("c1")
    if moment == "open":
        gate.policy(ASKING)
    second = gate.decide("c1")
    assert isinstance(gate.reply_to(second), CallDenied)
    if moment == "looking":
        gate.policy(ASKING)
    assert gate.open_asks(GetPolicy) == []
    assert len(gate.said(ApprovalRequested)) == 1
    assert gate.reply_to(first) is None


def test_calls_of_one_batch_are_asked_about_side_by_side() -> None:
    gate = DrivenApproval()
    askers = [gate.decide(name) for name in ("c1", "c2", "c3")]
    for _ in askers:
        gate.policy(ASKING)
    assert [event.request.call_id for event in gate.said(ApprovalRequested)] == ["c1", "c2", "c3"]
    gate.says(Deny(), "c2")
    assert isinstance(gate.reply_to(askers[1]), CallDenied)
    assert gate.reply_to(askers[0]) is gate.reply_to(askers[2]) is None


# --- answered ----------------------------------------------------------------------------------


@pytest.mark.witness("APPROVE-2")
@pytest.mark.parametrize("text", ["", "no", "stop", "Stop", "allow", "CallStopped"])
def test_denial_stays_a_denial_whatever_its_text(text: str) -> None:
    gate = DrivenApproval()
    asker = gate.open("c1")
    gate.says(Deny(reason=text))
    denied = gate.reply_to(asker)
    assert isinstance(denied, CallDenied)
    assert denied.reason == (text or "the user denied this call")


@pytest.mark.witness("APPROVE-2")
@pytest.mark.parametrize(
    ("choice", "kind"), [(Allow(), CallAllowed), (Deny(), CallDenied), (Stop(), CallStopped)]
)
def test_each_choice_reaches_the_turn_as_its_own_type(choice: Choice, kind: type[Reply]) -> None:
    gate = DrivenApproval()
    asker = gate.open("c1")
    gate.says(choice)
    assert isinstance(gate.reply_to(asker), kind)
    assert gate.cancelled == [gate.wanted(AskUser)[0].key]


@pytest.mark.parametrize(
    ("choice", "outcome"), [(Allow(), "allowed"), (Deny(), "denied"), (Stop(), "stopped")]
)
def test_user_is_told_that_an_answer_was_applied_when_the_turn_says_so(
    choice: Choice, outcome: str
) -> None:
    gate = DrivenApproval()
    gate.open("c1")
    user = gate.says(choice)
    assert gate.reply_to(user) is None
    gate.taken("applied")
    assert gate.reply_to(user) == Applied(request_id=gate.request().request_id)
    assert resolved(gate) == [outcome]
    assert gate.state.stages == ()


@pytest.mark.witness("APPROVE-4")
@pytest.mark.parametrize("moment", ["deciding", "answering", "over"])
@pytest.mark.parametrize("second", [Allow(), Deny(), Stop()])
def test_answer_counts_once(moment: str, second: Choice) -> None:
    gate = DrivenApproval()
    asker = gate.open("c1")
    first = gate.ask(AnswerApproval(request_id=gate.request().request_id, choice=Allow()))
    if moment != "deciding":
        gate.policy(ASKING)
    if moment == "over":
        gate.taken("applied")
    late = gate.ask(AnswerApproval(request_id=gate.request().request_id, choice=second))
    assert gate.reply_to(late) == Superseded(request_id=gate.request().request_id)
    if moment == "deciding":
        gate.policy(ASKING)
    if moment != "over":
        gate.taken("applied")
    assert isinstance(gate.reply_to(first), Applied)
    assert isinstance(gate.reply_to(asker), CallAllowed)
    assert resolved(gate) == ["allowed"]


@pytest.mark.witness("APPROVE-4")
def test_answer_for_a_request_of_another_seat_is_expired_here() -> None:
    here = DrivenApproval()
    here.open("c1")
    foreign = AnswerApproval(request_id=RequestId("of another seat"), choice=Allow())
    assert here.reply_to(here.ask(foreign)) == Expired(request_id=RequestId("of another seat"))
    assert len(here.state.stages) == 1


def test_approver_of_the_host_answers_like_any_user_and_only_once() -> None:
    gate = DrivenApproval()
    asker = gate.open("c1")
    request_id = gate.request().request_id
    gate.tell(UserAnswered(request_id=request_id, choice=Deny(reason="not now")))
    gate.tell(UserAnswered(request_id=request_id, choice=Allow()))
    denied = gate.reply_to(asker)
    assert isinstance(denied, CallDenied)
    assert denied.reason == "not now"


def test_request_stays_open_where_the_host_has_no_approver() -> None:
    gate = DrivenApproval()
    asker = gate.open("c1")
    gate.tell(UserNotAsked(request_id=gate.request().request_id, reason="no approver"))
    assert gate.reply_to(asker) is None
    gate.says(Allow())
    assert isinstance(gate.reply_to(asker), CallAllowed)


# --- the policy changed ------------------------------------------------------------------------


@pytest.mark.witness("APPROVE-4")
@pytest.mark.parametrize(
    ("policy", "kind", "outcome"),
    [(ALLOWING, CallAllowed, "allowed"), (DENYING, CallDenied, "denied")],
    ids=["allow", "deny"],
)
def test_policy_that_changes_decides_what_is_open_anew(
    policy: Policy, kind: type[Reply], outcome: str
) -> None:
    gate = DrivenApproval()
    askers = [gate.open("c1"), gate.open("c2")]
    gate.tell(PolicyChanged(policy=policy))
    assert [type(gate.reply_to(asker)) for asker in askers] == [kind, kind]
    assert resolved(gate) == [outcome, outcome]
    assert gate.cancelled == [effect.key for effect in gate.wanted(AskUser)]
    late = gate.ask(AnswerApproval(request_id=gate.request().request_id, choice=Allow()))
    assert isinstance(gate.reply_to(late), Superseded)


def test_policy_that_still_asks_leaves_the_question_open_under_its_own_version() -> None:
    gate = DrivenApproval()
    asker = gate.open("c1")
    gate.tell(PolicyChanged(policy=Policy(version="9")))
    assert gate.reply_to(asker) is None
    listed = gate.reply_to(gate.ask(GetApprovals()))
    assert isinstance(listed, ApprovalsOpen)
    assert [request.policy_version for request in listed.requests] == ["9"]
    assert len(gate.said(ApprovalRequested)) == 1


def test_policy_that_changes_while_a_preview_is_made_decides_at_once() -> None:
    gate = DrivenApproval(tool("write", previews=True))
    asker = gate.decide("c1")
    gate.policy(ASKING)
    gate.tell(PolicyChanged(policy=DENYING))
    assert isinstance(gate.reply_to(asker), CallDenied)
    assert gate.cancelled == [gate.wanted(PreviewCall)[0].key]
    assert gate.said(ApprovalResolved) == []


@pytest.mark.witness("APPROVE-4")
@pytest.mark.parametrize(
    "reply", [DENYING, OwnerStopped(begun=True)], ids=["denying", "unreadable"]
)
def test_allowance_is_void_where_the_policy_denies_by_now(reply: Reply) -> None:
    """Another process may have changed the settings between the question and the answer."""
    gate = DrivenApproval()
    asker = gate.open("c1")
    user = gate.ask(AnswerApproval(request_id=gate.request().request_id, choice=Allow()))
    gate.answer(GetPolicy, reply)
    assert isinstance(gate.reply_to(asker), CallDenied)
    assert isinstance(gate.reply_to(user), Superseded)
    assert resolved(gate) == ["denied"]


# --- remembered --------------------------------------------------------------------------------


@pytest.mark.witness("APPROVE-5")
@pytest.mark.parametrize(
    ("choice", "rule"), [(Allow(scope="always"), "allow"), (Deny(scope="always"), "deny")]
)
def test_choice_for_always_is_written_by_the_settings_owner_once_it_took_effect(
    choice: Choice, rule: Any
) -> None:
    gate = DrivenApproval()
    gate.open("c1")
    user = gate.says(choice)
    assert gate.sent(SetToolPolicy) == []
    gate.taken("applied")
    assert gate.sent(SetToolPolicy) == [SetToolPolicy(tool="write", rule=rule)]
    assert gate.reply_to(user) is None
    gate.answer(SetToolPolicy, SettingsSaved(settings=Settings(path="p", policy=ALLOWING)))
    applied = Applied(request_id=gate.request().request_id, remembered=True)
    assert gate.reply_to(user) == applied


@pytest.mark.witness("APPROVE-5")
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("kind", [Allow, Deny])
def test_choice_that_came_too_late_is_never_remembered(kind: Any, scope: Any) -> None:
    gate = DrivenApproval()
    gate.open("c1")
    user = gate.says(kind(scope=scope))
    gate.taken("superseded")
    assert gate.reply_to(user) == Superseded(request_id=gate.request().request_id)
    assert gate.sent(SetToolPolicy) == []
    assert gate.state.grants == ()
    assert resolved(gate) == ["superseded"]


def test_choice_that_could_not_be_written_down_was_applied_all_the_same() -> None:
    gate = DrivenApproval()
    gate.open("c1")
    user = gate.says(Allow(scope="always"))
    gate.taken("applied")
    gate.answer(SetToolPolicy, SettingsNotSaved(path="p", reason="full"))
    assert gate.reply_to(user) == Applied(request_id=gate.request().request_id, remembered=False)


def test_writing_down_goes_on_when_the_turn_ends_meanwhile() -> None:
    gate = DrivenApproval()
    gate.open("c1")
    user = gate.says(Allow(scope="always"))
    gate.taken("applied")
    gate.tell(RevokeApprovals(turn_id=TURN))
    gate.answer(SetToolPolicy, SettingsSaved(settings=Settings(path="p", policy=ALLOWING)))
    assert isinstance(gate.reply_to(user), Applied)


@pytest.mark.parametrize(
    ("choice", "kind"), [(Allow(scope="session"), CallAllowed), (Deny(scope="session"), CallDenied)]
)
def test_choice_for_a_session_decides_its_later_calls_of_the_tool(
    choice: Choice, kind: type[Reply]
) -> None:
    gate = DrivenApproval()
    gate.open("c1")
    gate.says(choice)
    gate.taken("applied")
    later = gate.decide("c2")
    gate.policy(ASKING)
    assert isinstance(gate.reply_to(later), kind)
    other = gate.decide("c3", of=tool("delete"))
    gate.policy(ASKING)
    assert gate.reply_to(other) is None


def test_choice_for_a_session_decides_what_is_open_of_the_same_tool() -> None:
    gate = DrivenApproval()
    gate.open("c1")
    second, third = gate.open("c2"), gate.open("c3", of=tool("delete"))
    gate.says(Allow(scope="session"))
    gate.taken("applied")
    gate.policy(ASKING)
    assert isinstance(gate.reply_to(second), CallAllowed)
    assert gate.reply_to(third) is None
    assert gate.open_asks(GetPolicy) == []


@pytest.mark.witness("APPROVE-4")
def test_grant_is_of_one_session_and_dies_with_it() -> None:
    gate = DrivenApproval()
    gate.open("c1")
    gate.says(Allow(scope="session"))
    gate.taken("applied")
    foreign = gate.decide("c2", session=B)
    gate.policy(ASKING)
    assert gate.reply_to(foreign) is None
    gate.tell(EndSessionGrants(session_id=A))
    again = gate.decide("c3")
    gate.policy(ASKING)
    assert gate.reply_to(again) is None


def test_last_word_on_a_tool_is_the_one_that_counts() -> None:
    gate = DrivenApproval()
    gate.open("c1")
    gate.open("c2")
    for call_id, choice in (("c1", Allow(scope="session")), ("c2", Deny(scope="session"))):
        gate.says(choice, call_id)
    gate.taken("applied", "c1")
    gate.taken("applied", "c2")
    later = gate.decide("c3")
    gate.policy(ASKING)
    assert isinstance(gate.reply_to(later), CallDenied)


# --- revoked ---------------------------------------------------------------------------------

REVOCATIONS: tuple[Message, ...] = (
    RevokeApprovals(turn_id=TURN),
    EndSessionGrants(session_id=A),
    RevokeSeatApprovals(),
)
every_revocation = pytest.mark.parametrize(
    "revocation", REVOCATIONS, ids=lambda each: type(each).__name__
)


@pytest.mark.witness("APPROVE-6")
@every_revocation
def test_question_is_over_with_its_turn_its_session_or_its_owner(revocation: Message) -> None:
    gate = DrivenApproval()
    asker = gate.open("c1")
    gate.tell(revocation)
    assert isinstance(gate.reply_to(asker), CallDenied)
    assert resolved(gate) == ["revoked"]
    assert gate.cancelled == [gate.wanted(AskUser)[0].key]
    assert gate.reply_to(gate.ask(GetApprovals())) == ApprovalsOpen(requests=())
    late = gate.ask(AnswerApproval(request_id=gate.request().request_id, choice=Allow()))
    assert isinstance(gate.reply_to(late), Superseded)


@pytest.mark.witness("APPROVE-6")
@every_revocation
def test_call_that_is_looked_at_is_denied_when_its_turn_is_over(revocation: Message) -> None:
    gate = DrivenApproval()
    asker = gate.decide("c1")
    gate.tell(revocation)
    assert isinstance(gate.reply_to(asker), CallDenied)
    gate.policy(ALLOWING)
    assert gate.said(ApprovalRequested) == gate.said(ApprovalResolved) == []


@every_revocation
def test_answer_on_its_way_is_superseded_when_the_turn_is_over(revocation: Message) -> None:
    for answered in ("confirming", "answering"):
        gate = DrivenApproval()
        asker = gate.open("c1")
        user = gate.ask(AnswerApproval(request_id=gate.request().request_id, choice=Allow()))
        if answered == "answering":
            gate.policy(ASKING)
        gate.tell(revocation)
        assert isinstance(gate.reply_to(user), Superseded), answered
        assert gate.reply_to(asker) is not None
        gate.taken("applied")
        assert len(resolved(gate)) == 1
        assert gate.state.stages == ()


@pytest.mark.witness("APPROVE-6")
def test_end_of_one_turn_leaves_the_requests_of_another_alone() -> None:
    gate = DrivenApproval()
    asker = gate.open("c1")
    gate.tell(RevokeApprovals(turn_id=turn_id(A, 2)))
    gate.tell(EndSessionGrants(session_id=B))
    assert gate.reply_to(asker) is None


def test_preview_that_comes_after_the_end_of_its_turn_asks_nobody() -> None:
    gate = DrivenApproval(tool("write", previews=True))
    gate.decide("c1")
    gate.policy(ASKING)
    effect = gate.wanted(PreviewCall)[0]
    gate.tell(RevokeApprovals(turn_id=TURN))
    gate.tell(CallPreviewed(request_id=effect.request_id, preview=PREVIEW))
    assert (gate.said(ApprovalRequested), gate.wanted(AskUser)) == ([], [])
    assert gate.cancelled == [effect.key]


def test_word_on_a_request_that_nobody_answered_changes_nothing() -> None:
    gate = DrivenApproval()
    gate.open("c1")
    before = gate.state
    gate.tell(NoteDecision(request_id=gate.request().request_id, fate="applied"))
    assert gate.state == before


def test_requests_that_are_over_are_remembered_up_to_a_bound() -> None:
    gate = DrivenApproval()
    for number in range(300):
        gate.decide(f"c{number}")
        gate.policy(ALLOWING)
    assert len(gate.state.closed) == 256
