"""The best rows of lists of rows, each list with a weight: which a search needs, without scoring all of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence, Set
from heapq import heappop, heappush
from itertools import islice
from math import fsum
from operator import itemgetter

from beetle.named_tuple import NamedTuple

Rows = Sequence[int]
"""Numbers of rows in ascending order."""
PROBES = 16
"""A look for one row in a list costs as much as going over so many rows of it (measured)."""
BREATH_GROUPS = 32
"""Groups between two breaths where they are small."""
LARGE = 4_096
"""Rows of a group that take most of a millisecond."""


NOTHING: Set[int] = frozenset()


class _Group(NamedTuple):
    """Rows of which it is known which of the first `looked` lists hold them: the lists `held`.

    `order` sorts groups: the most that a row of the group may have, with a minus sign, and a number of its own. The
    rows are those of `rows` without `but`, taken apart when they are needed; `rows` is None for all that none of those
    lists holds.
    """

    order: tuple[float, int]
    looked: int
    held: tuple[int, ...]
    rows: set[int] | None
    but: Set[int]


def best_rows(
    lists: Sequence[tuple[Rows, float]], most: int, breathe: Callable[[], None] | None = None
) -> list[tuple[int, float]]:
    """The first `most` of `ranked`."""
    return list(islice(ranked(lists, breathe), most))


def ranked(
    lists: Sequence[tuple[Rows, float]], breathe: Callable[[], None] | None = None
) -> Iterator[tuple[int, float]]:
    """Every row of the lists with the sum of the weights of those that hold it: the highest sums first, of equal ones
    the higher rows.

    Rows are divided by the lists that hold them, those first that may become the best: a best-first branch and bound.
    What cannot be among the next is not looked at yet. Of a list most is read where its weight is high; such are short.

    Args:
        breathe: called again and again, and may wait.
    """
    ordered = sorted((each for each in lists if each[0]), key=itemgetter(1), reverse=True)
    weights = [weight for _, weight in ordered]
    groups = [_Group((-fsum(weights), 0), 0, (), None, NOTHING)]
    seen: set[int] = set()
    # Those of one score, which may come in several groups.
    found: list[int] = []
    score = 0.0
    number = 0
    while groups:
        group = heappop(groups)
        bound, place = group.order[0], group.looked
        if found and score > -bound:
            yield from ((row, score) for row in sorted(found, reverse=True))
            found = []
        rows = group.rows.difference(group.but) if group.rows and group.but else group.rows
        if place == len(ordered):
            score = -bound
            found += rows or ()
        elif rows is None or rows:
            held = set(ordered[place][0]).difference(seen) if rows is None else _held(ordered[place][0], rows)
            if rows is None:
                seen |= held
            with_it = -fsum([weights[each] for each in group.held] + weights[place:])
            without = -fsum([weights[each] for each in group.held] + weights[place + 1 :])
            number += 2
            if held:
                heappush(groups, _Group((with_it, number), place + 1, (*group.held, place), held, NOTHING))
            heappush(groups, _Group((without, number + 1), place + 1, group.held, rows, held))
            if breathe is not None and (len(held) > LARGE or not number % BREATH_GROUPS):
                breathe()
    yield from ((row, score) for row in sorted(found, reverse=True))


def _held(rows: Rows, wanted: set[int]) -> set[int]:
    """Those of `wanted` that a list holds."""
    if len(wanted) * PROBES > len(rows):
        return wanted.intersection(rows)
    held: set[int] = set()
    for row in wanted:
        place = bisect_left(rows, row)
        if place < len(rows) and rows[place] == row:
            held.add(row)
    return held
