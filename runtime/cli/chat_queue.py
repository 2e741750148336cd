"""What one types in a chat about what waits, and to a turn that runs."""

from tenure.messages.queue import RedirectTurn
from tenure.messages.turn import TurnAccepted, TurnQueued
from tenure.runtime.cli.queueing import item_of, show_items, shown
from tenure.runtime.cli.screen import Screen
from tenure.runtime.errors import Refused
from tenure.runtime.seat import Seat, refused

HELP = """\
/queue        list the prompts that wait; /queue edit N TEXT, /queue mv N POSITION
              and /queue rm N change them, /queue TEXT adds one
/release      start the prompts that are held
/resume       go on with a turn that was interrupted
While a turn runs
  /steer TEXT     say it to the turn, behind its next step
  /followup TEXT  say it once the turn would stop
  /redirect TEXT  stop the turn and go on with this
  any other line  is read when the turn has ended"""

LIVE = ("/steer", "/followup", "/redirect", "/queue")
"""These are done at once while a turn runs."""


async def queue_command(word: str, rest: str, seat: Seat, screen: Screen) -> bool:
    """Do it; whether it was one of these commands.

    Raises:
        Refused: it was, and cannot be done.
    """
    match word:
        case "/queue":
            await _queue(rest, seat, screen)
        case "/steer" | "/followup" | "/redirect" if not rest:
            screen.note(f"{word} needs the text that is to be said")
        case "/redirect":
            await _redirect(rest, seat)
        case "/steer":
            shown(await seat.steer(rest), screen)
        case "/followup":
            shown(await seat.follow_up(rest), screen)
        case _:
            return False
    return True


async def live_command(line: str, seat: Seat, screen: Screen) -> None:
    """The same while a turn runs; what is refused is said."""
    word, _, rest = line.strip().partition(" ")
    try:
        await queue_command(word, rest.strip(), seat, screen)
    except Refused as refused:
        screen.refusal(refused.reply)


async def _redirect(text: str, seat: Seat) -> None:
    """Whoever follows the seat shows the new turn."""
    reply = await seat.ask(RedirectTurn(text=text))
    if not isinstance(reply, TurnQueued | TurnAccepted):
        raise refused(reply)


async def _queue(rest: str, seat: Seat, screen: Screen) -> None:
    word, _, behind = rest.partition(" ")
    number, _, text = behind.strip().partition(" ")
    match word:
        case "":
            show_items(await seat.queue.ls(), screen)
        case "edit" if number and text:
            item_id = await item_of(seat.queue, number)
            screen.note(f"now: {(await seat.queue.edit(item_id, text)).text}")
        case "mv" if number and text.isdecimal():
            await seat.queue.move(await item_of(seat.queue, number), int(text))
            show_items(await seat.queue.ls(), screen)
        case "rm" if number:
            gone = await seat.queue.cancel(await item_of(seat.queue, number))
            screen.note(f"taken out: {gone.text}")
        case _:
            reply: TurnQueued | TurnAccepted = await seat.queue.add(rest)
            shown(reply, screen)
