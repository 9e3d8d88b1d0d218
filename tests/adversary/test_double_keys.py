"""An object that has a key twice says two things: whoever checks the one must not have the other believed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from beetle import MemoryRuntime
from beetle.cli.flags import parse_json
from beetle.contracts.errors import InvalidRequest, ServicesUnavailable
from beetle.contracts.maintain import decode_answer
from tests.sdk.answering import CONVERSATION, Answer, ModelServer, noted, openai, opened, runtime, turn

SAID = '"kind": "fact", "topic": "", "confidence": 0.9, "evidence": ["t1.0"]'
GOOD = '{"content": "Lives in Porto.", ' + SAID + "}"
TWICE = {
    "a field of an item": '{"items": [{"content": "x", "content": "Lives in Porto.", ' + SAID + "}]}",
    "written in another way": '{"items": [{"c\\u006fntent": "x", "content": "Lives in Porto.", ' + SAID + "}]}",
    "the evidence": '{"items": [{"content": "Lives in Porto.", "evidence": ["t9"], ' + SAID + "}]}",
    "the items": '{"items": [], "items": [' + GOOD + "]}",
    "the same said again": '{"items": [' + GOOD + '], "items": [' + GOOD + "]}",
}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    running = ModelServer()
    yield running
    running.stop()


@pytest.fixture
def memory(server: ModelServer) -> Iterator[MemoryRuntime]:
    store = opened(server.model())
    running = runtime(store)
    running.commit_transcript(conversation=CONVERSATION, turns=[turn("t1", "I live in Porto.")])
    yield running
    store.store.close()


def _in_a_wrapping(double: str) -> Answer:
    plain = noted()
    return plain._replace(body=plain.body.replace(b'"choices":', double.encode() + b', "choices":'))


WRAPPED = {
    "the choices": _in_a_wrapping('"choices": [{"message": {"content": "{}"}}]'),
    "what nobody reads": _in_a_wrapping('"usage": {"in": 1, "in": 2}'),
}


@pytest.mark.parametrize(
    "answer", [*map(openai, TWICE.values()), *WRAPPED.values()], ids=[*TWICE, *(f"{name}, wrapped" for name in WRAPPED)]
)
def test_an_answer_with_a_key_twice_is_worth_nothing(
    memory: MemoryRuntime, server: ModelServer, answer: Answer
) -> None:
    server.answer = answer
    with pytest.raises(ServicesUnavailable) as told:
        memory.maintain(conversation=CONVERSATION)
    assert told.value.details["code"] == "wrong_answer"
    assert memory.list_long_term().records == ()


def test_the_answer_that_says_it_once_is_judged(memory: MemoryRuntime, server: ModelServer) -> None:
    server.answer = openai('{"items": [' + GOOD + "]}")
    assert memory.maintain(conversation=CONVERSATION).items == 1


@pytest.mark.parametrize("text", TWICE.values(), ids=TWICE)
def test_neither_decoder_of_such_an_answer_takes_it(text: str) -> None:
    with pytest.raises(InvalidRequest):
        decode_answer(text.encode())
    with pytest.raises(InvalidRequest) as told:
        parse_json(text, "--extraction")
    assert "twice" in told.value.message
