"""event.ingest and event.range: events as evidence, in order of time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.common import MemoryIdentity
from beetle.contracts.errors import Conflict, InvalidRequest, PayloadTooLarge
from beetle.hook_events import HookEvent, HookEventType, ingest_batch, map_hook_event
from beetle.hook_events import ingest as hook_ingest
from tests.building import CONVERSATION, step, talk, turn

Plain = dict[str, Any]
AT = 1_738_281_600_000


@pytest.fixture
def memory() -> Iterator[MemoryRuntime]:
    with MemoryRuntime.open(":memory:") as opened:
        yield opened


def event(event_id: str = "01HXYZABC123", **more: Any) -> Plain:
    made = {"event_id": event_id, "session_id": "session-1", "timestamp_ms": AT, "event_type": "user_message", **more}
    return {"event": {"role": "user", "text": "Hello", **made}}


def ingest(memory: MemoryRuntime, event_id: str, **more: Any) -> Plain:
    return memory.call("event.ingest", event(event_id, **more)).to_dict()


def within(memory: MemoryRuntime, first: int, last: int, **more: Any) -> Plain:
    return memory.call("event.range", {"from_timestamp_ms": first, "to_timestamp_ms": last, **more}).to_dict()


def ids(report: Plain) -> list[str]:
    return [each["event_id"] for each in report["events"]]


def every_page(memory: MemoryRuntime, first: int, last: int, limit: int) -> list[str]:
    found: list[str] = []
    cursor: Plain = {}
    while True:
        page = within(memory, first, last, limit=limit, **cursor)
        assert len(page["events"]) <= limit
        found += ids(page)
        assert page["has_more"] is (page["next_cursor"] is not None)
        if not page["has_more"]:
            return found
        cursor = {"cursor": page["next_cursor"]}


def test_the_first_delivery_of_an_event_is_kept_and_later_ones_change_nothing(memory: MemoryRuntime) -> None:
    first = ingest(memory, "e", text="Hello")
    again = ingest(memory, "e", text="Bye", session_id="another", timestamp_ms=0)
    assert (first["event_id"], first["created"], first["lifecycle"]["changed"]) == ("e", True, True)
    assert (again["event_id"], again["created"], again["lifecycle"]["changed"]) == ("e", False, False)
    (found,) = within(memory, AT, AT)["events"]
    assert (found["text"], found["session_id"], found["timestamp_ms"]) == ("Hello", "session-1", AT)


def test_an_event_comes_back_as_it_was_given(memory: MemoryRuntime) -> None:
    metadata = {"tool_name": "Read", "file_path": "/src/main.rs", "empty": ""}
    given = {"event_type": "tool_result", "role": "tool", "text": "zero \0 byte\r\n", "agent": "claude"}
    ingest(memory, "e", metadata=metadata, **given)
    (found,) = within(memory, AT, AT)["events"]
    assert {name: found[name] for name in given} == given
    assert found["metadata"] == metadata and found["ref"] == "evidence:event/session-1/e/e"


@pytest.mark.parametrize("kind", ["session_start", "user_message", "assistant_message", "tool_result", "assistant_stop",
                                  "subagent_start", "subagent_stop", "session_end"])  # fmt: skip
def test_each_type_of_event_is_kept(memory: MemoryRuntime, kind: str) -> None:
    ingest(memory, kind, event_type=kind, role="system", text="")
    assert [(e["event_type"], e["role"], e["text"]) for e in within(memory, AT, AT)["events"]] == [(kind, "system", "")]


def test_a_range_includes_both_ends_and_orders_by_time_and_id_however_events_came(memory: MemoryRuntime) -> None:
    given = [(AT + n // 3, f"e{n % 3}-{n}") for n in range(12)]
    random.Random(5).shuffle(given)
    for at, name in given:
        ingest(memory, name, timestamp_ms=at, session_id=f"s{at % 2}")
    ordered = [name for _, name in sorted(given)]
    assert ids(within(memory, AT, AT + 3)) == ordered
    assert ids(within(memory, AT + 1, AT + 2)) == ordered[3:9]
    assert ids(within(memory, AT + 4, AT + 100)) == ids(within(memory, AT + 3, AT)) == []


def test_more_events_of_one_millisecond_than_a_page_holds_are_paged_without_loss(memory: MemoryRuntime) -> None:
    names = [f"e{n:02}" for n in range(25)]
    for name in reversed(names):
        ingest(memory, name, session_id=f"s{int(name[1:]) % 4}")
    assert every_page(memory, AT, AT, 4) == every_page(memory, AT, AT, 25) == names
    page = within(memory, AT, AT, limit=4)
    ingest(memory, "e00a")
    assert ids(within(memory, AT, AT, limit=4, cursor=page["next_cursor"])) == names[4:8]
    with pytest.raises(InvalidRequest):
        within(memory, AT, AT + 1, cursor=page["next_cursor"])


def test_a_limit_of_nothing_or_less_is_fifty(memory: MemoryRuntime) -> None:
    for n in range(60):
        ingest(memory, f"e{n}")
    for limit in (0, -1, -(2**31)):
        assert (len(within(memory, AT, AT, limit=limit)["events"]), within(memory, AT, AT)["has_more"]) == (50, True)


def test_times_before_the_epoch_are_times(memory: MemoryRuntime) -> None:
    for at in (-62_135_596_800_000, -1, 0, 1, 253_402_300_799_999):
        ingest(memory, f"at{at}", timestamp_ms=at)
    assert ids(within(memory, -2, 1)) == ["at-1", "at0", "at1"]
    assert len(within(memory, -62_135_596_800_000, 253_402_300_799_999)["events"]) == 5
    for at in (-62_135_596_800_001, 253_402_300_800_000, 2**63 - 1):
        with pytest.raises(InvalidRequest, match="timestamp_ms"):
            ingest(memory, "x", timestamp_ms=at)


def test_ids_are_opaque_and_bounded_in_bytes(memory: MemoryRuntime) -> None:
    for name in ("01HXYZABC123", "01hxyzabc123", "é" * 64, "a/b c%", "x" * 128):
        assert ingest(memory, name)["created"]
    assert set(ids(within(memory, AT, AT))) == {"01HXYZABC123", "01hxyzabc123", "é" * 64, "a/b c%", "x" * 128}
    for name in ("", "é" * 65, "x" * 129):
        with pytest.raises(InvalidRequest):
            ingest(memory, name)


def test_an_event_is_a_turn_of_its_session(memory: MemoryRuntime) -> None:
    ingest(memory, "e1", text="the boat is called Aurora")
    where = {"conversation": {"channel_id": "event", "conversation_id": "session-1"}, "view": "host_ui"}
    (turn_,) = memory.call("transcript.timeline", where).to_dict()["turns"]
    assert (turn_["turn_id"], turn_["messages"][0]["event_type"]) == ("e1", "user_message")
    (hit,) = memory.recall("Aurora").hits
    assert hit.ref == "evidence:event/session-1/e1/e1"
    memory.call("transcript.lifecycle", {**where_of(where), "action": "mask", "turn_ids": ["e1"], "reason": "asked"})
    (found,) = within(memory, AT, AT)["events"]
    assert (found["text"], found["metadata"], found["state"]) == (None, None, "masked")
    assert found["redacted"]["reason"] == "masked"
    memory.call(
        "transcript.lifecycle", {**where_of(where), "action": "delete_raw", "turn_ids": ["e1"], "reason": "asked"}
    )
    assert not ingest(memory, "e1", text="the boat is called Aurora")["created"]
    assert within(memory, AT, AT)["events"][0]["text"] is None
    assert memory.call("store.verify").to_dict()["findings"] == ()


def where_of(asked: Plain) -> Plain:
    return {"conversation": asked["conversation"]}


def test_turns_that_came_in_another_way_are_events_too(memory: MemoryRuntime) -> None:
    at = "2025-01-31T00:00:00.0009Z"
    memory.call("transcript.commit", talk(turn("t1", "hello there", at=at), turn("t2", "private", at=at)))
    memory.call("transcript.lifecycle", step("mask", "t2"))
    ingest(memory, "0", timestamp_ms=AT)
    refs = [f"evidence:{'/'.join(CONVERSATION.values())}/{t}/{t}.0" for t in ("t1", "t2")]
    found = within(memory, AT, AT)["events"]
    assert [each["event_id"] for each in found] == [*refs, "0"]
    assert [(e["event_type"], e["role"], e["text"]) for e in found] == [
        ("user_message", "user", "hello there"), ("user_message", "user", None), ("user_message", "user", "Hello"),
    ]  # fmt: skip


def test_what_is_wrong_with_an_event_is_told_by_its_path(memory: MemoryRuntime) -> None:
    for wrong, path in (
        ({"session_id": ""}, "session_id"), ({"event_type": "unspecified"}, "event_type"), ({"role": "robot"}, "role"),
        ({"metadata": {"a": 1}}, "metadata"), ({"timestamp_ms": 1.5}, "timestamp_ms"),
    ):  # fmt: skip
        with pytest.raises(InvalidRequest) as caught:
            ingest(memory, "e", **wrong)
        assert path in caught.value.details["path"]
    for missing in ("event_id", "session_id", "timestamp_ms", "event_type"):
        given = event("e")["event"]
        del given[missing]
        with pytest.raises(InvalidRequest, match=missing):
            memory.call("event.ingest", {"event": given})
    with pytest.raises(InvalidRequest):
        memory.call("event.ingest", {})
    with pytest.raises(PayloadTooLarge):
        ingest(memory, "e", metadata={"much": "x" * (4 << 20)})
    where = {"channel_id": "event", "conversation_id": "session-1"}
    memory.call("transcript.commit", talk(turn("mine", "x"), conversation=where))
    with pytest.raises(Conflict):
        ingest(memory, "mine")
    assert ids(within(memory, AT, AT)) == []


def test_another_owner_has_events_of_its_own(tmp_path: Path) -> None:
    store = str(tmp_path / "b.db")
    with MemoryRuntime.open(store) as memory:
        ingest(memory, "e", text="mine")
    with MemoryRuntime.open(store, identity=MemoryIdentity(owner_id="another")) as memory:
        assert within(memory, AT, AT)["events"] == ()
        assert ingest(memory, "e", text="theirs")["created"]
    with MemoryRuntime.open(store) as memory:
        assert [each["text"] for each in within(memory, AT, AT)["events"]] == ["mine"]


def test_hooks_are_events(memory: MemoryRuntime) -> None:
    at = datetime(2026, 1, 30, 10, 0, 0, 999, tzinfo=UTC)
    plain = HookEvent("session-1", HookEventType.UserPromptSubmit, "Hello!")
    read = HookEvent("session-1", HookEventType.ToolResult, "File contents").with_timestamp(at)
    read = read.with_metadata({"file_path": "/src/main.rs", "tool_name": "x"}).with_tool_name("Read")
    mapped = map_hook_event(read)
    assert (mapped.event_type, mapped.role, mapped.text) == ("tool_result", "tool", "File contents")
    assert mapped.timestamp_ms == 1769767200000
    assert mapped.metadata == {"file_path": "/src/main.rs", "tool_name": "Read"}
    kinds = {each: map_hook_event(HookEvent("s", each, "")) for each in HookEventType}
    assert [(e.event_type, e.role) for e in kinds.values()] == [
        ("session_start", "system"), ("user_message", "user"), ("assistant_message", "assistant"),
        ("tool_result", "tool"), ("tool_result", "tool"), ("session_end", "system"), ("subagent_start", "system"),
        ("subagent_stop", "system"),
    ]  # fmt: skip
    event_ = map_hook_event(plain)
    assert len(event_.event_id) == 26 and event_.event_id != map_hook_event(plain).event_id
    assert hook_ingest(memory, event_) == (event_.event_id, True)
    assert ingest_batch(memory, [event_, mapped, *kinds.values()]) == 9
