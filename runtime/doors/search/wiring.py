"""The doors of the index of one root: its writer and its readers."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from tenure.messages.index_work import IndexModel
from tenure.messages.settings import IndexRules
from tenure.runtime.doors.claims import Claims
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.search.choosing import Choose, choose_embedder
from tenure.runtime.doors.search.door import Indexing
from tenure.runtime.doors.search.embedders import Embedder, EmbedderMissing
from tenure.runtime.doors.search.finding import Searching
from tenure.runtime.doors.search.leases import ClaimLeases, Leases
from tenure.runtime.doors.settings_file import SettingsFile


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexWishes:
    """What an embedder may choose for the index; see `Host.open`."""

    leases: Leases | None = None
    """A lease store of another kind, e.g. one with a time to live that several machines share."""
    choose: Choose | None = None
    """Your own embedders: `(model string, base URL) -> embedder`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDoors:
    """The one writer, and the readers."""

    writer: Indexing
    readers: Searching


def open_index(
    leaves: Leaves,
    root: str,
    claims: Claims,
    settings: SettingsFile,
    wishes: IndexWishes,
    environ: Mapping[str, str] = os.environ,
) -> IndexDoors:
    """The doors, with the model that the settings name whenever a run begins."""
    choose = wishes.choose or choose_embedder(
        leaves.workers, leaves.web, lambda name: environ.get(name, "").strip()
    )

    async def rules() -> IndexRules:
        try:
            return (await settings.now()).index
        except OSError as refused:
            why = refused.strerror or str(refused)
            raise EmbedderMissing(f"the settings cannot be read: {why}") from None

    async def chosen() -> Embedder:
        found = await rules()
        return choose(found.model, found.base_url)

    async def for_model(model: IndexModel) -> Embedder:
        found = await rules()
        return choose(model.id, found.base_url if found.model == model.id else "")

    leases = wishes.leases or ClaimLeases(leaves, claims)
    return IndexDoors(
        writer=Indexing(leaves, root, leases, chosen),
        readers=Searching(leaves, root, for_model),
    )
