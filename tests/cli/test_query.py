"""`query`, `admin` and the short options of the Agent Memory command line: what they take, and what they print."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from beetle.cli.parser import split_arguments
from beetle.contracts.errors import InvalidRequest
from tests.transports.grpc_serving import Served

from .conftest import CommandLine

T0 = 1738231200000
"""2025-01-30T10:00:00Z."""
SAID = (
    ("01HXYZABC001", "user", "What is Rust, and how does its ownership system work?"),
    ("01HXYZABC002", "assistant", "Rust is a systems programming language whose ownership system prevents data races."),
    ("01HXYZABC003", "user", "How does the borrow checker of Rust enforce the ownership system?"),
)


def fill(beetle: CommandLine) -> None:
    for index, (event_id, role, text) in enumerate(SAID):
        told = {"event_id": event_id, "session_id": "s", "timestamp_ms": T0 + index * 5000, "text": text}
        event = {"event": {**told, "role": role, "event_type": f"{role}_message"}}
        assert beetle.here("call", "event.ingest", json.dumps(event)).code == 0
    assert beetle.here("admin", "rebuild-toc").out.startswith("Rebuilt 1 day of sessions: 5 nodes")


def test_the_past_is_browsed_from_the_years_to_what_was_said(beetle: CommandLine) -> None:
    assert beetle.here("query", "root").code == 3, "a store that is not there is not made"
    fill(beetle)
    assert beetle.here("query", "root").out == 'TOC Root Nodes:\n  - toc:year:2025 "2025" (1 child)\n'
    lines = beetle.here("query", "node", "toc:year:2025").out.splitlines()
    assert lines[:3] == ["Node: toc:year:2025", "  Title: 2025", "  Level: Year"]
    assert lines[-3:-1] == ["  Children: 1", "  Time Range: 2025-01-01 to 2025-12-31"]
    said = beetle.here("query", "browse", "toc:year:2025", "-l", "1", "-t", "0").out
    assert said.startswith('Children of toc:year:2025:\n  1. toc:month:2025-01 "January 2025"\n')
    assert said.endswith("\nPage 1 of 1 (has_more: false)\n")
    ends = ("--from", str(T0), "--to", str(T0 + 5000))
    assert beetle.here("query", "events", *ends, "-l", "1").out.splitlines()[:5] == [
        f"Events ({T0} - {T0 + 5000}):",
        "  1. 01HXYZABC001 [USER] 2025-01-30 10:00:00",
        '     "What is Rust, and how does its ownership system work?"',
        "",
        "Total: 1 event (has_more: true)",
    ]
    assert len(beetle.here("--json", "query", "events", *ends).json["events"]) == 2
    node = beetle.here("--json", "query", "search", "borrow checker", "--child-level", "segment").json["nodes"][0]
    grip_id = node["node"]["bullets"][0]["grip_ids"][0]
    lines = beetle.here("query", "expand", grip_id, "--before", "1", "--after", "1").out.splitlines()
    assert lines[0] == f"Grip: {grip_id}"
    assert lines[2] == "  Source: segment_summarizer"
    assert [each for each in lines if each.startswith("  ---")] == [
        "  --- BEFORE ---",
        "  --- EXCERPT ---",
        "  --- AFTER ---",
    ]
    assert beetle.here("query", "expand", "grip:none").out == "There is no such grip.\n"
    assert beetle.here("query", "node", "toc:year:1999").out == "There is no such node.\n"
    assert beetle.here("query", "events", "--from", "x", "--to", "1").error[0] == "invalid_request"


def test_pages_of_children_are_numbered(beetle: CommandLine) -> None:
    asked = []
    for month in range(1, 8):
        at = int(datetime(2025, month, 15, tzinfo=UTC).timestamp() * 1000)
        event = {"event_id": f"e{month}", "session_id": "s", "event_type": "user_message", "text": SAID[0][2]}
        asked.append({"op": "event.ingest", "args": {"event": {**event, "timestamp_ms": at}}})
    assert beetle.here("call", "batch", json.dumps({"requests": asked})).code == 0
    beetle.here("admin", "rebuild-toc")
    browse = ("query", "browse", "toc:year:2025")
    last = [beetle.here(*browse, "-l", "3", "-t", token).out.splitlines()[-1] for token in ("0", "3", "6")]
    assert last == [
        'Page 1 of 3 (has_more: true, next_token: "3")',
        'Page 2 of 3 (has_more: true, next_token: "6")',
        "Page 3 of 3 (has_more: false)",
    ]
    assert beetle.here(*browse).out.splitlines()[-1] == "Page 1 of 1 (has_more: false)"
    assert (
        beetle.here(*browse, "-t", "9").out == beetle.here("query", "browse", "toc:year:1999").out == "No children.\n"
    )


def test_the_store_is_counted_compacted_and_its_contents_rebuilt(beetle: CommandLine) -> None:
    fill(beetle)
    said = beetle.here("admin", "stats")
    assert said.out.startswith(f"Database Statistics:\n  Path: {beetle.store}\n  Size: ")
    assert "    events: 3 entries, " in said.out and "    outbox: 0 entries, " in said.out
    families = beetle.here("--json", "admin", "stats").json["families"]
    assert {each["name"]: each["entries"] for each in families if each["entries"] is not None} == {
        "events": 3, "toc": 5, "grips": families[2]["entries"], "outbox": 0,
    }  # fmt: skip
    assert all(each["bytes"] > 0 for each in families)
    assert beetle.here("admin", "compact").out.startswith("Compaction:\n  checkpoint: ")
    steps = beetle.here("--json", "admin", "compact", "--cf", "toc").json["steps"]
    assert [each["step"] for each in steps] == ["checkpoint", "vacuum"]
    told = beetle.here("admin", "rebuild-toc", "--dry-run", "--from-date", "2025-01-01").out
    assert told == "Would rebuild 1 day of sessions; nothing was changed.\n"


def test_a_query_is_asked_over_grpc_and_says_the_same(beetle: CommandLine, folder: Path) -> None:
    fill(beetle)
    asked = [("query", "root"), ("query", "node", "toc:year:2025"), ("query", "browse", "toc:year:2025"),
             ("query", "events", "--from", str(T0), "--to", str(T0 + 5000), "--limit", "1")]  # fmt: skip
    here = [beetle.here(*words).out.partition("More: ")[0] for words in asked]
    with Served(folder, "operators") as running:
        endpoint = f"http://{running.target}"
        switched = [beetle.run("scheduler", "-e", endpoint, word, "hourly-rollup").out for word in ("pause", "resume")]
        again = beetle.run("--json", "scheduler", "resume", "hourly-rollup", "--endpoint", endpoint).json
        unknown = beetle.run("scheduler", "pause", "nothing", "--endpoint", endpoint)
        there = [beetle.run(words[0], "-e", endpoint, *words[1:]) for words in asked]
        refused = beetle.run("recall", "Rust", "--endpoint", endpoint)
    assert [each.out.partition("More: ")[0] for each in there] == here
    assert switched == ["Job 'hourly-rollup' paused\n", "Job 'hourly-rollup' resumed\n"]
    assert (again["changed"], again["job"]["cron_expr"], again["job"]["is_paused"]) == (False, "0 0 * * * *", False)
    assert (unknown.error[0], unknown.code) == ("not_found", 3)
    assert refused.error[0] == "invalid_request" and "over gRPC" in refused.error[1]
    assert beetle.run("query", "-e", "nonsense", "root").error[0] == "invalid_request"


@pytest.mark.parametrize(
    ("tokens", "options"),
    [
        (["-c", "f.toml", "status"], ("--config=f.toml",)),
        (["--db-path", "b.db", "stop"], ("--store=b.db",)),
        (["-l", "debug", "start"], ("--log-level=debug",)),
        (["query", "-e", "http://localhost:1", "root"], ("--endpoint=http://localhost:1",)),
        (["admin", "--db-path=b.db", "stats"], ("--store=b.db",)),
    ],
)
def test_global_options_have_their_short_names(tokens: list[str], options: tuple[str, ...]) -> None:
    from beetle.cli.commands import COMMANDS

    assert split_arguments(tokens, COMMANDS).options == options


@pytest.mark.parametrize(
    "words", [("-l", "loud", "serve"), ("start", "-p", "nonsense"), ("start", "-p", "1", "--grpc", "localhost:1")]
)
def test_a_level_or_port_that_is_none_is_refused(beetle: CommandLine, words: tuple[str, ...]) -> None:
    assert beetle.run(*words).error[0] == InvalidRequest.key
