"""The append-only event log: every mutation, lifecycle step and refusal, hash-chained. Ids, kinds, counts only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from beetle.contracts.codec import pack_json
from beetle.store.progress import EVERY
from beetle.store.transaction import Reading, Writing

GENESIS = bytes(32)
Matter = Literal["shared", "private", "sealed"]
ChainHash = Callable[[bytes, tuple[Any, ...]], bytes]

HEAD_SQL = "SELECT seq, hash FROM event_log ORDER BY seq DESC LIMIT 1"
APPEND_SQL = "INSERT INTO event_log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
ROW_SQL = """
SELECT seq, at, space, topic, event, operation, principal, subject, hash FROM event_log WHERE seq = ?
"""
WALK_SQL = """
SELECT seq, at, space, topic, event, operation, principal, subject, hash FROM event_log ORDER BY seq
"""
READ_SQL = """
SELECT e.seq, e.at, e.space, e.topic, e.event, e.operation, e.principal, e.subject, e.hash, p.hash
FROM event_log e LEFT JOIN event_log p ON p.seq = e.seq - 1
WHERE e.seq > ?1 AND e.seq < ?2 AND (e.space = ?3 OR (?4 AND e.space IS NULL))
  AND (?5 IS NULL OR e.at >= ?5) AND (?6 IS NULL OR e.at <= ?6)
  AND (?7 IS NULL OR e.topic IN (SELECT value FROM json_each(?7)))
  AND (?8 IS NULL OR e.operation = ?8) AND (?9 IS NULL OR e.principal = ?9)
"""
READ_FORWARDS_SQL = READ_SQL + "ORDER BY e.seq LIMIT ?10"
READ_BACKWARDS_SQL = READ_SQL + "ORDER BY e.seq DESC LIMIT ?10"


class Event(NamedTuple):
    """What happened. `space` None is the daemon's own; `subject` holds ids, kinds and counts.

    `matter` says what it is about, for who follows events; it is no part of the row.
    """

    topic: str
    event: str
    operation: str
    principal: str
    space: str | None
    subject: dict[str, Any]
    matter: Matter = "shared"


class Logged(NamedTuple):
    """An event with its row number and time."""

    seq: int
    at: int
    event: Event


class LoggedRow(NamedTuple):
    """A row of the log as it stands there; `at` in microseconds."""

    seq: int
    at: int
    space: str | None
    topic: str
    event: str
    operation: str
    principal: str
    subject: str
    hash: bytes


class Wanted(NamedTuple):
    """Which rows are asked for: a space's, with the daemon's own where `own`; times in microseconds, ends included."""

    space: str
    own: bool
    since: int | None = None
    until: int | None = None
    topics: tuple[str, ...] | None = None
    operation: str | None = None
    principal: str | None = None


class Head(NamedTuple):
    """The last row's number and hash; 0 and 32 zero bytes when the log is empty."""

    seq: int
    hash: bytes


def read_head(tx: Reading) -> Head:
    """The head as the transaction sees it."""
    found = tx.row(HEAD_SQL)
    return Head(0, GENESIS) if found is None else Head(found[0], found[1])


def read_row(tx: Reading, seq: int) -> LoggedRow | None:
    """The row of that number."""
    found = tx.row(ROW_SQL, seq)
    return None if found is None else LoggedRow(*found)


def read_rows(
    tx: Reading, wanted: Wanted, between: tuple[int, int], limit: int, *, backwards: bool
) -> list[tuple[LoggedRow, bytes]]:
    """Rows whose numbers lie between two others, and with each the hash of the row in front of it.

    Where that row is missing, the hash is empty.
    """
    topics = None if wanted.topics is None else pack_json(wanted.topics).decode()
    rows = tx.rows(
        READ_BACKWARDS_SQL if backwards else READ_FORWARDS_SQL, *between, wanted.space, wanted.own, wanted.since,
        wanted.until, topics, wanted.operation, wanted.principal, limit,
    )  # fmt: skip
    found: list[tuple[LoggedRow, bytes]] = []
    for *fields, previous in rows:
        row = LoggedRow(*fields)
        found.append((row, GENESIS if row.seq == 1 else previous or b""))
    return found


def append(tx: Writing, head: Head, event: Event, at: int, chain_hash: ChainHash) -> tuple[Head, Logged]:
    """Add one row behind `head`."""
    seq = head.seq + 1
    subject = pack_json(event.subject, in_order=True).decode()
    fields = (seq, at, event.space, event.topic, event.event, event.operation, event.principal, subject)
    digest = chain_hash(head.hash, fields)
    tx.run(APPEND_SQL, *fields, digest)
    return Head(seq, digest), Logged(seq, at, event)


def first_break(
    tx: Reading, chain_hash: ChainHash, at: Callable[[int], None] = lambda rows: None
) -> tuple[int, int | None]:
    """Walk the chain: rows checked, and the number of the first row that does not follow, or None.

    Args:
        at: is told from time to time how many rows were checked.
    """
    previous, expected, rows = GENESIS, 1, 0
    for *fields, digest in tx.rows(WALK_SQL):
        rows += 1
        if not rows % EVERY:
            at(rows)
        if fields[0] != expected or chain_hash(previous, tuple(fields)) != digest:
            return rows, expected
        previous, expected = digest, expected + 1
    return rows, None
