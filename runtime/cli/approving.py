"""Approvals on the command line: each request gets an answer, from a person or a rule."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from tenure.messages.approval import (
    Allow,
    Applied,
    ApprovalRequest,
    ApprovalRequested,
    ApprovalResolved,
    Choice,
    Deny,
    Stop,
)
from tenure.messages.base import Event, Refusal, Reply
from tenure.messages.bus import EventsMissed
from tenure.messages.questions import (
    Answer,
    Declined,
    QuestionAsked,
    QuestionClosed,
    QuestionRequest,
    Said,
)
from tenure.messages.tokens import RequestId
from tenure.runtime.cli.options import Approval
from tenure.runtime.cli.questioning import answer_of, show_question
from tenure.runtime.cli.screen import Screen, print_note, shortly
from tenure.runtime.doors.approver import ReplyTo
from tenure.runtime.seat import Seat

NO_TERMINAL = (
    "nobody could be asked for approval, because this run has no terminal; "
    "the user can run it in a terminal, or with --approve allow"
)
TOLD_TO_DENY = "the user runs this with --approve deny"
NOBODY_TO_ASK = "this run has no terminal, so nobody could be asked"
INPUT_ENDED = "nobody answered: the input has ended"

QUESTION = "Allow?  y once | s session | a always | n [reason] | stop"

Answers = Callable[[], Awaitable[str | None]]
"""The next line that a person types; None where the input has ended."""

Decide = Callable[[ApprovalRequest], Awaitable[Choice]]


async def decline(request: QuestionRequest) -> Answer:
    """Where there is nobody to ask."""
    return Declined(reason=NOBODY_TO_ASK)


class Desk:
    """Answers the requests of one seat, through the seat.

    It follows the events that are printed, so a question never comes before
    the text that led to it.
    """

    def __init__(
        self, seat: Seat, decide: Decide, screen: Screen, replying: ReplyTo = decline
    ) -> None:
        self._replying = replying
        self._seat = seat
        self._decide = decide
        self._screen = screen
        self._asking: dict[RequestId, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def see(self, event: Event) -> None:
        match event:
            case ApprovalRequested(request=request):
                self._open(request)
            case QuestionAsked(request=question):
                self._begin(question.request_id, self._reply(question))
            case ApprovalResolved(request_id=request_id) | QuestionClosed(request_id=request_id):
                self._close(request_id)
            case EventsMissed():  # a request may have been among them
                for request in await self._seat.approvals():
                    self._open(request)
                for question in await self._seat.questions():
                    self._begin(question.request_id, self._reply(question))
            case _:
                pass

    async def close(self) -> None:
        """Nothing is asked any more; what was answered is seen through."""
        for request_id in list(self._asking):
            self._close(request_id)
        for ended in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended

    def _open(self, request: ApprovalRequest) -> None:
        self._begin(request.request_id, self._answer(request))

    def _begin(self, request_id: RequestId, answering: Coroutine[Any, Any, None]) -> None:
        if request_id in self._asking:
            answering.close()
            return
        task = asyncio.create_task(answering)
        self._asking[request_id] = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _close(self, request_id: RequestId) -> None:
        task = self._asking.pop(request_id, None)
        if task is not None:
            task.cancel()

    async def _answer(self, request: ApprovalRequest) -> None:
        try:
            choice = await self._decide(request)
        except Exception as error:
            # A request without an answer would hold its turn for ever.
            choice = Deny(reason=f"the question could not be put: {error}")
        # From here on the request's end is our own doing, and no reason to give up.
        self._asking.pop(request.request_id, None)
        reply = await self._seat.answer(request.request_id, choice)
        if isinstance(reply, Refusal):
            self._screen.note(reply.remedy)
        elif _forgotten(choice, reply):
            self._screen.note("this could not be written into the settings; it holds once")

    async def _reply(self, request: QuestionRequest) -> None:
        try:
            answer = await self._replying(request)
        except Exception as error:
            answer = Declined(reason=f"the question could not be put: {error}")
        self._asking.pop(request.request_id, None)
        said = await self._seat.reply(request.request_id, answer)
        if isinstance(said, Refusal):
            self._screen.note(said.remedy)


class Person:
    """Asks a person, one question at a time."""

    def __init__(self, answers: Answers, screen: Screen) -> None:
        self._answers = answers
        self._screen = screen
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, request: ApprovalRequest) -> Choice:
        async with self._one_at_a_time:
            self._screen.note("")  # ends the line that the answer stands on
            show_request(request)
            try:
                return await self._choice()
            except asyncio.CancelledError:
                print_note("(this request is over)")
                raise

    async def reply(self, request: QuestionRequest) -> Answer:
        """A question of a tool: one line is the answer; for a form a line of JSON."""
        async with self._one_at_a_time:
            self._screen.note("")
            show_question(request.question)
            try:
                while True:
                    line = await self._answers()
                    if line is None:
                        return Declined(reason=INPUT_ENDED)
                    answer = answer_of(line, request.question)
                    if isinstance(answer, Said | Declined):
                        return answer
                    print_note(answer)
            except asyncio.CancelledError:
                print_note("(this question is over)")
                raise

    async def _choice(self) -> Choice:
        while True:
            print_note(QUESTION, bold=True)
            line = await self._answers()
            if line is None:
                return Deny(reason=INPUT_ENDED)
            choice = choice_of(line)
            if choice is not None:
                return choice
            print_note(f"{line.strip()!r} is no answer.")


def decide_with(approve: Approval, answers: Answers | None, screen: Screen) -> Decide:
    """What `--approve` means where there is, or is not, somebody to ask."""
    if approve == "ask" and answers is not None:
        return Person(answers, screen)
    fixed: dict[Approval, Choice] = {
        "ask": Deny(reason=NO_TERMINAL),
        "allow": Allow(),
        "deny": Deny(reason=TOLD_TO_DENY),
    }
    choice = fixed[approve]

    async def decide(request: ApprovalRequest) -> Choice:
        return choice

    return decide


def choice_of(line: str) -> Choice | None:
    """The choice that a person typed; None where it is none."""
    word, _, rest = line.strip().partition(" ")
    match word.lower():
        case "y" | "yes" | "once" if not rest:
            return Allow()
        case "s" | "session" if not rest:
            return Allow(scope="session")
        case "a" | "always" if not rest:
            return Allow(scope="always")
        case "n" | "no" | "deny":
            return Deny(reason=rest.strip())
        case "stop" | "/stop" if not rest:
            return Stop()
        case _:
            return None


def _forgotten(choice: Choice, reply: Reply) -> bool:
    wanted = isinstance(choice, Allow) and choice.scope == "always"
    return wanted and isinstance(reply, Applied) and not reply.remembered


def show_request(request: ApprovalRequest) -> None:
    """All that a person needs to decide: the call, and what it would change."""
    print_note(f"{request.label}: {request.tool} {_shown_arguments(request)}", bold=True)
    preview = request.preview
    if preview is None:
        return
    print_note(preview.summary)
    for line in preview.diff.splitlines():
        print_note(line, **_style_of(line))


def _shown_arguments(request: ApprovalRequest) -> str:
    """Whole where there is no diff to show: nobody approves what was cut off."""
    if request.preview is not None and request.preview.diff:
        return shortly(request.arguments)
    return "\n" + "\n".join(f"  {name} = {value!r}" for name, value in request.arguments.items())


def _style_of(line: str) -> dict[str, str]:
    if line.startswith("+"):
        return {"fg": "green"}
    if line.startswith("-"):
        return {"fg": "red"}
    return {"fg": "cyan"} if line.startswith("@@") else {}
