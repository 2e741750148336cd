"""One request to a provider, streamed.  Imports pydantic-ai; see providers.py."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

import msgspec
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelResponse,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
)
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.models import ModelRequestParameters, StreamedResponse, infer_model
from pydantic_ai.providers import infer_provider, infer_provider_class

from tenure.messages.content import Cost, StopReason, Usage
from tenure.messages.models import (
    ModelCallError,
    ModelDone,
    ModelEvent,
    ModelRequest,
    ModelText,
    ModelThinking,
    ModelToolCall,
)
from tenure.runtime.doors import http
from tenure.runtime.doors.models.answer import failed
from tenure.runtime.doors.models.names import ModelName, NotAvailable
from tenure.runtime.doors.models.provider_failures import Unreadable, failure_of
from tenure.runtime.doors.models.provider_messages import library_messages, library_tools
from tenure.runtime.doors.models.provider_part import provider_part_of
from tenure.runtime.doors.models.providers import KEYS, OPTIONAL_KEYS

NO_KEY = "none"
"""The SDKs want some key also for a server that wants none."""

OLLAMA_URL = "http://127.0.0.1:11434/v1"

APIS = {
    "openai": "openai-responses",
    "anthropic": "anthropic-messages",
    "ollama": "openai-completions",
    "openai-compatible": "openai-completions",
}
"""How the session dialect calls the interface that was spoken."""

STOP_REASONS: dict[str, StopReason] = {"stop": "stop", "length": "length", "tool_call": "toolUse"}


class ProviderModel:
    """A provider's model behind our port."""

    def __init__(self, name: ModelName, environ: Mapping[str, str]) -> None:
        self._name = name
        self._environ = environ

    async def __call__(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        key = self._key()
        try:
            async with (
                self._library_model(key) as model,
                # A reader that leaves early closes the stream before its connection.
                aclosing(self._events(model, request)) as events,
            ):
                async for event in events:
                    yield event
        except ModelCallError:
            raise
        except Exception as error:
            # Without its cause: what the SDKs raise holds the request and its headers.
            raise ModelCallError(failure_of(error, self._name, key)) from None

    def _key(self) -> str:
        variable = KEYS.get(self._name.provider) or OPTIONAL_KEYS.get(self._name.provider, "")
        return self._environ.get(variable, "")

    @asynccontextmanager
    async def _library_model(self, key: str) -> AsyncIterator[LibraryModel]:
        name = self._name
        match name.provider:
            case "openai" | "openai-compatible" | "ollama":
                async with http.client() as client:
                    yield _openai_model(name, key, self._environ, client)
            case "anthropic":
                async with http.client() as client:
                    yield _anthropic_model(name, key, client)
            case _:
                provider = infer_provider(name.provider)
                async with provider:
                    if hasattr(provider.client, "max_retries"):
                        provider.client.max_retries = 0
                    yield infer_model(f"{name.provider}:{name.name}", lambda _: provider)

    async def _events(
        self, model: LibraryModel, request: ModelRequest
    ) -> AsyncGenerator[ModelEvent, None]:
        stream = model_request_stream(
            model,
            library_messages(request),
            model_settings=_settings(self._name, request),
            model_request_parameters=ModelRequestParameters(
                function_tools=library_tools(request.tools), allow_text_output=True
            ),
        )
        async with stream as response, aclosing(_readable(response)) as readable:
            async for event in readable:
                piece = _piece(event)
                if piece is not None:
                    yield piece
            whole = response.get()
        for part in whole.parts:
            # Only now are they whole: providers mix the pieces of parallel calls.
            if isinstance(part, ToolCallPart):
                given: Any = part.args or {}
                yield ModelToolCall(id=part.tool_call_id, name=part.tool_name, arguments=given)
        yield self._done(whole)

    def _done(self, whole: ModelResponse) -> ModelDone:
        reason = whole.finish_reason
        if reason == "content_filter":
            raise failed("refused", "the provider's content filter stopped the answer")
        if reason == "error":
            raise failed("overloaded", "the provider broke the answer off with an error")
        if whole.state in ("incomplete", "interrupted") or (
            reason is None and self._name.provider in APIS and whole.state != "suspended"
        ):
            raise failed("transport", "the answer broke off before its end")
        return ModelDone(
            stop_reason=STOP_REASONS.get(reason or "stop", "stop"),
            usage=_usage(whole, self._name),
            model=whole.model_name or self._name.name,
            provider=self._name.provider,
            api=APIS.get(self._name.provider, "pydantic-ai"),
            provider_part=provider_part_of(whole),
        )


async def _readable(response: StreamedResponse) -> AsyncGenerator[Any, None]:
    """The events of a stream, where a chunk of the wrong shape is the provider's fault."""
    try:
        async for event in response:
            yield event
    except (AttributeError, AssertionError, LookupError, TypeError, ValueError) as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from error


def check_other(name: ModelName, unknown: str) -> None:
    """Whether the library knows this provider, and has what it needs.

    Raises:
        NotAvailable: it does not, or a key or package is missing.
    """
    if name.base_url:
        raise NotAvailable(f"{name.provider} takes no base URL; use openai-compatible:NAME@URL")
    try:
        infer_provider_class(name.provider)
        infer_provider(name.provider)
    except ValueError:
        raise NotAvailable(unknown) from None
    except ImportError as error:
        raise NotAvailable(f"{name} needs an extra package: {error}") from None
    except UserError as error:
        # Its first sentence names the variable; the rest is about another library.
        raise NotAvailable(f"{name}: {str(error).partition('. ')[0]}", "auth") from None


def _openai_model(
    name: ModelName, key: str, environ: Mapping[str, str], client: Any
) -> LibraryModel:
    from openai import AsyncOpenAI  # type: ignore[import-not-found,unused-ignore]
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.ollama import OllamaProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    base_url = name.base_url or None
    if name.provider == "ollama":
        base_url = base_url or environ.get("OLLAMA_BASE_URL") or OLLAMA_URL
    sdk = AsyncOpenAI(api_key=key or NO_KEY, base_url=base_url, http_client=client, max_retries=0)
    # A stream that ends without saying why was cut, and half an answer is not an answer.
    profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    match name.provider:
        case "openai":
            return OpenAIResponsesModel(name.name, provider=OpenAIProvider(openai_client=sdk))
        case "ollama":
            provider = OllamaProvider(openai_client=sdk)
            return OllamaModel(name.name, provider=provider, profile=profile)
        case _:
            other = OpenAIProvider(openai_client=sdk)
            return OpenAIChatModel(name.name, provider=other, profile=profile)


def _anthropic_model(name: ModelName, key: str, client: Any) -> LibraryModel:
    from anthropic import AsyncAnthropic  # type: ignore[import-not-found,unused-ignore]
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    sdk = AsyncAnthropic(
        api_key=key, base_url=name.base_url or None, http_client=client, max_retries=0
    )
    return AnthropicModel(name.name, provider=AnthropicProvider(anthropic_client=sdk))


def _settings(name: ModelName, request: ModelRequest) -> Any:
    """How much it thinks, and what makes the prompt cache of a growing conversation work."""
    settings: dict[str, Any] = {}
    if request.thinking != "default":
        # The library takes the nearest level that the model has.
        settings["thinking"] = False if request.thinking == "off" else request.thinking
    if name.provider == "openai" and request.session_id:
        settings["openai_prompt_cache_key"] = request.session_id
    if name.provider == "anthropic":
        settings["cache"] = True
    return settings


def _piece(event: Any) -> ModelEvent | None:
    match event:
        case PartStartEvent(part=TextPart(content=text)) if text:
            return ModelText(text=text)
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
            return ModelText(text=text)
        case PartStartEvent(part=ThinkingPart(content=text)) if text:
            return ModelThinking(text=text)
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text)) if text:
            return ModelThinking(text=text)
        case PartEndEvent(part=ThinkingPart(signature=signature)) if signature:
            return ModelThinking(text="", signature=signature)
    return None


def _usage(whole: ModelResponse, name: ModelName) -> Usage:
    """Tokens, with those from the cache beside the others and not among them; cost if known."""
    said = whole.usage
    usage = Usage(
        input=max(said.input_tokens - said.cache_read_tokens - said.cache_write_tokens, 0),
        output=said.output_tokens,
        cache_read=said.cache_read_tokens,
        cache_write=said.cache_write_tokens,
        total_tokens=said.input_tokens + said.output_tokens,
    )
    # A name says nothing of the price at a place of one's own.
    if name.provider in OPTIONAL_KEYS or name.base_url or not usage.total_tokens:
        return usage
    try:
        price = whole.cost()
    except (LookupError, ValueError, AssertionError):
        return usage
    cost = Cost(
        input=float(price.input_price),
        output=float(price.output_price),
        total=float(price.total_price),
    )
    return msgspec.structs.replace(usage, cost=cost, priced=True)
