"""What `tenure chat` does."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from tenure.messages.limits import Overrides
from tenure.runtime.cli.approving import Desk, Person, decide_with, decline
from tenure.runtime.cli.chat_limits import HELP as LIMITS_HELP
from tenure.runtime.cli.chat_limits import NextPrompt, show_usage
from tenure.runtime.cli.chat_policy import HELP as POLICY_HELP
from tenure.runtime.cli.chat_policy import policy_command
from tenure.runtime.cli.chat_queue import HELP as QUEUE_HELP
from tenure.runtime.cli.chat_queue import LIVE, live_command, queue_command
from tenure.runtime.cli.chat_sessions import HELP as SESSIONS_HELP
from tenure.runtime.cli.chat_sessions import session_command
from tenure.runtime.cli.compacting import compact, uncompact
from tenure.runtime.cli.hosting import SaidNo, open_seat, session_of, tell_opening
from tenure.runtime.cli.listing import print_sessions
from tenure.runtime.cli.options import Conversation
from tenure.runtime.cli.screen import Screen, print_prompt, screen_of
from tenure.runtime.cli.terminal import Interrupts, lines_of
from tenure.runtime.cli.turns import EXIT_DONE, EXIT_REFUSED, PromptedTurn
from tenure.runtime.errors import Refused
from tenure.runtime.host import Host
from tenure.runtime.seat import Seat

LINES_WAITING_MAX = 1_000
"""Lines typed ahead of the turns; further ones are read when these are done."""

HELP = f"""\
/stop         stop the running turn (as Ctrl-C does)
/new          start a new session
/open ID      open another session; the first characters of its id do
/compact      put a summary in the place of the older messages; what you write
              behind it is for the summary
/uncompact    take the last compaction back, while nothing follows it
{LIMITS_HELP}
/sessions     list the sessions
{SESSIONS_HELP}
{QUEUE_HELP}
{POLICY_HELP}
/skill NAME   use a skill of a package; what you write behind it is for the skill
/help         show this
/quit         leave (as does the end of the input)

Every other line is a prompt.  One that begins with / needs a blank before it."""


async def chat(conversation: Conversation, interrupts: Interrupts) -> int:
    """Until the input ends; gives the exit code."""
    screen = screen_of(conversation.form)
    async with Host.open(
        conversation.root, model=conversation.model, base_url=conversation.base_url
    ) as host:
        try:
            seat = await open_seat(host, conversation)
        except SaidNo as said:
            screen.refusal(said.no)
            return EXIT_REFUSED
        await tell_opening(host, seat, screen)
        screen.note("/help lists the commands")
        lines = ChatLines(sys.stdin.fileno())
        answers = lines.answer if sys.stdin.isatty() and sys.stderr.isatty() else None
        replying = Person(answers, screen).reply if answers else decline
        desk = Desk(seat, decide_with(conversation.approve, answers, screen), screen, replying)
        reading = asyncio.create_task(lines.read())
        try:
            await Chat(host, seat, screen, desk, lines, interrupts, conversation.overrides).run()
        finally:
            reading.cancel()
            screen.note("")  # what comes next begins on a line of its own
        return EXIT_DONE


class ChatLines:
    """The lines of the input, each to whom it is for.

    An open question takes the next line that comes; `/stop`, and what is said to
    the running turn or to its queue, is done at once; everything else waits until
    the chat asks for it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._waiting: asyncio.Queue[str | None] = asyncio.Queue(LINES_WAITING_MAX)
        self._answer: asyncio.Future[str | None] | None = None
        self._stop: Callable[[], None] | None = None
        self._say: Callable[[str], Awaitable[None]] = _nothing
        self._ended = False

    async def read(self) -> None:
        """Read until the input ends."""
        async for line in lines_of(self._descriptor):
            if self._answer is not None and not self._answer.done():
                self._answer.set_result(line)
            elif self._stop is not None and line.strip() == "/stop":
                self._stop()
            elif self._stop is not None and line.partition(" ")[0].strip() in LIVE:
                await self._say(line)
            else:
                await self._waiting.put(line)
        self._ended = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(None)
        await self._waiting.put(None)

    async def next(self) -> str | None:
        """The next line for the chat; None at the end of the input."""
        return await self._waiting.get()

    async def answer(self) -> str | None:
        """The next line that is typed from now on; None where the input has ended."""
        if self._ended:
            return None
        self._answer = asyncio.get_running_loop().create_future()
        try:
            return await self._answer
        finally:
            self._answer = None

    @contextmanager
    def running(
        self, stop: Callable[[], None], say: Callable[[str], Awaitable[None]]
    ) -> Iterator[None]:
        """While a turn runs: what `/stop` does, and what is done with a line for the turn."""
        self._stop, self._say = stop, say
        try:
            yield
        finally:
            self._stop = None


async def _nothing(line: str) -> None:
    """No turn runs."""


class Chat:
    """One conversation of prompts and commands, on one seat."""

    def __init__(
        self,
        host: Host,
        seat: Seat,
        screen: Screen,
        desk: Desk,
        lines: ChatLines,
        interrupts: Interrupts,
        overrides: Overrides,
    ) -> None:
        self._host = host
        self._next = NextPrompt(overrides)
        self._seat = seat
        self._screen = screen
        self._desk = desk
        self._lines = lines
        self._interrupts = interrupts

    async def run(self) -> None:
        while True:
            self._interrupts.first(self._hint)
            print_prompt()
            line = await self._lines.next()
            if line is None or line.strip() == "/quit":
                return
            if line.startswith("/skill "):
                await self._skill(line.removeprefix("/skill ").strip())
            elif line.startswith("/"):
                await self._command(line)
            elif line.strip():
                await self._turn(line)

    async def _turn(self, text: str) -> None:
        said = self._next
        turn = PromptedTurn(self._seat, self._screen, self._desk, said.overrides, said.model)
        self._interrupts.first(turn.stop)
        rest = self._seat.until_idle()
        with self._lines.running(turn.stop, self._say):
            try:
                await turn.run(text)
                self._next.used()
                await turn.follow_rest(rest)
            except Refused as refused:
                self._screen.refusal(refused.reply)

    async def _say(self, line: str) -> None:
        await live_command(line, self._seat, self._screen)

    async def _go_on(self, word: str) -> None:
        """An interrupted turn, or what is held.  Raises `Refused`."""
        turn = PromptedTurn(self._seat, self._screen, self._desk, self._next.overrides)
        self._interrupts.first(turn.stop)
        rest = self._seat.until_idle()
        with self._lines.running(turn.stop, self._say):
            if word == "/release":
                await turn.release()
            else:
                await turn.resume()
                await turn.follow_rest(rest)

    async def _skill(self, text: str) -> None:
        """A turn that uses a skill of a package."""
        name, _, arguments = text.partition(" ")
        try:
            prompt = await self._host.plugins.prompt_of(name, arguments.strip())
        except Refused as refused:
            self._screen.refusal(refused.reply)
        else:
            await self._turn(prompt)

    async def _command(self, line: str) -> None:
        word, _, rest = line.strip().partition(" ")
        try:
            match word, rest.strip():
                case "/new", "":
                    self._screen.opened(await self._seat.new())
                case "/open", text if text:
                    found = await session_of(self._host, text)
                    self._screen.opened(await self._seat.open(found.session_id))
                case "/sessions", "":
                    sessions = await self._host.sessions.list()
                    print_sessions(sessions, self._screen, self._seat.token.session_id)
                case "/compact", instructions:
                    await compact(instructions, self._seat, self._screen)
                case "/uncompact", "":
                    await uncompact(self._seat, self._screen)
                case "/usage", "":
                    await show_usage(self._seat, self._screen)
                case "/resume" | "/release", "":
                    await self._go_on(word)
                case "/redirect", text if text:
                    await self._turn(text)
                case "/stop", "":
                    self._screen.note("no turn runs")
                case "/open", "":
                    self._screen.note("/open needs the id of a session; /sessions lists them")
                case "/help", "":
                    self._screen.note(HELP)
                case _, text:
                    told = self._next.say(word, text)
                    if told is not None:
                        self._screen.note(told)
                        return
                    await self._other(word, text, line)
        except Refused as refused:
            self._screen.refusal(refused.reply)
        except SaidNo as said:
            self._screen.refusal(said.no)
        except OSError as error:
            self._screen.note(f"{error.filename or word}: {error.strerror or error}")

    async def _other(self, word: str, text: str, line: str) -> None:
        at = (self._host, self._seat, self._screen)
        if await queue_command(word, text, self._seat, self._screen):
            return
        if await policy_command(word, text, *at):
            return
        if not await session_command(word, text, *at):
            self._screen.note(f"{line.strip()!r} is no command; /help lists them")

    def _hint(self) -> None:
        self._screen.note("\nCtrl-C again, or /quit, leaves")
        print_prompt()
        self._interrupts.first(self._interrupts.end)
