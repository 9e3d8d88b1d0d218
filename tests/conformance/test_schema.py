"""`beetle platform schema`: what a daemon is asked and answers is what the schema says, and what it refuses is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from beetle.contracts.codec import to_wire
from beetle.contracts.errors import ERRORS
from beetle.contracts.operations import OPERATIONS
from tests.cases import CASES, OF, SAID, Case, Prepared
from tests.conformance.doors import REPOSITORY, Connection, InProcess, Socket, plain

CLOSES = "memory.close"
"""What leaves no store to the others."""
ONE_ANSWER = [case for case in CASES if case.row.effect != "stream"]
FORMATS = FormatChecker(())


@FORMATS.checks("date-time", raises=ValueError)
def is_a_time(value: object) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None


def printed(*words: str, seed: str = "0") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "beetle", "platform", "schema", *words],
        cwd=REPOSITORY, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


@pytest.fixture(scope="module")
def text() -> str:
    return printed()


@pytest.fixture(scope="module")
def schema(text: str) -> dict[str, Any]:
    return json.loads(text)


class Validators:
    """A validator of each part, made when it is first needed."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._whole = Draft202012Validator(schema, format_checker=FORMATS)
        self._schema = schema

    def errors(self, op: str, part: str, value: Any) -> list[str]:
        of = {**self._schema["operations"][op][part], "$defs": self._schema["$defs"]}
        errors = self._whole.evolve(schema=of).iter_errors(plain(to_wire(value)))
        return [f"{each.json_path}: {each.message}" for each in errors]

    def takes_frame(self, frame: Any) -> bool:
        return self._whole.is_valid(frame)


@pytest.fixture(scope="module")
def validators(schema: dict[str, Any]) -> Validators:
    return Validators(schema)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    """One store, in a profile that hides no operation."""
    door = InProcess("owner-one", tmp_path_factory.mktemp("schema") / "beetle.db", profile="dev-full")
    yield door
    door.close()


def test_it_is_a_schema_of_every_operation_and_error(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)
    assert list(schema["operations"]) == [row.name for row in OPERATIONS]
    assert list(schema["errors"]) == list(ERRORS)
    recall = schema["$defs"]["MemoryRecallRequest"]
    assert recall["required"] == ["query"] and recall["additionalProperties"] is False
    assert recall["properties"]["limit"]["minimum"] == 1 and recall["properties"]["query"]["description"]


def test_its_bytes_change_with_the_protocol_alone(text: str) -> None:
    assert printed(seed="7") == text


def test_it_can_be_of_few_operations_and_is_whole(schema: dict[str, Any]) -> None:
    one = json.loads(printed("memory.recall"))
    assert list(one["operations"]) == ["memory.recall"]
    assert one["$defs"].items() <= schema["$defs"].items()
    assert len(one["$defs"]) < 30
    references = set(part.partition('"')[0] for part in json.dumps(one).split("#/$defs/")[1:])
    assert references <= set(one["$defs"])


@pytest.mark.parametrize("case", ONE_ANSWER, ids=lambda case: case.op)
def test_the_request_and_the_report_of_a_case_are_what_it_says(
    everything: InProcess, validators: Validators, case: Case, tmp_path: Path
) -> None:
    scope = {"owner_id": f"owner-{case.op}"}
    door = InProcess("owner-one", tmp_path / "beetle.db", profile="dev-full") if case.op == CLOSES else everything

    def ask(op: str, args: Any) -> Any:
        return door.ask(op, args, scope).report

    args = case.request(Prepared(ask))
    assert validators.errors(case.op, "request", args) == []
    if case.key is None:
        assert validators.errors(case.op, "report", ask(case.op, args)) == []


BY_CONTENT = {
    *(f"skill_registry.upload-{n}" for n in range(2, 6)), "skill_registry.search-0", "skill_registry.search-1",
    "chain.append-1", "turn.capture-5", "host_key.enroll-0", "admin.rebuild_toc-0",
}  # fmt: skip
"""Wrong requests that are judged by what a text says, or by names that are read leniently."""


def wrong() -> list[Any]:
    """The wrong requests of the table, without those whose rule joins several fields and those that JSON cannot say."""
    beyond = ({"query": "x", "limit": 2**63}, "limit")
    return [
        pytest.param(case.op, args, id=f"{case.op}-{n}")
        for case in CASES
        for n, (args, path) in enumerate(case.wrong)
        if f"{case.op}-{n}" not in BY_CONTENT
        and (path or not isinstance(args, dict))
        and (args, path) != beyond
        and b"bytes" not in leaves(args)
    ]


def leaves(value: Any) -> list[Any]:
    held = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else None
    return [value] if held is None else [leaf for each in held for leaf in leaves(each)]


@pytest.mark.parametrize(("op", "args"), wrong())
def test_a_wrong_request_is_refused_by_it(validators: Validators, op: str, args: Any) -> None:
    assert validators.errors(op, "request", args)


def test_a_report_without_a_field_or_with_another_type_is_refused_by_it(
    in_process: InProcess, validators: Validators
) -> None:
    report = in_process.call("memory.recall", {"query": "x"})
    assert validators.errors("memory.recall", "report", {**report, "from_a_later_version": 1}) == []
    for name in report:
        assert validators.errors("memory.recall", "report", {key: report[key] for key in report if key != name}), name
        assert validators.errors("memory.recall", "report", {**report, name: 5}), name


def test_the_frames_of_a_connection_are_what_it_says(over_socket: Socket, validators: Validators) -> None:
    with Connection(over_socket) as connection:
        connection.send("subscribe", OF["subscribe"].args)
        connection.send("transcript.commit", SAID)
        connection.send("memory.recall", {"query": ""})
        frames = [connection.read() for _ in range(4)]
    kinds = {"event" if "sub" in each else "report" if each["ok"] else "error" for each in frames}
    assert kinds == {"event", "report", "error"}
    for frame in frames:
        assert validators.takes_frame(plain(frame)), frame
        for name in ("v", "ok", "event"):
            assert name not in frame or not validators.takes_frame(plain({**frame, name: "x"}))
    request = {"v": 1, "id": "a", "op": "memory.recall", "args": {}, "deadline_ms": 5, "auth": {"principal": "p"}}
    assert validators.takes_frame(request)
    for change in ({"v": 2}, {"id": 1.5}, {"id": "x" * 65}, {"op": ""}, {"deadline_ms": 0}, {"more": 1}, {"args": []}):
        assert not validators.takes_frame({**request, **change}), change
