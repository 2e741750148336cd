"""The handler of `ReadSpending`: from memory where the session is open here, else from its file."""

from tenure.messages.base import Outcome
from tenure.messages.limits import ReadSpending, Spending, SpendingNotRead, SpendingRead, Spent
from tenure.messages.tokens import SessionId
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.transcripts.dialects import Unreadable
from tenure.runtime.doors.transcripts.door import Transcripts
from tenure.runtime.doors.transcripts.scan import scan
from tenure.runtime.doors.transcripts.spending import Counted
from tenure.runtime.doors.transcripts.storage import read_all, reason_of


class Spendings:
    def __init__(self, leaves: Leaves, transcripts: Transcripts) -> None:
        self._leaves = leaves
        self._transcripts = transcripts

    async def read(self, effect: ReadSpending, context: Context) -> Outcome:
        """`SpendingRead`, or `SpendingNotRead` where the file of a parked session cannot be."""
        live = self._transcripts.live(effect.session_id)
        if live is not None:
            found = live.spent.spending(effect.session_id)
            return SpendingRead(asker=effect.asker, spending=found)
        try:
            found = await self._leaves.workers.run(self._stored, effect.session_id, effect.path)
        except FileNotFoundError:
            # Nothing was ever said in it, so it has no file.
            found = Spending(session_id=effect.session_id, total=Spent())
        except Unreadable as error:
            return SpendingNotRead(asker=effect.asker, path=effect.path, reason=str(error))
        except OSError as error:
            return SpendingNotRead(asker=effect.asker, path=effect.path, reason=reason_of(error))
        return SpendingRead(asker=effect.asker, spending=found)

    def _stored(self, session_id: SessionId, path: str) -> Spending:
        tree = scan(read_all(self._leaves.files, path)).tree
        return Counted(tree).spending(session_id)
