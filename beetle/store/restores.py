"""Which rows of the event log a restored snapshot has undone: those behind its own, which were carried into it."""

from __future__ import annotations

from collections.abc import Iterable

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing

PREFIX = "undone_behind_"
"""Keys of `meta`: the rest is the number of rows that the snapshot's own log has, the value the first row after those
that were undone. Only there until the event of the restore is written, which tells the same.
"""
RECORD_SQL = "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
FORGET_SQL = "DELETE FROM meta WHERE key = ?"
RECORDED_SQL = "SELECT key, value FROM meta WHERE key GLOB 'undone_behind_[0-9]*' ORDER BY key"
LAST_SQL = "SELECT coalesce(max(seq), 0) FROM event_log"
RESTORED_SQL = """
SELECT subject ->> '$.event_log_rows', seq, coalesce(subject ->> '$.kept_erased', 0) FROM event_log
WHERE topic = 'lifecycle' AND event = 'snapshot_restored' AND json_valid(subject) ORDER BY seq
"""


class Undone(NamedTuple):
    """Rows of the event log behind `after` and before `before`: what they tell of was undone. `kept_erased`: what they
    tell to be erased was brought back. Nobody knows that of a restore that was killed before its event was written.
    """

    after: int
    before: int
    kept_erased: bool = False


def record(tx: Writing, rows: int) -> None:
    """In a copy that is to take the store's place, whose own log has so many rows: the others were carried over."""
    last = tx.value(LAST_SQL)
    tx.run(RECORD_SQL, f"{PREFIX}{rows}", last + 1)


def mark_logged(tx: Writing, rows: int) -> None:
    """The event of a restore is written now."""
    tx.run(FORGET_SQL, f"{PREFIX}{rows}")


def undone(tx: Reading) -> list[Undone]:
    """What restores have undone: as their events tell, and those that were killed before it as their copies tell. A
    restore that a later one has undone has undone nothing.
    """
    found = [Undone(rows, seq, bool(kept)) for rows, seq, kept in tx.rows(RESTORED_SQL) if isinstance(rows, int)]
    for key, before in tx.rows(RECORDED_SQL):
        rows = key.removeprefix(PREFIX)
        if rows.isdecimal() and isinstance(before, int):
            found.append(Undone(int(rows), before))
    standing: list[Undone] = []
    for each in sorted(found, key=lambda each: each.before, reverse=True):
        if not is_undone(standing, each.before):
            standing.append(each)
    return standing


def is_undone(restores: Iterable[Undone], seq: int) -> bool:
    """Whether some restores have undone what a row of the event log tells."""
    return any(each.after < seq < each.before for each in restores)
