"""What arrives and what happens (WIRE, the table of limits and refusals), through every door that can send it."""

from __future__ import annotations

import json
from typing import Any

import msgpack
import pytest

from tests.conformance.cases import CONVERSATION, message, skill, talk, turn, write
from tests.conformance.doors import Door, InProcess, Plain, Socket

HOST = {"conversation": CONVERSATION, "view": "host_ui"}

# operation, arguments, the path of what is to blame
WRONG: list[tuple[str, Any, str]] = [
    ("memory.recall", {"query": "x", "limit": "ten"}, "$.args.limit"),
    ("memory.recall", {"query": "x", "limit": 1.5}, "$.args.limit"),
    ("memory.recall", {"query": "x", "limit": 0}, "$.args.limit"),
    ("memory.recall", {"query": "x", "limit": -1}, "$.args.limit"),
    ("memory.recall", {"query": "x", "limit": True}, "$.args.limit"),
    ("memory.recall", {"query": "x", "limit": None}, "$.args.limit"),
    ("memory.recall", {"query": "x", "limit": 2**63}, "$.args.limit"),
    ("memory.recall", {"query": "x", "limit": float("nan")}, "$.args.limit"),
    ("memory.recall", {"query": "x", "limit": float("inf")}, "$.args.limit"),
    ("memory.recall", {"query": 5}, "$.args.query"),
    ("memory.recall", {"query": ["x"]}, "$.args.query"),
    ("memory.recall", {}, "$.args.query"),
    ("memory.recall", {"query": "x", "limits": 3}, "$.args.limits"),
    ("memory.recall", {"query": "x", "conversation": "c"}, "$.args.conversation"),
    ("memory.recall", {"query": "x", "conversation": {}}, "$.args.conversation.conversation_id"),
    ("memory.recall", {"query": "x", "since": "yesterday"}, "$.args.since"),
    ("memory.recall", {"query": "x", "since": "2024-05-01T10:00:00"}, "$.args.since"),
    ("memory.recall", {"query": "x", "since": 1714557600}, "$.args.since"),
    ("memory.recall", {"query": "x", "planes": "evidence"}, "$.args.planes"),
    ("memory.recall", [], "$.args"),
    ("memory.recall", "query", "$.args"),
    ("memory.project", {"user_query": "x", "recent_messages_limit": -1}, "$.args.recent_messages_limit"),
    ("memory.project", {"user_query": "x", "mode_input": {"mode": "normal", "x": 1}}, "$.args.mode_input.x"),
    ("memory.write", {"kind": "procedural", "source": "manual", "writes": []}, "$.args.writes"),
    ("memory.write", {"kind": "other", "source": "manual", "writes": []}, "$.args.kind"),
    ("memory.write", {**write(skill("x")), "source": "guess"}, "$.args.source"),
    ("memory.write", write({**skill("x"), "name": "a/b"}), "$.args.writes[0].name"),
    ("memory.write", write(skill("y"), {**skill("x"), "more": 1}), "$.args.writes[1].more"),
    ("skill.list", {"limit": 0}, "$.args.limit"),
    ("skill.set_enabled", {"name": "x", "enabled": "yes"}, "$.args.enabled"),
    ("skill.set_enabled", {"name": "x"}, "$.args.enabled"),
    ("transcript.replay", {**HOST, "view": "everything"}, "$.args.view"),
    ("transcript.replay", {"conversation": CONVERSATION}, "$.args.view"),
    ("transcript.replay", {**HOST, "limit": 0}, "$.args.limit"),
    ("transcript.commit", talk(), "$.args.turns"),
    ("transcript.commit", talk({**turn("t1", "x"), "messages": []}), "$.args.turns[0].messages"),
    ("transcript.commit", talk(turn("", "x")), "$.args.turns[0].turn_id"),
    ("transcript.commit", talk(turn("a\nb", "x")), "$.args.turns[0].turn_id"),
    ("transcript.commit", talk(turn("x" * 257, message("m", "x"))), "$.args.turns[0].turn_id"),
    ("transcript.commit", talk(turn("t", message("m", "x", role="robot"))), "$.args.turns[0].messages[0].role"),
    (
        "transcript.commit",
        talk(turn("t", message("m", "x"), message("n", "x", visibility="public"))),
        "$.args.turns[0].messages[1].visibility",
    ),
    ("transcript.commit", talk(turn("t", message("m", b"bytes"))), "$.args.turns[0].messages[0].content"),
    ("transcript.commit", talk(turn("t", "x", at="2024-05-01")), "$.args.turns[0].at"),
    ("transcript.commit", talk(turn("t", "x", host_refs=[{"kind": "k"}])), "$.args.turns[0].host_refs[0].ref_id"),
    ("hello", {"who": "me"}, "$.args.who"),
]


def jsonable(value: Any) -> bool:
    """Whether JSON text can say it (Python's says NaN and Infinity too)."""
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True


@pytest.mark.parametrize(("op", "args", "path"), WRONG, ids=[f"{op}-{n}" for n, (op, _, _) in enumerate(WRONG)])
def test_a_wrong_field_is_named_by_its_path(door: Door, op: str, args: Any, path: str) -> None:
    if door.name == "cli" and (not jsonable(args) or op not in ("memory.recall", "hello")):
        pytest.skip("a sample of these goes through the command line")
    error = door.refused("invalid_request", op, args)
    assert error.message.endswith(f" - at {path}"), error.message
    if door.name != "cli":
        assert error.details["path"] == path
    assert error.hint
    assert error.retryable is False


def deep(levels: int) -> Plain:
    value: Plain = {}
    for _ in range(levels):
        value = {"x": value}
    return value


def test_a_lone_surrogate_is_refused(door: Door) -> None:
    """In MessagePack it is bad UTF-8, and no frame at all."""
    args = {"query": "lone \ud800 surrogate"}
    if door.name == "socket":
        assert isinstance(door, Socket)
        answer = door.frame("memory.recall", args, unicode_errors="surrogatepass")
        assert answer["ok"] is False
        assert answer["error"]["key"] in ("invalid_frame", "invalid_request")
        return
    error = door.refused("invalid_request", "memory.recall", args)
    assert "surrogate" in error.message
    if door.name == "in_process":
        assert error.details["path"] == "$.args.query"


def test_an_unknown_operation_is_named_with_the_nearest_ones(door: Door) -> None:
    error = door.refused("unknown_operation", "memory.recal", {"query": "x"})
    assert "memory.recall" in error.hint
    error = door.refused("unknown_operation", "utterly.else", {})
    assert error.hint


@pytest.mark.parametrize(
    ("op", "args", "path"),
    [
        ("memory.recall", {"query": "x" * 8193}, "$.args.query"),
        ("transcript.search", {"query": "鳥" * 8193, "view": "host_ui"}, "$.args.query"),
        ("memory.project", {"user_query": "x" * 8193}, "$.args.user_query"),
        ("memory.inspect", {"query": "x" * 8193}, "$.args.query"),
        ("transcript.commit", talk(turn("t", "x" * (2**18 + 1))), "$.args.turns[0].messages[0].content"),
        ("transcript.commit", talk(turn("t", "é" * (2**17 + 1))), "$.args.turns[0].messages[0].content"),
        ("transcript.commit", talk(*(turn(f"t{n}", "x") for n in range(201))), "$.args.turns"),
        (
            "transcript.commit",
            talk(turn("t", "x", host_refs=[{"kind": "k", "ref_id": f"{n}"} for n in range(33)])),
            "$.args.turns[0].host_refs",
        ),
        ("memory.write", write(skill("x", content="x" * 1_000_001)), "$.args.writes[0].content"),
    ],
    ids=["query", "wide-query", "user_query", "inspect", "content", "content-bytes", "turns", "host_refs", "skill"],
)
def test_what_is_over_its_limit_is_refused_and_never_cut(door: Door, op: str, args: Plain, path: str) -> None:
    error = door.refused("payload_too_large", op, args)
    assert path in error.message
    assert len(error.message) <= 600
    if door.name != "cli":
        assert error.details["path"] == path
        assert error.details["maximum"] >= 32
        assert error.details["actual"] > error.details["maximum"] or "query" in path
    door.refused("not_found", "transcript.replay", HOST)


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
    if isinstance(door, Socket) and door.name == "socket":
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


def test_times_as_a_messagepack_extension_and_binary_text_are_no_values_here(over_socket: Socket) -> None:
    for args in ({"query": b"bytes"}, {"query": msgpack.ExtType(5, b"x")}):
        answer = over_socket.frame("memory.recall", args)
        assert answer["ok"] is False
        assert answer["error"]["key"] in ("invalid_request", "invalid_frame")
