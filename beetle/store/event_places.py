"""The place of each event among those of its space: the numbers that everybody but an operator is told.

The log's own numbers grow with every write of every owner. A place is counted three times: among all rows of the space,
among those that are not sealed, and among those that everybody of the space may know of.
"""

from __future__ import annotations

from typing import Literal

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing

Matter = Literal["shared", "private", "sealed"]
"""What an event is about: what everybody of its space may know of, a private fact, or the private plane."""
Level = Literal["shared", "private", "sealed"]
"""Up to which matter somebody may know of events."""
LEVELS: tuple[Level, ...] = ("shared", "private", "sealed")

LAST_SQL = "SELECT place, place_private, place_shared FROM event_place WHERE space = ? ORDER BY place DESC LIMIT 1"
NEXT_SQL = """
SELECT place, place_private, place_shared FROM event_place WHERE space = ? AND place >= ? ORDER BY place LIMIT 1
"""
ADD_SQL = "INSERT INTO event_place VALUES (?, ?, ?, ?, ?, ?)"


class Places(NamedTuple):
    """How many events of a space there were up to one: of any matter, without the sealed ones, the shared ones."""

    sealed: int
    private: int
    shared: int

    def at(self, level: Level) -> int:
        """The number that a level knows it by."""
        return self[2 - LEVELS.index(level)]


def is_visible(matter: Matter, level: Level) -> bool:
    """Whether a level may know of a matter."""
    return LEVELS.index(matter) <= LEVELS.index(level)


def add_place(tx: Writing, seq: int, space: str, matter: Matter) -> Places:
    """Write down the place of an event behind all others of its space."""
    known = (LAST_SQL, space)
    last = tx.known.get(known) or last_places(tx, space)
    made = Places(
        last.sealed + 1, last.private + is_visible(matter, "private"), last.shared + is_visible(matter, "shared")
    )
    tx.run_known(ADD_SQL, seq, space, matter, *made)
    tx.known[known] = made
    return made


def last_places(tx: Reading, space: str) -> Places:
    """How many events of a space there are."""
    return tx.one(Places, LAST_SQL, space) or Places(0, 0, 0)


def places_between(tx: Reading, space: str, level: Level, between: tuple[int, int]) -> tuple[int, int]:
    """Two numbers of a level, both exclusive, as places among all events of the space, both exclusive."""
    after, before = between
    return _first(tx, space, level, after + 1) - 1, _first(tx, space, level, before)


def _first(tx: Reading, space: str, level: Level, number: int) -> int:
    """The first place at which a level's count has come to a number: counts never fall, so halves are enough."""
    low, high = 1, last_places(tx, space).sealed + 1
    while low < high:
        middle = (low + high) // 2
        found = tx.one(Places, NEXT_SQL, space, middle)
        if found is None or found.at(level) >= number:
            high = middle
        else:
            low = middle + 1
    return low
