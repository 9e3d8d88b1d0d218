"""Erasures whose bytes may still stand in the store's files, and how they get out of there.

Cutting the write-ahead log is enough where each page went to the file through `scrub`. A follower folds the log by
itself, and leaves in the file what SQLite leaves between a page's cells. Where one is, it steps aside, every page
of the file is looked at, and the log is cut; then it steps in. Others write meanwhile, and what they write is scrubbed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import apsw

from beetle.contracts.codec import LAST_US
from beetle.store.damaged_rows import IS_TIME, is_time
from beetle.store.engine.checkpoints import TRUNCATE, Checkpoints
from beetle.store.engine.transaction import Reading, Writing

log = logging.getLogger("beetle.store")

WHO = "erasure"
HELD_LOOK_S = 0.05
RESENT_BYTES_PER_S = 2**20
"""A sidecar that was aside sends the whole store again, by way of this disk. So many bytes a second may be sent for the
sake of erasures: those that come sooner wait, and are done together."""
ASIDE_S, AGAIN_S = 5.0, 30.0
"""So long a sidecar stays aside for a log that a reader holds: what is written meanwhile stands on this disk alone.
Then it follows again, and the erasure is tried again later."""
PENDING_SQL = "SELECT count(*) FROM pending_erasure"
CLEAR_SQL = "DELETE FROM pending_erasure"
REPLICATED_SQL = "SELECT 1 FROM sqlite_schema WHERE name = '_litestream_seq'"
KEPT_SQL = "SELECT value FROM meta WHERE key = 'replica_keeps_until'"
KEEP_SQL = """
INSERT INTO meta VALUES ('replica_keeps_until', ?)
ON CONFLICT DO UPDATE SET value = max(value, excluded.value)
"""
UNTOLD_SQL = """
INSERT INTO meta SELECT 'replica_untold', 1 WHERE EXISTS (SELECT 1 FROM meta WHERE key = 'replica_targets')
ON CONFLICT DO UPDATE SET value = value + 1
"""
"""Something was erased that a target has which nothing is sent to now."""
FORGOTTEN_SQL = f"""
DELETE FROM meta WHERE key = 'replica_keeps_until'
  AND (value = ? OR NOT ({IS_TIME.format(column="value")}))
"""  # noqa: S608 - our own text


def kept_until(tx: Reading) -> int | None:
    """Until when replicas hold what was erased so far, in microseconds; None when they hold nothing of it."""
    found = tx.value(KEPT_SQL)
    # A time that is damaged is none that has passed.
    return found if found is None or is_time(found) else LAST_US


def keep_until(tx: Writing, until: int | None) -> None:
    """Replicas hold what was erased until then at least."""
    if until is not None:
        tx.run(KEEP_SQL, until)


def forgotten(tx: Writing, until: int | None) -> None:
    """No replica holds what was erased while `until` was known; what was erased since is not meant."""
    tx.run(FORGOTTEN_SQL, until)


def steady(clock: Callable[[], int]) -> Callable[[], int]:
    """A clock in microseconds that begins at the time of `clock`; no step of `clock` moves it afterwards."""
    ahead = clock() - time.monotonic_ns() // 1000
    return lambda: time.monotonic_ns() // 1000 + ahead


class Erasing:
    """The pending erasures of one writer. All but `finish` and `count` is of the writer's thread."""

    def __init__(
        self,
        connection: apsw.Connection,
        checkpoints: Checkpoints,
        pending: int,
        commit: Callable[[Callable[[Writing], None]], BaseException | None],
        clock: Callable[[], int],
    ) -> None:
        """Begin with those that were pending when the store was opened.

        Args:
            commit: writes in a commit of its own; its error, or None.
            clock: microseconds.
        """
        self._connection = connection
        self._checkpoints = checkpoints
        self._commit = commit
        self._clock = clock
        self._follower = checkpoints.follower
        self._count = pending
        self._done = threading.Condition()
        # When something was in the way since: a reader holds the log, or the disk refuses. None while nothing is.
        self._held_since: float | None = None
        # Where the next look at the file's pages begins; None before the first.
        self._place: int | None = None
        # Whether every page that has gone to the file since it was looked through was scrubbed.
        self._is_clean = False
        self._not_before = 0.0
        # When the log could first not be cut with the follower aside; None while it can be.
        self._kept_aside_since: float | None = None

    @property
    def count(self) -> int:
        """How many are pending."""
        return self._count

    @count.setter
    def count(self, count: int) -> None:
        self._count = count

    @property
    def put_off_s(self) -> float:
        """For so long an erasure may wait for the next sending of the store."""
        return 0.0 if self._follower.kept_until is None else self._checkpoints.file_bytes() / RESENT_BYTES_PER_S

    def finish(self, wait: float, ended: Callable[[], bool]) -> bool:
        """Wait until none is pending; whether that was reached. See `Writer.finish_erasures`."""
        begun = time.monotonic()
        with self._done:
            while self._count and not ended():
                held = self._held_since
                if held is not None and time.monotonic() > max(held, begun) + wait:
                    break
                self._done.wait(HELD_LOOK_S)
        return not self._count

    def end(self) -> None:
        """The writer has ended: nobody waits any longer."""
        self._follower.back(WHO)
        with self._done:
            self._done.notify_all()

    def go_on(self) -> bool:
        """One step; whether the next one may follow at once."""
        if not self._is_alone():
            self._hold()
            return False
        if not self._is_clean and self._place is None:
            if not self._replicated():
                self._is_clean = True
            elif not self._cut():
                return False
            else:
                self._place = 0
        if self._place is not None:
            try:
                self._place = self._checkpoints.look_through(self._place)
            except OSError as error:
                log.warning("the store's file could not be looked through: %s", error.strerror)
                self._hold()
                return False
            self._is_clean = self._place is None
            return True
        if self._cut():
            self._record()
        return False

    def _is_alone(self) -> bool:
        if self._follower.kept_until is None:
            return self._follower.is_gone()
        return time.monotonic() >= self._not_before and self._follower.away(WHO)

    def _replicated(self) -> bool:
        return Writing(self._connection).value(REPLICATED_SQL) is not None

    def _cut(self) -> bool:
        """Empty the log, and forget the pages that are cached: they still have in their gaps what the file has no
        longer, and would bring it back."""
        if not self._checkpoints.attempt(TRUNCATE):
            self._hold()
            self._let_follow()
            return False
        self._kept_aside_since = None
        self._connection.pragma("shrink_memory")
        return True

    def _record(self) -> None:
        """Nothing is pending any more."""
        kept_until = self._follower.kept_until

        def clear(tx: Writing) -> None:
            tx.run(CLEAR_SQL)
            if kept_until is not None:
                tx.run(KEEP_SQL, kept_until(self._clock()))
            else:
                tx.run(UNTOLD_SQL)

        if (lost := self._commit(clear)) is not None:
            log.warning("an erasure is done but could not be recorded: %s", type(lost).__name__)
            self._hold()
            return
        if kept_until is not None:
            self._step_in(0.0)
        self._held_since = None
        with self._done:
            self._count = 0
            self._done.notify_all()

    def _let_follow(self) -> None:
        """Have the follower go on where it has been aside for long, and the log is still held."""
        if self._follower.kept_until is None:
            return
        now = time.monotonic()
        if self._kept_aside_since is None:
            self._kept_aside_since = now
        elif now - self._kept_aside_since > ASIDE_S:
            self._step_in(AGAIN_S)

    def _step_in(self, rest: float) -> None:
        """The follower steps in: it folds pages that are not scrubbed, and sends the store. Not again for a while."""
        self._is_clean, self._place, self._kept_aside_since = False, None, None
        self._not_before = time.monotonic() + max(rest, self.put_off_s)
        self._follower.back(WHO)

    def _hold(self) -> None:
        if self._held_since is None:
            self._held_since = time.monotonic()
