"""Every case of the table through every door: answered, or refused as it says; a change is made once for a key."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from beetle.contracts.operations import OPERATIONS
from tests.building import talk, turn
from tests.cases import CASES, OF, Case, Prepared
from tests.conformance.conftest import ALL_DOORS
from tests.conformance.doors import Connection, Door, Plain, Socket

ONE_ANSWER = [case for case in CASES if case.row.effect != "stream"]
PYTHON = re.compile(r"`|\b(str|dict|int|tuple|None|NoneType|True|False|ext|datetime|msgspec)\b")
"""Words for types that say nothing to callers in other languages."""
ENDS = "memory.close"
"""It ends the daemon that the others share: test_recover.py closes daemons of its own."""


def test_every_operation_has_one_case() -> None:
    assert sorted(case.op for case in CASES) == sorted(row.name for row in OPERATIONS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_a_case_and_the_row_of_its_operation_agree(case: Case) -> None:
    row = case.row
    assert (case.who == "operator") is (row.effect == "admin")
    assert (case.who == "owner") is (row.view == "owner")
    assert not case.changes or row.effect in ("write", "admin")


EACH = 5
"""Of so many operations, one is asked of the one file's own process, whose start is most of the work; all are in the
slow suite."""


def asked_at() -> list[Any]:
    return [
        pytest.param(
            door,
            case,
            id=f"{door}-{case.op}",
            marks=[pytest.mark.slow] * (door == "one_file_cli" and number % EACH > 0),
        )
        for door in ALL_DOORS
        for number, case in enumerate(ONE_ANSWER)
        if door == "in_process" or case.op != ENDS
    ]


def hides(door: Door, case: Case) -> str | None:
    """The key by which a door keeps an operation from its caller."""
    if case.hidden:
        return "capability_hidden"
    return "forbidden" if case.who == "owner" and "raw_owner" not in door.views else None


@pytest.mark.parametrize(("any_door", "case"), asked_at(), indirect=["any_door"])
def test_a_case_is_answered_at_every_door(any_door: Door, case: Case) -> None:
    if key := hides(any_door, case):
        # What it needs cannot be prepared here either, and its arguments are not looked at.
        any_door.refused(key, case.op, {})
        return
    args = case.request(Prepared(any_door.prepare))
    if case.key is not None:
        any_door.refused(case.key, case.op, args)
        return
    report = any_door.call(case.op, args)
    assert set(report) <= set(case.row.report.__struct_encode_fields__)
    msgspec.convert(report, case.row.report, strict=False)
    assert report["lifecycle"] is None or report["lifecycle"]["operation"] == case.op
    assert bool(report["lifecycle"] and report["lifecycle"]["changed"]) is case.changes


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.changes and not case.hidden and case.op != ENDS], ids=lambda case: case.op
)
def test_a_change_is_made_once_for_a_key(door: Door, case: Case) -> None:
    args = case.request(Prepared(door.prepare))
    if case.who == "owner" and not door.own_agent:
        door.refused("forbidden", case.op, args)
        return
    first = door.ask(case.op, args, idempotency_key="key")
    again = door.ask(case.op, args, idempotency_key="key")
    assert again.report == {**first.report, **dict.fromkeys(case.once)}
    assert (first.repeated, again.repeated) == (False, True)
    error = door.refused("conflict", "transcript.commit", talk(turn("other", "x")), idempotency_key="key")
    assert "idempotency key" in error.message


def bad(kind: str) -> list[Any]:
    """Every bad request of the table, with the path of what is to blame; a field that nobody knows is one of each."""
    found: list[tuple[str, Any, str]] = []
    for case in ONE_ANSWER:
        found += [(case.op, args, path) for args, path in getattr(case, kind)]
        if kind == "wrong" and isinstance(case.args, dict) and case.who != "owner" and not case.hidden:
            found.append((case.op, {**case.args, "no_such_field": 1}, "no_such_field"))
    paths = [f"$.args.{path}".rstrip(".") for _, _, path in found]
    return [
        pytest.param(op, args, path, id=f"{op}-{n}")
        for n, ((op, args, _), path) in enumerate(zip(found, paths, strict=True))
    ]


@pytest.mark.parametrize(("op", "args", "path"), bad("wrong"))
def test_a_wrong_field_is_named_by_its_path(door: Door, op: str, args: Any, path: str) -> None:
    error = door.refused("invalid_request", op, args)
    assert error.message.endswith(f" - at {path}"), error.message
    assert not PYTHON.search(error.message), error.message
    assert error.details["path"] == path
    assert error.hint
    assert error.retryable is False


@pytest.mark.parametrize(("op", "args", "path"), bad("over"))
def test_what_is_over_its_limit_is_refused_and_never_cut(door: Door, op: str, args: Plain, path: str) -> None:
    error = door.refused("payload_too_large", op, args)
    assert path in error.message
    assert len(error.message) <= 600
    assert error.details["path"] == path
    assert error.details["maximum"] >= 32
    assert error.details["actual"] > error.details["maximum"] or "query" in path
    assert door.call("transcript.conversations", {})["conversations"] == []


def test_a_stream_begins_and_ends_on_one_connection(over_socket: Socket) -> None:
    with Connection(over_socket) as connection:
        for op, args in (("subscribe", OF["subscribe"].args), ("unsubscribe", OF["unsubscribe"].args)):
            connection.send(op, args)
        sub = connection.read()["report"]["sub"]
        assert connection.read()["error"]["key"] == "not_found", "it names none of this connection's"
        connection.send("unsubscribe", {"sub": sub})
        assert connection.read()["report"]["sub"] == sub
