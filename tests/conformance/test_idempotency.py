"""The same key with the same request answers the first report again; with another it is a conflict."""

from __future__ import annotations

from typing import Any

import pytest

from tests.building import CONVERSATION, contents, replay, skill, step, talk, turn, write
from tests.conformance.doors import Door, InProcess, Plain, embedded_caller

COMMIT = talk(turn("t1", "one"))


def requests() -> list[tuple[str, Plain]]:
    """A write of every kind, in an order in which each can be done."""
    return [
        ("transcript.commit", COMMIT),
        ("memory.write", write(skill("x"))),
        ("skill.edit", {"name": "x", "title": "T", "edit_reason": "r"}),
        ("skill.set_enabled", {"name": "x", "enabled": False}),
        ("transcript.lifecycle", step("mask", "t1")),
        ("transcript.lifecycle", step("delete_raw", "t1")),
        ("skill.delete", {"name": "x"}),
        ("batch", {"requests": [{"op": "memory.write", "args": write(skill("y"))}]}),
    ]


def test_every_write_repeats_its_first_report(door: Door) -> None:
    for number, (op, args) in enumerate(requests()):
        first = door.ask(op, args, idempotency_key=f"key-{number}")
        again = door.ask(op, args, idempotency_key=f"key-{number}")
        assert again.report == first.report, op
        assert (first.repeated, again.repeated) in ((False, True), (None, None)), op
    assert door.call("store.verify", {})["clean"] is True


def test_a_used_key_with_another_request_is_a_conflict(door: Door) -> None:
    door.ask("transcript.commit", COMMIT, idempotency_key="key")
    others: list[tuple[str, Plain, dict[str, str] | None]] = [
        ("transcript.commit", talk(turn("t2", "two")), None),
        ("memory.write", write(skill("x")), None),
        ("transcript.commit", COMMIT, {"chat_id": "another"}),
    ]
    for op, args, scope in others:
        error = door.refused("conflict", op, args, scope, idempotency_key="key")
        assert "idempotency key" in error.message
    assert contents(replay(door)) == ["one"]
    assert door.call("skill.list", {})["total"] == 0


def test_a_key_belongs_to_its_space(door: Door) -> None:
    door.ask("transcript.commit", COMMIT, idempotency_key="key")
    elsewhere = door.ask("transcript.commit", talk(turn("t9", "nine")), {"owner_id": f"{door.owner}-x"}, "key")
    assert elsewhere.report["committed"] == 1
    assert elsewhere.repeated in (False, None)


def test_a_key_belongs_to_its_principal(in_process: InProcess) -> None:
    in_process.ask("transcript.commit", COMMIT, idempotency_key="key")
    other = embedded_caller("owner-one", name="another")
    answer = in_process.ask("transcript.commit", talk(turn("t9", "nine")), idempotency_key="key", caller=other)
    assert (answer.report["committed"], answer.repeated) == (1, False)


def test_a_failed_request_does_not_use_its_key(door: Door) -> None:
    door.refused("not_found", "skill.delete", {"name": "x"}, idempotency_key="key")
    door.prepare("memory.write", write(skill("x")))
    assert door.ask("skill.delete", {"name": "x"}, idempotency_key="key").report["outcome"] == "deleted"


def test_a_repeated_report_outlives_a_restart(in_process: InProcess) -> None:
    first = in_process.ask("transcript.commit", COMMIT, idempotency_key="key")
    in_process.restart()
    again = in_process.ask("transcript.commit", COMMIT, idempotency_key="key")
    assert again == (first.report, True)
    in_process.refused("conflict", "transcript.commit", talk(turn("t2", "two")), idempotency_key="key")


def test_a_repeated_batch_answers_what_it_wrote_and_keeps_no_content(in_process: InProcess) -> None:
    args = {
        "requests": [
            {"op": "transcript.commit", "args": talk(turn("t1", "a very secret pelican"))},
            {"op": "transcript.replay", "args": {"conversation": CONVERSATION, "view": "host_ui"}},
        ]
    }
    first = in_process.ask("batch", args, idempotency_key="key")
    assert "secret" in str(first.report)
    in_process.call("transcript.lifecycle", step("delete_raw", "t1"))
    again = in_process.ask("batch", args, idempotency_key="key")
    assert again.repeated is True
    assert again.report["reports"][0] == first.report["reports"][0]
    assert "secret" not in str(again.report)


@pytest.mark.parametrize("key", ["", "k" * 129, "é" * 65])
def test_a_key_is_of_1_to_128_bytes(door: Door, key: str) -> None:
    with pytest.raises(Exception) as caught:
        door.ask("transcript.commit", COMMIT, idempotency_key=key)
    assert getattr(caught.value, "key", None) in ("invalid_request", "payload_too_large"), caught.value
    assert door.ask("transcript.commit", COMMIT, idempotency_key="k" * 128).report["committed"] == 1


@pytest.mark.parametrize("key", ["\ud800", "a\udfff", 7, b"key", ["key"]])
def test_a_key_that_is_no_text_is_refused_in_process_as_by_a_socket(in_process: InProcess, key: Any) -> None:
    refused = in_process.refused("invalid_request", "transcript.commit", COMMIT, idempotency_key=key)
    assert refused.details["path"] == "$.idempotency_key"


@pytest.mark.parametrize("deadline", [0, -1, "soon", 1.5])
def test_a_deadline_that_is_no_number_of_milliseconds_is_refused_in_process_too(
    in_process: InProcess, deadline: Any
) -> None:
    refused = in_process.refused("invalid_request", "transcript.commit", COMMIT, deadline_ms=deadline)
    assert refused.details["path"] == "$.deadline_ms"
