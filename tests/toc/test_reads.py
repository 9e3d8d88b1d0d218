"""What reads of the time index cost follows from what they answer, not from how much there is beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw

from beetle import MemoryRuntime
from tests.toc.conftest import Plain, ask, build, event, everything, ingest, ms, node, open_memory

DAY, MINUTE = 86_400_000, 60_000
BEGIN = ms("2026-03-02T10:00:00Z")
LINES = (
    "The pump on line 2 is loud again because the strainer is full.",
    "Cleaning the strainer of the pump helped.",
    "The kiln fires clay at a high temperature.",
    "Glazing pottery needs patience.",
)


def session(number: int, at: int) -> list[Plain]:
    """Four events of a session, a minute apart."""
    return [event(f"e{number}-{n}", at + n * MINUTE, line, f"s{number}") for n, line in enumerate(LINES)]


def fill(memory: MemoryRuntime, *, much: bool) -> None:
    """A week of one session a day; with `much` also sessions beside them, and in the years before and after."""
    for number in range(7):
        ingest(memory, *session(number, BEGIN + number * DAY))
    if much:
        for number in range(7, 27):
            ingest(memory, *session(number, BEGIN + number * 120 * MINUTE // 20 + 40 * MINUTE))
        for number in range(27, 67):
            ingest(memory, *session(number, BEGIN + (number - 47) * 97 * DAY))
    build(memory)


@contextmanager
def counted(memory: MemoryRuntime) -> Iterator[dict[str, int]]:
    """Counts the steps of every statement that is read with, and the rows that full scans step over."""
    found = {"steps": 0, "scanned": 0}

    def add(told: dict[str, Any]) -> None:
        found["steps"] += told["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]
        found["scanned"] += told["stmt_status"]["SQLITE_STMTSTATUS_FULLSCAN_STEP"]

    with memory._opened._opened.store.read() as tx:
        connection = tx.connection
    connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, add)
    try:
        yield found
    finally:
        connection.trace_v2(0)


def costs(memory: MemoryRuntime) -> dict[str, tuple[int, int]]:
    """Steps and scanned rows of each read."""
    (grip_id,) = node(memory, "toc:day:2026-03-05")["bullets"][0]["grip_ids"]
    first = {"from_timestamp_ms": BEGIN, "to_timestamp_ms": ms("2030-01-01T00:00:00Z"), "limit": 10}
    cursor = ask(memory, "event.range", first)["next_cursor"]
    asked: dict[str, tuple[str, Plain]] = {
        "range": ("event.range", first),
        "next page": ("event.range", {**first, "cursor": cursor}),
        "root": ("toc.root", {"limit": 1}),
        "node": ("toc.node", {"node_id": "toc:day:2026-03-05"}),
        "browse": ("toc.browse", {"parent_id": "toc:day:2026-03-02", "limit": 1}),
        "expand": ("grip.expand", {"grip_id": grip_id}),
    }
    found: dict[str, tuple[int, int]] = {}
    for name, (operation, args) in asked.items():
        with counted(memory) as each:
            ask(memory, operation, args)
        found[name] = each["steps"], each["scanned"]
    return found


def test_no_read_costs_more_because_there_is_more_beside_what_it_answers() -> None:
    with open_memory() as small, open_memory() as large:
        fill(small, much=False)
        fill(large, much=True)
        assert len(everything(large)) > 3 * len(everything(small))
        few, many = costs(small), costs(large)
    for name, (steps, scanned) in few.items():
        assert steps > 50, name
        assert many[name][0] <= 1.5 * steps, (name, steps, many[name])
        assert many[name][1] <= scanned + 40, (name, scanned, many[name])
