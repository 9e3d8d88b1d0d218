"""What the tests of the area Time look at: events of three years, and turns that two hosts captured, some with gaps."""

from __future__ import annotations

from datetime import datetime

from beetle.client import Client

JOBS = ("outbox-processor", "segment-summarizer", "hourly-rollup")
SAID = (
    ("e1", "2023-05-07T10:00:00Z", "piano", "The old piano in the hall was tuned by the neighbour for the concert."),
    ("e2", "2024-12-30T09:00:00Z", "harbour", "Our move to the house by the harbour begins with forty boxes."),
    ("e3", "2026-01-28T08:00:00Z", "kiln", "The kiln fires clay at a high temperature."),
    ("e4", "2026-01-30T08:12:00Z", "pump", "Good morning."),
    ("e5", "2026-01-30T08:13:00Z", "pump", "The pump on line 2 is loud again because the strainer is full of foam."),
    ("e6", "2026-01-30T08:14:00Z", "pump", "Ok."),
    ("e7", "2026-01-30T08:15:00Z", "pump", "My number is 555 0199."),
    ("e8", "2026-01-30T11:00:00Z", "pump", "Cleaning the strainer of the pump helped and now the pump is quiet."),
    ("e9", "2026-01-30T11:05:00Z", "boiler", "The boiler in the cellar was repaired by the plumber from the village."),
    ("e10", "2026-02-17T16:05:00Z", "keys", "予備の鍵は青い箱に入っています。 The spare key is in the blue box."),
)
"""Id, time, session and text of each event; e7 is masked."""
CAPTURED = (("claude-code", "1.4.0", "s1", (0, 1, 2)), ("codex", "0.9.1", "s2", (0, 1, 4, 5, 9)))
"""Host, version, session and indexes of the turns that came."""


def remember(client: Client) -> None:
    """Keep all of it, and build the contents."""
    for event_id, at, session, text in SAID:
        said = {"event_id": event_id, "session_id": session, "timestamp_ms": milliseconds(at),
                "event_type": "user_message", "text": text}  # fmt: skip
        client.call("event.ingest", {"event": said})
    for host, version, session, indexes in CAPTURED:
        for index in (*indexes, indexes[-1]):
            client.capture_turn(
                host_session_id=session, host_turn_index=index, role="assistant" if index % 2 else "user",
                content=f"Step {index}.", host_kind=host, host_version=version,
                timestamp_iso=f"2026-03-0{1 + index // 5}T12:0{index}:00Z",
            )  # fmt: skip
    pump = {"channel_id": "event", "conversation_id": "pump"}
    masked = {"conversation": pump, "action": "mask", "turn_ids": ["e7"], "reason": "a private number"}
    client.call("transcript.lifecycle", masked)
    build(client)


def build(client: Client) -> None:
    """What the scheduler does within the hour."""
    for name in JOBS:
        client.call("scheduler.run", {"job_name": name, "wait": True})


def milliseconds(at: str) -> int:
    return round(datetime.fromisoformat(at).timestamp() * 1000)
