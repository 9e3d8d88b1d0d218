"""The best rows of lists of rows, each list with a weight: which a search needs, without scoring all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush, merge
from math import fsum
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from beetle.named_tuple import NamedTuple
from beetle.store.indexed import PLANE_BITS
from beetle.store.row_sets import Dense, rows_in, tiles_of

if TYPE_CHECKING:
    from beetle.store.row_sets import Rows

Found = TypeVar("Found", int, "set[int]")
"""Rows of lists, as a bitmap or as a set."""

FEW = 512
"""So many rows cost less as sets than as bitmaps, whatever their keys are,"""
SPARSE = 128
"""and more of them do where there are so many times the keys."""
BREATH_GROUPS = 32
"""Groups between two breaths: at most a millisecond."""


class _Group(NamedTuple):
    """Rows of which it is known which of the first `looked` lists hold them: the lists `held`.

    `order` sorts groups: the most that a row of the group may have, with a minus sign, and a number of its own. `rows`
    is None for all that none of those lists holds.
    """

    order: tuple[float, int]
    looked: int
    held: tuple[int, ...]
    rows: Any


def ranked(
    lists: Sequence[tuple[Rows, float]], breathe: Callable[[], None] | None = None
) -> Iterator[tuple[int, float]]:
    """Every row of the lists with the sum of the weights of those that hold it: the highest sums first, of equal ones
    the higher rows.

    Args:
        breathe: called again and again, and may wait.
    """
    held = [each for each in lists if len(each[0])]
    if few := _few([rows for rows, _ in held]):
        sets = [(set(rows), weight) for rows, (_, weight) in zip(few, held, strict=True)]
        return ((row, score) for rows, score in _best(sets, set[int](), breathe) for row in sorted(rows, reverse=True))
    tiled = [(tiles_of(rows), weight) for rows, weight in held]
    numbers = {tile for tiles, _ in tiled for tile in tiles}
    each = [_of_tile(tile, [(tiles.get(tile, 0), weight) for tiles, weight in tiled], breathe) for tile in numbers]
    return each[0] if len(each) == 1 else merge(*each, key=rank)


def rank(row: tuple[int, float]) -> tuple[float, int]:
    """What sorts rows with their scores: the highest scores first, of equal ones the higher rows."""
    return -row[1], -row[0]


def _few(lists: Sequence[Rows]) -> list[Sequence[int]]:
    """The lists, where they are so few rows of so many keys that bitmaps over the keys are not worth it; none else."""
    few = [rows for rows in lists if not isinstance(rows, Dense)]
    keys = max((rows[-1] for rows in few), default=0) >> PLANE_BITS
    return few if len(few) == len(lists) and sum(map(len, few)) <= max(FEW, keys // SPARSE) else []


def _of_tile(
    tile: int, bitmaps: Sequence[tuple[int, float]], breathe: Callable[[], None] | None
) -> Iterator[tuple[int, float]]:
    return ((row, score) for bits, score in _best(bitmaps, 0, breathe) for row in rows_in(tile, bits))


def _best(
    lists: Sequence[tuple[Found, float]], none: Found, breathe: Callable[[], None] | None
) -> Iterator[tuple[Found, float]]:
    """The rows of each score, the highest score first.

    They are divided by the lists that hold them, those first that may become the best: a best-first branch and bound.
    What cannot be among the next is not looked at yet.

    Args:
        none: no rows.
    """
    ordered = sorted((each for each in lists if each[0]), key=itemgetter(1), reverse=True)
    weights = [weight for _, weight in ordered]
    groups = [_Group((-fsum(weights), 0), 0, (), None)]
    seen = none
    # Those of one score, which may come in several groups.
    found, score = none, 0.0
    number = 0
    while groups:
        (bound, _), place, held_by, rows = heappop(groups)
        if found and score > -bound:
            yield found, score
            found = none
        if place == len(ordered):
            score = -bound
            if rows is not None:
                found = found | rows if found else rows
            continue
        every = ordered[place][0]
        if rows is None:
            held = every ^ (every & seen)
            seen = seen | every
            left = None
        else:
            held = every & rows
            left = rows ^ held
        number += 2
        if held:
            with_it = -fsum([weights[each] for each in held_by] + weights[place:])
            heappush(groups, _Group((with_it, number), place + 1, (*held_by, place), held))
        if left is None or left:
            without = -fsum([weights[each] for each in held_by] + weights[place + 1 :])
            heappush(groups, _Group((without, number + 1), place + 1, held_by, left))
        if breathe is not None and not number % BREATH_GROUPS:
            breathe()
    if found:
        yield found, score
