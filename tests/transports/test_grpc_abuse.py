"""Hostile peers of gRPC: too large, too many, too slow, no HTTP/2 at all. Each is refused, and others are served."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from beetle.rpc.messages import method_messages, to_message
from tests.transports.grpc_serving import SECONDS, SERVICE, Served, Stub, refused

ROUTE = f"/{SERVICE}/RouteQuery"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("grpc")) as running:
        yield running


@pytest.fixture
def stub(served: Served) -> Iterator[Stub]:
    with grpc.insecure_channel(served.target, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        yield Stub(channel)


def answers(stub: Stub) -> bool:
    """Whether a query is answered to somebody else meanwhile: the bytes are a RouteQueryRequest of one letter."""
    return bool(stub.channel.unary_unary(ROUTE)(b"\x0a\x01x", timeout=SECONDS))


def ingest(channel: grpc.Channel, text: str) -> Any:
    """The error that an event with this text ends with."""
    told = {"event_id": "e", "session_id": "s", "timestamp_ms": 1, "event_type": "user_message", "text": text}
    data = to_message(method_messages("IngestEvent")[0], {"event": told}).SerializeToString()
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary(f"/{SERVICE}/IngestEvent")(data, timeout=SECONDS)
    return caught.value


def test_a_text_over_the_profiles_limit_is_refused(stub: Stub) -> None:
    error = ingest(stub.channel, "x" * ((1 << 20) + 1))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert dict(error.trailing_metadata())["beetle-error"] == "payload_too_large"


def test_a_message_that_nobody_may_send_is_not_read(stub: Stub) -> None:
    assert ingest(stub.channel, "x" * (3 << 20)).code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert answers(stub)


def test_a_message_that_unpacks_to_too_much_is_refused(served: Served) -> None:
    with grpc.insecure_channel(served.target, compression=grpc.Compression.Gzip) as channel:
        assert ingest(channel, "x" * (8 << 20)).code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_calls_whose_message_does_not_come_are_limited_and_end(
    served: Served, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One connection has half of the places: another is served all the while."""
    silent = threading.Event()

    def nothing() -> Iterator[bytes]:
        silent.wait(SECONDS)
        yield from ()

    with grpc.insecure_channel(served.target, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        slow = channel.stream_unary(ROUTE)
        waiting: list[Any] = [slow.future(nothing(), timeout=SECONDS) for _ in range(served.server.most_each + 8)]
        assert answers(stub)
        assert served.server.open_calls <= served.server.most_each
        silent.set()
        codes = {each.exception(timeout=SECONDS).code() for each in waiting}
    assert codes <= {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNAVAILABLE}


def test_a_peer_that_goes_gives_its_places_back(served: Served, stub: Stub) -> None:
    with grpc.insecure_channel(served.target, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        ended = threading.Event()
        calls = [channel.stream_unary(ROUTE).future(_until(ended)) for _ in range(4)]
        assert answers(stub)
        for each in calls:
            each.cancel()
        ended.set()
    assert answers(stub)
    while served.server.open_calls:
        assert answers(stub)


def _until(ended: threading.Event) -> Iterator[bytes]:
    ended.wait(SECONDS)
    yield from ()


def test_bytes_that_are_no_http2_end_the_connection(served: Served, stub: Stub) -> None:
    host, _, port = served.target.rpartition(":")
    for data in (b"\x00" * 100, b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 64):
        with socket.create_connection((host.strip("[]"), int(port)), SECONDS) as raw:
            raw.sendall(data)
            while raw.recv(4096):
                pass
    assert answers(stub)


def test_headers_over_their_limit_are_refused(stub: Stub) -> None:
    error = refused(stub, "GetTocRoot", {}, metadata=(("x-large", "y" * 40_000),))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert answers(stub)


def test_a_call_ends_with_its_deadline_and_gives_its_place_back(served: Served, stub: Stub) -> None:
    ended = threading.Event()
    with pytest.raises(grpc.RpcError) as caught:
        stub.channel.stream_unary(ROUTE)(_until(ended), timeout=0.2)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    ended.set()
    while served.server.open_calls:
        assert answers(stub)
