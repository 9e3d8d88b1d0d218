"""Recovery of what is made from evidence: the index by time, the keys of captured turns, the table of contents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

from beetle import MemoryRuntime
from tests.store.conftest import commit, open_runtime, store_of, turn
from tests.toc.conftest import ask, build, event, everything, ingest

EVERY_TIME = {"from_timestamp_ms": 0, "to_timestamp_ms": 253_402_300_799_999, "limit": 100}
DAMAGE: tuple[tuple[str, tuple[str, ...], dict[str, int]], ...] = (
    ("the index by time is gone", ("DELETE FROM event",), {"events": 7}),
    ("rows of other times", ("UPDATE event SET at_ms = at_ms + 7 WHERE event_id IN ('e1', 'e2')",), {"events": 4}),
    ("a name is lost", ("UPDATE event SET event_id = '' WHERE event_id = 'e3'",), {"events": 2}),
    ("a name of another", ("UPDATE event SET event_id = 'other' WHERE event_id = 'e1'",), {"events": 2}),
    ("a name of what has none", ("UPDATE event SET event_id = 'e9' WHERE event_id = ''"
     " AND message = (SELECT min(message) FROM event WHERE event_id = '')",), {"events": 2}),
    ("rows without a message", ("INSERT INTO event VALUES (1, 5, '', 777), (9, 5, 'x', 1)",), {"events": 2}),
    ("a row twice", ("INSERT INTO event SELECT space, at_ms, '', message FROM event WHERE event_id = 'e1'",),
     {"events": 1}),
    ("the keys of captured turns are gone", ("DELETE FROM captured_turn",), {"captured_turns": 3}),
    ("the contents are gone", ("DELETE FROM grip", "DELETE FROM toc_title", "DELETE FROM toc_node"),
     {"table_of_contents": 4}),
    ("no grips", ("DELETE FROM grip",), {"table_of_contents": 4}),
    ("segments of other events", ("UPDATE toc_node SET members = x'00', ends = ends + 1 WHERE level = 5",),
     {"table_of_contents": 4}),
    ("segments are gone", ("DELETE FROM toc_node WHERE level = 5",), {"table_of_contents": 4}),
    ("a year of nothing", ("INSERT INTO toc_node (space, level, node_id, starts, ends, version, stale)"
     " VALUES (1, 1, 'toc:year:1999', 915148800000, 946684799999, 1, 0)",), {"table_of_contents": 1}),
    ("all of it", ("DELETE FROM event", "DELETE FROM captured_turn", "DELETE FROM grip", "DELETE FROM toc_node"),
     {"events": 7, "captured_turns": 3, "table_of_contents": 4}),
)  # fmt: skip


def fill(memory: MemoryRuntime) -> None:
    says = (
        ("e1", "2026-01-30T10:00:00Z", "The kiln fires clay at a high temperature."),
        ("e2", "2026-01-30T10:01:00Z", "Glazing pottery needs patience and a very hot kiln."),
        ("e3", "2026-03-02T08:12:00Z", "The boiler in the cellar was repaired by the plumber."),
    )
    ingest(memory, *(event(name, at, text) for name, at, text in says))
    commit(memory, turn("t1", "The spare key is in the blue box beside the pump."))
    for index in (0, 1, 3):
        captured(memory, index)
    build(memory)


def captured(memory: MemoryRuntime, index: int) -> dict[str, Any]:
    given = {"host_session_id": "h1", "host_turn_index": index, "role": "user", "host_kind": "codex",
             "content": f"Step {index} cleans the strainer.", "timestamp_iso": "2026-02-03T04:05:06Z"}  # fmt: skip
    return ask(memory, "turn.capture", given)


def held(memory: MemoryRuntime) -> dict[str, Any]:
    """All that readers see of it."""
    return {
        "events": ask(memory, "event.range", EVERY_TIME)["events"],
        "hosts": ask(memory, "host.coverage")["hosts"],
        "nodes": everything(memory),
    }


def mended(memory: MemoryRuntime) -> dict[str, int]:
    steps = {each.step: each for each in memory.recover().steps}
    return {
        name: steps[name].count
        for name in ("events", "captured_turns", "table_of_contents")
        if steps[name].outcome != "nothing_to_do"
    }


def test_what_is_made_from_evidence_is_made_anew_where_it_was_damaged_and_kept_where_not(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    with open_runtime(path) as memory:
        fill(memory)
        before = held(memory)
        assert [len(before["events"]), before["hosts"][0]["gaps"]] == [7, 1]
        assert mended(memory) == {}
        assert held(memory) == before
    sealed = False
    for told, statements, expected in DAMAGE:
        connection = apsw.Connection(str(path))
        for each in statements:
            connection.execute(each)
        connection.close()
        with open_runtime(path) as memory:
            assert mended(memory) == expected, told
            assert held(memory) == before, told
            assert mended(memory) == {}, told
            # Rows of hosts are sealed: that some were taken out stays known.
            gone = {"seals"} if sealed or "captured_turns" in expected else set()
            assert {each.check for each in memory.verify_store().findings} == gone, told
            sealed = bool(gone)
    with open_runtime(path) as memory:
        ingest(memory, event("e1", "2026-05-05T10:00:00Z", "Another text."))
        assert captured(memory, 3)["dedup_hit"]
        assert held(memory)["events"] == before["events"]


def test_an_event_whose_name_another_one_has_stays_without_one(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "b.db") as memory:
        ingest(memory, event("e1", "2026-01-30T10:00:00Z", "First."))
        store_of(memory).write(lambda tx: tx.run("UPDATE event SET event_id = '' WHERE event_id = 'e1'"))
        ingest(memory, event("e1", "2026-01-30T11:00:00Z", "Second.", "s2"))
        before = held(memory)
        assert mended(memory) == {}
        assert held(memory) == before
