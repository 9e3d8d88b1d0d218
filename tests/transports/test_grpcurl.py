"""A client of another language: grpcurl, written in Go, knows nothing of the service but what reflection says.

go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3
PATH=$PATH:$(go env GOPATH)/bin python -m pytest -m slow tests/transports/test_grpcurl.py
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.transports.grpc_serving import SERVICE, Served

pytestmark = pytest.mark.slow
RUN_S = 60


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    if shutil.which("grpcurl") is None:
        pytest.skip("grpcurl is not installed")
    with Served(tmp_path_factory.mktemp("grpc")) as running:
        yield running


def grpcurl(served: Served, *words: str, data: dict[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
    given = [] if data is None else ["-d", json.dumps(data)]
    command = ["grpcurl", "-plaintext", *given, served.target, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)


def test_the_documented_commands_do_what_they_say(served: Served) -> None:
    assert SERVICE in grpcurl(served, "list").stdout.split()
    described = grpcurl(served, "describe", SERVICE).stdout
    assert "rpc IngestEvent ( .memory.IngestEventRequest ) returns ( .memory.IngestEventResponse );" in described
    assert "map<string, string> metadata = 7;" in grpcurl(served, "describe", "memory.Event").stdout
    event = {
        "event_id": "01HXYZDEF456GHI789JKL012",
        "session_id": "session-2026-01-30-001",
        "timestamp_ms": 1738281601000,
        "event_type": 4,
        "role": 4,
        "text": 'File contents: fn main() { println!("Hello"); }',
        "metadata": {"tool_name": "Read", "file_path": "/src/main.rs"},
    }
    ingest = f"{SERVICE}/IngestEvent"
    first = grpcurl(served, ingest, data={"event": event})
    assert json.loads(first.stdout) == {"eventId": event["event_id"], "created": True}
    assert json.loads(grpcurl(served, ingest, data={"event": event}).stdout) == {"eventId": event["event_id"]}
    ends = {"from_timestamp_ms": 1738281600000, "to_timestamp_ms": 1738281601000, "limit": 100}
    (found,) = json.loads(grpcurl(served, f"{SERVICE}/GetEvents", data=ends).stdout)["events"]
    assert (found["eventType"], found["role"]) == ("EVENT_TYPE_TOOL_RESULT", "EVENT_ROLE_TOOL")
    assert found["metadata"] == event["metadata"]
    assert json.loads(grpcurl(served, f"{SERVICE}/GetNode", data={"node_id": "toc:year:1999"}).stdout) == {}
    refused = grpcurl(served, ingest, data={})
    assert refused.returncode == 64 + 3 and "Code: InvalidArgument" in refused.stderr
