"""What the user chose about packages: one small file under the packages' own claim.

It lies beside the packages, not in the settings file: it must change together with
them, and a prune must see both under one claim (INSTALL-5).

These functions block: they run in a worker.
"""

from typing import Literal

import msgspec

from tenure.runtime.doors.claims import replace_durably
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.packages.disk import is_there, read_file
from tenure.runtime.doors.packages.layout import Layout

CHOICES_BYTES_MAX = 4 * 1_048_576

Switch = Literal["enabled", "disabled"]


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    switch: Switch = "enabled"
    source: str = ""


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    format: Literal[1] = 1
    packages: dict[str, Choice] = {}
    allowed: dict[str, str] = {}
    """Allowed servers by id, with the package that each is of."""

    def is_enabled(self, name: str) -> bool:
        """A package that nobody spoke about is enabled."""
        return self.packages.get(name, Choice()).switch == "enabled"

    def with_package(self, name: str, choice: Choice) -> "Choices":
        return msgspec.structs.replace(self, packages={**self.packages, name: choice})

    def with_allowed(self, server_id: str, name: str) -> "Choices":
        return msgspec.structs.replace(self, allowed={**self.allowed, server_id: name})

    def without_allowed(self, server_id: str) -> "Choices":
        left = {each: name for each, name in self.allowed.items() if each != server_id}
        return msgspec.structs.replace(self, allowed=left)

    def only(self, names: frozenset[str]) -> "Choices":
        """Without what was chosen about packages that are gone."""
        packages = {name: each for name, each in self.packages.items() if name in names}
        allowed = {each: name for each, name in self.allowed.items() if name in names}
        return Choices(packages=packages, allowed=allowed)


class DamagedChoices(msgspec.Struct, frozen=True):
    """There is a file, and it cannot be read: nothing is allowed until it is set right."""


def read_choices(files: Files, layout: Layout) -> Choices | DamagedChoices:
    data = read_file(files, layout.choices, CHOICES_BYTES_MAX)
    if data is None:
        return DamagedChoices() if is_there(files, layout.choices) else Choices()
    try:
        return msgspec.json.decode(data, type=Choices)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return DamagedChoices()


def write_choices(files: Files, layout: Layout, choices: Choices) -> None:
    replace_durably(
        files, layout.choices, msgspec.json.format(msgspec.json.encode(choices)) + b"\n"
    )
