"""The title of an unnamed session: short, on one line, without what was put before the prompt."""

import pytest
from ops_world import closed_session
from transcript_world import ROOT, Machine

from tenure.runtime.doors.transcripts import export_session, list_sessions, read_session
from tenure.runtime.doors.transcripts.titles import CHARS_MAX, auto_title
from tenure.runtime.testing.leaves import memory_leaves

CASES = {
    "short prompt": ("fix the build", "Fix the build"),
    "whitespace": ("  fix\n\t the   build ", "Fix the build"),
    "eight words": (
        "one two three four five six seven eight nine",
        "One two three four five six seven eight",
    ),
    "context before it": ("<context>\na note\n</context>\n\nsum it up", "Sum it up"),
    "skill before it": ("/skill review the last change", "Review the last change"),
    "template before it": ("/template letter to the bank", "Letter to the bank"),
    "closing punctuation": ("what did we decide?!", "What did we decide"),
    "empty": ("", ""),
    "only context": ("<context>x</context>", ""),
    "other scripts": ("привет мир.", "Привет мир"),
}


@pytest.mark.parametrize(("prompt", "title"), CASES.values(), ids=list(CASES))
def test_title_is_the_beginning_of_the_prompt(prompt: str, title: str) -> None:
    assert auto_title(prompt) == title


def test_title_is_cut_between_words_and_says_so() -> None:
    title = auto_title("incomprehensibilities " * 8)
    assert title == "Incomprehensibilities incomprehensibilities…"
    assert len(auto_title("x" * 500)) <= CHARS_MAX


def test_name_goes_before_the_title_and_is_never_replaced_by_it() -> None:
    machine = Machine()
    _, unnamed = closed_session(machine, "what did we decide about pricing?", "nothing")
    _, named = closed_session(machine, "what else?", "more", name="Pricing")
    reader = memory_leaves(machine.disk)
    titles = [
        export_session(read_session(reader, path), "markdown", 0).file_name.partition(" 1970")[0]
        for path in (unnamed, named)
    ]
    assert titles == ["What did we decide about pricing", "Pricing"]
    assert {row.name for row in list_sessions(reader, ROOT)} == {"", "Pricing"}


def test_context_before_the_first_prompt_does_not_hide_it_in_a_list() -> None:
    machine = Machine()
    closed_session(machine, "<context>" + "note " * 200 + "</context> where is the heron?")
    (row,) = list_sessions(memory_leaves(machine.disk), ROOT)
    assert row.first_text == "where is the heron?"
