"""Embedding models behind an HTTP endpoint: the OpenAI form, and Ollama's own."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tenure.messages.index_work import IndexModel
from tenure.runtime.doors.search.embedders import EmbeddingFailed
from tenure.runtime.doors.web import Web

READ_S_MAX = 120.0
ANSWER_BYTES_MAX = 268_435_456
BATCH_TEXTS = 64
OPENAI_URL = "https://api.openai.com/v1"
OLLAMA_URL = "http://127.0.0.1:11434"
_HERE = ("localhost", "127.0.0.1", "::1")


class _Item(msgspec.Struct):
    embedding: list[float]
    index: int


class _OpenAiAnswer(msgspec.Struct):
    data: list[_Item]


class _OllamaAnswer(msgspec.Struct):
    embeddings: list[list[float]]


class HttpEmbedder:
    """What both endpoints share: one POST, its errors, who would see the notes."""

    batch_max = BATCH_TEXTS

    def __init__(self, web: Web, model_id: str, name: str, url: str, key: str = "") -> None:
        self._web = web
        self.model = IndexModel(id=model_id, dimensions=0)
        self._name = name
        self._url = url
        self._key = key
        host = urlsplit(url).hostname or ""
        self.remote = "" if host in _HERE else host

    async def _post(self, texts: Sequence[str]) -> bytes:
        from tenure.runtime.doors.http import httpx

        headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        body = {"model": self._name, "input": list(texts)}
        try:
            async with self._web.client(read_s_max=READ_S_MAX) as http:
                answer = await http.post(self._url, json=body, headers=headers)
        except httpx.HTTPError as failed:
            why = str(failed) or type(failed).__name__
            raise EmbeddingFailed(f"{self._url} does not answer: {why}") from None
        except httpx.InvalidURL as wrong:
            raise EmbeddingFailed(f"{self._url} is no address: {wrong}") from None
        data = answer.content
        if answer.status_code != 200:
            raise EmbeddingFailed(f"{self._url} answered {answer.status_code}: {_said(data)}")
        if len(data) > ANSWER_BYTES_MAX:
            raise EmbeddingFailed(f"{self._url} answered more than {ANSWER_BYTES_MAX:,} bytes")
        return data

    def _decoded(self, data: bytes, form: Any) -> Any:
        try:
            return msgspec.json.decode(data, type=form)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
            raise EmbeddingFailed(f"{self._url} answered no embeddings: {wrong}") from None


class OpenAiEmbedder(HttpEmbedder):
    """`POST <base>/embeddings`."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        items = self._decoded(await self._post(texts), _OpenAiAnswer).data
        # Rows may come in any order; each must come once.
        if sorted(item.index for item in items) != list(range(len(texts))):
            raise EmbeddingFailed(f"{self._url} gave {len(items)} vectors for {len(texts)} texts")
        return [item.embedding for item in sorted(items, key=lambda item: item.index)]


class OllamaEmbedder(HttpEmbedder):
    """`POST <base>/api/embed`."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        answer: _OllamaAnswer = self._decoded(await self._post(texts), _OllamaAnswer)
        return answer.embeddings


def _said(data: bytes) -> str:
    return data[:300].decode("utf-8", "replace").strip() or "nothing"
