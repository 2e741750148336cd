"""`tenure questions` and `tenure answer`: what tools of running hosts want to know."""

from typing import Literal

import click

from tenure.runtime.cli.options import json_option, root_option, workspace


@click.command("questions")
@root_option
@json_option
def questions(root: str | None, as_json: bool) -> None:
    """List the questions of tools that wait for an answer: id, seat, question.

    With --json one object a question.
    """
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.replying import list_questions

    form: Literal["json", "text"] = "json" if as_json else "text"
    launch(lambda interrupts: list_questions(workspace(root), form))


@click.command("answer")
@click.argument("request", metavar="QUESTION")
@click.argument("text", required=False)
@click.option("--decline", is_flag=True, help="Do not answer; the tool is told so.")
@root_option
@json_option
def answer(request: str, text: str | None, decline: bool, root: str | None, as_json: bool) -> None:
    """Answer a question with TEXT; an option's number takes that option.

    QUESTION is its id, or the first characters of it.  A form is answered with one
    JSON object.  An answer counts once: where another was faster, it is refused
    (exit code 3).
    """
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.questioning import DECLINE
    from tenure.runtime.cli.replying import answer_question

    if decline == (text is not None):
        raise click.UsageError("give TEXT, or --decline, and not both")
    said = DECLINE if text is None else text
    form: Literal["json", "text"] = "json" if as_json else "text"
    launch(lambda interrupts: answer_question(workspace(root), request, said, form))
