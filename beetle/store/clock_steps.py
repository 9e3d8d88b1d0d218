"""Steps of the wall clock, and the times of what waits, which go along with them.

How long something has waited is counted by the wall clock, so that time counts in which the store was closed. A step of
that clock is no time in which anything has waited: the first transaction behind one moves what waits by as much as the
clock was moved, and its age stays what it was.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress

import apsw

from beetle.contracts.codec import FIRST_US
from beetle.store.engine.write_transaction import WriteTransaction

STEP_US = 86_400_000_000
"""What the clock is moved by at least for a step. Less makes nothing expire that has not nearly waited long enough."""
GOES_ON = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that nobody sets, and that goes on while the machine sleeps: there, too, time passes."""
LEAST_US, MOST_US = -(2**62), 2**62
MARK_BYTES = 8

# By space, so that an index is used: the planner takes none for a range alone.
CANDIDATES_SQL = """
SELECT candidate FROM candidate
WHERE space IN (SELECT space FROM space) AND at BETWEEN ? AND ? AND typeof(at) = 'integer'
"""
MOVE_CANDIDATE_SQL = "UPDATE candidate SET at = max(at + ?, ?) WHERE candidate = ?"
PROPOSALS_SQL = """
SELECT proposal FROM proposal
WHERE space IN (SELECT space FROM space) AND state = 'open' AND created_at BETWEEN ?1 AND ?2
  AND updated_at BETWEEN ?1 AND ?2 AND typeof(created_at) = 'integer' AND typeof(updated_at) = 'integer'
"""
MOVE_PROPOSAL_SQL = """
UPDATE proposal SET created_at = max(created_at + ?1, ?2), updated_at = max(updated_at + ?1, ?2) WHERE proposal = ?3
"""
MOVES = ((CANDIDATES_SQL, MOVE_CANDIDATE_SQL), (PROPOSALS_SQL, MOVE_PROPOSAL_SQL))
"""How what waits is found and moved. A row of a time beyond the clock before the step is of yet another clock, and
stays as it is."""
KEPT_SQL = "SELECT value FROM meta WHERE key = 'clock_moved'"
LAST_SQL = "SELECT at FROM event_log WHERE seq = (SELECT max(seq) FROM event_log)"
KEEP_SQL = "INSERT INTO meta VALUES ('clock_moved', ?) ON CONFLICT DO UPDATE SET value = excluded.value"


def since_boot() -> int:
    """Microseconds since some moment, which no step of the wall clock moves."""
    return time.clock_gettime_ns(GOES_ON) // 1000


class ClockSteps:
    """The steps of the clock since a store was opened, and the one that came while it was closed where an earlier
    opening tells of it.

    The store holds how far what waits was moved since an opening: a commit that failed has moved nothing, and one that
    reached the disk all the same has moved it once.
    """

    def __init__(self, clock: Callable[[], int], elapsed: Callable[[], int]) -> None:
        """`elapsed` goes on with the time alone; both in microseconds."""
        self._elapsed = elapsed
        self._opened = clock()
        self._ahead = self._opened - elapsed()
        self._opening = os.urandom(MARK_BYTES)
        self._back: int | None = None
        """By how much the clock was put back while the store was closed; None until the first transaction."""
        self._moved: int | None = None
        """How far what waits was moved since the opening; None while a commit may have moved it further."""

    def follow(self, tx: WriteTransaction) -> None:
        """At the start of a transaction: move what waits, if the clock was moved."""
        off = tx.now - self._elapsed() - self._ahead
        if self._moved is not None and abs(off + (self._back or 0) - self._moved) < STEP_US:
            return
        kept, is_mine = self._kept(tx)
        if self._back is None:
            self._back = self._put_back(tx, kept)
        moved = kept if is_mine else 0
        by = max(LEAST_US, min(off + self._back - moved, MOST_US))
        if abs(by) < STEP_US:
            self._moved = moved
            return
        self._moved = None
        for found, move in MOVES:
            # A damaged row, or page, must not be in the way of every write.
            with suppress(apsw.CorruptError):
                for (key,) in list(tx.rows(found, LEAST_US, tx.now - by + STEP_US)):
                    with suppress(apsw.ConstraintError):
                        tx.run(move, by, FIRST_US, key)
        tx.run(KEEP_SQL, self._opening + (moved + by).to_bytes(16, "big", signed=True))
        tx.settle()

    def _kept(self, tx: WriteTransaction) -> tuple[int, bool]:
        """How far what waits was moved by the last opening that has moved it, and whether it is this one."""
        found = tx.value(KEPT_SQL)
        if not isinstance(found, bytes) or len(found) != MARK_BYTES + 16:
            return 0, False
        return int.from_bytes(found[MARK_BYTES:], "big", signed=True), found[:MARK_BYTES] == self._opening

    def _put_back(self, tx: WriteTransaction, kept: int) -> int:
        """A step that an earlier opening has met was taken back since, if the clock is nearer to where it would be then
        than to where it was with the last event."""
        last = tx.value(LAST_SQL)
        if not isinstance(last, int) or abs(self._opened - (last - kept)) >= abs(self._opened - last):
            return 0
        return -kept
