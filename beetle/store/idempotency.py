"""First reports by idempotency key, written in the transaction of what they report."""

from __future__ import annotations

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing

FIND_SQL = "SELECT request, report FROM idempotency WHERE principal = ? AND space = ? AND key = ?"
KEEP_SQL = "INSERT INTO idempotency (principal, space, key, request, report, at) VALUES (?, ?, ?, ?, ?, ?)"
RESTATE_SQL = "UPDATE idempotency SET report = ? WHERE principal = ? AND space = ? AND key = ?"
FORGET_SQL = "DELETE FROM idempotency WHERE principal = ?"
DROP_OLD_SQL = "DELETE FROM idempotency WHERE idempotency <= ?"
DROPPED_AT_ONCE = 64
"""Each one that goes would cost a commit three pages: where it stood, its place in the index, and its seal."""


class FirstReport(NamedTuple):
    """Keyed digest of the first request, and its report as MessagePack."""

    request: bytes
    report: bytes


def find(tx: Reading, principal: str, space: str, key: str) -> FirstReport | None:
    """What was answered to this key first."""
    return tx.one(FirstReport, FIND_SQL, principal, space, key)


def keep(tx: Writing, principal: str, space: str, key: str, first: FirstReport, now: int, most: int) -> None:
    """Keep a first report. The oldest go, some at a time: at most `most` are kept, at least seven eighths of that."""
    row = tx.insert_sealed("idempotency", KEEP_SQL, principal, space, key, first.request, first.report, now)
    at_once = max(1, min(DROPPED_AT_ONCE, most // 8))
    if row % at_once == 0:
        tx.run(DROP_OLD_SQL, row - most + at_once - 1)


def forget(tx: Writing, principal: str) -> None:
    """Drop what one principal was answered: whoever has its name from now on is another."""
    tx.run(FORGET_SQL, principal)


def restate(tx: Writing, principal: str, space: str, key: str, report: bytes) -> None:
    """Keep another report of the same request: the work that it told of has gone on."""
    tx.run(RESTATE_SQL, report, principal, space, key)
