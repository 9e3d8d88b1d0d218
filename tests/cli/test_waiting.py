"""`beetle governance` and `beetle private delete`: what waits is listed for people, and decided."""

from __future__ import annotations

import json

from tests.cli.conftest import CommandLine

CLAIM = {
    "candidate_id": "c", "authority": "assistant_claimed", "target": "long_term", "privacy": "public_runtime",
    "topic": "rain", "content": "Mara likes rain.", "evidence_refs": ["evidence:local/c/t1/m1"],
}  # fmt: skip
MESSAGE = {"message_id": "m1", "role": "assistant", "content": "I believe Mara likes rain."}
TURN = {"turn_id": "t1", "at": "2026-03-02T08:12:00Z", "messages": [MESSAGE]}


def call(beetle: CommandLine, operation: str, **arguments: object) -> None:
    assert beetle.here("call", operation, json.dumps(arguments)).code == 0


def test_what_waits_is_listed_and_decided(beetle: CommandLine) -> None:
    call(beetle, "transcript.commit", conversation={"conversation_id": "c"}, turns=[TURN])
    assert beetle.here("governance", "list").out == "Nothing waits.\n"
    call(beetle, "memory.write", kind="candidates", candidates=[CLAIM, {**CLAIM, "topic": "snow", "content": "No."}])
    listed = beetle.here("governance", "list")
    for word in ("rain: Mara likes rain.", "needs_assertion", "assistant_claimed", "2 in all"):
        assert word in listed.out
    assert "cites evidence:local/c/t1/m1: I believe Mara likes rain." in listed.out
    first, second = (each["waiting_id"] for each in beetle.here("governance", "list", "--json").json["candidates"])
    assert first in listed.out
    accepted = beetle.here("governance", "decide", "--ids", first, "--decision", "accept", "--reason", "she told me")
    assert "accepted  created  long_term:" in accepted.out and "1 decided" in accepted.out
    decide = ("governance", "decide", "--ids", second, "--decision", "reject")
    assert beetle.here(*decide).error[0] == "invalid_request"
    rejected = beetle.here(*decide, "--reason", "a joke")
    assert "rejected  declined" in rejected.out and "Erased: no byte of what left the queue" in rejected.out
    key, message, hint = beetle.here(*decide, "--reason", "again").error
    assert (key, second in message, "beetle governance list" in hint) == ("not_found", True, True)


def test_a_job_is_listed_with_its_conversation_and_retried(beetle: CommandLine) -> None:
    finalize = {"conversation": {"conversation_id": "workshop"}, "turn": TURN}
    call(beetle, "memory.finalize_turn", **finalize)
    (job,) = beetle.here("governance", "list", "--what", "jobs", "--json").json["jobs"]
    listed = beetle.here("governance", "list").out
    assert f"{job['job_id']}  maintain  waiting" in listed and "local/workshop" in listed
    assert "retried" in beetle.here("governance", "decide", "--ids", job["job_id"], "--decision", "retry").out


def test_private_records_are_deleted_by_their_owner_alone(beetle: CommandLine) -> None:
    call(beetle, "transcript.commit", conversation={"conversation_id": "c"}, turns=[TURN])
    said = beetle.here("private", "delete", "p-1", "--dry-run")
    assert (said.code, said.error[0]) == (5, "forbidden")
