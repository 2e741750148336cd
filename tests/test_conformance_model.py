"""The conformance kit of models: ours pass, and broken ones fail with their reasons."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from importlib.util import find_spec

import pytest
from provider_world import KEYS, Server, running_server

from tenure.messages.content import UserMessage
from tenure.messages.models import (
    Model,
    ModelDone,
    ModelEvent,
    ModelFailure,
    ModelRequest,
    ModelText,
    ModelToolCall,
)
from tenure.runtime.doors.models.librarian.model import librarian
from tenure.runtime.doors.models.names import parsed
from tenure.runtime.doors.models.scripted import Scripted
from tenure.runtime.testing import conformance
from tenure.runtime.testing.conformance import Check, ModelUnderTest
from tenure.runtime.testing.faulty_model import (
    Duplicate,
    Faulty,
    Forget,
    IgnoreCancel,
    ModelFault,
    SpeakAfterCancel,
    Stall,
)
from tenure.runtime.testing.recorded_model import Cassette, recorded, recording

REQUEST = ModelRequest(model="m", system="Be brief.", messages=(UserMessage(content="help"),))
CALL = ModelToolCall(id="c1", name="read", arguments={"path": "a.md"})


def silent() -> Model:
    return Faulty(Scripted(["never"]), [Stall()])


def refusing() -> Model:
    return Scripted([[ModelFailure(kind="auth", reason="the key is wrong")]])


def scripted() -> Model:
    return Scripted([["One, ", CALL], "two.", "three."])


def played() -> Model:
    """A cassette of the librarian, for every request that the kit makes."""
    cassette = Cassette()
    report = conformance.model(lambda: under_test(recording(librarian, cassette)))
    assert report.ok, str(report)
    return recorded(cassette)


def under_test(model: Model) -> ModelUnderTest:
    return ModelUnderTest(model=model, stalled=silent(), failing=refusing(), request=REQUEST)


@pytest.mark.parametrize("check", conformance.MODEL)
@pytest.mark.parametrize(
    "make", [lambda: librarian, scripted, played], ids=["librarian", "scripted", "recorded"]
)
def test_our_models_keep_the_contract(
    make: Callable[[], Model], check: Check[ModelUnderTest]
) -> None:
    check(under_test(make()))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as started:
        yield started


@pytest.mark.real
@pytest.mark.skipif(find_spec("pydantic_ai") is None, reason="needs the extra tenure[models]")
@pytest.mark.parametrize(
    ("interface", "well", "stalled", "failing"),
    [
        ("chat", "well", "stall", "down"),
        ("anthropic", "thinker", "stall-claude", "overloaded"),
    ],
)
def test_the_models_of_providers_keep_the_contract(
    server: Server, interface: str, well: str, stalled: str, failing: str
) -> None:
    from tenure.runtime.doors.models.provider_calls import ProviderModel

    def model(named: str) -> Model:
        text: str = getattr(server, interface)(named)
        return ProviderModel(parsed(text), KEYS)

    def make() -> ModelUnderTest:
        return ModelUnderTest(
            model=model(well), stalled=model(stalled), failing=model(failing), request=REQUEST
        )

    report = conformance.model(make)
    assert report.ok, str(report)


# --- broken ones -------------------------------------------------------------------------------


def faulty(fault: ModelFault) -> Model:
    return Faulty(Scripted([["One, ", "two."]] * 3), [fault] * 3)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Forget(), "events ModelDone in the answer: got 0, expected 1"),
        (Duplicate(index=-1), "events ModelDone in the answer: got 2, expected 1"),
    ],
    ids=["no-end", "two-ends"],
)
def test_an_answer_without_its_one_end_is_told(fault: ModelFault, reason: str) -> None:
    report = conformance.model(lambda: under_test(faulty(fault)))
    failed = {failure.name: failure.reason for failure in report.failures}
    assert failed["an answer ends with exactly one done and nothing after it"] == reason


async def twice(request: ModelRequest) -> AsyncIterator[ModelEvent]:
    yield CALL
    yield CALL
    yield ModelDone(stop_reason="toolUse")


async def encoding(request: ModelRequest) -> AsyncIterator[ModelEvent]:
    """Sends the prompt as UTF-8 without a thought."""
    for message in request.messages:
        str(message.content).encode()
    for message in request.messages:
        if isinstance(message, UserMessage) and isinstance(message.content, str):
            message.content.encode()
    yield ModelText(text="ok")
    yield ModelDone()


async def text_only(request: ModelRequest) -> AsyncIterator[ModelEvent]:
    """Takes every message for one of the user."""
    yield ModelText(text="".join(str(message.content.upper()) for message in request.messages))  # type: ignore[union-attr]
    yield ModelDone()


@pytest.mark.parametrize(
    ("model", "name", "reason"),
    [
        (
            twice,
            "tool calls are whole and have names of their own",
            "different ids of tool calls: got 1, expected 2",
        ),
        (
            encoding,
            "a lone surrogate in the prompt is no crash",
            "raised UnicodeEncodeError",
        ),
        (
            text_only,
            "a conversation with tools thinking and errors is taken",
            "raised AttributeError",
        ),
    ],
)
def test_a_broken_model_is_told_where_and_why(model: Model, name: str, reason: str) -> None:
    report = conformance.model(lambda: under_test(model))
    failed = {failure.name: failure.reason for failure in report.failures}
    assert failed[name].startswith(reason)


class Bare:
    """Fails with an exception of its own."""

    def __call__(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        raise ConnectionError("refused")


@pytest.mark.parametrize(
    ("stalled", "failing", "name", "reason"),
    [
        (
            Faulty(Scripted(["never"]), [IgnoreCancel()]),
            refusing(),
            "a cancel ends a stalled call at once",
            "a cancelled call still runs after 2 s",
        ),
        (
            Faulty(Scripted(["never"]), [SpeakAfterCancel()]),
            refusing(),
            "a cancel ends a stalled call at once",
            "events after the cancel: got ",
        ),
        (
            silent(),
            Bare(),
            "a failure is typed and says why",
            "raised ConnectionError: refused; raise ModelCallError with the failure",
        ),
        (
            scripted(),
            scripted(),
            "a failure is typed and says why",
            "the failing model gave a whole answer",
        ),
    ],
    ids=["deaf", "late", "untyped", "no-failure"],
)
def test_a_model_that_does_not_stop_or_fail_as_it_should_is_told(
    stalled: Model, failing: Model, name: str, reason: str
) -> None:
    subject = ModelUnderTest(model=scripted(), stalled=stalled, failing=failing, request=REQUEST)
    (check,) = [each for each in conformance.MODEL if each.__name__.replace("_", " ") == name]
    with pytest.raises(conformance.NotConforming) as raised:
        check(subject)
    assert str(raised.value).startswith(reason)


def test_a_model_that_is_no_stalled_one_is_told_apart() -> None:
    async def answers(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        await asyncio.sleep(0)
        yield ModelDone()

    subject = ModelUnderTest(model=answers, stalled=answers, failing=refusing(), request=REQUEST)
    report = conformance.model(lambda: subject)
    failed = {failure.name: failure.reason for failure in report.failures}
    assert failed["an answer says something"] == "the answer has neither text nor a tool call"
    assert (
        "must be one whose provider never answers"
        in (failed["a cancel ends a stalled call at once"])
    )
