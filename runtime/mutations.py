"""How what holds by construction would be broken: one small change each, and its invariant.

`runtime/invariants.py` says what is done with them.
"""

from tenure.runtime.mutation import Mutation
from tenure.runtime.mutations_host import OF_THE_HOST

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        invariant="BUS-1",
        name="the streams of a dead owner are not ended",
        file="runtime/streams.py",
        before="return [rule.lost(key) for",
        after="return [] and [rule.lost(key) for",
    ),
    Mutation(
        invariant="BUS-2",
        name="a stop waits behind the commands",
        file="runtime/bus.py",
        before="if command.control:",
        after="if False:",
    ),
    Mutation(
        invariant="BUS-3",
        name="what waits when its owner ends has no outcome",
        file="runtime/effects.py",
        before='wanted.end(effect.failed("its owner ended before it began"))',
        after="pass",
    ),
    Mutation(
        invariant="CLAIM-2",
        name="a forked child keeps the locks of its parent",
        file="runtime/doors/locks.py",
        before="    for lock in tuple(_held):\n        lock.release()\n",
        after="",
    ),
    Mutation(
        invariant="SESSION-1",
        name="what waited for a swap is taken up in reverse",
        file="actors/session.py",
        before="    for each in resume.held:\n",
        after="    for each in reversed(resume.held):\n",
    ),
    Mutation(
        invariant="SESSION-1",
        name="a second swap begins while the first one loads",
        file="actors/session.py",
        before="        case Waking() | Loading() | Committing()",
        after=(
            "        case Loading(before=Live() as before)"
            " if isinstance(message, OpenSession | OpenNewSession):\n"
            "            return swap(before, message, taken)\n"
            "        case Waking() | Loading() | Committing()"
        ),
    ),
    Mutation(
        invariant="SESSION-4",
        name="a swap whose target cannot be loaded loses the old session",
        file="actors/session_swap.py",
        before="_as_before(state, Step(state.before).answer(state.swap.asker, refusal))",
        after="_as_before(state, Step(Vacant(refusal.remedy)).answer(state.swap.asker, refusal))",
    ),
    Mutation(
        invariant="SESSION-4",
        name="a swap that cannot be committed leaves the queue held",
        file="actors/session_swap.py",
        before='step = step.tell("turn", AbandonDrain())',
        after="pass",
    ),
    Mutation(
        invariant="SESSION-4",
        name="a swap commits without stopping the turn",
        file="actors/session_swap.py",
        before='drain = Step[State](draining).ask("turn", DrainTurn(), re=TurnWasDrained())',
        after="drain = commit_when_quiet(Step(Flushing(before, opened, state.swap, (), others)))",
    ),
    Mutation(
        invariant="SESSION-8",
        name="reading mends the end of the file",
        file="runtime/doors/transcripts/catalogue.py",
        before="    data = read_all(leaves.files, path)\n    found = scan(data)\n",
        after=(
            "    data = read_all(leaves.files, path)\n"
            '    if not data.endswith(b"\\n"):\n'
            '        file = leaves.files.open(path, "write")\n'
            '        file.append(b"\\n")\n'
            "        file.close()\n"
            "    found = scan(data)\n"
        ),
    ),
    Mutation(
        invariant="SESSION-1",
        name="a rewind is done at once, beside the turn that runs",
        file="actors/session_ops.py",
        before=(
            "            return load(live, Changed(session_id=here.session_id, "
            "change=change), taken)\n"
        ),
        after=(
            "            from tenure.messages.transcripts import AlterTranscript\n"
            "            return Step[State](live).do(AlterTranscript(token=here, change=change))\n"
        ),
    ),
    Mutation(
        invariant="SESSION-4",
        name="a change of the session that fails leaves the queue held",
        file="actors/session_swap.py",
        before='return _as_before(state, step.tell("turn", AbandonDrain()))',
        after="return _as_before(state, step)",
    ),
    Mutation(
        invariant="SESSION-8",
        name="listing writes its cache",
        file="runtime/doors/transcripts/catalogue.py",
        before="        self._known = known\n",
        after=(
            "        self._known = known\n"
            '        self._files.open(f"{self.layout.cache}.new", "create").close()\n'
        ),
    ),
    Mutation(
        invariant="SUP-1",
        name="a new incarnation begins with the state of the dead one",
        file="runtime/supervisor.py",
        before="        slot.owner = owner\n        owner.on_receive(",
        after=(
            "        before = self.__dict__.setdefault('kept', {})\n"
            "        owner.state = before.get(slot.address, owner).state\n"
            "        before[slot.address] = owner\n"
            "        slot.owner = owner\n"
            "        owner.on_receive("
        ),
    ),
    Mutation(
        invariant="TURN-3",
        name="a stop leaves the queue as it is",
        file="actors/turn_stop.py",
        before="emptied = with_queue(state, Queue(queue.kept))",
        after="emptied = state",
    ),
    Mutation(
        invariant="TURN-5",
        name="a redirect takes its place before the redirects that came earlier",
        file="messages/queue.py",
        before='if each != "redirect"',
        after="if True",
    ),
    Mutation(
        invariant="TURN-10",
        name="what waits when a session is opened starts by itself",
        file="actors/turn_drain.py",
        before="queue = Queue(tuple(Kept(each) for each in found))",
        after=(
            "from tenure.actors.turn_waiting import Armed\n"
            "    from tenure.messages.tokens import turn_id\n"
            "    name = turn_id(token.session_id, ledger.last_turn + 1)\n"
            "    queue = Queue(tuple(Armed(each, name, token) for each in found))"
        ),
    ),
    Mutation(
        invariant="TURN-7",
        name="a stopped batch leaves its calls without results",
        file="actors/turn_stop.py",
        before="return end_with(state.run, state.end, owed, state.drainers)",
        after="return end_with(state.run, state.end, (), state.drainers)",
    ),
    Mutation(
        invariant="TURN-8",
        name="the next model call does not wait for the results to be durable",
        file="actors/turn_tools.py",
        before="if all(isinstance(call.status, Saved) for call in state.calls):",
        after="if all(isinstance(call.status, Saved | Saving) for call in state.calls):",
    ),
    Mutation(
        invariant="TURN-9",
        name="a drain has a way of its own and stops nothing",
        file="actors/turn_drain.py",
        before="return begin_stop(state, Stopped(cause), (Drainer(taken.asker, cause),), taken)",
        after=(
            "resting = Drained(state.run.ledger, state.run.queue, cause)\n"
            "        return Step[State](resting).answer(taken.asker, TurnDrained())"
        ),
    ),
    Mutation(
        invariant="APPROVE-2",
        name="a denial whose reason says stop is taken for a stop",
        file="actors/approval.py",
        before="    if isinstance(choice, Stop):\n        reply = CallStopped(",
        after=(
            "    said = getattr(choice, 'reason', '')\n"
            "    if isinstance(choice, Stop) or 'stop' in said.lower():\n"
            "        reply = CallStopped("
        ),
    ),
    Mutation(
        invariant="APPROVE-2",
        name="an approver's word is taken for a choice",
        file="runtime/doors/approver.py",
        before="        if not isinstance(choice, Allow | Deny | Stop):",
        after=(
            "        if isinstance(choice, str):\n"
            "            choice = Allow() if choice == 'allow' else Deny(reason=choice)\n"
            "        if not isinstance(choice, Allow | Deny | Stop):"
        ),
    ),
    Mutation(
        invariant="APPROVE-3",
        name="a denial stops the turn",
        file="actors/turn.py",
        before="if isinstance(reply, CallStopped):",
        after="if isinstance(reply, CallStopped | CallDenied):",
    ),
    Mutation(
        invariant="APPROVE-4",
        name="a grant for one session counts in every session",
        file="actors/approval_state.py",
        before="if grant.tool == call.tool.name and grant.session_id == call.token.session_id:",
        after="if grant.tool == call.tool.name:",
    ),
    Mutation(
        invariant="APPROVE-5",
        name="an answer is written into the policy before it took effect",
        file="actors/approval_consent.py",
        before="    return Step(with_stage(state, answering)).answer(",
        after=(
            "    from tenure.messages.settings import SetToolPolicy\n\n"
            '    rule = SetToolPolicy(tool=stage.call.tool.name, rule="allow")\n'
            '    told = Step(state).tell("settings", rule)\n'
            "    return told.to(with_stage(state, answering)).answer("
        ),
    ),
    Mutation(
        invariant="APPROVE-7",
        name="a call that changes files runs before anything of them is kept",
        file="actors/approval_consent.py",
        before="    if call.tool.mutating and call.tool.path_arguments and stage.paths:",
        after="    if not call:",
    ),
    Mutation(
        invariant="APPROVE-6",
        name="a turn owner that was started again revokes nothing",
        file="actors/turn.py",
        before='.tell("approval", RevokeSeatApprovals())',
        after="",
    ),
    Mutation(
        invariant="APPROVE-6",
        name="the requests of a turn that ended stay open",
        file="actors/approval.py",
        before="[each for each in state.stages if each.call.turn_id == turn_id]",
        after="[]",
    ),
    Mutation(
        invariant="APPROVE-6",
        name="a stopped turn revokes nothing",
        file="actors/turn_stop.py",
        before='    step = step.tell("approval", RevokeApprovals(turn_id=run.turn_id))\n',
        after="",
    ),
    Mutation(
        invariant="APPROVE-6",
        name="a swap revokes nothing",
        file="actors/session_swap.py",
        before='    step = step.tell("approval", EndSessionGrants(session_id=old_id))\n',
        after="",
    ),
    *OF_THE_HOST,
)
