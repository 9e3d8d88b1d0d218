"""The scrubbing of pages changes nothing that SQLite reads, and nothing that is not a page of a b-tree."""

from __future__ import annotations

from pathlib import Path

import apsw
from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.store.engine.scrub import scrubbed, scrubbing

PAGE = 4096


def leaf(cells: int, content: int, fill: int) -> bytes:
    head = bytes([0x0D, 0, 0]) + cells.to_bytes(2, "big") + content.to_bytes(2, "big") + b"\x00"
    return head + bytes([fill]) * (PAGE - len(head))


@settings(deadline=None)
@given(st.integers(0, 200), st.integers(0, PAGE))
def test_only_the_gap_is_zeroed(cells: int, content: int) -> None:
    page = leaf(cells, content, 0x41)
    done = scrubbed(page, PAGE)
    gap = range(8 + 2 * cells, content)
    assert len(done) == PAGE
    assert all(done[at] == (0 if at in gap else page[at]) for at in range(PAGE))


@settings(deadline=None)
@given(st.binary(min_size=0, max_size=3), st.integers(0, 1), st.integers(0, 2**24 - 1))
def test_overflow_and_free_list_pages_of_any_allowed_size_pass_unchanged(tail: bytes, high: int, low: int) -> None:
    page = (high << 24 | low).to_bytes(4, "big") + b"content " * 511 + b"1234" + tail
    assert scrubbed(page, PAGE) == page


def test_a_database_written_through_it_is_the_same_to_sqlite(tmp_path: Path) -> None:
    rows = {}
    for name, vfs in (("plain", None), ("scrubbed", scrubbing(None))):
        connection = apsw.Connection(str(tmp_path / name), vfs=vfs) if vfs else apsw.Connection(str(tmp_path / name))
        connection.pragma("synchronous", 0)  # six thousand commits, and no crash
        connection.execute("CREATE TABLE t (a TEXT PRIMARY KEY, b) WITHOUT ROWID; CREATE TABLE u (a, b)")
        for number in range(3000):
            connection.execute("INSERT INTO t VALUES (?, ?)", (f"{number * 7919 % 3000}", "x" * (number % 300)))
            connection.execute("INSERT INTO u VALUES (?, ?)", (number, "y" * (number * 31 % 6000)))
        connection.execute("DELETE FROM t WHERE length(b) % 3; DELETE FROM u WHERE a % 5")
        assert connection.pragma("integrity_check") == "ok"
        rows[name] = [list(connection.execute(f"SELECT * FROM {table} ORDER BY a")) for table in "tu"]
        connection.close()
    assert rows["plain"] == rows["scrubbed"]
