"""What erasures have left to do: written down before the first slice, taken off as the slices are done."""

from __future__ import annotations

from collections.abc import Sequence

from beetle.contracts.codec import json_text
from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing

NEW_SQL = "INSERT INTO erasure (space, operation, principal, terms, begun_at) VALUES (?, ?, ?, ?, ?)"
NEW_LEFT_SQL = """
INSERT INTO erasure_left (erasure, plane, conversation, lifecycle, first, last) VALUES (?, ?, ?, ?, ?, ?)
"""
OPEN_SQL = """
SELECT x.erasure, x.space, s.memory_space_id, x.operation, x.principal, x.terms
FROM erasure x JOIN space s ON s.space = x.space ORDER BY x.erasure
"""
COUNT_SQL = "SELECT count(*) FROM erasure"
NEXT_SQL = """
SELECT erasure_left, plane, conversation, lifecycle, first, last FROM erasure_left
WHERE erasure = ? ORDER BY erasure_left LIMIT 1
"""
ANY_LEFT_SQL = "SELECT 1 FROM erasure_left WHERE plane = ? LIMIT 1"
HAS_LEFT_SQL = "SELECT 1 FROM erasure_left WHERE erasure = ? AND plane = ? LIMIT 1"
ADVANCE_SQL = "UPDATE erasure_left SET first = ? WHERE erasure_left = ?"
DONE_SQL = "DELETE FROM erasure_left WHERE erasure_left = ?"
KEEP_SQL = "DELETE FROM erasure_left WHERE erasure = ? AND plane <> ?"
DROP_SQLS = ("DELETE FROM erasure_left WHERE erasure = ?", "DELETE FROM erasure WHERE erasure = ?")
DROP_SPACE_SQLS = (
    "DELETE FROM erasure_left WHERE erasure IN (SELECT erasure FROM erasure WHERE space = ?)",
    "DELETE FROM erasure WHERE space = ?",
)
KEEP_IN_ALL_SQLS = (
    "DELETE FROM erasure_left WHERE plane NOT IN (SELECT value FROM json_each(?))",
    "DELETE FROM erasure WHERE erasure NOT IN (SELECT erasure FROM erasure_left)",
)


class OpenErasure(NamedTuple):
    """An erasure that is not finished. `terms` is JSON."""

    erasure: int
    space: int
    memory_space_id: str
    operation: str
    principal: str
    terms: str


class Part(NamedTuple):
    """Keys of one plane, ends included; of turns the sequences in a conversation, whose record of the step is named."""

    plane: str
    first: int
    last: int
    conversation: int | None = None
    lifecycle: int | None = None


class LeftPart(NamedTuple):
    """A part that is not done, by its own key."""

    key: int
    part: Part


def begin(
    tx: Writing, space: int, operation: str, principal: str, terms: str, now: int, parts: Sequence[Part]
) -> OpenErasure:
    """Write down all that an erasure is to do, in its order."""
    key = tx.insert(NEW_SQL, space, operation, principal, terms, now)
    for each in parts:
        tx.run(NEW_LEFT_SQL, key, each.plane, each.conversation, each.lifecycle, each.first, each.last)
    return OpenErasure(key, space, "", operation, principal, terms)


def unfinished(tx: Reading) -> list[OpenErasure]:
    """The erasures that are not finished, the first one first."""
    return [OpenErasure(*row) for row in tx.rows(OPEN_SQL)]


def count(tx: Reading) -> int:
    """How many erasures are not finished."""
    return tx.value(COUNT_SQL)


def next_part(tx: Reading, erasure: int) -> LeftPart | None:
    """The part that comes next; None when all is done."""
    found = tx.row(NEXT_SQL, erasure)
    if found is None:
        return None
    key, plane, conversation, lifecycle, first, last = found
    return LeftPart(key, Part(plane, first, last, conversation, lifecycle))


def has_left(tx: Reading, erasure: int, plane: str) -> bool:
    """Whether a part of this plane is not done."""
    return tx.value(HAS_LEFT_SQL, erasure, plane) is not None


def any_has_left(tx: Reading, plane: str) -> bool:
    """Whether any erasure has a part of this plane that is not done."""
    return tx.value(ANY_LEFT_SQL, plane) is not None


def go_on(tx: Writing, left: LeftPart, first: int) -> None:
    """A part is done up to the key before `first`."""
    if first > left.part.last:
        tx.run(DONE_SQL, left.key)
    else:
        tx.run(ADVANCE_SQL, first, left.key)


def keep_plane(tx: Writing, erasure: int, plane: str) -> None:
    """Strike off all that an erasure has left but the parts of one plane."""
    tx.run(KEEP_SQL, erasure, plane)


def drop(tx: Writing, erasure: int) -> None:
    """Strike an erasure off, with what it has left."""
    for sql in DROP_SQLS:
        tx.run(sql, erasure)


def drop_space(tx: Writing, space: int) -> None:
    """Strike off the erasures of a space that is emptied: what comes in its place is not meant."""
    for sql in DROP_SPACE_SQLS:
        tx.run(sql, space)


def keep_planes_of_all(tx: Writing, planes: Sequence[str]) -> None:
    """Strike off all that erasures have left but the parts of these planes."""
    first, second = KEEP_IN_ALL_SQLS
    tx.run(first, json_text(planes))
    tx.run(second)
