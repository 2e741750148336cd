"""What budgets do at the borders of a turn: at its start, and when its time is up."""

from tenure.actors.turn_budget import out_of_time, overrun_of, refusal_of
from tenure.actors.turn_end import ended_of, never_began
from tenure.actors.turn_start import save_prompt
from tenure.actors.turn_state import Busy, Preparing, Run, State, Stopped, Stopping
from tenure.actors.turn_stop import stop
from tenure.messages.turn_effects import TurnPrepared
from tenure.runtime.step import AskId, Step, Taken


def on_prepared(run: Run, asker: AskId | None, prepared: TurnPrepared, taken: Taken) -> Step[State]:
    """Begin, unless the session's budget is used up: then nothing is written."""
    ready = Run(
        prompt=run.prompt,
        ledger=run.ledger,
        queue=run.queue,
        rules=prepared.rules,
        began_ms=taken.now_ms,
    )
    overrun = overrun_of(ready, taken.now_ms)
    if overrun is not None:  # guard: TURN-12
        ended = ended_of(run, Stopped("budget", overrun.why), "")
        return never_began(run, asker, refusal_of(run, overrun), ended, ())
    return save_prompt(run, asker, prepared, taken)


def on_time_up(state: Busy, taken: Taken) -> Step[State]:
    """The time of the turn is used up."""
    if isinstance(state, Stopping | Preparing):
        return Step(state)
    return stop(state, "budget", None, taken, why=out_of_time(state.run, taken.now_ms).why)


def on_time_not_kept(state: Busy, reason: str, taken: Taken) -> Step[State]:
    """A bound that nobody keeps is none: the turn does not go on without it."""
    if isinstance(state, Stopping | Preparing):
        return Step(state)
    why = f"its time could not be kept ({reason}); prompt again"
    return stop(state, "budget", None, taken, why=why)
