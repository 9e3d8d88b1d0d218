from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.contracts.codec import replace
from beetle.contracts.turns import ActorAttribution, CanonicalTurnDelta, HostOpaqueRef, MessageDelta, TranscriptAttr
from beetle.domain.digest import content_digest, keyed, request_digest, turn_digest

MODEST = settings(deadline=None, max_examples=80)
KEY, OTHER = bytes(range(32)), bytes(32)
AT = datetime(2024, 5, 1, 10, tzinfo=UTC)
MESSAGE = MessageDelta(message_id="m", role="user", content="hello", actor=ActorAttribution(speaker="Ana"))
REF = HostOpaqueRef(kind="task", ref_id="7", relation="about", label="l", visibility=("host_ui", "export"))
TURN = CanonicalTurnDelta(turn_id="t", at=AT, messages=(MESSAGE,), host_refs=(REF,))


def changed(**changes: Any) -> bytes:
    return turn_digest(KEY, replace(TURN, **changes))


def with_message(**changes: Any) -> bytes:
    return changed(messages=(replace(MESSAGE, **changes),))


@pytest.mark.parametrize(
    "digest",
    [
        changed(turn_id="u"),
        changed(at=AT + timedelta(microseconds=1)),
        changed(messages=(MESSAGE, replace(MESSAGE, message_id="n"))),
        changed(host_refs=()),
        changed(host_refs=(replace(REF, label=None),)),
        changed(host_refs=(replace(REF, visibility=("host_ui",)),)),
        with_message(message_id="n"),
        with_message(role="assistant"),
        with_message(content="hello "),
        with_message(at=AT + timedelta(seconds=1)),
        with_message(visibility="private"),
        with_message(actor=None),
        with_message(actor=ActorAttribution(subject_id="Ana")),
    ],
)
def test_what_a_turn_says_counts_in_its_digest(digest: bytes) -> None:
    assert len(digest) == 32
    assert digest != turn_digest(KEY, TURN)


@pytest.mark.parametrize(
    "digest",
    [
        changed(attrs=(TranscriptAttr(key="k", value="v"),)),
        changed(at=AT.astimezone(timezone(timedelta(hours=5)))),
        changed(host_refs=(replace(REF, visibility=("export", "host_ui", "export")),)),
        with_message(at=AT),
        with_message(at=AT.astimezone(timezone(timedelta(hours=-3)))),
    ],
)
def test_attrs_defaults_and_ways_to_write_the_same_do_not_count(digest: bytes) -> None:
    assert digest == turn_digest(KEY, TURN)


def test_the_order_of_messages_counts() -> None:
    other = replace(MESSAGE, message_id="n")
    assert changed(messages=(MESSAGE, other)) != changed(messages=(other, MESSAGE))


@MODEST
@given(st.binary(max_size=100), st.text(max_size=200))
def test_a_digest_of_content_is_an_hmac(key: bytes, content: str) -> None:
    assert content_digest(key, content) == keyed(key, "message", content.encode())


@MODEST
@given(st.text(max_size=30), st.text(max_size=30))
def test_a_digest_of_content_is_keyed_and_tells_contents_apart(one: str, two: str) -> None:
    assert (content_digest(KEY, one) == content_digest(KEY, two)) is (one == two)
    assert content_digest(KEY, one) != content_digest(OTHER, one)
    assert content_digest(KEY, one) != hashlib.sha256(one.encode()).digest()


@MODEST
@given(st.binary(max_size=20), st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=10))
def test_purposes_keep_digests_apart(data: bytes, purpose: str) -> None:
    assert keyed(KEY, purpose, data) != keyed(KEY, purpose + "x", data)
    assert keyed(KEY, "message", data) != keyed(KEY, "turn", data)


def test_no_two_splits_of_the_same_texts_meet() -> None:
    a = request_digest(KEY, "op", ("a", "bc"), {"x": "y"})
    assert a == request_digest(KEY, "op", ("a", "bc"), {"x": "y"})
    for other in (("op", ("ab", "c"), {"x": "y"}), ("opa", ("", "bc"), {"x": "y"}), ("op", ("a", "bc"), {"x": "z"})):
        assert request_digest(KEY, *other) != a
