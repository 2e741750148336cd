"""The index on a simulated disk: damage, crashes, lost leases, and readers beside a writer."""

import asyncio

import pytest
from index_world import INDEX, NOTES, Indexed, complete, indexed

from tenure.messages.index import IndexBusy, IndexNotClaimed
from tenure.messages.index_work import (
    IndexReady,
    NoIndex,
    RunActive,
    RunCancelled,
    RunComplete,
    RunFailed,
)
from tenure.messages.tokens import Holder, ProcessName
from tenure.runtime.doors.claims import Claims
from tenure.runtime.doors.search.committing import IndexFolder, LeaseLost
from tenure.runtime.doors.search.layout import IndexLayout, Manifest, read_manifest
from tenure.runtime.doors.search.leases import ClaimLeases
from tenure.runtime.errors import Refused
from tenure.runtime.testing.crash_points import CrashAt, CrashPoint
from tenure.runtime.testing.faults import Fail, FaultRule, FaultRules
from tenure.runtime.testing.leaves import memory_leaves
from tenure.runtime.testing.ttl_leases import TtlLeases, TtlStore
from tenure.runtime.testing.world import ROOT, ProcessEnded

MANY = {f"note-{number}.md": f"# Note {number}\n\nword{number} here.\n" for number in range(12)}


def status(x: Indexed, host):
    return x.do(host, x.index(host).status())


def holder(pid: int = 1) -> Holder:
    return Holder(host_id=f"h{pid}", process=ProcessName(pid=pid, started="0"), since_ms=0)


# --- building ------------------------------------------------------------------------------


def test_notes_are_found_by_their_words_with_the_lines_where_they_stand():
    with indexed() as x:
        host = x.host()
        assert complete(x.build(host)).notes == 4
        results = x.do(host, x.index(host).search("puppy oven"))
        hit = results.hits[0]
        assert (hit.path, hit.tags) == ("dogs.md", ("animals",))
        assert (hit.passages[0].line, hit.passages[0].snippet) == (
            6,
            "The puppy sleeps by the oven.",
        )


def test_only_what_changed_is_embedded_again():
    with indexed() as x:
        host = x.host()
        x.build(host)
        assert complete(x.build(host)).generation == 1
        x.write("dogs.md", "# Dogs\n\nAwake.\n")
        x.write("moved.md", NOTES["pricing.md"])
        x.remove("pricing.md")
        x.embedder.texts.clear()
        again = complete(x.build(host))
        assert (again.generation, again.embedded, again.notes) == (2, 1, 4)
        assert len(x.embedder.texts) == 1
        assert x.found(host, "loaf costs")[0] == "moved.md"
        assert "dogs.md" not in x.found(host, "puppy -awake")


def test_scope_changes_its_notes_and_leaves_the_others():
    from tenure.messages.index_work import ActiveNote, Folder, Tagged

    with indexed() as x:
        host = x.host()
        assert complete(x.build(host, scope=Folder(path="plans"))).notes == 2
        assert complete(x.build(host, scope=ActiveNote(path="dogs.md"))).notes == 3
        x.write("plans/fleet.md", "# Fleet\n\nThree vans. #animals\n")
        x.write("plans/roadmap.md", "# Roadmap\n\nNo second shop.\n")
        tagged = complete(x.build(host, scope=Tagged(tag="#animals")))
        assert (tagged.notes, tagged.embedded) == (3, 1)
        assert x.found(host, '"second shop opens"') == ["plans/roadmap.md"]
        x.remove("plans/fleet.md")
        assert complete(x.build(host, scope=Folder(path="plans"))).notes == 2
        with pytest.raises(Refused, match="no folder"):
            x.build(host, scope=Folder(path="nowhere"))


def test_scope_without_notes_is_noted_and_leaves_the_index():
    from tenure.messages.index_work import RunSkipped, Tagged

    with indexed() as x:
        host = x.host()
        x.build(host)
        assert isinstance(x.build(host, scope=Tagged(tag="nobody")), RunSkipped)
        shown = status(x, host)
        assert isinstance(shown.run, RunSkipped)
        assert isinstance(shown.index, IndexReady)


def test_ignored_hidden_and_binary_files_are_never_embedded():
    notes = {
        **NOTES,
        ".gitignore": "secret/\n",
        ".tenureignore": "*.key.md\n",
        "secret/plan.md": "# Secret\n",
        "a.key.md": "# Key\n",
        ".hidden/x.md": "# Hidden\n",
        "image.bin": "\0\1\2",
    }
    with indexed(notes=notes) as x:
        host = x.host()
        assert complete(x.build(host)).notes == 4
        assert not any("Secret" in text or "Key" in text for text in x.embedder.texts)


def test_bad_input_is_left_out_and_said_and_the_rest_is_indexed():
    with indexed() as x:
        x.write("latin.md", b"# Caf\xe9\n\nTerrasse.\n")
        x.write("huge.md", b"x" * 3_000_000)
        x.write("locked.md", "# Locked\n")
        x.world.disk.before = FaultRules(
            FaultRule(fault=Fail(errno=13), calls=("open",), path_ends="locked.md", hits="lasting")
        )
        host = x.host()
        told = []
        result = complete(x.build(host, told=told.append))
        assert (result.notes, result.unread) == (5, 2)
        reasons = {each.path: each.reason for each in told[0].unread}
        assert set(reasons) == {"huge.md", "locked.md"}
        assert x.found(host, "terrasse")[0] == "latin.md"


def test_change_of_the_model_builds_beside_and_switches_when_complete():
    with indexed() as x:
        host = x.host()
        x.build(host)
        host.kill()
        other = x.host("b", model="others")
        x.world.disk.before = lambda call: (
            Fail(errno=28) if call.name == "rename" and call.target.endswith(".json") else None
        )
        assert isinstance(x.build(other), RunFailed)
        x.world.disk.before = None
        assert status(x, other).index.model.id == "words"
        assert x.found(other, "puppy oven")[0] == "dogs.md"
        complete(x.build(other))
        assert status(x, other).index.model.id == "others"
        assert x.found(other, "puppy oven")[0] == "dogs.md"


def test_keyword_index_finds_words_and_says_nothing_of_meaning():
    with indexed() as x:
        host = x.host(model="keyword")
        complete(x.build(host))
        assert x.found(host, "puppy") == ["dogs.md"]
        assert x.embedder.calls == 0


# --- leases ----------------------------------------------------------------------------------


@pytest.mark.witness("INDEX-1")
def test_two_hosts_of_one_path_have_one_writer_and_the_other_is_told_who():
    with indexed(notes=MANY) as x:
        x.slow()
        one, two = x.host("a"), x.host("b")
        first, second = (x.begin(each, x.index(each).build()) for each in (one, two))
        x.world.run(asyncio.wait([first, second]))
        won = [task.result() for task in (first, second) if task.exception() is None]
        lost = [task.exception() for task in (first, second) if task.exception() is not None]
        assert (len(won), len(lost)) == (1, 1)
        assert isinstance(lost[0].reply, IndexBusy)
        pids = {one.process.name.pid, two.process.name.pid}
        assert lost[0].reply.holder is None or lost[0].reply.holder.process.pid in pids
        assert len(x.embedder.texts) == 12, "work is never done twice"


@pytest.mark.witness("INDEX-2")
def test_lease_that_is_lost_in_a_run_stops_it_before_the_next_replacement():
    with indexed(notes=MANY) as x:
        store = TtlStore(x.world.clock)
        host = x.host("a", TtlLeases(store, holder()))
        x.build(host)
        x.write("note-1.md", "# Note 1\n\nother words.\n")
        before = x.read("index.json")

        async def expire() -> None:
            store.expire()

        x.embedder.before = expire
        result = x.build(host)
        assert isinstance(result, RunFailed)
        assert "lease" in result.reason
        assert x.read("index.json") == before
        assert "index.json.bak" not in x.names()


@pytest.mark.witness("INDEX-2")
def test_manifest_is_not_replaced_by_one_whose_lease_ran_out_or_who_was_overtaken():
    with indexed() as x:
        host = x.host()
        x.build(host)
        leaves = memory_leaves(x.world.disk)
        store = TtlStore(x.world.clock)
        lease = TtlLeases(store, holder()).take("p")
        folder = IndexFolder(leaves, IndexLayout(ROOT), lease)
        manifest = read_manifest(leaves.files, f"{INDEX}/index.json")
        store.expire()
        with pytest.raises(LeaseLost):
            folder.replace(manifest)
        later = TtlLeases(store, holder(2)).take("p")
        assert later.fence == 2
        with pytest.raises(LeaseLost):
            folder.replace(manifest)
        assert "index.json.bak" not in x.names() or x.read("index.json")


@pytest.mark.witness("INDEX-5")
def test_lease_store_that_fails_in_a_run_or_before_it_writes_nothing():
    with indexed(notes=MANY) as x:
        store = TtlStore(x.world.clock)
        host = x.host("a", TtlLeases(store, holder()))
        store.available = False
        with pytest.raises(Refused) as refused:
            x.build(host)
        assert isinstance(refused.value.reply, IndexNotClaimed)
        assert (x.names(), x.embedder.calls) == ([], 0)
        store.available = True

        async def fail() -> None:
            store.available = False

        x.embedder.before = fail
        assert isinstance(x.build(host), RunFailed)
        assert "index.json" not in x.names()


@pytest.mark.witness("INDEX-1")
def test_lease_is_taken_by_the_writer_and_a_stopped_holder_keeps_it():
    with indexed(notes=MANY) as x:
        host, other = x.host("a"), x.host("b")
        x.world.run(host.start())
        lease = ClaimLeases(host.leaves, Claims(host.leaves, "a")).take(IndexLayout(ROOT).lease)
        host.stop()
        with pytest.raises(Refused) as refused:
            x.build(other)
        busy = refused.value.reply
        assert isinstance(busy, IndexBusy)
        assert busy.holder.process.pid == host.process.name.pid
        host.resume()
        lease.release()
        complete(x.build(other))


# --- damage ------------------------------------------------------------------------------------


@pytest.mark.witness("INDEX-4")
def test_damaged_target_is_served_from_its_backup_and_built_from_it():
    with indexed() as x:
        host = x.host()
        x.build(host)
        x.write("dogs.md", "# Dogs\n\nAwake.\n")
        x.build(host)
        x.spoil("index.json")
        shown = status(x, host).index
        assert (shown.generation, bool(shown.problem)) == (1, True)
        assert x.found(host, "puppy sleeps")[0] == "dogs.md"
        backup = x.read("index.json.bak")
        again = complete(x.build(host))
        assert (again.generation, again.embedded) == (2, 0)
        assert x.read("index.json.bak") == backup
        assert x.found(host, '"awake"')[0] == "dogs.md"


@pytest.mark.witness("INDEX-4")
@pytest.mark.parametrize("how", ["cut short", "altered"])
def test_generation_with_a_damaged_segment_gives_way_to_the_one_before(how):
    with indexed() as x:
        host = x.host()
        x.build(host)
        first = set(x.names())
        x.write("dogs.md", "# Dogs\n\nAwake.\n")
        x.build(host)
        name = next(name for name in x.names() if name.endswith(".seg") and name not in first)
        data = x.read(name)
        at = data.index(b"SQLite") + 40
        altered = data[:at] + b"?" + data[at + 1 :]
        x.spoil(name, data[:-2] if how == "cut short" else altered)
        results = x.do(host, x.index(x.host("b")).search("puppy sleeps"))
        assert (results.generation, results.hits[0].path) == (1, "dogs.md")
        assert results.notes
        if how == "cut short":
            assert status(x, host).index.generation == 1
        complete(x.build(host))
        assert x.found(host, '"awake"')[0] == "dogs.md"


@pytest.mark.witness("INDEX-3")
def test_target_and_backup_that_are_both_damaged_are_set_aside_and_built_anew():
    with indexed() as x:
        host = x.host()
        x.build(host)
        x.spoil("index.json", b"one")
        x.spoil("index.json.bak", b"two")
        assert isinstance(status(x, host).index, NoIndex)
        told = []
        assert complete(x.build(host, told=told.append)).generation == 1
        assert "damaged-1" in told[0].recovered[0]
        assert x.read("index.json.damaged-1") == b"one"
        assert x.read("index.json.bak.damaged-1") == b"two"
        assert x.found(host, '"puppy"')[0] == "dogs.md"


@pytest.mark.witness("INDEX-3")
def test_target_that_is_damaged_in_a_run_is_set_aside_and_never_overwritten():
    with indexed() as x:
        host = x.host()
        x.build(host)
        leaves = memory_leaves(x.world.disk)
        manifest = read_manifest(leaves.files, f"{INDEX}/index.json")
        lease = TtlLeases(TtlStore(x.world.clock), holder()).take("p")
        x.spoil("index.json", b"garbage")
        IndexFolder(leaves, IndexLayout(ROOT), lease).replace(manifest)
        assert x.read("index.json.damaged-1") == b"garbage"
        assert isinstance(read_manifest(leaves.files, f"{INDEX}/index.json"), Manifest)


@pytest.mark.witness("INDEX-3")
def test_complete_target_is_backed_up_byte_for_byte_before_it_is_replaced():
    with indexed() as x:
        host = x.host()
        x.build(host)
        first = x.read("index.json")
        x.write("dogs.md", "# Dogs\n\nAwake.\n")
        x.build(host)
        assert x.read("index.json.bak") == first


def test_damaged_segment_costs_its_chunks_and_nothing_else():
    with indexed() as x:
        host = x.host()
        x.build(host)
        name = next(name for name in x.names() if name.endswith(".seg"))
        x.spoil(name, x.read(name)[:-3] + b"zzz")
        told = []
        again = complete(x.build(host, told=told.append))
        assert (again.embedded, again.generation) == (4, 1)
        assert "damaged" in told[0].recovered[0]
        assert x.do(host, x.index(host).verify()).sound


def test_index_of_a_newer_version_is_neither_read_nor_replaced():
    with indexed() as x:
        host = x.host()
        x.build(host)
        newer = b'{"version": 99, "new": true}\n'
        x.spoil("index.json", newer)
        assert "newer" in status(x, host).index.problem
        with pytest.raises(Refused, match="newer"):
            x.build(host)
        assert x.read("index.json") == newer


@pytest.mark.witness("INDEX-4")
def test_run_of_a_dead_process_is_shown_as_failed_and_what_it_embedded_is_kept():
    with indexed(notes=MANY) as x:
        x.slow()
        host = x.host("a")
        task = x.begin(host, x.index(host).build())

        async def until() -> None:
            while x.embedder.calls < 2:
                await x.world.clock.sleep(0.001)

        x.world.run(until())
        host.kill()
        with pytest.raises(ProcessEnded):
            x.world.run(task)
        again = x.host("b")
        run = status(x, again).run
        assert isinstance(run, RunFailed)
        assert "interrupted" in run.reason
        complete(x.build(again))
        assert isinstance(status(x, again).run, RunComplete)


def test_cancelled_run_keeps_what_it_embedded_for_the_next():
    with indexed(notes=MANY) as x:
        x.slow()
        host = x.host()
        index = x.index(host)
        started = x.do(host, index.start())

        async def until() -> None:
            while x.embedder.calls < 1:
                await x.world.clock.sleep(0.001)

        x.world.run(until())
        x.do(host, index.cancel(started.run_id))
        x.world.settle()
        run = status(x, host).run
        assert isinstance(run, RunCancelled)
        assert isinstance(status(x, host).index, NoIndex)
        before = len(x.embedder.texts)
        complete(x.build(host))
        assert len(x.embedder.texts) - before == 12 - run.done


# --- full disks and crashes ----------------------------------------------------------------------


def crash_at(x: Indexed, point: CrashPoint | None) -> tuple[CrashAt, Indexed]:
    crash = CrashAt(point)
    x.world.watchers.add(crash)
    x.world.disk.before = crash.fault
    return crash, x


def second_generation(point: CrashPoint | None, power: bool = False) -> CrashAt:
    """Build, change, and crash in the second run; readers get the last or the new generation."""
    with indexed() as x:
        host = x.host("a")
        x.build(host)
        x.write("dogs.md", "# Dogs\n\nThe puppy is awake.\n")
        crash, _ = crash_at(x, point)
        try:
            result = x.build(host)
        except ProcessEnded:
            result = None
        x.world.disk.before = None
        if power:
            x.world.power_loss()
        reader = x.host("reader")
        shown = status(x, reader)
        assert isinstance(shown.index, IndexReady), crash.hit
        assert not isinstance(shown.run, RunActive), crash.hit
        found = x.found(reader, '"puppy"')
        assert found[0] == "dogs.md", crash.hit
        snippet = x.do(reader, x.index(reader).search('"puppy"')).hits[0].passages[0].snippet
        expected = {1: "The puppy sleeps by the oven.", 2: "The puppy is awake."}
        assert snippet == expected[shown.index.generation], crash.hit
        if result is not None:
            assert complete(result).generation == shown.index.generation == 2
        last = x.host("last")
        assert complete(x.build(last)).generation == 2
        assert x.found(last, '"awake"')[0] == "dogs.md"
        report = x.do(last, x.index(last).verify())
        assert report.sound, report
        return crash


@pytest.mark.witness("INDEX-3")
@pytest.mark.witness("INDEX-4")
@pytest.mark.parametrize("power", [False, True], ids=["killed", "power loss"])
def test_crash_at_every_call_to_the_disk_leaves_the_last_or_the_new_generation(power):
    calls = second_generation(None).calls
    assert calls > 20
    for nth in range(1, calls + 1):
        for how in ("before", "during", "after"):
            second_generation(CrashPoint(at="call", how=how, nth=nth), power)


def test_full_disk_at_any_write_fails_the_run_and_the_last_generation_is_served():
    nth = 0
    while True:
        nth += 1
        with indexed() as x:
            host = x.host("a")
            x.build(host)
            x.write("dogs.md", "# Dogs\n\nThe puppy is awake.\n")
            fault = Fail(errno=28)
            calls = ("append", "create", "rename", "sync", "sync_folder")
            x.world.disk.before = FaultRules(FaultRule(fault=fault, calls=calls, nth=nth))
            try:
                result = x.build(host)
            except Refused as refused:
                result = refused.reply
            x.world.disk.before = None
            shown = status(x, host).index
            assert shown.generation in (1, 2)
            assert x.found(host, '"puppy"')[0] == "dogs.md"
            assert complete(x.build(host)).generation == 2
            if isinstance(result, RunComplete):
                break
    assert nth > 5
