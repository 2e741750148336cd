"""What goes wrong with a provider, told by its kind, against a server of our own."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from provider_world import SECRET, Server, failure, running_server

pytestmark = [
    pytest.mark.skipif(find_spec("pydantic_ai") is None, reason="needs the extra tenure[models]"),
    pytest.mark.real,
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as running:
        yield running


@pytest.mark.parametrize(
    ("model", "kind", "retry_after_ms"),
    [
        ("unauthorized", "auth", 0),
        ("forbidden", "auth", 0),
        ("limited", "rate_limit", 7_000),
        ("no-credit", "invalid", 0),
        ("overloaded", "overloaded", 0),
        ("down", "overloaded", 2_000),
        ("broken", "overloaded", 0),
        ("too-long", "context_exceeded", 0),
        ("too-long-local", "context_exceeded", 0),
        ("wrong", "invalid", 0),
        ("policy", "refused", 0),
        ("filtered", "refused", 0),
        ("cut", "transport", 0),
        ("cut-clean", "transport", 0),
        ("malformed", "transport", 0),
        ("misshaped", "transport", 0),
        ("breaks", "overloaded", 0),
        ("no-such-model", "invalid", 0),
    ],
)
def test_a_failure_has_a_kind(server: Server, model: str, kind: str, retry_after_ms: int) -> None:
    outcome = failure(server.chat(model))
    assert outcome.failure.kind == kind, outcome
    assert outcome.failure.retry_after_ms == retry_after_ms
    assert outcome.failure.reason
    # A reset ("cut") may overtake what the server had sent, so it promises no part.
    if model in ("cut-clean", "malformed", "misshaped", "breaks", "filtered"):
        assert outcome.partial


def test_no_key_passes_into_an_error(server: Server) -> None:
    assert "[key]" in failure(server.chat("wrong")).failure.reason
    assert "OPENAI_COMPATIBLE_API_KEY" in failure(server.chat("unauthorized")).failure.reason
    from tenure.runtime.doors.models.provider_failures import scrubbed

    said = scrubbed(f"bad {SECRET}, Bearer abc.def, http://me:pw@host/x, sk-ab***yz", SECRET)
    assert said == "bad [key], [key] http://[key]host/x, [key]"


def test_a_date_says_when_to_try_again(server: Server) -> None:
    outcome = failure(server.chat("limited-until"))
    assert outcome.failure.kind == "rate_limit"
    assert 30_000 < outcome.failure.retry_after_ms <= 61_000


def test_a_request_is_made_once_and_never_repeated_by_the_sdk(server: Server) -> None:
    for model in ("overloaded", "limited", "broken", "cut"):
        before = len(server.get("/seen"))
        failure(server.chat(model))
        assert len(server.get("/seen")) == before + 1


def test_nobody_listening_is_a_transport_failure() -> None:
    import socket

    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    outcome = failure(f"openai-compatible:x@http://127.0.0.1:{port}/v1")
    assert outcome.failure.kind == "transport"
    assert f"127.0.0.1:{port}" in outcome.failure.reason


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("unauthorized", "auth"),
        ("limited", "rate_limit"),
        ("overloaded", "overloaded"),
        ("breaks", "overloaded"),
        ("too-long", "context_exceeded"),
        ("cut-clean", "transport"),
        ("refusing", "refused"),
    ],
)
def test_the_anthropic_interfaces_failures_have_a_kind(
    server: Server, model: str, kind: str
) -> None:
    assert failure(server.anthropic(model)).failure.kind == kind


def test_the_responses_interface_tells_a_cut_stream(server: Server) -> None:
    assert failure(server.responses("cut-clean")).failure.kind == "transport"
