"""What arrives and what happens (WIRE, the table of limits and refusals). Bad arguments by operation: test_cases.py."""

from __future__ import annotations

import re
from typing import Any

import msgpack
import pytest

from beetle.contracts.errors import BeetleError
from tests.building import skill, talk, turn, write
from tests.conformance.doors import Connection, Door, InProcess, Plain, Socket


def deep(levels: int) -> Plain:
    value: Plain = {}
    for _ in range(levels):
        value = {"x": value}
    return value


def test_a_lone_surrogate_is_refused(door: Door) -> None:
    """In MessagePack it is bad UTF-8, and no frame at all."""
    args = {"query": "lone \ud800 surrogate"}
    if isinstance(door, Socket):
        answer = door.frame("memory.recall", args, unicode_errors="surrogatepass")
        assert answer["ok"] is False
        assert answer["error"]["key"] in ("invalid_frame", "invalid_request")
        return
    error = door.refused("invalid_request", "memory.recall", args)
    assert "surrogate" in error.message
    assert error.details["path"] == "$.args.query"


def test_an_unknown_operation_is_named_with_the_nearest_ones(door: Door) -> None:
    error = door.refused("unknown_operation", "memory.recal", {"query": "x"})
    assert "memory.recall" in error.hint
    error = door.refused("unknown_operation", "utterly.else", {})
    assert error.hint


def test_what_is_exactly_at_its_limit_is_taken(door: Door) -> None:
    assert door.call("transcript.commit", talk(turn("t", "x" * 2**18)))["committed"] == 1
    assert door.call("transcript.commit", talk(*(turn(f"u{n}", "x") for n in range(200))))["committed"] == 200
    assert isinstance(door.call("memory.recall", {"query": "x" * 8192})["hits"], list)
    assert door.call("memory.write", write(skill("x", content="x" * 1_000_000)))["accepted"] == 1


def test_an_error_stays_small_however_large_the_input_was(door: Door) -> None:
    name = "n" * 100_000
    error = door.refused("invalid_request", "memory.recall", {"query": "x", name: 1})
    assert len(error.message) <= 600
    assert len(error.hint) <= 600
    assert len(str(error.details)) <= 2000


def test_a_text_that_looks_like_markup_of_an_error_does_not_move_its_path(in_process: InProcess) -> None:
    for name in ("x` - at `$.scope", "`", "a.b", "$", "", "\n", "x" * 500):
        error = in_process.refused("invalid_request", "memory.recall", {"query": "x", name: 1})
        assert error.details["path"].startswith("$.args"), name


def test_a_request_nested_too_deep_is_refused_and_the_daemon_lives(door: Door) -> None:
    if isinstance(door, Socket):
        answer = door.frame("memory.recall", deep(40))
        assert (answer["ok"], answer["error"]["key"]) == (False, "payload_too_large")
    else:
        door.refused("invalid_request", "memory.recall", {"query": "x", "conversation": deep(20)})
    assert isinstance(door.call("memory.recall", {"query": "x"})["hits"], list)


def test_what_cannot_be_a_request_is_refused_in_process(in_process: InProcess) -> None:
    loop: dict[str, Any] = {}
    loop["query"] = loop
    for args in (object(), {"query": object()}, {"query": b"bytes"}, loop, 5, {"query": "x", "limit": 2**70}, {5: "x"}):
        error = in_process.refused("invalid_request", "memory.recall", args)  # type: ignore[arg-type]
        assert error.details["path"].startswith("$.args")


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("v", 2, "$.v"),
        ("v", "1", "$.v"),
        ("op", 5, "$.op"),
        ("deadline_ms", 0, "$.deadline_ms"),
        ("deadline_ms", "soon", "$.deadline_ms"),
        ("idempotency_key", "k" * 129, "$.idempotency_key"),
        ("idempotency_key", "é" * 65, "$.idempotency_key"),
        ("scope", {"owner": "x"}, "$.scope.owner"),
        ("scope", {"owner_id": "a\x00b"}, "$.scope.owner_id"),
        ("more", 1, "$.more"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_wrong_envelope_is_answered_under_its_id(over_socket: Socket, field: str, value: Any, path: str) -> None:
    answer = over_socket.frame("memory.recall", {"query": "x"}, **{field: value})
    assert (answer["id"], answer["ok"], answer["error"]["key"]) == (1, False, "invalid_request")
    assert answer["error"]["details"]["path"] == path


def test_integers_beyond_64_bits_and_nan_are_refused_on_the_wire(over_socket: Socket) -> None:
    for value in (2**64 - 1, float("nan"), float("-inf")):
        answer = over_socket.frame("memory.recall", {"query": "x", "limit": value})
        assert answer["error"]["key"] == "invalid_request"
        assert answer["error"]["details"]["path"] == "$.args.limit"


def test_extensions_and_binary_text_are_no_text(over_socket: Socket) -> None:
    for args in ({"query": b"bytes"}, {"query": msgpack.ExtType(5, b"x")}):
        answer = over_socket.frame("memory.recall", args)
        assert answer["ok"] is False
        assert answer["error"]["key"] in ("invalid_request", "invalid_frame")


@pytest.mark.parametrize("wrong", [5, None, True, 2.5, [], {}, b"x", "", "x" * 300, [5], {"x": 1}, "2026-01-01"])
def test_no_error_speaks_of_a_language_s_types(in_process: InProcess, wrong: Any) -> None:
    asked = {
        "memory.recall": ("query", "limit", "planes", "conversation", "since", "tool_registry_refs"),
        "transcript.commit": ("conversation", "turns"),
        "memory.write": ("kind", "source", "writes"),
        "device.add": ("label", "capabilities"),
    }
    right = {"memory.recall": {"query": "x"}, "memory.write": {"kind": "procedural"}}
    for operation, fields in asked.items():
        for field in fields:
            try:
                in_process.call(operation, {**right.get(operation, {}), field: wrong})
            except BeetleError as error:
                for word in ("`", "str", "int", "dict", "object", "array", "regex", "NoneType", "datetime", "struct"):
                    assert word not in re.findall(r"`|[a-zA-Z]+", error.message), error.message


def test_a_timestamp_of_messagepack_is_a_time_and_another_extension_closes_nothing(over_socket: Socket) -> None:
    said = turn("t1", "the spare key")
    said["at"] = msgpack.Timestamp(1_700_000_000, 500_000_000)
    with Connection(over_socket) as connection:

        def ask(op: str, args: Plain) -> Plain:
            connection.send(op, args)
            return connection.read()

        def since(at: Any) -> Plain:
            return ask("memory.recall", {"query": "key", "since": at})

        assert ask("transcript.commit", talk(said))["ok"] is True
        (hit,) = since(msgpack.Timestamp(1_700_000_000))["report"]["hits"]
        assert (hit["turn_id"], hit["at"]) == ("t1", "2023-11-14T22:13:20.5Z")
        assert since(msgpack.Timestamp(1_800_000_000))["report"]["hits"] == []
        for path, args in (
            ("$.args.since", {"query": "key", "since": msgpack.ExtType(5, b"abc")}),
            ("$.args.query", {"query": msgpack.ExtType(5, b"abc")}),
            ("$.args.query", {"query": msgpack.Timestamp(5)}),
            ("$.args.since", {"query": "key", "since": msgpack.ExtType(127, b"")}),
        ):
            error = ask("memory.recall", args)["error"]
            assert (error["key"], error["details"]["path"]) == ("invalid_request", path)
