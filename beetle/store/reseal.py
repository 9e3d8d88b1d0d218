"""Sealing a store anew by another identity than the one that has sealed it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from beetle.named_tuple import NamedTuple
from beetle.store import idempotency, turn_seals
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.seal_checks import SEALS_SQL, TURNS_AT_ONCE, sum_fits, sum_of, unsealed_turns
from beetle.store.seals import PUT_SQL, Sealer, Shape, all_rows, put_sum, shapes


class Judged(NamedTuple):
    """Rows and turns by what their seals prove.

    Attributes:
        proven: they are what the runtime wrote.
        unproven: only the identity that sealed them could tell.
        broken: another program changed, added or removed them.
    """

    proven: int = 0
    unproven: int = 0
    broken: int = 0

    def and_one(self, fits: bool | None) -> Judged:
        """With one more, which its seal fits, or does not, or nobody knows."""
        if fits is None:
            return self._replace(unproven=self.unproven + 1)
        return self._replace(proven=self.proven + 1) if fits else self._replace(broken=self.broken + 1)


class _Row(NamedTuple):
    """A row of a table that is sealed, or a seal whose row is gone: then `covered` is None."""

    row: int | bytes
    covered: tuple[Any, ...] | None
    kept: Any
    fits: bool | None


def judge(tx: Reading, sealer: Sealer) -> Judged:
    """What the seals of a store prove to `sealer`."""
    judged = Judged()
    for shape in shapes(tx).values():
        for each in _rows(tx, sealer, shape, _seals(tx, shape)):
            judged = judged.and_one(each.fits)
    for kept in idempotency.every(tx):
        judged = judged.and_one(kept.fits(sealer))
    for _, _, fits in _turns(tx, sealer):
        judged = judged.and_one(fits)
    return judged


def seal_anew(tx: Writing, before: Sealer, after: Sealer) -> Judged:
    """Seal with `after` what was sealed with `before`, or with an identity that nobody has any more.

    What is provably not as the runtime wrote it keeps the seal that does not fit, or none: it is found as ever.
    """
    judged = Judged()
    for shape in shapes(tx).values():
        judged = _seal_table(tx, before, after, shape, judged)
    for kept in idempotency.every(tx):
        fits = kept.fits(before)
        judged = judged.and_one(fits)
        if fits is not False:
            idempotency.seal_again(tx, after, kept)
    for turn, values, fits in _turns(tx, before):
        judged = judged.and_one(fits)
        if fits is not False:
            tx.run(turn_seals.SET_SQL, after.seal(turn_seals.NAME, values), turn)
    return judged


def _seal_table(tx: Writing, before: Sealer, after: Sealer, shape: Shape, judged: Judged) -> Judged:
    seals = _seals(tx, shape)
    count, total = len(seals), sum_of(seals.values())
    told = total is not None and sum_fits(tx, before, shape.name, count, total)
    for each in list(_rows(tx, before, shape, seals)):
        judged = judged.and_one(each.fits)
        if each.fits is False or each.covered is None:
            continue
        seal = after.seal(shape.name, each.covered)
        tx.run(PUT_SQL, shape.name, each.row, seal)
        total = None if total is None else total ^ int.from_bytes(each.kept, "big") ^ int.from_bytes(seal, "big")
    if told and total is not None:
        put_sum(tx, after, shape.name, count, total)
    return judged


def _seals(tx: Reading, shape: Shape) -> dict[int | bytes, Any]:
    return {row: seal for row, seal in tx.rows(SEALS_SQL, shape.name)}


def _rows(tx: Reading, sealer: Sealer, shape: Shape, seals: dict[int | bytes, Any]) -> Iterator[_Row]:
    left = dict(seals)
    for values in all_rows(tx, shape):
        row, covered = shape.row(sealer, values), shape.sealed_of(values)
        kept = left.pop(row, None)
        yield _Row(row, covered, kept, sealer.fits(kept, shape.name, covered))
    for row, kept in left.items():
        yield _Row(row, None, kept, False)


def _turns(tx: Reading, sealer: Sealer) -> Iterator[tuple[int, tuple[Any, ...], bool | None]]:
    """(turn, what its seal covers, whether it fits) of each turn; those of before there were seals have none."""
    unsealed = unsealed_turns(tx)
    after = 0
    while page := turn_seals.every(tx, after, TURNS_AT_ONCE):
        seals = {turn: seal for turn, seal in page if seal is not None or turn > unsealed}
        for turn, values in turn_seals.values_by_turn(tx, seals):
            yield turn, values, sealer.fits(seals[turn], turn_seals.NAME, values)
        after = page[-1][0]
