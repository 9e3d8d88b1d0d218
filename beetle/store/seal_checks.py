"""Comparing the rows of a store with their seals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any

from beetle.named_tuple import NamedTuple
from beetle.store import idempotency, turn_seals
from beetle.store.engine.progress import EVERY, Progress
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.seals import (
    PUT_SQL,
    SEAL_SQL,
    STRONG,
    SUM_SQL,
    Sealer,
    Shape,
    all_rows,
    is_sum,
    put_sum,
    shape_of,
    shapes,
)
from beetle.store.seals import WITHOUT_IDENTITY as NEVER_STRONG

ADDED = "was not written by the runtime"
CHANGED = "is not what the runtime wrote"
REMOVED = "was removed: its seal exists, and the row does not"
WITHOUT_IDENTITY = "was written without the device identity"
NO_SEALS = "is not there: its schema is of before there were seals"
SUM_CHANGED = "the number or the sum of its seals was changed, or seals were removed"
MOST = 1000
"""Findings of a table that are told."""
TURNS_AT_ONCE = 100
UNSEALED_TURNS = "unsealed_turns"
"""Key of `meta`: turns up to this one were committed before there were seals."""

SEALS_SQL = "SELECT row, seal FROM row_seal WHERE of = ?"
ALL_SEALS_SQL = "SELECT count(*) FROM row_seal"
TABLES_SQL = "SELECT of FROM row_seal UNION SELECT of FROM table_seal"
META_SQL = "SELECT value FROM meta WHERE key = ?"
CLEAR_SQLS = ("DELETE FROM row_seal WHERE of = ?", "DELETE FROM table_seal WHERE of = ?")
ADD_SQL = "INSERT INTO row_seal VALUES (?, ?, ?)"
COUNT_MIGRATIONS_SQL = "SELECT count(*) FROM schema_migration"
HAS_SEALS_SQL = (
    "SELECT EXISTS (SELECT 1 FROM row_seal WHERE of = ?1) OR EXISTS (SELECT 1 FROM table_seal WHERE of = ?1)"
)

HAS_ANY_SQL = "SELECT EXISTS (SELECT 1 FROM table_seal) OR EXISTS (SELECT 1 FROM row_seal)"
IS_SEALED_SQL = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'row_seal')"
STRONG_SUMS_SQL = "SELECT of, rows, sum, seal FROM table_seal WHERE substr(seal, 1, 1) = ?"
HAS_STRONG_SQL = """
SELECT EXISTS (SELECT 1 FROM row_seal WHERE substr(seal, 1, 1) = ?1)
  OR EXISTS (SELECT 1 FROM table_seal WHERE substr(seal, 1, 1) = ?1)
  OR EXISTS (SELECT 1 FROM turn WHERE substr(seal, 1, 1) = ?1)
"""


class Broken(NamedTuple):
    """A row that its seal does not fit; `row` None where a whole table is meant."""

    table: str
    row: int | bytes | None
    problem: str


def rows(tx: Reading) -> int:
    """How many seals there are."""
    return tx.value(ALL_SEALS_SQL) + idempotency.count(tx) if tx.value(IS_SEALED_SQL) else 0


def broken(tx: Reading, sealer: Sealer, progress: Progress) -> Iterator[Broken]:
    """The rows of every table but those of turns, which are not what the runtime wrote.

    Of a copy of an older schema, before it is migrated: a migration changes rows, which are sealed again afterwards.
    """
    if not tx.value(IS_SEALED_SQL):
        yield Broken("row_seal", None, NO_SEALS)
        return
    known = shapes(tx)
    looked = 0
    for each in (*(_of_table(tx, sealer, shape) for shape in known.values()), _of_keys(tx, sealer)):
        for found in each:
            if isinstance(found, Broken):
                yield found
                continue
            looked += 1
            if not looked % EVERY:
                progress.at(looked)
    for (table,) in tx.rows(TABLES_SQL):
        if table not in known:
            yield Broken(table, None, "has seals, and is not there")


def _of_table(tx: Reading, sealer: Sealer, shape: Shape) -> Iterator[Broken | None]:
    """What is broken in one table, and None for each row that was looked at.

    Neither rows nor seals are held in memory while they fit: there may be many.
    """
    seals = _Seals()
    for row, seal in tx.rows(SEALS_SQL, shape.name):
        seals.add(row, seal)
    count, total = seals.count, seals.total
    told = 0
    for values in all_rows(tx, shape):
        yield None
        row = shape.row(sealer, values)
        seal = tx.value(SEAL_SQL, shape.name, row)
        if seal is not None:
            seals.take(row)
        problem = problem_of(sealer, shape.name, shape.sealed_of(values), seal)
        if problem is not None and told < MOST:
            told += 1
            yield Broken(shape.name, row, problem)
    if not seals.are_taken:
        yield from _unmatched(tx, sealer, shape)
    if not sum_fits(tx, sealer, shape.name, count, total):
        yield Broken(shape.name, None, SUM_CHANGED)


def _of_keys(tx: Reading, sealer: Sealer) -> Iterator[Broken | None]:
    """As `_of_table`, of the first reports of idempotency keys, which hold their own seals."""
    told = 0
    for kept in idempotency.every(tx):
        yield None
        problem = problem_of(sealer, idempotency.NAME, kept.covered, kept.seal)
        if problem is not None and told < MOST:
            told += 1
            yield Broken(idempotency.NAME, kept.row, problem)


class _Seals:
    """How many seals there are, of what sum, and of which rows: a sum of hashes that this process alone knows."""

    def __init__(self) -> None:
        self.count = self._left = self._names = 0
        self.total: int | None = 0

    def add(self, row: int | bytes, seal: Any) -> None:
        self.count += 1
        self._left += 1
        self._names += hash(repr(row))
        self.total = _added(self.total, seal)

    def take(self, row: int | bytes) -> None:
        """A row was found that has a seal."""
        self._left -= 1
        self._names -= hash(repr(row))

    @property
    def are_taken(self) -> bool:
        """Whether each row that has a seal was found, once."""
        return self._left == 0 == self._names


def _unmatched(tx: Reading, sealer: Sealer, shape: Shape) -> Iterator[Broken]:
    """Seals without a row, and rows that stand twice."""
    left = {row for row, _ in tx.rows(SEALS_SQL, shape.name)}
    sealed = frozenset(left)
    for values in all_rows(tx, shape):
        row = shape.row(sealer, values)
        if row in left:
            left.discard(row)
        elif row in sealed:
            yield Broken(shape.name, row, ADDED)
    for row in left:
        yield Broken(shape.name, row, REMOVED)


def problem_of(sealer: Sealer, of: str, covered: tuple[Any, ...], seal: Any) -> str | None:
    """Why a row is not what the runtime wrote, None when it is, as far as anybody can tell.

    Args:
        covered: what a seal of this table covers.
    """
    if seal is None:
        return ADDED
    if sealer.fits(seal, of, covered) is False:
        return CHANGED
    return WITHOUT_IDENTITY if sealer.is_weak(of, seal) else None


def sum_of(seals: Iterable[Any]) -> int | None:
    """The exclusive or of seals; None when one of them is none."""
    return reduce(_added, seals, 0)


def _added(total: int | None, seal: Any) -> int | None:
    return total ^ int.from_bytes(seal, "big") if total is not None and isinstance(seal, bytes) else None


def sum_fits(tx: Reading, sealer: Sealer, table: str, count: int, total: int | None) -> bool:
    """Whether a table has as many seals, and of this sum, as was written down of it."""
    found = tx.row(SUM_SQL, table)
    if found is None or total is None:
        return False
    rows, sum_, seal = found
    said = is_sum(rows, sum_) and (rows, int.from_bytes(sum_, "big")) == (count, total)
    return said and sealer.fits(seal, "table_seal", (table, rows, sum_)) is not False


class BrokenTurn(NamedTuple):
    """A turn that its seal does not fit."""

    turn: int
    problem: str


def broken_turns(tx: Reading, sealer: Sealer, progress: Progress) -> Iterator[BrokenTurn]:
    """The turns that are not, with all that was committed with them, what the runtime wrote."""
    unsealed = unsealed_turns(tx)
    after = 0
    while page := turn_seals.every(tx, after, TURNS_AT_ONCE):
        for turn, problem in turn_problems(tx, sealer, unsealed, page).items():
            yield BrokenTurn(turn, problem)
        after = page[-1][0]
        progress.at(after)


def unsealed_turns(tx: Reading) -> int:
    """Up to which key turns may have no seal."""
    found = tx.value(META_SQL, UNSEALED_TURNS)
    return found if isinstance(found, int) else 0


def turn_problems(
    tx: Reading, sealer: Sealer, unsealed: int, turns: Iterable[tuple[int, bytes | None]]
) -> dict[int, str]:
    """Why a turn is not what the runtime wrote, of those that are not.

    Args:
        turns: with their seals.
    """
    seals = dict(turns)
    values = dict(turn_seals.values_by_turn(tx, (turn for turn, seal in seals.items() if seal is not None)))
    found = ((turn, _problem(sealer, unsealed, turn, seal, values.get(turn))) for turn, seal in seals.items())
    return {turn: problem for turn, problem in found if problem is not None}


def _problem(
    sealer: Sealer, unsealed: int, turn: int, seal: bytes | None, values: tuple[Any, ...] | None
) -> str | None:
    if seal is None:
        return None if turn <= unsealed else ADDED
    if values is not None and sealer.fits(seal, turn_seals.NAME, values) is False:
        return CHANGED
    return WITHOUT_IDENTITY if sealer.is_weak(turn_seals.NAME, seal) else None


def adopt(tx: Writing, sealer: Sealer) -> dict[str, int]:
    """Seal the tables that were never sealed: all of them in a new store and behind a migration, and those that a
    restore has changed. How many rows, by table."""
    known, anew = shapes(tx), not tx.value(HAS_ANY_SQL)
    if _was_migrated(tx, sealer):
        anew = True
        for name in (*known, idempotency.NAME):
            forget(tx, name)
    taken: dict[str, int] = {}
    for shape in known.values():
        if not tx.value(HAS_SEALS_SQL, shape.name):
            taken[shape.name] = _seal_all(tx, sealer, shape)
    if anew and (count := _seal_keys(tx, sealer, idempotency.every(tx))):
        taken[idempotency.NAME] = count
    return taken


def _seal_keys(tx: Writing, sealer: Sealer, kept: Iterable[idempotency.Kept]) -> int:
    count = 0
    for each in kept:
        idempotency.seal_again(tx, sealer, each)
        count += 1
    return count


def strengthen(tx: Writing, sealer: Sealer) -> dict[str, int]:
    """Seal with the identity what had to be sealed without: the store gets its first one now. How many rows, by table.

    Nothing where a seal was made by an identity, for then this is not the first. What does not fit stays as it is.
    """
    taken: dict[str, int] = {}
    if sealer.strong is None or not tx.value(HAS_ANY_SQL) or has_strong(tx):
        return taken
    for shape in shapes(tx).values():
        if shape.name not in NEVER_STRONG and (count := _strengthen_table(tx, sealer, shape)):
            taken[shape.name] = count
    fitting_keys = (kept for kept in idempotency.every(tx) if kept.fits(sealer))
    if count := _seal_keys(tx, sealer, fitting_keys):
        taken[idempotency.NAME] = count
    after = 0
    while page := turn_seals.every(tx, after, TURNS_AT_ONCE):
        seals = dict(page)
        values = turn_seals.values_by_turn(tx, (turn for turn, seal in page if seal is not None))
        fitting = [turn for turn, covered in values if sealer.fits(seals[turn], turn_seals.NAME, covered)]
        if fitting:
            turn_seals.seal_again(tx, sealer, fitting)
            taken[turn_seals.NAME] = taken.get(turn_seals.NAME, 0) + len(fitting)
        after = page[-1][0]
    return taken


def has_strong(tx: Reading) -> bool:
    """Whether an identity has sealed anything."""
    return bool(tx.value(HAS_STRONG_SQL, STRONG))


def is_of(tx: Reading, strong: bytes) -> bool:
    """Whether the identity with this key has sealed what is told of a table."""
    sealer = Sealer(strong, b"")
    return any(sealer.fits(seal, "table_seal", tuple(told)) for *told, seal in tx.rows(STRONG_SUMS_SQL, STRONG))


def _strengthen_table(tx: Writing, sealer: Sealer, shape: Shape) -> int:
    seals: dict[int | bytes, Any] = {row: seal for row, seal in tx.rows(SEALS_SQL, shape.name)}
    total = sum_of(seals.values())
    if total is None or not sum_fits(tx, sealer, shape.name, len(seals), total):
        return 0
    count = 0
    for values in list(all_rows(tx, shape)):
        row, covered = shape.row(sealer, values), shape.sealed_of(values)
        kept = seals.get(row)
        if kept is not None and sealer.fits(kept, shape.name, covered):
            seal = sealer.seal(shape.name, covered)
            tx.run(PUT_SQL, shape.name, row, seal)
            count, total = count + 1, total ^ int.from_bytes(kept, "big") ^ int.from_bytes(seal, "big")
    put_sum(tx, sealer, shape.name, len(seals), total)
    return count


def needs_adoption(tx: Reading, sealer: Sealer) -> bool:
    """Whether there is a table to be sealed."""
    return _was_migrated(tx, sealer) or any(not tx.value(HAS_SEALS_SQL, name) for name in shapes(tx))


def _was_migrated(tx: Reading, sealer: Sealer) -> bool:
    """Whether a migration was applied since the tables were sealed: what it changed, nobody else has."""
    found = tx.row(SUM_SQL, "schema_migration")
    if found is None:
        return False
    rows, sum_, seal = found
    sound = sealer.fits(seal, "table_seal", ("schema_migration", rows, sum_)) is not False
    return sound and is_sum(rows, sum_) and rows < tx.value(COUNT_MIGRATIONS_SQL)


def _seal_all(tx: Writing, sealer: Sealer, shape: Shape) -> int:
    count = total = 0
    for values in list(all_rows(tx, shape)):
        seal = sealer.seal(shape.name, shape.sealed_of(values))
        tx.run(ADD_SQL, shape.name, shape.row(sealer, values), seal)
        count, total = count + 1, total ^ int.from_bytes(seal, "big")
    put_sum(tx, sealer, shape.name, count, total)
    return count


def forget(tx: Writing, table: str) -> None:
    """Take away the seals of a table, which is sealed anew at the next opening."""
    for sql in CLEAR_SQLS:
        tx.run(sql, table)


def row_problem(tx: Reading, sealer: Sealer, table: str, values: tuple[Any, ...]) -> str | None:
    """As `problem_of`, of one row of a table, whose columns are given in their order; a weak seal is none."""
    known = shape_of(tx, table)
    problem = problem_of(sealer, table, known.sealed_of(values), tx.value(SEAL_SQL, table, known.row(sealer, values)))
    return None if problem == WITHOUT_IDENTITY else problem
