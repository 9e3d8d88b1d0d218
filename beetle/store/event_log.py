"""The append-only event log: every mutation, lifecycle step and refusal, hash-chained. Ids, kinds, counts only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from beetle.contracts.codec import json_text, pack_json
from beetle.contracts.errors import IntegrityViolation
from beetle.named_tuple import NamedTuple
from beetle.store.engine.progress import EVERY
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.event_places import Level, Matter, Places, add_place, is_visible, places_between

GENESIS = bytes(32)
ChainHash = Callable[[bytes, tuple[Any, ...]], bytes]

HEAD_SQL = "SELECT seq, hash FROM event_log ORDER BY seq DESC LIMIT 1"
APPEND_SQL = "INSERT INTO event_log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
COLUMNS = "SELECT seq, at, space, topic, event, operation, principal, subject, hash FROM event_log "
ROW_SQL = COLUMNS + "WHERE seq = ?"
WALK_SQL = COLUMNS + "ORDER BY seq"
CHAIN_SQL = COLUMNS + "WHERE seq > ? ORDER BY seq LIMIT ?"
SIGNED_SQL = "SELECT signed FROM log_head"
SIGN_SQL = "UPDATE log_head SET signed = ?"
READ_SQL = """
SELECT e.seq, e.at, e.space, e.topic, e.event, e.operation, e.principal, e.subject, e.hash, p.hash
FROM event_log e LEFT JOIN event_log p ON p.seq = e.seq - 1
WHERE e.seq > ?1 AND e.seq < ?2 AND (e.space = ?3 OR (?4 AND e.space IS NULL))
  AND (?5 IS NULL OR e.at >= ?5) AND (?6 IS NULL OR e.at <= ?6)
  AND (?7 IS NULL OR e.topic IN (SELECT value FROM json_each(?7)))
  AND (?8 IS NULL OR e.operation = ?8) AND (?9 IS NULL OR e.principal = ?9)
"""
READ_OWN_SQL = """
SELECT e.seq, e.at, e.space, e.topic, e.event, e.operation, e.principal, e.subject, e.hash, b.hash,
  CASE ?11 WHEN 'sealed' THEN p.place WHEN 'private' THEN p.place_private ELSE p.place_shared END
FROM event_place p JOIN event_log e ON e.seq = p.seq LEFT JOIN event_log b ON b.seq = e.seq - 1
WHERE p.space = ?3 AND p.place > ?1 AND p.place < ?2
  AND (?11 = 'sealed' OR p.matter = 'shared' OR (?11 = 'private' AND p.matter = 'private'))
  AND (?5 IS NULL OR e.at >= ?5) AND (?6 IS NULL OR e.at <= ?6)
  AND (?7 IS NULL OR e.topic IN (SELECT value FROM json_each(?7)))
  AND (?8 IS NULL OR e.operation = ?8) AND (?9 IS NULL OR e.principal = ?9) AND ?4 IS NOT NULL
"""
READ_OWN_FORWARDS_SQL = READ_OWN_SQL + "ORDER BY p.place LIMIT ?10"
READ_OWN_BACKWARDS_SQL = READ_OWN_SQL + "ORDER BY p.place DESC LIMIT ?10"
READ_FORWARDS_SQL = READ_SQL + "ORDER BY e.seq LIMIT ?10"
READ_BACKWARDS_SQL = READ_SQL + "ORDER BY e.seq DESC LIMIT ?10"


class Event(NamedTuple):
    """What happened. `space` None is the daemon's own; `subject` holds ids, kinds and counts.

    `matter` says what it is about, for who follows events; `aside`, that its call is answered as if it had not been.
    They are no part of the row.
    """

    topic: str
    event: str
    operation: str
    principal: str
    space: str | None
    subject: dict[str, Any]
    matter: Matter = "shared"
    aside: bool = False


class Logged(NamedTuple):
    """An event with its row number and time, and its places in its space; None for an event of the daemon's own."""

    seq: int
    at: int
    event: Event
    places: Places | None = None

    def number_for(self, level: Level | None, space: str) -> int | None:
        """By what number somebody of a space is told of it: its row's where the whole log is seen (None), else its
        place among what that level may know of; None where that may know nothing of it.
        """
        if level is None:
            return self.seq
        if self.places is None or self.event.space != space or not is_visible(self.event.matter, level):
            return None
        return self.places.at(level)


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


class EventFilter(NamedTuple):
    """Which rows are asked for: a space's, those that a level may know of; without a level all of them, with the
    daemon's own. Times in microseconds, ends included.
    """

    space: str
    level: Level | None
    since: int | None = None
    until: int | None = None
    topics: tuple[str, ...] | None = None
    operation: str | None = None
    principal: str | None = None


class Numbered(NamedTuple):
    """A row by the number that its reader knows it by, and the hash of the row before it; empty if that is gone."""

    number: int
    row: LoggedRow
    previous: bytes


MOST_SEQ = 2**62
"""Rows of the log: beyond any number that is reached."""


class Head(NamedTuple):
    """The last row's number and hash; 0 and 32 zero bytes when the log is empty."""

    seq: int
    hash: bytes

    @property
    def digest(self) -> str:
        """The hash in hexadecimal. Raises as `check`."""
        self.check()
        return self.hash.hex()

    def check(self) -> None:
        """Raises IntegrityViolation where the row is damaged."""
        if type(self.hash) is not bytes or not 0 <= self.seq < MOST_SEQ:
            raise IntegrityViolation(
                reason="the newest row of the event log is damaged, and nothing can be chained to it",
                hint="`beetle repair` makes a store of what can be read",
            )


def read_head(tx: Reading) -> Head:
    """The head as the transaction sees it."""
    found = tx.row(HEAD_SQL)
    return Head(0, GENESIS) if found is None else Head(found[0], found[1])


class SignedHead(NamedTuple):
    """The row of the signed head; `text` is None until the first signature."""

    text: str | None


def read_signed_head(tx: Reading) -> SignedHead | None:
    """What the device has signed last of the log; None when its row is missing, which every store has."""
    return tx.one(SignedHead, SIGNED_SQL)


def record_signed_head(tx: Writing, text: str) -> None:
    """Put a signed head in the place of the one before: an older one would vouch for a log that was cut."""
    tx.run(SIGN_SQL, text)


def read_row(tx: Reading, seq: int) -> LoggedRow | None:
    """The row of that number."""
    return tx.one(LoggedRow, ROW_SQL, seq)


def chain_rows(tx: Reading, after: int, limit: int) -> list[LoggedRow]:
    """Rows of all spaces behind a number."""
    return [LoggedRow(*row) for row in tx.rows(CHAIN_SQL, after, limit)]


def read_rows(
    tx: Reading, wanted: EventFilter, between: tuple[int, int], limit: int, *, backwards: bool
) -> list[Numbered]:
    """Rows whose numbers lie between two others: the log's own numbers, or the places that `wanted.level` counts."""
    topics = None if wanted.topics is None else json_text(wanted.topics)
    whole = wanted.level is None
    filters = (wanted.space, whole, wanted.since, wanted.until, topics, wanted.operation, wanted.principal, limit)
    found: list[Numbered] = []
    if wanted.level is None:
        sql = READ_BACKWARDS_SQL if backwards else READ_FORWARDS_SQL
        rows = ((*row, row[0]) for row in tx.rows(sql, *between, *filters))
    else:
        sql = READ_OWN_BACKWARDS_SQL if backwards else READ_OWN_FORWARDS_SQL
        places = places_between(tx, wanted.space, wanted.level, between)
        rows = tx.rows(sql, *places, *filters, wanted.level)
    for *fields, previous, number in rows:
        row = LoggedRow(*fields)
        found.append(Numbered(number, row, GENESIS if row.seq == 1 else previous or b""))
    return found


def append(tx: Writing, head: Head, event: Event, at: int, chain_hash: ChainHash) -> tuple[Head, Logged]:
    """Add one row behind `head`.

    Raises:
        IntegrityViolation: the newest row is damaged.
    """
    head.check()
    seq = head.seq + 1
    subject = pack_json(event.subject, in_order=True).decode()
    fields = (seq, at, event.space, event.topic, event.event, event.operation, event.principal, subject)
    digest = chain_hash(head.hash, fields)
    tx.run(APPEND_SQL, *fields, digest)
    places = None if event.space is None else add_place(tx, seq, event.space, event.matter)
    return Head(seq, digest), Logged(seq, at, event, places)


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
