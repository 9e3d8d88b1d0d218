"""What the recall index holds of a word, remembered between searches.

FTS5 reads the rows of a common word one by one at each search, and counts them too. Here they stand as a set, by the
expression that finds them, and are brought up to date by what was written since: rows of new messages, which come
behind all others, and a few rows that were changed. The answers are those of FTS5 at every moment of the store: a
reader whose transaction began earlier sees what it would have seen.

Nothing of it is on disk, and what it holds are numbers of rows by expressions that were searched for.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from beetle.contracts.codec import json_text, unpack_json
from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading
from beetle.store.index_tail import INDEXED_TO, IndexTail
from beetle.store.indexed import PLANE_BITS
from beetle.store.known_speakers import KnownSpeakers
from beetle.store.row_sets import PLANES, Dense, after, kept, numbers, with_rows, without_plane, without_rows

CHANGES = 64
"""Changed rows that are looked up one by one; with more, a list is read anew."""
KEYS_AT_ONCE = 2**14
"""Keys that are looked through in the first step of reading a list: so many rows at most."""
ROWS_AT_ONCE = 8_192
"""Rows of a list that one step should find: a millisecond or two, and a quarter of a MiB until they are an array."""
ENTRY_BYTES = 600
"""What a list takes beside its rows and its expression: the objects, and places in tables."""
FEW_ROWS = 128
"""Fewer rows are read in hardly more time than it takes to ask for them."""
FEW_PART = 16
"""Lists of few rows get such a part of the memory: most words are rare, and would drive out all others."""
EVIDENCE = 0
"""The plane of messages, as a number."""

SNAPSHOT_SQL = f"SELECT (SELECT coalesce(max(seq), 0) FROM event_log), {INDEXED_TO}"  # noqa: S608 - our own text
END_SQL = "SELECT coalesce(max(id), -1) FROM recall_index_docsize"
# A bound by rowid costs nothing; a condition or a limit costs a third to a half of the reading.
ROWS_SQL = """
SELECT json_group_array(rowid) FROM recall_index WHERE recall_index MATCH ? AND rowid > ? AND rowid <= ?
"""
AMONG_SQL = """
SELECT json_group_array(f.rowid) FROM json_each(?2) j CROSS JOIN recall_index f
WHERE f.recall_index MATCH ?1 AND f.rowid = j.value AND f.rowid & 15 <> ?3
"""

if TYPE_CHECKING:
    from beetle.store.row_sets import Numbers


_Key = tuple[str, int]
"""An expression, and the code that is left out."""


class Snapshot(NamedTuple):
    """Which state of the store a transaction sees: the last number of its event log, and the newest message that the
    index has taken in."""

    seq: int
    newest: int


class _List(NamedTuple):
    rows: Dense | Numbers
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
        read: Callable[[], Dense | Numbers] | None = None,
    ) -> Dense | Numbers:
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
            rows = kept(read_rows(tx, expression, left_out) if read is None else read(), tx.breathe)
        else:
            since = min(held.seen.seq, now.seq)
            rows = _up_to_date(tx, held, now, expression, left_out, {row for seq, row in changed if seq >= since})
        if now.seq > broken and (held is None or now.seq >= held.seen.seq):
            size = rows.bytes if isinstance(rows, Dense) else len(rows) * rows.itemsize
            self._keep(key, _List(rows, now, size + sys.getsizeof(expression) + ENTRY_BYTES))
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


def read_rows(tx: Reading, expression: str, left_out: int, behind: int = -1, last: int | None = None) -> Numbers:
    """The rows behind one, up to the last of all or another, that match an expression, but for those of a plane."""
    end: int = tx.value(END_SQL) if last is None else last
    rows = numbers((), end)
    keys = KEYS_AT_ONCE
    while behind < end:
        until = min(end, behind + (keys << PLANE_BITS))
        found: list[int] = unpack_json(tx.value(ROWS_SQL, expression, behind, until))
        rows.extend(numbers(found, end))
        behind = until
        if len(found) * 2 <= ROWS_AT_ONCE:
            keys *= 2
        elif len(found) > ROWS_AT_ONCE * 2:
            keys = max(KEYS_AT_ONCE, keys // 2)
        if tx.breathe is not None and behind < end:
            tx.breathe()
    return without_plane(rows, left_out)


def _up_to_date(
    tx: Reading, held: _List, now: Snapshot, expression: str, left_out: int, changed: set[int]
) -> Dense | Numbers:
    rows, seen = held.rows, held.seen
    if seen == now and not changed:
        return rows
    fresh: set[int] = set()
    gone: set[int] = set()
    if now.newest > seen.newest:
        # Of other planes what came is among the changed rows.
        between = (_last_of(seen.newest), _last_of(now.newest))
        fresh.update(read_rows(tx, expression, left_out, *between))
    elif now.newest < seen.newest:
        gone.update(after(rows, EVIDENCE, now.newest))
    if changed:
        present = unpack_json(tx.value(AMONG_SQL, expression, json_text(sorted(changed)), left_out))
        fresh.update(present)
        gone.update(changed.difference(present))
    return _changed_by(rows, fresh, gone) if fresh or gone else rows


def _last_of(key: int) -> int:
    """The last row that a key may have."""
    return key << PLANE_BITS | PLANES


def _changed_by(rows: Dense | Numbers, fresh: set[int], gone: set[int]) -> Dense | Numbers:
    if isinstance(rows, Dense):
        left = without_rows(rows, sorted(gone)) if gone else rows
        return with_rows(left, sorted(fresh)) if fresh else left
    behind = sorted(fresh)
    if not gone and (not rows or behind[0] > rows[-1]):
        made = numbers(rows, behind[-1])
        made.extend(numbers(behind, behind[-1]))
        return kept(made)
    merged = sorted(fresh.union(rows).difference(gone))
    return kept(numbers(merged, merged[-1] if merged else 0))
