"""First reports by idempotency key, written in the transaction of what they report.

Each holds its own seal. That one was removed is not told: the oldest go all the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from beetle.named_tuple import NamedTuple
from beetle.store import erasures
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.seals import Sealer

NAME = "idempotency"
FIND_SQL = "SELECT idempotency, request, report FROM idempotency WHERE principal = ? AND space = ? AND key = ?"
KEEP_SQL = "INSERT INTO idempotency (principal, space, key, request, report, at, seal) VALUES (?, ?, ?, ?, ?, ?, ?)"
RESTATE_SQL = "UPDATE idempotency SET report = ?, seal = ? WHERE idempotency = ?"
FORGET_SQL = "DELETE FROM idempotency WHERE principal = ?"
DROP_OLD_SQL = "DELETE FROM idempotency WHERE idempotency <= ?"
ONE_SQL = """
SELECT idempotency, principal, space, key, request, report, at, seal FROM idempotency WHERE idempotency = ?
"""
EVERY_SQL = """
SELECT idempotency, principal, space, key, request, report, at, seal FROM idempotency WHERE idempotency >= ?
ORDER BY idempotency LIMIT ?
"""
SET_SEAL_SQL = "UPDATE idempotency SET seal = ? WHERE idempotency = ?"
COUNT_SQL = "SELECT count(*) FROM idempotency"
HAS_SEALS_SQL = "SELECT EXISTS (SELECT 1 FROM pragma_table_info('idempotency') WHERE name = 'seal')"
DROPPED_AT_ONCE = 64
"""Each one that goes would cost a commit two pages: where it stood, and its place in the index."""
LOOKED_AT_TOGETHER = 100
LOWEST, HIGHEST = -(2**63), 2**63 - 1
"""Another program may have made a row of any number."""


class FirstReport(NamedTuple):
    """Keyed digest of the first request, and its report as MessagePack."""

    request: bytes
    report: bytes


class Kept(NamedTuple):
    """A first report as it stands.

    Attributes:
        row: its number, which says when it goes.
        covered: what its seal covers: principal, space, key, digest of the request, report, time.
    """

    row: int
    covered: tuple[Any, ...]
    seal: Any

    def fits(self, sealer: Sealer) -> bool | None:
        """Whether it is as the runtime wrote it; None where only the identity could tell, and it is not usable."""
        return sealer.fits(self.seal, NAME, self.covered)


def find(tx: Reading, principal: str, space: str, key: str) -> tuple[int, FirstReport] | None:
    """What was answered to this key first, behind the number of its row."""
    found = tx.row(FIND_SQL, principal, space, key)
    return None if found is None else (found[0], FirstReport(*found[1:]))


def is_as_written(tx: Reading, sealer: Sealer, row: int) -> bool:
    """Whether a row is as the runtime wrote it, as far as anybody can tell."""
    return (kept := _one(tx, row)) is not None and kept.fits(sealer) is not False


def keep(tx: Writing, principal: str, space: str, key: str, first: FirstReport, now: int, most: int) -> None:
    """Keep a first report. The oldest go, some at a time: at most `most` are kept, at least seven eighths of that."""
    covered = (principal, space, key, first.request, first.report, now)
    row = tx.insert(KEEP_SQL, *covered, None if tx.sealer is None else tx.sealer.seal(NAME, covered))
    at_once = max(1, min(DROPPED_AT_ONCE, most // 8))
    if row % at_once == 0:
        tx.run(DROP_OLD_SQL, row - most + at_once - 1)
        erasures.drop_forsaken(tx)


def forget(tx: Writing, principal: str) -> None:
    """Drop what one principal was answered: whoever has its name from now on is another."""
    tx.run(FORGET_SQL, principal)
    erasures.drop_forsaken(tx)


def restate(tx: Writing, principal: str, space: str, key: str, told: FirstReport) -> None:
    """Keep another report of the same request: the work that it told of has gone on. A row that another program had
    changed keeps its seal, which does not fit. What the key was answered to another request meanwhile stays."""
    report = told.report
    found = tx.row(FIND_SQL, principal, space, key)
    kept = None if found is None or found[1] != told.request else _one(tx, found[0])
    if kept is None:
        return
    seal = kept.seal
    if tx.sealer is not None and kept.fits(tx.sealer) is not False:
        *before, _, at = kept.covered
        seal = tx.sealer.seal(NAME, (*before, report, at))
    tx.run(RESTATE_SQL, report, seal, kept.row)


def every(tx: Reading) -> Iterator[Kept]:
    """All of them, none where the schema is of before they had seals. Their seals may be changed meanwhile."""
    start = LOWEST if tx.value(HAS_SEALS_SQL) else None
    while start is not None and (page := list(tx.rows(EVERY_SQL, start, LOOKED_AT_TOGETHER))):
        yield from map(_kept, page)
        last = page[-1][0]
        start = last + 1 if last < HIGHEST else None


def seal_again(tx: Writing, sealer: Sealer, kept: Kept) -> None:
    """Seal one as it stands."""
    tx.run(SET_SEAL_SQL, sealer.seal(NAME, kept.covered), kept.row)


def count(tx: Reading) -> int:
    """How many there are."""
    return tx.value(COUNT_SQL)


def _one(tx: Reading, row: int) -> Kept | None:
    found = tx.row(ONE_SQL, row)
    return None if found is None else _kept(found)


def _kept(row: tuple[Any, ...]) -> Kept:
    number, *covered, seal = row
    return Kept(number, tuple(covered), seal)
