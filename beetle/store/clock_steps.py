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

from beetle.store.engine.write_transaction import WriteTransaction

STEP_US = 86_400_000_000
"""What the clock is moved by at least for a step. Less makes nothing expire that has not nearly waited long enough."""
GOES_ON = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that nobody sets, and that goes on while the machine sleeps: there, too, time passes."""
FIRST_US = -62_135_596_800_000_000
"""The first time that can be shown."""
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
KEEP_SQL = "INSERT INTO meta VALUES ('clock_moved', ?) ON CONFLICT DO UPDATE SET value = excluded.value"


def since_boot() -> int:
    """Microseconds since some moment, which no step of the wall clock moves."""
    return time.clock_gettime_ns(GOES_ON) // 1000


class ClockSteps:
    """The steps of the clock since a store was opened.

    The store holds how far what waits was moved since then: a commit that failed has moved nothing, and one that
    reached the disk all the same has moved it once.
    """

    def __init__(self, clock: Callable[[], int], elapsed: Callable[[], int]) -> None:
        """`elapsed` goes on with the time alone; both in microseconds."""
        self._elapsed = elapsed
        self._ahead = clock() - elapsed()
        self._opening = os.urandom(MARK_BYTES)
        self._moved = 0

    def follow(self, tx: WriteTransaction) -> None:
        """At the start of a transaction: move what waits, if the clock was moved."""
        off = tx.now - self._elapsed() - self._ahead
        if abs(off - self._moved) < STEP_US:
            return
        self._moved = self._kept(tx)
        by = max(LEAST_US, min(off - self._moved, MOST_US))
        if abs(by) < STEP_US:
            return
        for found, move in MOVES:
            # A damaged row, or page, must not be in the way of every write.
            with suppress(apsw.CorruptError):
                for (key,) in list(tx.rows(found, LEAST_US, tx.now - by + STEP_US)):
                    with suppress(apsw.ConstraintError):
                        tx.run(move, by, FIRST_US, key)
        tx.run(KEEP_SQL, self._opening + (self._moved + by).to_bytes(16, "big", signed=True))
        tx.settle()

    def _kept(self, tx: WriteTransaction) -> int:
        found = tx.value(KEPT_SQL)
        mine = isinstance(found, bytes) and found[:MARK_BYTES] == self._opening
        return int.from_bytes(found[MARK_BYTES:], "big", signed=True) if mine else 0
