"""What became of the jobs that run by the clock, and which of them are paused."""

from __future__ import annotations

from beetle.contracts.scheduler import JobResult, SkipReason
from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing


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


ALL_SQL = """
SELECT name, paused, run_count, error_count, skip_count, failures, last_run, last_duration, last_result, skip_reason,
  error_key, error FROM scheduled_job ORDER BY name
"""
CREATED_SQL = "SELECT applied_at FROM schema_migration WHERE number = 1"
PUT_SQL = """
INSERT INTO scheduled_job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET paused = excluded.paused, run_count = excluded.run_count,
  error_count = excluded.error_count, skip_count = excluded.skip_count, failures = excluded.failures,
  last_run = excluded.last_run, last_duration = excluded.last_duration, last_result = excluded.last_result,
  skip_reason = excluded.skip_reason, error_key = excluded.error_key, error = excluded.error
"""


def every(tx: Reading) -> dict[str, ScheduledJobRow]:
    """The jobs that have a row, by their names; it may be one that this build does not have."""
    return {row[0]: ScheduledJobRow._make((row[0], bool(row[1]), *row[2:])) for row in tx.rows(ALL_SQL)}


def store_since(tx: Reading) -> int:
    """When the store was created, in microseconds: no job was missed before."""
    return tx.value(CREATED_SQL)


def put(tx: Writing, row: ScheduledJobRow) -> None:
    """Keep a job as it is now."""
    tx.run(PUT_SQL, row.name, int(row.paused), *row[2:])
