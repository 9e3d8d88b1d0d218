"""The worked examples of the service's documentation, request and answer as it prints them, and those of the client."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest

from beetle.contracts.common import WireScope
from beetle.memory_client import (
    DEFAULT_ENDPOINT,
    ConnectionFailed,
    Event,
    HookEvent,
    HookEventType,
    InvalidEndpoint,
    MemoryClient,
    RpcFailed,
    SerializationFailed,
    map_hook_event,
)
from beetle.open import Embedded
from tests.conformance.doors import embedded_caller
from tests.transports.grpc_serving import Served, Stub, refused

T0 = 1738281600000
"""2025-01-31T00:00:00Z."""
SECOND = timedelta(seconds=1)
SAID = (
    ("01HXYZEVENT000", 2, 1, "Tell me about Rust safety, please, and about its ownership model."),
    ("01HXYZEVENT001", 3, 2, "Rust's ownership system prevents data races at compile time."),
    ("01HXYZEVENT002", 2, 1, "How does the borrow checker work in the ownership system of Rust?"),
    ("01HXYZEVENT003", 3, 2, "The borrow checker enforces the ownership rules of Rust at compile time."),
    ("01HXYZEVENT004", 2, 1, "What about lifetimes in the borrow checker of Rust?"),
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("grpc"), "operators") as running:
        yield running


@pytest.fixture(scope="module")
def stub(served: Served) -> Iterator[Stub]:
    with grpc.insecure_channel(served.target) as channel:
        yield Stub(channel)


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[MemoryClient]:
    with MemoryClient.connect(f"http://{served.target}") as connected:
        yield connected


@pytest.fixture(scope="module")
def talk(served: Served, stub: Stub) -> None:
    """A conversation, and the table of contents over it."""
    for index, (event_id, kind, role, text) in enumerate(SAID):
        told = {"eventId": event_id, "sessionId": "session-001", "timestampMs": T0 + index * 5000, "text": text}
        assert stub.call("IngestEvent", {"event": {**told, "eventType": kind, "role": role}})["created"]
    here = Embedded(served.opened, embedded_caller("owner-default"), WireScope())
    here.call("admin.rebuild_toc", {}, None, None, None)


@pytest.mark.parametrize(
    "event",
    [
        {
            "event_id": "01HXYZABC123DEF456GHI789",
            "session_id": "session-2026-01-30-001",
            "timestamp_ms": T0,
            "event_type": 2,
            "role": 1,
            "text": "What is Rust and why should I use it?",
        },
        {
            "event_id": "01HXYZDEF456GHI789JKL012",
            "session_id": "session-2026-01-30-001",
            "timestamp_ms": T0 + 1000,
            "event_type": 4,
            "role": 4,
            "text": 'File contents: fn main() { println!("Hello"); }',
            "metadata": {"tool_name": "Read", "file_path": "/src/main.rs"},
        },
        {
            "event_id": "01HXYZABC123",
            "session_id": "session-1",
            "timestamp_ms": T0,
            "event_type": 2,
            "role": 1,
            "text": "Hello",
        },
    ],
    ids=["user-message", "tool-result", "repeated"],
)
def test_an_event_is_kept_once(stub: Stub, event: dict[str, Any]) -> None:
    assert stub.call("IngestEvent", {"event": event}) == {"eventId": event["event_id"], "created": True}
    assert stub.call("IngestEvent", {"event": {**event, "text": "other"}}) == {"eventId": event["event_id"]}
    asked = {"from_timestamp_ms": event["timestamp_ms"], "to_timestamp_ms": event["timestamp_ms"]}
    found = next(each for each in stub.call("GetEvents", asked)["events"] if each["eventId"] == event["event_id"])
    assert found["text"] == event["text"]
    assert (found["eventType"], found["role"]) == (event["event_type"], event["role"])
    assert found.get("metadata", {}) == event.get("metadata", {})


@pytest.mark.parametrize(
    ("rpc", "request_"),
    [
        ("IngestEvent", {}),
        ("IngestEvent", {"event": {"sessionId": "s", "timestampMs": "1", "eventType": 2}}),
        ("IngestEvent", {"event": {"eventId": "e", "timestampMs": "1", "eventType": 2}}),
        ("IngestEvent", {"event": {"eventId": "e", "sessionId": "s", "timestampMs": "1"}}),
        ("IngestEvent", {"event": {"eventId": "e", "sessionId": "s", "timestampMs": str(2**62), "eventType": 2}}),
        ("GetNode", {}),
        ("BrowseToc", {}),
        ("ExpandGrip", {}),
    ],
)
def test_what_is_missing_or_out_of_range_is_an_invalid_argument(stub: Stub, rpc: str, request_: dict[str, Any]) -> None:
    assert refused(stub, rpc, request_).code() is grpc.StatusCode.INVALID_ARGUMENT


def test_times_of_zero_and_before_1970_are_times(stub: Stub) -> None:
    for number, at in enumerate((0, -5000)):
        told = {"eventId": f"early-{number}", "sessionId": "early", "timestampMs": str(at), "eventType": 1}
        assert stub.call("IngestEvent", {"event": told})["created"]
    found = stub.call("GetEvents", {"fromTimestampMs": "-5000", "toTimestampMs": "0"})["events"]
    assert [each["eventId"] for each in found] == ["early-1", "early-0"]


@pytest.mark.usefixtures("talk")
def test_events_of_a_range_come_by_time_both_ends_included(stub: Stub) -> None:
    ends = {"from_timestamp_ms": T0 + 5000, "to_timestamp_ms": T0 + 15000}
    found = stub.call("GetEvents", ends)
    assert [each["eventId"] for each in found["events"]] == [each[0] for each in SAID[1:4]]
    assert "hasMore" not in found
    first = stub.call("GetEvents", {**ends, "limit": 2})
    assert [each["timestampMs"] for each in first["events"]] == [str(T0 + 5000), str(T0 + 10000)]
    assert first["hasMore"] is True
    assert stub.call("GetEvents", {"from_timestamp_ms": 5, "to_timestamp_ms": 1}) == {}


@pytest.mark.usefixtures("talk")
def test_the_table_of_contents_is_walked_from_a_year_to_what_was_said(stub: Stub, client: MemoryClient) -> None:
    year = next(each for each in stub.call("GetTocRoot", {})["nodes"] if each["nodeId"] == "toc:year:2025")
    assert (year["level"], year["title"], year["childNodeIds"]) == (1, "2025", ["toc:month:2025-01"])
    assert (year["startTimeMs"], year["endTimeMs"]) == ("1735689600000", "1767225599999")
    assert stub.call("GetNode", {"node_id": "toc:year:2025"})["node"] == year
    assert stub.call("GetNode", {"node_id": "toc:year:1999"}) == {}
    months = stub.call("BrowseToc", {"parent_id": "toc:year:2025", "limit": 3})
    assert [each["title"] for each in months["children"]] == ["January 2025"]
    assert "hasMore" not in months and "continuationToken" not in months
    assert stub.call("BrowseToc", {"parent_id": "toc:year:1999"}) == {}
    node = client.get_node("toc:year:2025")
    while node is not None and node.level != "segment":
        assert node.bullets and all(each.grip_ids for each in node.bullets)
        node = client.browse_toc(node.node_id, 10, None).children[-1]
    assert node is not None
    grip_id = node.bullets[0].grip_ids[0]
    found = stub.call("ExpandGrip", {"grip_id": grip_id, "events_before": 2, "events_after": 2})
    assert found["grip"]["source"] == "segment_summarizer"
    assert found["excerptEvents"][0]["eventId"] == found["grip"]["eventIdStart"]
    assert found["excerptEvents"][-1]["eventId"] == found["grip"]["eventIdEnd"]
    around = [*found.get("eventsBefore", []), *found["excerptEvents"], *found.get("eventsAfter", [])]
    assert len({each["sessionId"] for each in around}) == 1
    alone = client.expand_grip(grip_id, 0, 0)
    assert not alone.events_before and not alone.events_after and alone.excerpt_events
    assert stub.call("ExpandGrip", {"grip_id": "nonexistent"}) == {}


@pytest.mark.usefixtures("talk")
def test_search_finds_periods_and_what_was_said(client: MemoryClient) -> None:
    days = client.search_children("borrow checker", child_level="day")
    assert [each.node_id for each in days] == ["toc:day:2025-01-31"]
    assert client.search_node("toc:day:2025-01-31", "borrow checker")
    hits = client.search("borrow checker")
    assert "borrow checker" in hits[0].text_preview and hits[0].doc_id.startswith("evidence:")
    within = {"start_ms": T0, "end_ms": T0 + 10_001}
    found = client.ask("HybridSearch", {"query": "borrow checker", "time_filter": within})
    assert {each["timestamp_ms"] for each in found["matches"]} <= {T0, T0 + 5000, T0 + 10_000}
    assert found["mode_used"] == "bm25_only" and found["matches"]


def test_a_job_is_paused_and_resumed(stub: Stub, client: MemoryClient) -> None:
    status = stub.call("GetSchedulerStatus", {})
    jobs = {each["jobName"]: each for each in status["jobs"]}
    crons = {"hourly-rollup": "0 0 * * * *", "segment-summarizer": "0 */15 * * * *", "outbox-processor": "0 * * * * *"}
    assert {name: jobs[name]["cronExpr"] for name in crons} == crons
    assert stub.call("PauseJob", {"job_name": "hourly-rollup"}) == {"success": True}
    paused = {each.job_name: each.is_paused for each in client.get_scheduler_status().jobs}
    assert paused["hourly-rollup"] and not paused["segment-summarizer"]
    assert stub.call("ResumeJob", {"job_name": "hourly-rollup"}) == {"success": True}
    assert client.pause_job("no-such-job") == (False, "Job not found: no-such-job")


def test_the_clients_complete_example(client: MemoryClient) -> None:
    now = datetime(2026, 1, 30, 10, tzinfo=UTC)
    hooks = [
        HookEvent("complete", HookEventType.SessionStart, "").with_timestamp(now),
        HookEvent("complete", HookEventType.UserPromptSubmit, "What is Rust?").with_timestamp(now + SECOND),
        HookEvent("complete", HookEventType.ToolResult, "File contents")
        .with_timestamp(now + 2 * SECOND)
        .with_tool_name("Read")
        .with_metadata({"file_path": "/src/main.rs"}),
    ]
    events = [map_hook_event(each) for each in hooks]
    assert client.ingest(events[0]) == (events[0].event_id, True)
    assert client.ingest_batch(events) == 2
    begin = int(now.timestamp() * 1000)
    found = client.get_events(begin, begin + 60_000, 2)
    assert [(each.event_type, each.role, each.text) for each in found.events] == [
        ("session_start", "system", ""),
        ("user_message", "user", "What is Rust?"),
    ]
    assert found.has_more
    rest = client.get_events(begin, begin + 60_000, 2, found.continuation_token)
    assert rest.events[0].metadata == {"tool_name": "Read", "file_path": "/src/main.rs"}
    assert not rest.has_more


def test_a_batch_ends_at_the_first_event_that_is_refused(client: MemoryClient) -> None:
    events = [
        Event(event_id=name, session_id="batch", timestamp_ms=1, event_type="user_message")
        for name in ("batch-1", "", "batch-2")
    ]
    with pytest.raises(RpcFailed) as caught:
        client.ingest_batch(events)
    assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.error is not None and caught.value.error.key == "invalid_request"
    kept = client.get_events(1, 1).events
    assert [each.event_id for each in kept if each.session_id == "batch"] == ["batch-1"]


def test_each_kind_of_error_of_the_client(client: MemoryClient, served: Served) -> None:
    for endpoint in ("localhost", "ftp://localhost:1", "http://localhost:0", "http://localhost:99999", ""):
        with pytest.raises(InvalidEndpoint):
            MemoryClient.connect(endpoint)
    with pytest.raises(SerializationFailed):
        client.get_events(2**70, 0)
    closed = MemoryClient(f"http://{served.target}")
    closed.close()
    with pytest.raises(ConnectionFailed):
        closed.get_toc_root()
    kinds = [each.kind for each in (ConnectionFailed, RpcFailed, SerializationFailed, InvalidEndpoint)]
    assert kinds == ["Connection", "Rpc", "Serialization", "InvalidEndpoint"]
    assert DEFAULT_ENDPOINT == "http://[::1]:50051"
