"""Questions of tools on the command line: how they are shown, and what a typed line means."""

import json

from tenure.messages.questions import Answer, Declined, Question, Said
from tenure.runtime.cli.screen import print_note

DECLINE = "/decline"


def show_question(question: Question) -> None:
    """The question, its options by number, and how to answer."""
    who = f"{question.source} asks: " if question.source else ""
    print_note(f"{who}{question.text}", bold=True)
    for number, option in enumerate(question.options, start=1):
        print_note(f"  {number}  {option}")
    if question.form:
        fields = question.form.get("properties", {})
        for name, about in fields.items() if isinstance(fields, dict) else ():
            said = about.get("description", "") if isinstance(about, dict) else ""
            print_note(f"  {name}: {said or about}")
        print_note(f"Answer with one line of JSON, or {DECLINE}.")
    else:
        choice = "a number, " if question.options else ""
        print_note(f"Answer with {choice}a line of text, or {DECLINE}.")


def answer_of(line: str, question: Question) -> Answer | str:
    """The answer that a person typed; a sentence where it is none."""
    text = line.strip()
    if text == DECLINE:
        return Declined(reason="the user declined to answer")
    if question.form:
        try:
            fields = json.loads(text)
        except ValueError as wrong:
            return f"this is no JSON: {wrong}"
        return Said(fields=fields) if isinstance(fields, dict) else "this is no JSON object"
    if not text:
        return "the answer is empty"
    if text.isascii() and text.isdigit() and 1 <= int(text) <= len(question.options):
        return Said(text=question.options[int(text) - 1])
    return Said(text=text)
