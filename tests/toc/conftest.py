"""A runtime whose table of contents is built when a test says so, and what is read out of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.common import WireScope
from beetle.open import IN_MEMORY, Embedded, Opened, open_store
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.principals import OPERATOR_CAPABILITIES

DATA = (each / "shared/data/locomo/dev.json" for each in Path(__file__).parents)
LOCOMO = next((each for each in DATA if each.exists()), None)
JOBS = ("outbox-processor", "segment-summarizer", "hourly-rollup")
PROFILE = "profile-server-linux-dev-full"
VIEWS = ("host_ui", "model_context", "operator_audit", "export", "raw_owner")
Plain = dict[str, Any]


def open_memory(path: str = IN_MEMORY, owner: str = "owner-a", **more: Any) -> MemoryRuntime:
    """A runtime whose scheduler does not run: its jobs are asked for."""
    opened = open_store(path, PROFILE, "in-memory" if path == IN_MEMORY else "sqlite", **more)
    return of(opened, owner)


def of(opened: Opened, owner: str, *, views: tuple[Any, ...] = VIEWS) -> MemoryRuntime:
    """What an owner sees of an open store."""
    caller = Caller(
        name="embedded:test",
        kind="embedded",
        capabilities=OPERATOR_CAPABILITIES | {"transcript.raw", "private.read"},
        views=views,
        transport="in_process",
        agent_id="agent-a",
    )
    return MemoryRuntime(Embedded(opened, caller, WireScope(owner_id=owner, channel="local", chat_id="chat")))


@pytest.fixture
def memory() -> Iterator[MemoryRuntime]:
    with open_memory() as running:
        yield running


def ask(memory: MemoryRuntime, op: str, args: Mapping[str, Any] | None = None, **scope: Any) -> Plain:
    """An operation's report as plain values."""
    return memory.call(op, dict(args or {}), **scope).to_dict()


def build(memory: MemoryRuntime) -> None:
    """What the scheduler does within the hour."""
    for name in JOBS:
        ask(memory, "scheduler.run", {"job_name": name, "wait": True})


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def event(event_id: str, at: str | int, text: str, session: str = "s1", **more: Any) -> Plain:
    when = at if isinstance(at, int) else ms(at)
    made = {
        "event_id": event_id,
        "session_id": session,
        "timestamp_ms": when,
        "event_type": "user_message",
        "text": text,
    }
    return {**made, **more}


def ingest(memory: MemoryRuntime, *events: Plain) -> None:
    for first in range(0, len(events), 200):
        requests = [{"op": "event.ingest", "args": {"event": each}} for each in events[first : first + 200]]
        ask(memory, "batch", {"requests": requests})


def node(memory: MemoryRuntime, node_id: str) -> Plain:
    return ask(memory, "toc.node", {"node_id": node_id})["node"]


def children(memory: MemoryRuntime, parent: str, limit: int = 100) -> list[Plain]:
    """All of them, page by page."""
    found: list[Plain] = []
    token: str | None = None
    while True:
        page = ask(memory, "toc.browse", {"parent_id": parent, "limit": limit, "continuation_token": token})
        found += page["children"]
        token = page["continuation_token"]
        if not page["has_more"]:
            return found


def everything(memory: MemoryRuntime) -> dict[str, Plain]:
    """Every node by its id, without the number of its version, which counts the ways to it."""
    found: dict[str, Plain] = {}
    todo = list(ask(memory, "toc.root", {"limit": 100})["nodes"])
    while todo:
        each = todo.pop()
        del each["version"]
        found[each["node_id"]] = each
        todo += children(memory, each["node_id"])
    return found


def locomo(place: int = 0, sessions: int | None = None) -> list[Plain]:
    """A conversation's lines as events, twenty seconds apart in a session."""
    if LOCOMO is None:
        pytest.skip("the conversations are not here")
    conversation = json.loads(LOCOMO.read_text())[place]
    found: list[Plain] = []
    for session in conversation["sessions"][:sessions]:
        start = datetime.strptime(session["date_time"] + " +0000", "%I:%M %p on %d %B, %Y %z").timestamp() * 1000
        for line, said in enumerate(session["turns"]):
            text = f"{said['speaker']}: {said['text']}"
            found.append(event(said["dia_id"], round(start) + 20_000 * line, text, conversation["conversation_id"]))
    return found
