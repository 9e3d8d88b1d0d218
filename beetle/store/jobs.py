"""Work that is left for later: leased by whoever does it, tried again, and in the end done, failed or dropped."""

from __future__ import annotations

import json
from typing import Any

from beetle.contracts.maintain import JobState
from beetle.named_tuple import NamedTuple
from beetle.store.columns import mapping
from beetle.store.damaged_rows import check_row
from beetle.store.engine.transaction import Reading, Row, Writing

CLOCK_WENT_BACK_US = 60_000_000
"""A job that was touched so much later than now was touched under another clock: what it waits for may never come."""
FINISHED_KEPT = 256
"""Of a space's jobs that ended alike, so many are kept to be looked at."""


class JobRow(NamedTuple):
    """A job. `owner` is its memory space's id; times in microseconds.

    `lease_until` names the lease as well: who holds an older one holds none.
    """

    job: int
    job_id: str
    kind: str
    space: int
    owner: str
    principal: str
    agent_id: str
    channel: str
    chat_id: str
    subject: dict[str, Any]
    state: JobState
    reason: str | None
    attempts: int
    not_before: int
    lease_until: int | None
    created_at: int
    updated_at: int

    @property
    def due(self) -> int:
        """When it may be done.

        Raises:
            DamagedRow: nobody knows.
        """
        times = (self.not_before,) if self.lease_until is None else (self.not_before, self.lease_until)
        check_row("job", self.job_id, times=times)
        return max(times)


class NewJob(NamedTuple):
    """A job to be left: whose work it is, where, and on what (`subject`: ids alone)."""

    job_id: str
    kind: str
    principal: str
    agent_id: str
    channel: str
    chat_id: str
    subject: dict[str, Any]


class StateCount(NamedTuple):
    kind: str
    state: JobState
    reason: str | None
    jobs: int


COLUMNS = """
SELECT j.job, j.job_id, j.kind, j.space, s.memory_space_id, j.principal, j.agent_id, j.channel, j.chat_id, j.subject,
  j.state, j.reason, j.attempts, j.not_before, j.lease_until, j.created_at, j.updated_at
FROM job j JOIN space s ON s.space = j.space
"""
NEW_SQL = """
INSERT INTO job
  (job_id, kind, space, principal, agent_id, channel, chat_id, subject, not_before, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
SAME_SQL = (
    COLUMNS
    + "WHERE j.space = ? AND j.kind = ? AND j.principal = ? AND j.agent_id = ? AND j.subject = ? "
    + "AND j.state IN ('waiting', 'leased')"
)
DUE_SQL = (
    COLUMNS
    + "WHERE j.state IN ('waiting', 'leased') AND (j.updated_at > ?4 "
    + "OR (j.not_before <= ?1 AND (j.state = 'waiting' OR j.lease_until <= ?1))) "
    + "AND j.principal GLOB ?2 AND j.principal NOT GLOB ?3 ORDER BY j.not_before, j.job LIMIT 1"
)
NEXT_SQL = """
SELECT min(CASE WHEN updated_at > ?4 THEN ?1 WHEN state = 'waiting' THEN not_before
  ELSE max(not_before, lease_until) END) FROM job
WHERE state IN ('waiting', 'leased') AND principal GLOB ?2 AND principal NOT GLOB ?3
"""
BY_ID_SQL = COLUMNS + "WHERE j.job_id = ?"
LEASE_SQL = "UPDATE job SET state = 'leased', lease_until = ?, updated_at = ? WHERE job = ?"
WAIT_SQL = """
UPDATE job SET state = 'waiting', reason = ?, attempts = ?, not_before = ?, lease_until = NULL, updated_at = ?
WHERE job = ?
"""
END_SQL = "UPDATE job SET state = ?, reason = ?, lease_until = NULL, updated_at = ? WHERE job = ?"
FREE_SQL = """
UPDATE job SET state = 'waiting', lease_until = NULL, updated_at = ?1
WHERE state = 'leased' AND (lease_until <= ?1 OR updated_at > ?2) RETURNING job
"""
PRUNE_SQL = """
DELETE FROM job WHERE job IN (SELECT job FROM job WHERE space = ? AND state = ? ORDER BY job DESC LIMIT -1 OFFSET ?)
"""
COUNTS_SQL = "SELECT kind, state, reason, count(*) FROM job WHERE space = ? GROUP BY kind, state, reason"
LEFT_BY_SQL = COLUMNS + "WHERE j.principal = ? AND j.state IN ('waiting', 'leased')"
PAGE_SQL = (
    COLUMNS + "WHERE j.space = ? AND j.job > ? AND j.state IN ('waiting', 'leased', 'failed') ORDER BY j.job LIMIT ?"
)
COUNT_OPEN_SQL = "SELECT count(*) FROM job WHERE space = ? AND state IN ('waiting', 'leased', 'failed')"
OPEN_SQL = COLUMNS + "WHERE j.space = ? AND j.state = ? ORDER BY j.not_before, j.job LIMIT ?"


def enqueue(tx: Writing, space: int, new: NewJob, now: int, due: int) -> tuple[JobRow, bool]:
    """Leave a job, unless the same one is left already; the job, and whether it is new. `due` is when it may begin."""
    if (found := same(tx, space, new)) is not None:
        return found, False
    tx.run(
        NEW_SQL, new.job_id, new.kind, space, new.principal, new.agent_id, new.channel, new.chat_id,
        _subject(new.subject), due, now, now,
    )  # fmt: skip
    made = find(tx, new.job_id)
    assert made is not None
    return made, True


def find(tx: Reading, job_id: str) -> JobRow | None:
    """The job of an id."""
    found = tx.row(BY_ID_SQL, job_id)
    return None if found is None else _job(found)


def due(tx: Reading, now: int, whose: str, not_whose: str) -> JobRow | None:
    """The job to be done next: one that waits and is due, or one whose lease has ended; a clock that went back ends
    both.

    Args:
        whose, not_whose: patterns (GLOB) of the principals whose jobs are looked at.
    """
    found = tx.row(DUE_SQL, now, whose, not_whose, now + CLOCK_WENT_BACK_US)
    return None if found is None else _job(found)


def next_due(tx: Reading, now: int, whose: str, not_whose: str) -> int | None:
    """When the next job is due (see `due_at`), None when nothing waits; `whose` and `not_whose` as in `due`."""
    return tx.value(NEXT_SQL, now, whose, not_whose, now + CLOCK_WENT_BACK_US)


def due_at(job: JobRow, now: int) -> int:
    """When a job that waits or is leased is taken up: now, if the clock went back since it was touched."""
    if is_of_another_clock(job, now):
        return now
    return job.due


def is_of_another_clock(job: JobRow, now: int) -> bool:
    """Whether the clock went back since a job was touched, so that it waits for nothing and nobody holds it."""
    return job.updated_at > now + CLOCK_WENT_BACK_US


def lease(tx: Writing, job: JobRow, now: int, until: int) -> JobRow:
    """Take a job; it is someone else's again after `until`."""
    tx.run(LEASE_SQL, until, now, job.job)
    return job._replace(state="leased", lease_until=until)


def holds(tx: Reading, job: JobRow) -> bool:
    """Whether the lease with which a job was taken is still the one that counts."""
    now = find(tx, job.job_id)
    return now is not None and now.state == "leased" and now.lease_until == job.lease_until


def put_off(tx: Writing, job: JobRow, now: int, *, reason: str | None, attempts: int, not_before: int) -> None:
    """Have a job wait, until `not_before`."""
    tx.run(WAIT_SQL, reason, attempts, not_before, now, job.job)


def end(tx: Writing, job: JobRow, now: int, state: JobState, reason: str | None) -> None:
    """A job is done, failed or dropped; the oldest that ended alike go."""
    tx.run(END_SQL, state, reason, now, job.job)
    tx.run(PRUNE_SQL, job.space, state, FINISHED_KEPT)


def free_expired(tx: Writing, now: int) -> int:
    """Give back the jobs whose lease has ended; how many. What holds none is taken up without this too."""
    return sum(1 for _ in tx.rows(FREE_SQL, now, now + CLOCK_WENT_BACK_US))


def same(tx: Reading, space: int, new: NewJob) -> JobRow | None:
    """The job that is the same and has not ended, if there is one."""
    found = tx.row(SAME_SQL, space, new.kind, new.principal, new.agent_id, _subject(new.subject))
    return None if found is None else _job(found)


def open_like(tx: Reading, job: JobRow) -> JobRow | None:
    """The job of the same work that has not ended, if there is one."""
    found = tx.row(SAME_SQL, job.space, job.kind, job.principal, job.agent_id, _subject(job.subject))
    return None if found is None else _job(found)


def page(tx: Reading, space: int | None, after: int, limit: int) -> list[JobRow]:
    """Jobs behind the key `after` that wait, run or have failed, in the order in which they were left."""
    return [_job(row) for row in tx.rows(PAGE_SQL, space, after, limit)]


def count_open(tx: Reading, space: int | None) -> int:
    """How many jobs wait, run or have failed."""
    return tx.value(COUNT_OPEN_SQL, space)


def counts(tx: Reading, space: int | None) -> list[StateCount]:
    """How many jobs a space has, by kind, state and reason."""
    return [StateCount(*row) for row in tx.rows(COUNTS_SQL, space)]


def open_jobs(tx: Reading, space: int | None, most: int) -> list[JobRow]:
    """The jobs of a space that are worked on, then those that wait, the next one first; at most `most` of each."""
    return [_job(row) for state in ("leased", "waiting") for row in tx.rows(OPEN_SQL, space, state, most)]


def left_by(tx: Reading, principal: str) -> list[JobRow]:
    """The jobs of a principal that have not ended."""
    return [_job(row) for row in tx.rows(LEFT_BY_SQL, principal)]


def _subject(subject: dict[str, Any]) -> str:
    return json.dumps(subject, ensure_ascii=False, sort_keys=True)


def _job(row: Row) -> JobRow:
    return JobRow._make((*row[:9], mapping(row[9]), *row[10:]))
