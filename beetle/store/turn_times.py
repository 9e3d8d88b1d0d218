"""Turns by their times: each has the latest time of its conversation up to it, and few are late.

A late turn has an earlier time than one before it, as one that is brought in afterwards. The others stand in the order
of their times, so that halves find them by their sequences. An index holds the late ones alone: most commits write no
page of it.
"""

from __future__ import annotations

from beetle.store.damaged_rows import check_row
from beetle.store.engine.transaction import Reading

REACHED_SQL = "SELECT sequence, latest FROM turn WHERE conversation = ? AND sequence >= ? ORDER BY sequence LIMIT 1"
LAST_SQL = "SELECT max(sequence) FROM turn WHERE conversation = ?"
LATE_SQL = """
SELECT min(sequence) FROM turn INDEXED BY turn_late WHERE conversation = ? AND at < latest AND at BETWEEN ? AND ?
"""
BEFORE_SQL = """
SELECT sequence FROM turn WHERE conversation = ?1 AND sequence < ?3 AND at < ?2
UNION ALL
SELECT sequence FROM turn INDEXED BY turn_late WHERE conversation = ?1 AND at < latest AND at < ?2 AND sequence >= ?3
ORDER BY sequence
"""
MISTAKEN_SQL = """
SELECT turn FROM (
  SELECT turn, at, latest, lag(latest) OVER (PARTITION BY conversation ORDER BY sequence, turn) AS before FROM turn
) WHERE latest <> max(at, coalesce(before, at)) LIMIT 100
"""


def first_at(tx: Reading, conversation: int, at: int) -> int | None:
    """Sequence of the first turn at or after a time."""
    found = _reached(tx, conversation, at)
    return None if found is None else found[0]


def first_in(tx: Reading, conversation: int, begin: int, end: int) -> int | None:
    """Sequence of the first turn within a stretch of time, both ends included."""
    found = _reached(tx, conversation, begin)
    if found is None or found[1] <= end:
        return None if found is None else found[0]
    # Those that are not late are behind the stretch from there on.
    return tx.value(LATE_SQL, conversation, begin, end)


def sequences_before(tx: Reading, conversation: int, at: int) -> list[int]:
    """Sequences of the turns whose time is before `at`, in their order."""
    found = _reached(tx, conversation, at)
    first = 1 << 62 if found is None else found[0]
    return [row[0] for row in tx.rows(BEFORE_SQL, conversation, at, first)]


def _reached(tx: Reading, conversation: int, at: int) -> tuple[int, int] | None:
    """Sequence and time of the first turn with which a conversation comes to a time: no late one."""
    last = tx.value(LAST_SQL, conversation) or 0
    check_row("conversation", conversation, numbers=(last,))
    low, high = 1, last + 1
    reached: tuple[int, int] | None = None
    while low < high:
        middle = (low + high) // 2
        found = tx.row(REACHED_SQL, conversation, middle)
        if found is None:
            high = middle
            continue
        check_row("turn", middle, numbers=found)
        if found[1] >= at:
            reached, high = (found[0], found[1]), middle
        else:
            low = found[0] + 1
    return reached
