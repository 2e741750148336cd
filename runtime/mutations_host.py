"""How what holds of the owners of a host would be broken (see mutations.py)."""

from tenure.runtime.mutation import Mutation

OF_THE_HOST: tuple[Mutation, ...] = (
    Mutation(
        invariant="HANDOFF-1",
        name="the receipt of a handoff waits for its stages",
        file="actors/handoff.py",
        before="    return _go_on(Step(state).emit(said), follow)",
        after="    return _go_on(Step(state).emit(*[said][bool(left) :]), follow)",
    ),
    Mutation(
        invariant="HANDOFF-1",
        name="a handoff is answered before it is in the journal",
        file="runtime/doors/vault/saving.py",
        before="    append(ground, journal, (record,))\n    receipt =",
        after="    receipt =",
    ),
    Mutation(
        invariant="HANDOFF-2",
        name="an acknowledgement clears what has changed since",
        file="runtime/doors/vault/acknowledging.py",
        before="    cleared = tuple(name for name in named if name.id not in changed)",
        after="    cleared = (*named, *(name for name in standing if name.id in changed))",
    ),
    Mutation(
        invariant="HANDOFF-2",
        name="a delivery clears what it tells",
        file="runtime/doors/vault/waking.py",
        before="    append(ground, journal, (record,))\n",
        after=(
            "    from tenure.runtime.doors.vault.records import AckRecord\n"
            "    told = AckRecord(brief=brief_id, at_ms=record.at_ms, cleared=notices)\n"
            "    append(ground, journal, (record, told))\n"
        ),
    ),
    Mutation(
        invariant="HANDOFF-2",
        name="ClawVault's flag is removed although it was written anew",
        file="runtime/doors/vault/clawvault.py",
        before="    if found.digest != digest:",
        after="    if not digest:",
    ),
    Mutation(
        invariant="HANDOFF-3",
        name="the newest handoff is the one whose file has the last name",
        file="runtime/doors/vault/journal.py",
        before="        return [self.handoffs[seq] for seq in sorted(self.handoffs, reverse=True)]",
        after=(
            "        known = self.handoffs.values()\n"
            "        return sorted(known, key=lambda each: each.last.path, reverse=True)"
        ),
    ),
    Mutation(
        invariant="HANDOFF-4",
        name="after a stage that failed no other runs",
        file="actors/handoff.py",
        before="    return _go_on(step, replace(follow, receipt=receipt, left=follow.left[1:]))",
        after=(
            '    left = () if outcome.result.status == "failed" else follow.left[1:]\n'
            "    return _go_on(step, replace(follow, receipt=receipt, left=left))"
        ),
    ),
    Mutation(
        invariant="HANDOFF-8",
        name="an item of a handoff is written into the body as it is",
        file="runtime/doors/vault/markdown.py",
        before="    line = _MARKUP.sub(",
        after="    return item\n    line = _MARKUP.sub(",
    ),
    Mutation(
        invariant="INDEX-3",
        name="a complete target is replaced without a backup",
        file="runtime/doors/search/committing.py",
        before="self._stage(read_all(self._files, layout.manifest, MANIFEST_BYTES_MAX)).put(",
        after="str(",
    ),
    Mutation(
        invariant="INDEX-4",
        name="a manifest is served whose files are not whole",
        file="runtime/doors/search/layout.py",
        before="        if size != named.bytes:\n",
        after="        if False:\n",
    ),
    Mutation(
        invariant="INDEX-5",
        name="a lease store that cannot be asked counts as leave",
        file="runtime/doors/search/committing.py",
        before='raise LeaseLost(f"the lease store is not available: {refused}") from None',
        after="held = bool(refused)",
    ),
    Mutation(
        invariant="INSTALL-1",
        name="the seal is written in the order of its name",
        file="runtime/doors/packages/changing.py",
        before="last=(MANIFEST, SEAL)",
        after="last=()",
    ),
    Mutation(
        invariant="INSTALL-5",
        name="a prune forgets the choices of a package whose copy is kept",
        file="runtime/doors/packages/sweeping.py",
        before="return frozenset(names | kept | aside)",
        after="return frozenset(names)",
    ),
    Mutation(
        invariant="INSTALL-6",
        name="whoever asks while a load runs begins another",
        file="actors/installer.py",
        before="reload=Loading(askers=(*askers, asker))))",
        after="reload=Loading(askers=(*askers, asker)))).do(LoadPackages())",
    ),
    Mutation(
        invariant="INSTALL-6",
        name="a load that failed keeps its place",
        file="actors/installer.py",
        before="            return on_loaded(state, InstallFailed(",
        after="            return Step(state).answer(taken.asker, InstallFailed(",
    ),
    Mutation(
        invariant="AUTH-2",
        name="who waited for a refresh gets the tokens from before it",
        file="actors/mcp_auth_access.py",
        before="        step = step.answer(want.asker, granted(credential))\n    return _next(",
        after="        step = step.answer(want.asker, granted(flight.before))\n    return _next(",
    ),
    Mutation(
        invariant="AUTH-3",
        name="an exchange ends with whoever waits for it",
        file="runtime/doors/mcp/holding.py",
        before="return await asyncio.shield(task)",
        after="return await task",
    ),
    Mutation(
        invariant="AUTH-5",
        name="a refresh token is sent before the intent is durable",
        file="runtime/doors/mcp/refreshing.py",
        before="        self._files.save(name, intended)\n",
        after="",
    ),
    Mutation(
        invariant="AUTH-6",
        name="a server that was loaded anew has a flight of its own",
        file="actors/mcp_auth_access.py",
        before="flight = flight_of(state, want.server.server_id)\n    if flight is None:",
        after=(
            "flight = flight_of(state, want.server.server_id)\n"
            "    if flight is None or flight.server is not want.server:"
        ),
    ),
)
