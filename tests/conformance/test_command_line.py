"""What the command line adds to the socket under it: options, JSON in and out, errors as text and exit codes."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from tests.building import (
    CONVERSATION,
    candidate,
    candidates,
    contents,
    lifecycle,
    message,
    replay,
    skill,
    talk,
    turn,
    write,
)
from tests.conformance.doors import CommandLine, Plain

REFUSED: list[tuple[str, str, Any]] = [
    ("invalid_request", "memory.recall", {"query": "x", "limit": float("nan")}),
    ("invalid_request", "memory.recall", ["query"]),
    ("invalid_request", "memory.recall", {"query": "lone \ud800 surrogate"}),
    ("invalid_request", "tool_registry.upsert", {"registry_id": "r", "fingerprint": "f", "tools": [{"tool_id": ""}]}),
    ("payload_too_large", "transcript.commit", talk(turn("t", "x" * (2**18 + 1)))),
    ("unknown_operation", "memory.recal", {"query": "x"}),
    ("not_found", "skill.detail", {"name": "nobody"}),
    ("forbidden", "private.list", {}),
    ("privacy_denied", "transcript.replay", {"conversation": CONVERSATION, "view": "raw_owner"}),
    ("capability_hidden", "harness.run", {}),
    ("services_unavailable", "memory.maintain", {"conversation": CONVERSATION}),
    ("integrity_violation", "memory.import", {"target_chat_id": "c", "mode": "bootstrap_import"}),
]


@pytest.mark.parametrize(("key", "op", "args"), REFUSED, ids=[f"{key}-{n}" for n, (key, _, _) in enumerate(REFUSED)])
def test_an_error_has_its_exit_code_and_says_what_is_wrong(command: CommandLine, key: str, op: str, args: Any) -> None:
    """`refused` holds the exit code against the key, and standard output to be empty."""
    if op == "memory.import":
        command.prepare("transcript.commit", talk(turn("t1", "hello")))
        args = {**args, "snapshot": command.prepare("memory.export", {"chat_id": "talk"})["snapshot"][:-40]}
    error = command.refused(key, op, args)
    assert error.message and error.hint and len(error.message) <= 600


def test_content_comes_back_character_by_character(command: CommandLine) -> None:
    text = (
        'NUL\x00 tab\t newline\r\n \u202eright-to-left\u202c 日本語 \U0001f41e e\u0301 ﬁ <b>&amp;</b> \\x "quoted" '
        + "x" * 3000
    )
    command.call("transcript.commit", talk(turn("t1", message("m", text), message("empty", ""))))
    assert contents(replay(command)) == [text, ""]


def test_what_is_exactly_at_its_limit_is_taken(command: CommandLine) -> None:
    assert command.call("transcript.commit", talk(turn("t", "x" * 2**18)))["committed"] == 1
    assert command.call("memory.write", write(skill("x", content="x" * 1_000_000)))["accepted"] == 1


@pytest.mark.parametrize("text", ["\x00", "日本語", '"', "x\x00pelican", "?"])
def test_any_text_is_a_query(command: CommandLine, text: str) -> None:
    assert command.call("memory.recall", {"query": text})["hits"] == []


def test_a_key_and_a_deadline_are_options(command: CommandLine) -> None:
    args = talk(turn("t1", "one"))
    first = command.call("transcript.commit", args, idempotency_key="key", deadline_ms=60_000)
    assert command.call("transcript.commit", args, idempotency_key="key") == first
    command.refused("conflict", "transcript.commit", talk(turn("t2", "two")), idempotency_key="key")
    command.refused("invalid_request", "transcript.commit", args, idempotency_key="k" * 129)


def test_the_whole_scope_is_options(command: CommandLine) -> None:
    command.prepare("transcript.commit", talk(turn("t1", "the pelican")))
    scope = {"agent_id": "another", "channel": "local", "chat_id": "talk"}
    report = command.call("memory.recall", {"query": "pelican"}, scope)
    assert report["hits"] and report["working_recall"]["current_conversation"] == CONVERSATION
    assert command.call("memory.recall", {"query": "pelican"}, {"owner_id": f"{command.owner}-x"})["hits"] == []
    for field, value in (("owner_id", ""), ("chat_id", "a\nb")):
        error = command.refused("invalid_request", "memory.recall", {"query": "x"}, {field: value})
        assert "scope" in error.message


def test_a_batch_and_a_device_s_key_pass_as_json(command: CommandLine) -> None:
    steps: list[Plain] = [
        {"op": "transcript.commit", "args": talk(turn("t1", "a pelican"))},
        {"op": "memory.write", "args": candidates(candidate("c", "pelicans eat fish", topic="pelican"))},
    ]
    committed, written = command.call("batch", {"requests": steps})["reports"]
    assert committed["committed"] == 1 and written["outcomes"][0]["outcome"] == "accepted"
    args = {"label": "Panel", "capabilities": []}
    first = command.call("device.add", args, idempotency_key="once")
    again = command.call("device.add", args, idempotency_key="once")
    assert first["appKeyOnce"] and again == {**first, "appKeyOnce": None}


def test_an_exit_code_tells_of_a_receipt_that_does_not_hold(command: CommandLine) -> None:
    command.prepare("transcript.commit", talk(turn("t1", "a gannet")))
    receipt = lifecycle(command, "mask", "t1")["receipt"]
    line = [*command.daemon.command, f"--socket={command.daemon.socket}", "verify", "--no-pages", "--receipt"]

    def verified(word: str, said: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*line, word], input=said, capture_output=True, text=True, check=False, env=command.daemon.env
        )

    good = verified(receipt)
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.endswith("The receipt is valid.\n")
    read = verified("-", f"{receipt}\n")  # the daemon's jobs go on: what else it counts may be more by now
    assert (read.returncode, read.stdout.splitlines()[-1]) == (0, "The receipt is valid.")
    wrong = verified(receipt[:-2])
    assert wrong.returncode == 9
    assert "The receipt is not valid: " in wrong.stdout
