"""A session owner that answers before the disk, and the watcher that sees it.

The bug: the receipt is given when the write is sent, not when it is durable.  It
looks right in every test that reads the file afterwards.

The watcher looks at the durable bytes of the simulated disk at the moment when
somebody is given a receipt.  It knows nothing of the owner's code.

    python examples/broken/early_receipt.py
"""

from tenure.actors.session import SessionActor, session_step
from tenure.actors.session_state import Live, State, Writing
from tenure.messages.base import Message, Reply
from tenure.messages.bus import Published
from tenure.messages.entries import CustomEntry
from tenure.messages.session import Appended, AppendEntries, SessionChanged
from tenure.runtime.step import Step, StepFunction, Taken
from tenure.testing import (
    Violated,
    Watcher,
    World,
    durable_of,
    expect_reply,
    simulate,
    stepping,
)


def broken_session_step(state: State, message: Message, taken: Taken) -> Step[State]:
    step = session_step(state, message, taken)
    match step.state:
        case Live(session=session, appends=Writing(batch=batch)) if step.effects:
            # The bug: the write is on its way, "so it is as good as done".
            for placed in batch:
                receipt = Appended(token=session.token, entry_ids=placed.entry_ids, seq=placed.seq)
                for asker in placed.parcel.askers:
                    step = step.answer(asker, receipt)
    return step


# --- the watcher and the test -------------------------------------------------------------------


class Receipts(Watcher):
    """Whoever is given a receipt could cut the power now and would find his entries."""

    def __init__(self) -> None:
        super().__init__()
        self._paths: dict[str, str] = {}

    def published(self, host: str, published: Published) -> None:
        if isinstance(published.event, SessionChanged):
            self._paths[published.event.token.session_id] = published.event.path

    def answered(self, host: str, number: int, reply: Reply) -> None:
        if isinstance(reply, Appended):
            data = durable_of(self.disk, self._paths[reply.token.session_id]) or b""
            for entry_id in reply.entry_ids:
                if entry_id.encode() not in data:
                    self.report("SESSION-3", f"the receipt of {entry_id} came before the disk")


def append_twice(world: World) -> None:
    host = world.host()
    seat = world.run(host.seat())
    for text in ("one", "two"):
        note = CustomEntry(custom_type="example/note", data={"text": text})
        reply = world.ask(host, AppendEntries(token=seat.token, entries=(note,)))
        expect_reply(reply, Appended)


def look(step: StepFunction[State]) -> str:
    """What the watcher finds in an owner with this step; empty where it finds nothing."""
    with stepping(SessionActor, step):
        for seed in range(20):
            try:
                with simulate(seed, watchers=[Receipts()]) as world:
                    append_twice(world)
            except Violated as violated:
                return f"seed {seed}: {violated}"
    return ""


if __name__ == "__main__":
    print("the broken owner:", look(broken_session_step), sep="\n")
    print("the owner as it is:", look(session_step) or "nothing found", sep="\n")
