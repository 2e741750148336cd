"""Leaves handoffs one after the other, and writes down each receipt, synced.

sleeper.py ROOT NAME COUNT LEDGER
"""

import os
import sys

from tenure.messages.handoff import HandoffReceipted, HandoffSaved, HandoffText, SaveHandoff
from tenure.runtime.doors.blocking import blocking_leaves
from tenure.runtime.system_alone import handoff_alone

root, name, count, ledger = sys.argv[1:]
with open(ledger, "a") as receipts:

    def note(event: object) -> None:
        if isinstance(event, HandoffReceipted):
            receipts.write(f"{event.seq} {event.id}\n")
            receipts.flush()
            os.fsync(receipts.fileno())

    for number in range(int(count)):
        alone = handoff_alone(blocking_leaves(), root, note)
        text = HandoffText(working_on=("the same title",), next_steps=(f"{name} {number}",))
        reply = alone.ask(SaveHandoff(text=text, idempotency_key=f"{name}/{number}"))
        assert isinstance(reply, HandoffSaved), reply
