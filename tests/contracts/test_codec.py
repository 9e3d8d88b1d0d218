from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import msgpack
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.contracts.chains import ChainTraverseRequest
from beetle.contracts.chunks import ChunkListRequest
from beetle.contracts.codec import (
    Raw,
    check_values,
    convert_request,
    decode_request,
    pack,
    pack_json,
    replace,
    to_plain,
    unpack,
    unpack_any,
)
from beetle.contracts.common import Conversation
from beetle.contracts.control import BatchItem, BatchRequest
from beetle.contracts.errors import MESSAGE_LIMIT, InvalidRequest
from beetle.contracts.memory import MemoryRecallRequest, RecallHit
from beetle.contracts.transcript import (
    FirstIn,
    MemoryTranscriptCommitRequest,
    MemoryTranscriptTimelineRequest,
    TimelineAnchor,
)
from beetle.contracts.turns import (
    ActorAttribution,
    CanonicalTurnDelta,
    HostOpaqueRef,
    MessageDelta,
    MessageTarget,
    TranscriptAttr,
)

MODEST = settings(deadline=None, max_examples=60)

texts = st.text(max_size=40)
ids = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=256)
labels = st.none() | st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=30)
times = st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC))
views = st.lists(st.sampled_from(["host_ui", "model_context", "operator_audit", "export"]), max_size=4).map(tuple)
messages = st.builds(
    MessageDelta,
    message_id=ids,
    role=st.sampled_from(["user", "assistant", "system", "tool"]),
    content=texts,
    at=st.none() | times,
    visibility=st.sampled_from(["shared", "private", "soul", "backend", "operator"]),
    actor=st.none() | st.builds(ActorAttribution, speaker=labels, subject_id=st.none() | ids, trigger=labels),
)
refs = st.builds(HostOpaqueRef, kind=ids, ref_id=ids, relation=labels, label=labels, visibility=views)
targets = st.just("turn") | st.builds(MessageTarget, message_id=ids)
attrs = st.builds(TranscriptAttr, key=ids, value=texts, target=targets, visibility=views, export_allowed=st.booleans())
turns = st.builds(
    CanonicalTurnDelta,
    turn_id=ids,
    at=times,
    messages=st.lists(messages, min_size=1, max_size=3).map(tuple),
    host_refs=st.lists(refs, max_size=2).map(tuple),
    attrs=st.lists(attrs, max_size=2).map(tuple),
)
commits = st.builds(
    MemoryTranscriptCommitRequest,
    conversation=st.builds(Conversation, channel_id=ids, conversation_id=ids),
    turns=st.lists(turns, min_size=1, max_size=3).map(tuple),
)
anchors = st.just("latest") | st.one_of(
    st.builds(TimelineAnchor, before=st.integers(0, 2**62)),
    st.builds(TimelineAnchor, at=times),
    st.builds(TimelineAnchor, first_in=st.builds(FirstIn, begin=times, end=times)),
)
timelines = st.builds(
    MemoryTranscriptTimelineRequest,
    conversation=st.builds(Conversation, conversation_id=ids),
    view=st.sampled_from(["host_ui", "export"]),
    anchor=anchors,
    limit=st.integers(1, 2**62),
)
requests = commits | timelines


@MODEST
@given(requests)
def test_a_request_comes_back_from_the_wire_as_it_was(request: msgspec.Struct) -> None:
    assert decode_request(pack(request), type(request)) == request
    assert decode_request(Raw(pack(request)), type(request)) == request


@MODEST
@given(requests)
def test_a_request_passes_the_in_process_check_as_a_struct_and_as_builtins(request: msgspec.Struct) -> None:
    assert convert_request(request, type(request)) == request
    assert convert_request(msgspec.to_builtins(request), type(request)) == request
    assert convert_request(msgspec.json.decode(pack_json(request)), type(request)) == request


@MODEST
@given(requests)
def test_equal_requests_pack_to_equal_bytes_that_another_library_reads(request: msgspec.Struct) -> None:
    data = pack(request)
    assert pack(replace(request)) == data
    other = msgpack.unpackb(data, timestamp=3)
    assert decode_request(msgpack.packb(other, datetime=True), type(request)) == request
    assert unpack_any(data) == other


@MODEST
@given(st.floats(allow_nan=False, allow_infinity=False), texts)
def test_a_report_comes_back_as_it_was(score: float, text: str) -> None:
    hit = RecallHit(plane="evidence", ref="r", score=score, excerpt=text, why=("lexical",))
    assert unpack(pack(hit), RecallHit) == hit
    assert msgspec.convert(to_plain(hit), RecallHit) == hit


def refusal(call: Any, *args: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        call(*args)
    assert len(caught.value.message) <= MESSAGE_LIMIT
    return caught.value


WRAPS: list[tuple[Any, str]] = [
    (lambda bad: bad, "$"),
    (lambda bad: {"a": bad}, "$.a"),
    (lambda bad: [0, bad], "$[1]"),
    (lambda bad: {"a": [{"b": bad}]}, "$.a[0].b"),
    (lambda bad: {"a": (1, {"b": [None, bad]})}, "$.a[1].b[1]"),
]


@MODEST
@given(
    st.sampled_from([math.nan, math.inf, -math.inf, "\ud800", "x\udfff", 2**63, -(2**63) - 1, 2**200]),
    st.sampled_from(WRAPS),
)
def test_what_no_request_may_hold_is_refused_with_its_path(bad: Any, wrap: tuple[Any, str]) -> None:
    make, path = wrap
    assert refusal(check_values, make(bad), "$").details["path"] == path


@MODEST
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | texts
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=10,
    )
)
def test_every_other_value_is_let_through(value: Any) -> None:
    check_values(value, "$")


def test_a_key_is_looked_at_too() -> None:
    assert refusal(check_values, {"\ud800": 1}, "$.args").details["path"].startswith("$.args")


@pytest.mark.parametrize("bad", ["\ud800", 2**63, math.nan])
def test_a_struct_that_was_built_around_a_bad_value_is_refused(bad: Any) -> None:
    """A constructor validates nothing."""
    error = refusal(convert_request, MemoryRecallRequest(query="x", limit=bad), MemoryRecallRequest)
    assert error.details["path"] == "$.args.limit"


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({"query": 5}, "$.args.query"),
        ({}, "$.args.query"),
        ({"query": "x", "nope": 1}, "$.args.nope"),
        ({"query": "x", "conversation": {"conversation_id": "c", "x": 1}}, "$.args.conversation.x"),
        ({"query": "x", "conversation": {"conversation_id": ""}}, "$.args.conversation.conversation_id"),
        ({"query": "x", "tool_registry_refs": [{"registry_id": "r"}]}, "$.args.tool_registry_refs[0].fingerprint"),
        ([], "$.args"),
    ],
)
def test_a_wrong_field_is_refused_with_its_path_on_both_ways_in(args: Any, path: str) -> None:
    for error in (
        refusal(convert_request, args, MemoryRecallRequest),
        refusal(decode_request, pack(args), MemoryRecallRequest),
    ):
        assert error.details["path"] == path
        assert error.message.endswith(path)


@MODEST
@given(st.binary(max_size=64))
def test_random_bytes_are_a_request_or_an_invalid_one(data: bytes) -> None:
    try:
        decode_request(data, MemoryRecallRequest)
    except InvalidRequest as error:
        assert error.details["path"].startswith("$.args")


@MODEST
@given(st.text(max_size=2000))
def test_a_made_up_field_name_moves_no_path_out_of_the_arguments(name: str) -> None:
    if name in MemoryRecallRequest.__struct_fields__:
        return
    error = refusal(convert_request, {"query": "x", name: 1}, MemoryRecallRequest)
    assert error.details["path"].startswith("$.args")
    assert len(error.details["path"]) <= 200


@pytest.mark.parametrize(
    ("kind", "args", "words"),
    [
        (ChunkListRequest, {"state": "gone"}, "all, archived, live"),
        (ChunkListRequest, {"type": 7}, "decision, fact, note, pattern, preference"),
        (MemoryRecallRequest, {"query": "x", "planes": ["chunks", "dreams"]}, "agent_skill, chunks, evidence"),
        (ChainTraverseRequest, {"time_window": {"start": 1, "delta": 1, "unit": "days"}}, "milliseconds, seconds"),
    ],
)
def test_a_word_that_is_none_of_a_closed_set_is_refused_with_those_that_are(
    kind: type[msgspec.Struct], args: Any, words: str
) -> None:
    for given_in in (lambda: convert_request(args, kind), lambda: decode_request(pack(args), kind)):
        with pytest.raises(InvalidRequest) as refused:
            given_in()
        assert refused.value.hint.startswith(f"give one of {words}")


def test_a_wrong_value_of_an_open_field_has_the_general_hint() -> None:
    for args in ({"limit": "many"}, {"nothing": 1}, {"tags": 7}):
        with pytest.raises(InvalidRequest) as refused:
            convert_request(args, ChunkListRequest)
        assert refused.value.hint == InvalidRequest.hint_template


def test_a_batch_s_arguments_stay_undecoded_on_both_ways_in() -> None:
    plain = {"requests": [{"op": "memory.recall", "args": {"query": "x"}}, {"op": "hello"}]}
    wired = decode_request(pack(plain), BatchRequest)
    given_plain = convert_request(plain, BatchRequest)
    items = (BatchItem(op="memory.recall", args=Raw(pack({"query": "x"}))), BatchItem(op="hello"))
    given_struct = convert_request(BatchRequest(requests=items), BatchRequest)
    for request in (wired, given_plain, given_struct):
        assert [each.op for each in request.requests] == ["memory.recall", "hello"]
        assert [unpack_any(each.args) for each in request.requests] == [{"query": "x"}, {}]


def test_bytes_are_bytes_and_no_text() -> None:
    refusal(convert_request, {"query": b"x"}, MemoryRecallRequest)
    refusal(decode_request, msgpack.packb({"query": b"x"}), MemoryRecallRequest)


@pytest.mark.parametrize("value", [object(), {"query": {1, 2}, "x": object()}, print])
def test_what_is_no_value_of_a_request_is_refused(value: Any) -> None:
    refusal(convert_request, value, MemoryRecallRequest)
