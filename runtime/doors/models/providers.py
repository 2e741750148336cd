"""Models of providers, by way of pydantic-ai, which is imported when one is first used.

We write no wire format: pydantic-ai's direct request interface stands behind our
port.  The SDKs' own retries are off, so that the retries of a turn are the only
ones and can be seen.  Each call has an HTTP client of its own: no connection is
shared between turns or event loops, and a cancel closes it.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from types import ModuleType

from tenure.messages.models import Model
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.models.names import ModelName, NotAvailable

INSTALL = 'pip install "tenure[models]"'

KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""The environment variable without which a provider cannot be called."""

OPTIONAL_KEYS = {"ollama": "OLLAMA_API_KEY", "openai-compatible": "OPENAI_COMPATIBLE_API_KEY"}
"""Sent where it is set.  A server of one's own gets its own key, never that of OpenAI."""

OURS = frozenset({*KEYS, *OPTIONAL_KEYS})

SDKS = {"anthropic": "anthropic"}
"""What the library needs besides itself; `openai` for all others of ours."""


async def find(
    name: ModelName, leaves: Leaves, environ: Mapping[str, str], *, unknown: str
) -> Model:
    """The model, with everything checked that can be checked without a request.

    Args:
        unknown: the sentence for a provider that nobody knows.

    Raises:
        NotAvailable: the extra, the key or the URL is missing, or nobody knows the name.
    """
    ours = name.provider in OURS
    sdk = SDKS.get(name.provider, "openai") if ours else "pydantic_ai"
    if find_spec("pydantic_ai") is None or find_spec(sdk) is None:
        if ours:
            raise NotAvailable(f"{name} needs an extra package: {INSTALL}")
        raise NotAvailable(f"{unknown}. Other providers need an extra package: {INSTALL}")
    _check(name, environ)
    # The import takes a second or two, so the loop is not held up by it.
    provider_calls = await leaves.workers.run(_import)
    if not ours:
        await leaves.workers.run(provider_calls.check_other, name, unknown)
    model: Model = provider_calls.ProviderModel(name, environ)
    return model


def _check(name: ModelName, environ: Mapping[str, str]) -> None:
    key = KEYS.get(name.provider)
    if key and not environ.get(key):
        raise NotAvailable(f"{name} needs a key: set the environment variable {key}", "auth")
    if name.provider == "openai-compatible" and not name.base_url:
        raise NotAvailable(
            f"{name} needs to know where it is served: give --base-url, "
            f"set base_url in the settings, or write {name}@http://HOST:PORT/v1"
        )


def _import() -> ModuleType:
    try:
        from tenure.runtime.doors.http import ssl_context
        from tenure.runtime.doors.models import provider_calls
    except ImportError as error:
        raise NotAvailable(
            f"the packages of the models extra do not fit together ({error}): {INSTALL}"
        ) from error
    ssl_context()
    return provider_calls
