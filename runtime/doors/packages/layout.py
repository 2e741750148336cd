"""Where everything of the packages lies, and what a copy must have to count as one.

.tenure/plugins/<name>/             a package: its target
.tenure/plugins/.kept/<name>@<job>/ an earlier copy, for a rollback
.tenure/plugins/.stage/<job>/       a copy that is being written
.tenure/plugins/.trash/<job>/       what is proven superfluous and is being deleted
.tenure/plugins/.aside/<name>@<job>/ what stood in the way and is not understood; never deleted
.tenure/plugins/.journal.json       the open transaction
.tenure/plugins/.choices.json       what the user chose: enabled, allowed servers
.tenure/claims/plugins.lock         the claim that every change is made under
"""

import re

SEAL = ".tenure-package.json"
"""Written last into a stage: it lists the files with their digests."""
MANIFEST = "plugin.json"

_JOB = re.compile(r"[0-9a-f]{16}(?:-\d+)?")


class Layout:
    """The paths of one root's packages."""

    def __init__(self, root: str) -> None:
        self.home = f"{root.rstrip('/')}/.tenure/plugins"
        self.claim = f"{root.rstrip('/')}/.tenure/claims/plugins"
        self.stages = f"{self.home}/.stage"
        self.kept = f"{self.home}/.kept"
        self.trash = f"{self.home}/.trash"
        self.aside = f"{self.home}/.aside"
        self.holds = f"{self.home}/.holds"
        self.journal = f"{self.home}/.journal.json"
        self.choices = f"{self.home}/.choices.json"

    def target(self, name: str) -> str:
        return f"{self.home}/{name}"

    def stage(self, job: str) -> str:
        return f"{self.stages}/{job}"

    def backup(self, name: str, job: str) -> str:
        return f"{self.kept}/{name}@{job}"

    def own_folders(self) -> tuple[str, ...]:
        return (self.stages, self.kept, self.trash, self.aside, self.holds)


OWN_NAMES = frozenset(
    {".stage", ".kept", ".trash", ".aside", ".holds", ".journal.json", ".choices.json"}
)


def is_job(name: str) -> bool:
    """Whether we gave this name: only then is what bears it ours to delete."""
    return _JOB.fullmatch(name) is not None


def kept_name(folder_name: str) -> str:
    """The package of a kept copy; empty where the folder's name is none of ours."""
    name, at, job = folder_name.rpartition("@")
    return name if at and is_job(job) else ""
