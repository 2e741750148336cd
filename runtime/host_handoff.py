"""Continuity for an embedder: `host.handoff`, over the one owner of the vault."""

from collections.abc import Sequence
from typing import TypeVar

from tenure.messages.base import Reply
from tenure.messages.handoff import (
    BRIEF_CHARS,
    HANDOFFS_SHOWN,
    AcknowledgeBrief,
    Brief,
    BriefAcknowledged,
    BuildBrief,
    CheckpointSaved,
    Detail,
    GetHandoff,
    GetHandoffCheck,
    GetHandoffs,
    GetRecovery,
    HandoffCheck,
    HandoffList,
    HandoffSaved,
    HandoffText,
    HandoffView,
    Policy,
    Recovery,
    SaveCheckpoint,
    SaveHandoff,
    StageName,
)
from tenure.runtime.seat import AskHost, refused

R = TypeVar("R", bound=Reply)


class HostHandoff:
    """The handoffs of a root.  A root is its own vault."""

    def __init__(self, ask: AskHost) -> None:
        self._ask = ask

    async def sleep(
        self,
        *summary: str,
        next_steps: Sequence[str] = (),
        blocked: Sequence[str] = (),
        decisions: Sequence[str] = (),
        questions: Sequence[str] = (),
        feelings: Sequence[str] = (),
        session: str = "",
        author: str = "",
        transcript: str = "",
        stages: Sequence[StageName] = (),
        policy: Policy = "any",
        idempotency_key: str = "",
    ) -> HandoffSaved:
        """Leave a handoff for the next session; durable when this returns.

        Args:
            summary: what was worked on, an item each.
            session: the id of the session that ends, as in `seat.token.session_id`; the
                handoff says how far into it it reaches.
            author: `draft:MODEL` for a text that a model drafted; empty for the caller's.
            stages: what is to follow; see `HandoffSaved.stages` for what became of it.
            policy: `next_or_blocked` refuses a handoff that does not say how to go on.
            idempotency_key: the same key gives the same receipt, in every process.

        Raises:
            Refused: nothing was saved (`HandoffRefused`, `KeyReused`, `VaultFailed`).
        """
        text = HandoffText(
            working_on=summary,
            next_steps=tuple(next_steps),
            blocked=tuple(blocked),
            decisions=tuple(decisions),
            questions=tuple(questions),
            feelings=tuple(feelings),
        )
        reply = await self._ask(
            SaveHandoff(
                text=text,
                session=session,
                author=author,
                transcript=transcript,
                stages=tuple(stages),
                policy=policy,
                idempotency_key=idempotency_key,
            )
        )
        return _expected(reply, HandoffSaved)

    async def wake(
        self,
        *,
        handoffs_max: int = HANDOFFS_SHOWN,
        chars_max: int = BRIEF_CHARS,
        detail: Detail = "brief",
        model: str = "",
    ) -> Brief:
        """The brief; it comes again until it is acknowledged with `ack`.

        Args:
            chars_max: how long its items may be together; what does not fit is in `omitted`.
            model: who is asked to say it shorter, beside it; empty for nobody.

        Raises:
            Refused: the vault cannot be read (`VaultFailed`).
        """
        wish = BuildBrief(
            handoffs_max=handoffs_max, chars_max=chars_max, detail=detail, model=model
        )
        return _expected(await self._ask(wish), Brief)

    async def ack(self, brief_id: str) -> BriefAcknowledged:
        """Say that a brief was taken in; a second time says the same.

        Raises:
            Refused: no such brief was delivered (`BriefUnknown`), or it was not recorded.
        """
        return _expected(await self._ask(AcknowledgeBrief(brief_id=brief_id)), BriefAcknowledged)

    async def checkpoint(
        self,
        working_on: str = "",
        *,
        focus: str = "",
        blocked: str = "",
        session: str = "",
        idempotency_key: str = "",
    ) -> CheckpointSaved:
        """Note where a session stands; durable when this returns.

        Raises:
            Refused: nothing was saved (`KeyReused`, `VaultFailed`).
        """
        wish = SaveCheckpoint(
            working_on=working_on,
            focus=focus,
            blocked=blocked,
            session=session,
            idempotency_key=idempotency_key,
        )
        return _expected(await self._ask(wish), CheckpointSaved)

    async def recover(self) -> Recovery:
        """Who died, the newest checkpoint and the newest handoff; nothing is changed.

        Raises:
            Refused: the vault cannot be read.
        """
        return _expected(await self._ask(GetRecovery()), Recovery)

    async def ls(self) -> HandoffList:
        """The handoffs, the newest first."""
        return _expected(await self._ask(GetHandoffs()), HandoffList)

    async def show(self, name: str) -> HandoffView:
        """One handoff: by its number, its id, or the beginning of one.

        Raises:
            Refused: there is none, or there are several (`HandoffUnknown`).
        """
        return _expected(await self._ask(GetHandoff(name=name)), HandoffView)

    async def verify(self) -> HandoffCheck:
        """Check the journal line by line, and every file against it."""
        return _expected(await self._ask(GetHandoffCheck()), HandoffCheck)


def _expected(reply: Reply, kind: type[R]) -> R:
    if isinstance(reply, kind):
        return reply
    raise refused(reply)
