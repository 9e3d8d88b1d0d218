"""What became of the jobs that run by the clock, and which of them are paused."""

from __future__ import annotations

from typing import Any, get_args

from beetle.contracts.codec import FIRST_US, LAST_US
from beetle.contracts.scheduler import JobResult, SkipReason
from beetle.named_tuple import NamedTuple
from beetle.store.damaged_rows import is_readable
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.engine.write_transaction import WriteTransaction

MOST_COUNT = 2**53 - 1
"""Up to this a counter counts: JSON readers keep larger numbers inexactly."""


def one_more(count: int) -> int:
    """A counter after one more."""
    return min(count + 1, MOST_COUNT)


class ScheduledJobRow(NamedTuple):
    """A job as it stands in the store. `last_run` in microseconds, None before the first; `last_duration` in
    milliseconds; `failures` counts those in a row."""

    name: str
    paused: bool = False
    run_count: int = 0
    error_count: int = 0
    skip_count: int = 0
    failures: int = 0
    last_run: int | None = None
    last_duration: int = 0
    last_result: JobResult = "unspecified"
    skip_reason: SkipReason | None = None
    error_key: str | None = None
    error: str | None = None

    def failed(self, key: str, reason: str) -> ScheduledJobRow:
        """After one more run that failed, with the key and the message of its error."""
        row = self._replace(error_count=one_more(self.error_count), failures=one_more(self.failures))
        return row._replace(last_result="failed", error_key=key, error=reason)

    def skipped(self, reason: SkipReason) -> ScheduledJobRow:
        """After one more time that was left out."""
        return self._replace(skip_count=one_more(self.skip_count), last_result="skipped", skip_reason=reason)


ALL_SQL = """
SELECT name, paused, run_count, error_count, skip_count, failures, last_run, last_duration, last_result, skip_reason,
  error_key, error FROM scheduled_job ORDER BY name
"""
CREATED_SQL = "SELECT applied_at FROM schema_migration WHERE number = 1"
PUT_SQL = """
INSERT INTO scheduled_job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET run_count = excluded.run_count, error_count = excluded.error_count,
  skip_count = excluded.skip_count, failures = excluded.failures, last_run = excluded.last_run,
  last_duration = excluded.last_duration, last_result = excluded.last_result, skip_reason = excluded.skip_reason,
  error_key = excluded.error_key, error = excluded.error
"""
PUT_PAUSED_SQL = """
INSERT INTO scheduled_job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET paused = excluded.paused
"""
DROP_SQL = "DELETE FROM scheduled_job WHERE name = ?"


def every(tx: Reading) -> dict[str, ScheduledJobRow | None]:
    """The jobs that have a row, by their names; it may be one that this build does not have. None is a damaged row."""
    return {row[0]: _read(ScheduledJobRow._make(row)) for row in tx.rows(ALL_SQL)}


def _read(row: ScheduledJobRow) -> ScheduledJobRow | None:
    """A row as it is in the store, its numbers within their bounds; None where a value cannot be one of its column."""
    counts: tuple[Any, ...] = (row.run_count, row.error_count, row.skip_count, row.failures, row.last_duration)
    whole = is_readable(
        texts=(row.name, *(each for each in (row.error_key, row.error) if each is not None)),
        numbers=(row.paused, 0 if row.last_run is None else row.last_run, *counts),
    )
    known = row.last_result in get_args(JobResult) and row.skip_reason in (None, *get_args(SkipReason))
    if not (whole and known):
        return None
    runs, errors, skips, failures, duration = (max(0, min(each, MOST_COUNT)) for each in counts)
    last_run = None if row.last_run is None else max(FIRST_US, min(row.last_run, LAST_US))
    row = row._replace(paused=bool(row.paused), run_count=runs, error_count=errors, skip_count=skips)
    return row._replace(failures=failures, last_run=last_run, last_duration=duration)


def store_since(tx: Reading) -> int:
    """When the store was created, in microseconds: no job was missed before."""
    return tx.value(CREATED_SQL)


def put(tx: Writing, row: ScheduledJobRow) -> None:
    """Keep a job as it is now; whether it is paused stays as it is where the job has a row."""
    tx.run(PUT_SQL, row.name, int(row.paused), *row[2:])


def put_paused(tx: Writing, row: ScheduledJobRow) -> None:
    """Keep that a job is paused, or is not; the rest stays as it is where the job has a row."""
    tx.run(PUT_PAUSED_SQL, row.name, int(row.paused), *row[2:])


def drop_damaged(tx: WriteTransaction, name: str) -> None:
    """A row that cannot be read goes."""
    tx.mend(DROP_SQL, name)
