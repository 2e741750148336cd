"""Which lines of a transcript belong to the path of an entry: for a fork, and for a vacuum."""

import msgspec

from tenure.messages.entries import EntryBody, LabelEntry, SessionInfoEntry
from tenure.messages.session_ops import Position
from tenure.messages.tokens import EntryId
from tenure.runtime.doors.transcripts.scan import Scan, loose_fields
from tenure.runtime.doors.transcripts.tree import ROOT, Tree


class Branch(msgspec.Struct, frozen=True):
    """The path of one entry, and what was said of it elsewhere in the file."""

    places: tuple[int, ...]
    """From a root to the entry."""
    behind: tuple[EntryBody, ...]
    """Labels and a name that hold for the path and stand on another branch."""


def target_place(tree: Tree, entry_id: str | None, position: Position) -> int | None:
    """The place of the last entry that stays; None where there is no such entry.

    Args:
        entry_id: None stands for the leaf.
    """
    place = tree.leaf_place if entry_id is None else tree.place_of(entry_id)
    if place is None or place == ROOT or position == "at":
        return place
    return tree.parent_place(place)


def branch_of(tree: Tree, last_place: int) -> Branch:
    """The path to a place, with the labels of its entries and the session's name."""
    places = tree.path(to=last_place)
    on_path, said = set(places), labels_of(tree, places)
    behind: list[EntryBody] = [
        _label(target, label)
        for target, label in labels_of(tree).items()
        if tree.place_of(target) in on_path and said.get(target, "") != label
    ]
    name = name_of(tree)
    if name != name_of(tree, places):
        behind.append(SessionInfoEntry(name=name))
    return Branch(tuple(places), tuple(behind))


def labels_of(tree: Tree, places: list[int] | None = None) -> dict[str, str]:
    """The last label of each entry that ever had one, in file order; empty where it was cleared."""
    labels: dict[str, str] = {}
    for place in range(len(tree.heads)) if places is None else places:
        if tree.heads[place].type == "label":
            fields = loose_fields(tree.lines[place]) or {}
            target, label = fields.get("targetId"), fields.get("label")
            if isinstance(target, str):
                labels[target] = label if isinstance(label, str) else ""
    return labels


def name_of(tree: Tree, places: list[int] | None = None) -> str:
    """The last name in file order; an empty one clears it."""
    for place in reversed(range(len(tree.heads)) if places is None else places):
        if tree.heads[place].type == "session_info":
            name = (loose_fields(tree.lines[place]) or {}).get("name")
            return " ".join(name.split()) if isinstance(name, str) else ""
    return ""


def lines_to_keep(found: Scan, branch: Branch) -> list[bytes]:
    """The lines of a file without other branches, copies and blank lines.

    A line that cannot be read, or whose sum does not fit, stays where it is:
    nobody knows what it is good for.
    """
    kept = {found.line_numbers[place] for place in branch.places}
    served = set(found.line_numbers)
    return [
        line
        for number, line in enumerate(found.old_lines, start=1)
        if number == 1 or number in kept or (number in found.marks and number not in served)
    ]


def _label(target: str, label: str) -> LabelEntry:
    target_id = EntryId(target)
    return (
        LabelEntry(target_id=target_id, label=label) if label else LabelEntry(target_id=target_id)
    )
