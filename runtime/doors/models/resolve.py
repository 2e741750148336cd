"""From a model string to the model, or to a sentence that says why not."""

from collections.abc import Mapping

from tenure.messages.models import Model
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.models.names import KNOWN, LIBRARIAN, ModelName, NotAvailable

BARE = frozenset({LIBRARIAN})
"""Names that stand alone, without a colon."""


async def resolve(
    name: ModelName, leaves: Leaves, environ: Mapping[str, str], *, also_known: tuple[str, ...] = ()
) -> Model:
    """Find the model.

    Args:
        name: what to find.
        leaves: the world of the models that need files or time.
        environ: where keys are looked for.
        also_known: names to list besides the usual ones.

    Raises:
        NotAvailable: unknown, or its file, package, key or URL is missing.
    """
    if name.provider == LIBRARIAN and not name.name:
        from tenure.runtime.doors.models.librarian import librarian

        return librarian
    if not name.name or name.provider in BARE:
        raise NotAvailable(_unknown(name, also_known))
    if name.provider == "scripted":
        from tenure.runtime.doors.models.scripted import load

        return await load(name.name, leaves)

    from tenure.runtime.doors.models.providers import find

    return await find(name, leaves, environ, unknown=_unknown(name, also_known))


def _unknown(name: ModelName, also_known: tuple[str, ...]) -> str:
    known = ", ".join((*KNOWN, *also_known))
    if not name.name and name.provider not in BARE:
        return f"{str(name)!r} is no model: a model is named PROVIDER:NAME. Known are {known}"
    return f"{str(name)!r} is no model that is known here. Known are {known}"
