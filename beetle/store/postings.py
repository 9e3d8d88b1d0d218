"""What the recall index holds of a word, remembered between searches.

FTS5 reads the rows of a common word one by one at each search, and counts them too. Here they stand as an array of
numbers, by the expression that finds them, and are brought up to date by what was written since: rows of new messages,
which come behind all others, and a few rows that were changed. The answers are those of FTS5 at every moment of the
store: a reader whose transaction began earlier sees what it would have seen.

Nothing of it is on disk, and what it holds are numbers of rows by expressions that were searched for.
"""

from __future__ import annotations

import json
import sys
import threading
from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from beetle.contracts.codec import unpack_json
from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading
from beetle.store.index_tail import INDEXED_TO, IndexTail
from beetle.store.known_speakers import KnownSpeakers

CHANGES = 64
"""Changed rows that are looked up one by one; with more, a list is read anew."""
READ_AT_ONCE = 32_768
"""Rows of a list that are read in one step: some milliseconds."""
SHORT = 2**32
"""Rows below it take four bytes."""
ENTRY_BYTES = 600
"""What a list takes beside its rows and its expression: the objects, and places in tables."""
FEW_ROWS = 128
"""Fewer rows are read in hardly more time than it takes to ask for them."""
FEW_PART = 16
"""Lists of few rows get such a part of the memory: most words are rare, and would drive out all others."""
EVIDENCE_BITS = 4

SNAPSHOT_SQL = f"SELECT (SELECT coalesce(max(seq), 0) FROM event_log), {INDEXED_TO}"  # noqa: S608 - our own text
ROWS_SQL = """
SELECT json_group_array(row) FROM (
  SELECT rowid AS row FROM recall_index WHERE recall_index MATCH ?1 AND rowid > ?2 AND rowid & 15 <> ?3
  ORDER BY rowid LIMIT ?4
)
"""
AMONG_SQL = """
SELECT json_group_array(f.rowid) FROM json_each(?2) j CROSS JOIN recall_index f
WHERE f.recall_index MATCH ?1 AND f.rowid = j.value AND f.rowid & 15 <> ?3
"""

if TYPE_CHECKING:
    Numbers = array[int]


_Key = tuple[str, int]
"""An expression, and the code that is left out."""


class Snapshot(NamedTuple):
    """Which state of the store a transaction sees: the last number of its event log, and the newest message that the
    index has taken in."""

    seq: int
    newest: int


class _List(NamedTuple):
    rows: Numbers
    seen: Snapshot
    bytes: int
    """All that it takes. The expression counts too: a word has as many characters as a query may have."""


class _Kept:
    """Lists of at most so many bytes together; those not used for longest go first."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._lists: OrderedDict[_Key, _List] = OrderedDict()
        self.bytes = 0

    def get(self, key: _Key) -> _List | None:
        return self._lists.get(key)

    def drop(self, key: _Key) -> None:
        if (before := self._lists.pop(key, None)) is not None:
            self.bytes -= before.bytes

    def keep(self, key: _Key, made: _List) -> None:
        if made.bytes > self._most:
            return
        self._lists[key] = made
        self.bytes += made.bytes
        while self.bytes > self._most:
            _, gone = self._lists.popitem(last=False)
            self.bytes -= gone.bytes


class PostingCache:
    """The lists of a store, at most so many bytes."""

    def __init__(self, most_bytes: int, tail: IndexTail) -> None:
        """`tail` finds what the index has not taken in."""
        self.tail = tail
        self.speakers = KnownSpeakers()
        self._lock = threading.Lock()
        self._short = _Kept(most_bytes // FEW_PART)
        self._long = _Kept(most_bytes - most_bytes // FEW_PART)
        self._changed: deque[tuple[int, int]] = deque()
        # Every list and snapshot with a higher number has what was changed up to here.
        self._broken = -1

    @property
    def bytes(self) -> int:
        """What the lists take."""
        return self._short.bytes + self._long.bytes

    def note_changes(self, changed: Iterable[int] | None, seq: int) -> None:
        """The writer is about to commit.

        Args:
            changed: rows of the index that came or went, but for new messages; None for any number of them.
            seq: the last number of the event log that a state without this commit may have.
        """
        with self._lock:
            if changed is None:
                self._changed.clear()
                self._broken = max(self._broken, seq)
                return
            self._changed.extend((seq, row) for row in changed)
            while len(self._changed) > CHANGES:
                self._broken = max(self._broken, self._changed.popleft()[0])

    def rows(
        self,
        tx: Reading,
        now: Snapshot,
        expression: str,
        left_out: int,
        read: Callable[[], Numbers] | None = None,
    ) -> Numbers:
        """The rows that match an expression, as the transaction sees them.

        Args:
            read: reads all of them where they are not remembered; None reads them by the expression.
        """
        key = expression, left_out
        with self._lock:
            held = self._long.get(key) or self._short.get(key)
            changed, broken = list(self._changed), self._broken
        # Told before the commit: whatever this transaction sees, its writer has told.
        if held is None or min(held.seen.seq, now.seq) <= broken:
            rows = read_rows(tx, expression, left_out) if read is None else read()
        else:
            since = min(held.seen.seq, now.seq)
            rows = _up_to_date(tx, held, now, expression, left_out, {row for seq, row in changed if seq >= since})
        if now.seq > broken and (held is None or now.seq >= held.seen.seq):
            taken = len(rows) * rows.itemsize + sys.getsizeof(expression) + ENTRY_BYTES
            self._keep(key, _List(rows, now, taken))
        return rows

    def _keep(self, key: _Key, made: _List) -> None:
        with self._lock:
            self._short.drop(key)
            self._long.drop(key)
            (self._short if len(made.rows) < FEW_ROWS else self._long).keep(key, made)


def snapshot(tx: Reading) -> Snapshot:
    """Which state a transaction sees."""
    found = tx.row(SNAPSHOT_SQL)
    assert found is not None
    return Snapshot(*found)


def read_rows(tx: Reading, expression: str, left_out: int, after: int = -1) -> Numbers:
    """The rows behind one that match an expression, from the index."""
    rows = array("I")
    while True:
        found: list[int] = unpack_json(tx.value(ROWS_SQL, expression, after, left_out, READ_AT_ONCE))
        if found and found[-1] >= SHORT and rows.typecode == "I":
            rows = array("Q", rows)
        rows.extend(array(rows.typecode, found))
        if len(found) < READ_AT_ONCE:
            return rows
        after = found[-1]
        if tx.breathe is not None:
            tx.breathe()


def _up_to_date(tx: Reading, held: _List, now: Snapshot, expression: str, left_out: int, changed: set[int]) -> Numbers:
    rows, seen = held.rows, held.seen
    if seen == now and not changed:
        return rows
    fresh: set[int] = set()
    gone: set[int] = set()
    if now.newest > seen.newest:
        fresh.update(read_rows(tx, expression, left_out, seen.newest << EVIDENCE_BITS | 15))
    elif now.newest < seen.newest:
        gone.update(row for row in rows if not row & 15 and row >> EVIDENCE_BITS > now.newest)
    if changed:
        present = unpack_json(tx.value(AMONG_SQL, expression, json.dumps(sorted(changed)), left_out))
        fresh.update(present)
        gone.update(changed.difference(present))
    if not fresh and not gone:
        return rows
    behind = sorted(fresh)
    if not gone and (not rows or behind[0] > rows[-1]):
        made = array("Q" if behind[-1] >= SHORT else rows.typecode, rows)
        made.extend(behind)
        return made
    merged = sorted(fresh.union(rows).difference(gone))
    return array("Q" if merged and merged[-1] >= SHORT else "I", merged)
