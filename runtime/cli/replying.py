"""What `tenure questions` and `tenure answer` do: the questions of every host of a root."""

from contextlib import suppress

import msgspec

from tenure.messages.approval import Expired
from tenure.messages.base import Refusal, Reply
from tenure.messages.questions import (
    AnswerQuestion,
    AnswerTaken,
    GetQuestions,
    QuestionRequest,
    QuestionsOpen,
)
from tenure.messages.tokens import RequestId
from tenure.runtime.cli.answering import SeveralRequests
from tenure.runtime.cli.questioning import answer_of
from tenure.runtime.cli.reaching import Form, outside, refuse
from tenure.runtime.cli.screen import JsonScreen, one_line, print_json, print_text, screen_of
from tenure.runtime.cli.turns import EXIT_DONE, EXIT_REFUSED
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.errors import Refused
from tenure.runtime.finding import find_hosts, reach


class SeatQuestion(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """A question, and where it is open."""

    host_id: str
    pid: int
    seat: str
    request: QuestionRequest


async def list_questions(root: str, form: Form) -> int:
    screen = screen_of(form)
    async with outside() as leaves:
        found = await _open_questions(leaves, root)
    for each in found:
        if isinstance(screen, JsonScreen):
            print_json(each)
        else:
            said = one_line(each.request.question.text)
            print_text(f"{each.request.request_id}  {each.seat}  {said}\n")
    if not found:
        screen.note("no question waits for an answer")
    return EXIT_DONE


async def answer_question(root: str, text: str, said: str, form: Form) -> int:
    screen = screen_of(form)
    async with outside() as leaves:
        found = await _find(leaves, root, text)
        if isinstance(found, Refusal):
            return refuse(screen, found)
        answer = answer_of(said, found.request.question)
        if isinstance(answer, str):
            screen.note(answer)
            return EXIT_REFUSED
        command = AnswerQuestion(request_id=found.request.request_id, answer=answer)
        reply = await _ask(leaves, found, command)
    if not isinstance(reply, AnswerTaken):
        return refuse(screen, reply)
    if isinstance(screen, JsonScreen):
        print_json(reply)
    else:
        print_text(f"answered {reply.request_id}\n")
    return EXIT_DONE


async def _ask(leaves: Leaves, at: SeatQuestion, command: AnswerQuestion) -> Reply:
    try:
        async with await reach(leaves.sockets, at.host_id, at.pid) as remote:
            return await remote.ask(command, at.seat)
    except Refused as refused:
        return refused.reply
    except ConnectionRefusedError:  # its host ended meanwhile, and the question with it
        return Expired(request_id=command.request_id)


async def _find(leaves: Leaves, root: str, text: str) -> SeatQuestion | Refusal:
    """The one open question whose id is, or begins with, this text."""
    open_now = await _open_questions(leaves, root)
    found = [each for each in open_now if each.request.request_id == text] or [
        each for each in open_now if text and each.request.request_id.startswith(text)
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        return Expired(request_id=RequestId(text))
    candidates = sorted(each.request.request_id for each in found)
    return SeveralRequests(text=text, candidates=tuple(candidates))


async def _open_questions(leaves: Leaves, root: str) -> list[SeatQuestion]:
    found: list[SeatQuestion] = []
    for hello in await find_hosts(leaves, root):
        with suppress(Refused, ConnectionRefusedError):  # it ended meanwhile
            async with await reach(leaves.sockets, hello.host_id, hello.pid) as remote:
                for seat in remote.hello.seats:
                    reply = await remote.ask(GetQuestions(), seat)
                    if isinstance(reply, QuestionsOpen):
                        found += (
                            SeatQuestion(
                                host_id=hello.host_id, pid=hello.pid, seat=seat, request=each
                            )
                            for each in reply.requests
                        )
    return found
