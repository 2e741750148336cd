"""What always holds: every invariant, who keeps it, and the tests that would notice.

A guard in the code is an `if` whose line ends with `# guard: SESSION-2`.  Where an
invariant holds by construction there is no line to take away; a named mutation then
says how it would be broken (`runtime/mutations.py`).  `python -m
tenure.runtime.testing.guards` takes each guard away and makes each mutation in a copy,
and a witness must fail.

The witnesses mark themselves with `@pytest.mark.witness("SESSION-2")`; they are listed
in `runtime/witnesses.json` and, with the rest, in ARCHITECTURE.md, both written by
`python -m tenure.runtime.testing.architecture`; `tests/test_architecture.py` checks it.
"""

from importlib.resources import files

import msgspec

from tenure.runtime.invariants_host import OF_THE_HOST
from tenure.runtime.mutation import Mutation
from tenure.runtime.mutations import MUTATIONS

__all__ = ["INVARIANTS", "MUTATIONS", "Invariant", "Mutation"]


class Invariant(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that always holds.  Its number is never used again."""

    id: str
    """`SESSION-2`."""
    text: str
    """What holds, in one or two sentences."""
    owner: str
    """Whose code keeps it: an owner's class, or a part of the runtime."""
    witnesses: tuple[str, ...] = ()
    """Tests that fail without it: `tests/test_session_swap.py::test_name`."""


_STORED = files("tenure.runtime").joinpath("witnesses.json").read_bytes()
_WITNESSES = msgspec.json.decode(_STORED, type=dict[str, tuple[str, ...]])


def _invariant(*, id: str, owner: str, text: str) -> Invariant:
    return Invariant(id=id, owner=owner, text=text, witnesses=_WITNESSES.get(id, ()))


INVARIANTS: tuple[Invariant, ...] = (
    _invariant(
        id="BUS-1",
        owner="bus",
        text=(
            "Whoever asks is answered exactly once: a reply, a refusal, `Overloaded`, "
            "`DeadlinePassed` or `OwnerStopped`, never silence; and every stream of events ends."
        ),
    ),
    _invariant(
        id="BUS-2",
        owner="bus",
        text=(
            "The command lane is bounded; only a stop that names its turn overtakes; deltas are "
            "joined, commands never are; outcomes and mail between owners are never refused."
        ),
    ),
    _invariant(
        id="BUS-3",
        owner="effects",
        text="Every effect has exactly one terminal outcome.",
    ),
    _invariant(
        id="SUP-1",
        owner="supervisor",
        text=(
            "A restarted owner starts from disk, after the effects of the dead one have ended; "
            "restarts have a budget; quarantine and dead letters can be seen."
        ),
    ),
    _invariant(
        id="CLAIM-1",
        owner="claims",
        text=(
            "A file that two processes could write changes only under its claim: lock, read "
            "again, decide, write, sync, release."
        ),
    ),
    _invariant(
        id="CLAIM-2",
        owner="claims",
        text=(
            "A lock dies with its holder and only with it: not with a forked child, not by age, "
            "not by unlinking its file."
        ),
    ),
    _invariant(
        id="SESSION-1",
        owner="SessionActor",
        text=(
            "Only the seat's SessionActor moves the seat's active session, one swap at a time, "
            "in mailbox order."
        ),
    ),
    _invariant(
        id="SESSION-2",
        owner="SessionActor",
        text=(
            "A write whose token is not current is refused and its sender is told; it is never "
            "written elsewhere."
        ),
    ),
    _invariant(
        id="SESSION-3",
        owner="SessionActor",
        text=(
            "An accepted append gets its receipt once it is durable; a failed one leaves no "
            "bytes; one that nobody can vouch for closes the session for writing."
        ),
    ),
    _invariant(
        id="SESSION-4",
        owner="SessionActor",
        text=(
            "A swap keeps its order: load, drain, flush, commit, attach, let go. A failure "
            "before the commit leaves the old session live, its token valid and its queue armed."
        ),
    ),
    _invariant(
        id="SESSION-5",
        owner="SessionActor",
        text=(
            "Never two live agents in a seat, never one session live in two places, and a late "
            "event of the old agent never reaches the new file."
        ),
    ),
    _invariant(
        id="SESSION-6",
        owner="transcripts",
        text="Concurrent appends form one chain.",
    ),
    _invariant(
        id="SESSION-7",
        owner="transcripts",
        text="Opening never loses a readable entry, and never raises on damage.",
    ),
    _invariant(
        id="SESSION-8",
        owner="transcripts",
        text="Reading never writes.",
    ),
    _invariant(
        id="TURN-1",
        owner="TurnActor",
        text=(
            "One turn at a time in a seat; a second start is `TurnBusy`, or is queued, as its "
            "sender asked."
        ),
    ),
    _invariant(
        id="TURN-2",
        owner="TurnActor",
        text=(
            "A stop names the turn it stops, and its cause; a late stop is `TurnNotRunning`. "
            "A cancel without an id is bound to the turn that runs when it is taken."
        ),
    ),
    _invariant(
        id="TURN-3",
        owner="TurnActor",
        text="A stop empties the queue before it aborts, and gives the dropped texts back.",
    ),
    _invariant(
        id="TURN-4",
        owner="TurnActor",
        text="A late outcome of a turn that ended changes nothing.",
    ),
    _invariant(
        id="TURN-5",
        owner="TurnActor",
        text=(
            "Redirects are delivered in order; each comes in again through the SessionActor; "
            "a swap gives back what was not delivered."
        ),
    ),
    _invariant(
        id="TURN-6",
        owner="SessionActor",
        text="A stale token never starts a turn.",
    ),
    _invariant(
        id="TURN-7",
        owner="TurnActor",
        text="Every tool call has exactly one result in the transcript.",
    ),
    _invariant(
        id="TURN-8",
        owner="TurnActor",
        text=(
            "The user's message is durable before the model is called, the model's message "
            "before its tools run, the tools' results before the next call."
        ),
    ),
    _invariant(
        id="TURN-9",
        owner="TurnActor",
        text="Every cause stops a turn in the one way; stopping one seat never touches another.",
    ),
    _invariant(
        id="TURN-10",
        owner="TurnActor",
        text=(
            "An accepted prompt has a named fate: started, queued durably, delivered, given "
            "back or taken out.  After a crash the queue is held; nothing starts unasked."
        ),
    ),
    _invariant(
        id="TURN-11",
        owner="TurnActor",
        text=(
            "A turn that repeats itself, four equal tool batches with equal results in a row, is "
            "stopped, and says so."
        ),
    ),
    _invariant(
        id="TURN-12",
        owner="TurnActor",
        text=(
            "Where a budget of the turn or the session is used up, no model is called and no "
            "tool batch begun: the turn is stopped, or not started, and says which budget, how "
            "much was used and what to do. A price that nobody knows is never taken for zero."
        ),
    ),
    _invariant(
        id="APPROVE-1",
        owner="ApprovalActor",
        text="One open request for a tool call.",
    ),
    _invariant(
        id="APPROVE-2",
        owner="ApprovalActor",
        text="Allow, deny and stop are types, never inferred from text.",
    ),
    _invariant(
        id="APPROVE-3",
        owner="TurnActor",
        text="A denial never stops the turn.",
    ),
    _invariant(
        id="APPROVE-4",
        owner="ApprovalActor",
        text=(
            "An answer counts once, and only for its own request: bound to session, turn, call, "
            "arguments, the previewed file and the policy. A late or foreign one is refused, and "
            "a change of policy decides anew what is open."
        ),
    ),
    _invariant(
        id="APPROVE-5",
        owner="SettingsActor",
        text=(
            "A remembered choice is written by the SettingsActor alone, and only once it took "
            "effect."
        ),
    ),
    _invariant(
        id="APPROVE-6",
        owner="ApprovalActor",
        text="Requests are revoked with their turn, a swap of their session, or their seat.",
    ),
    _invariant(
        id="ASK-1",
        owner="ApprovalActor",
        text=(
            "An answer to a question of a tool counts once, and only for the call that asked, "
            "while its turn runs; a late or foreign one is refused."
        ),
    ),
    _invariant(
        id="APPROVE-7",
        owner="ApprovalActor",
        text=(
            "What a file holds is durable before a tool changes it; an undo record without a "
            "result is offered as uncertain; a failed undo stays on the stack."
        ),
    ),
    _invariant(
        id="COMPACT-1",
        owner="CompactionActor",
        text=(
            "Persist first, replace second: nothing is compacted before the entry is durable, and "
            "every reader takes the conversation from the transcript."
        ),
    ),
    _invariant(
        id="COMPACT-2",
        owner="CompactionActor",
        text=(
            "A pass carries the token from before its summary; where it is stale the pass is "
            "refused, and both files are as they were."
        ),
    ),
    _invariant(
        id="COMPACT-3",
        owner="TurnActor",
        text=(
            "A pass that failed or was stopped never loses the pending prompt: it is durable "
            "before the pass, and the model is called whatever became of it."
        ),
    ),
    _invariant(
        id="COMPACT-4",
        owner="CompactionActor",
        text=(
            "One pass at a time; a wish meanwhile is `CompactionBusy` with its instructions given "
            "back, or is queued, as its sender asked."
        ),
    ),
    _invariant(
        id="COMPACT-5",
        owner="transcripts",
        text="A pass has exactly one start and one end in the audit, in its own session.",
    ),
    _invariant(
        id="COMPACT-6",
        owner="summaries",
        text="A cut never parts a tool call from its result.",
    ),
    _invariant(
        id="COMPACT-7",
        owner="CompactionActor",
        text=(
            "Recovery goes through the SessionActor, behind what was sent before, and ends up in "
            "the session where the pass began."
        ),
    ),
    _invariant(
        id="TOOL-1",
        owner="tools",
        text="A tool reads and writes only inside the root, and never in `.tenure/`.",
    ),
    *(_invariant(id=id, owner=owner, text=text) for id, owner, text in OF_THE_HOST),
)
