"""What erasures have left to do: written down before the first slice, taken off as the slices are done."""

from __future__ import annotations

from collections.abc import Sequence

from beetle.contracts.codec import json_text
from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Row, Writing

NEW_SQL = "INSERT INTO erasure (space, operation, principal, terms, begun_at) VALUES (?, ?, ?, ?, ?)"
NEW_LEFT_SQL = """
INSERT INTO erasure_left (erasure, plane, conversation, lifecycle, first, last) VALUES (?, ?, ?, ?, ?, ?)
"""
RESTING = "resting"
"""The plane of parts that name the turns of an erasure to its end: what rests on these alone goes too."""
COLUMNS = """
SELECT x.erasure, x.space, s.memory_space_id, x.operation, x.principal, x.terms
FROM erasure x JOIN space s ON s.space = x.space
"""
IS_PAUSED = "iif(json_valid({0}terms), {0}terms ->> 'paused', NULL) IS NOT NULL"
KEY, REQUEST = (f"iif(json_valid(x.terms), x.terms ->> '{name}', NULL)" for name in ("key", "request"))
REPORT = f"""
idempotency i WHERE i.principal = x.principal AND i.space = s.memory_space_id AND i.key = {KEY}
  AND i.at = x.begun_at AND lower(hex(i.request)) = {REQUEST}
"""
"""What the key of an erasure was answered first, in the write that began it; no later report of that key."""
OPEN_SQL = COLUMNS + f"WHERE NOT ({IS_PAUSED.format('x.')}) ORDER BY x.erasure"
EVERY_SQL = COLUMNS + "WHERE ?1 IS NULL OR x.space = ?1 ORDER BY x.erasure"
FIND_SQL = COLUMNS + "WHERE x.erasure = ?"
OF_KEY_SQL = f"""
{COLUMNS} WHERE s.memory_space_id = ? AND x.operation = ? AND x.principal = ? AND {KEY} = ?
  AND EXISTS (SELECT 1 FROM {REPORT})
"""  # noqa: S608 - constants
ROW_SQL = "SELECT * FROM erasure WHERE erasure = ?"
STATE_SQL = "UPDATE erasure SET terms = ? WHERE erasure = ?"
COUNT_SQL = f"SELECT count(*) FROM erasure WHERE NOT ({IS_PAUSED.format('')})"  # noqa: S608 - constants
NEXT_SQL = f"""
SELECT erasure_left, plane, conversation, lifecycle, first, last FROM erasure_left
WHERE erasure = ? AND plane <> '{RESTING}' ORDER BY erasure_left LIMIT 1
"""  # noqa: S608 - constants
OF_PLANES_SQL = """
SELECT erasure_left, plane, conversation, lifecycle, first, last FROM erasure_left
WHERE erasure = ? AND plane IN (SELECT value FROM json_each(?)) ORDER BY erasure_left
"""
SIZE_SQL = """
SELECT coalesce(sum(last - first + 1), 0) FROM erasure_left
WHERE erasure = ? AND plane NOT IN (SELECT value FROM json_each(?))
"""
MOVE_SQL = "UPDATE erasure_left SET erasure = ? WHERE erasure = ? AND plane = ?"
ANY_LEFT_SQL = "SELECT 1 FROM erasure_left WHERE plane = ? LIMIT 1"
HAS_LEFT_SQL = "SELECT 1 FROM erasure_left WHERE erasure = ? AND plane = ? LIMIT 1"
ADVANCE_SQL = "UPDATE erasure_left SET first = ? WHERE erasure_left = ?"
DONE_SQL = "DELETE FROM erasure_left WHERE erasure_left = ?"
DROP_SQLS = ("DELETE FROM erasure_left WHERE erasure = ?", "DELETE FROM erasure WHERE erasure = ?")
FORSAKEN_SQL = f"""
{COLUMNS} WHERE {IS_PAUSED.format("x.")} AND NOT EXISTS (SELECT 1 FROM {REPORT})
"""  # noqa: S608 - constants
REPORT_SQL = f"""
SELECT i.idempotency, i.report FROM erasure x JOIN space s ON s.space = x.space JOIN {REPORT} AND x.erasure = ?
"""  # noqa: S608 - constants
REPORTS_OF_SQL = """
SELECT i.idempotency FROM erasure x JOIN space s ON s.space = x.space
JOIN idempotency i ON i.principal = x.principal AND i.space = s.memory_space_id AND i.at = x.begun_at
WHERE x.erasure = ?
"""
DROP_REPORT_SQL = "DELETE FROM idempotency WHERE idempotency = ?"
KEEP_SQL = """
DELETE FROM erasure_left WHERE erasure = ? AND plane NOT IN (SELECT value FROM json_each(?)) RETURNING 1
"""
DROP_CONVERSATION_SQL = """
DELETE FROM erasure_left WHERE erasure = ?1 AND (conversation = ?2 OR (plane = ?3 AND first = ?2)) RETURNING 1
"""
DROP_RECORDS_SQL = """
DELETE FROM erasure_left WHERE erasure = ? AND plane = ? AND first IN (SELECT value FROM json_each(?)) RETURNING 1
"""


class OpenErasure(NamedTuple):
    """An erasure that is not finished. `terms` is JSON."""

    erasure: int
    space: int
    memory_space_id: str
    operation: str
    principal: str
    terms: str


class Part(NamedTuple):
    """Keys of one plane, ends included; of turns the sequences in a conversation, whose record of the step is named.

    Row numbers name no record for good: `mark` says what the one that is meant was when it was selected. It stands in
    the column of `lifecycle`, as a negative number, which no key of a step is.
    """

    plane: str
    first: int
    last: int
    conversation: int | None = None
    lifecycle: int | None = None
    mark: int | None = None


class LeftPart(NamedTuple):
    """A part that is not done, by its own key."""

    key: int
    part: Part


def begin(
    tx: Writing, space: int, operation: str, principal: str, terms: str, now: int, parts: Sequence[Part]
) -> OpenErasure:
    """Write down all that an erasure is to do, in its order."""
    key = tx.insert(NEW_SQL, space, operation, principal, terms, now)
    add(tx, key, parts)
    return OpenErasure(key, space, "", operation, principal, terms)


def add(tx: Writing, erasure: int, parts: Sequence[Part]) -> None:
    """Write down more that an erasure is to do, behind what it has left."""
    for each in parts:
        step = each.lifecycle if each.mark is None else ~each.mark
        tx.run(NEW_LEFT_SQL, erasure, each.plane, each.conversation, step, each.first, each.last)


def unfinished(tx: Reading) -> list[OpenErasure]:
    """The erasures that are to be finished, the first one first."""
    return [OpenErasure(*row) for row in tx.rows(OPEN_SQL)]


def every(tx: Reading, space: int | None = None) -> list[OpenErasure]:
    """The erasures that have anything left, of one space or of all, those too that were called off."""
    return [OpenErasure(*row) for row in tx.rows(EVERY_SQL, space)]


def find(tx: Reading, erasure: int) -> OpenErasure | None:
    """An erasure as it stands."""
    return tx.one(OpenErasure, FIND_SQL, erasure)


def of_key(tx: Reading, memory_space_id: str, operation: str, principal: str, key: str) -> OpenErasure | None:
    """The erasure that was begun under an idempotency key, and is not done, as long as its first report is kept."""
    return tx.one(OpenErasure, OF_KEY_SQL, memory_space_id, operation, principal, key)


def report_of(tx: Reading, erasure: int) -> tuple[int, bytes] | None:
    """What the key of an erasure was answered, behind the number of its row; None where it has none, or was given up
    since."""
    found = tx.row(REPORT_SQL, erasure)
    return None if found is None else (found[0], found[1])


def drop_report(tx: Writing, erasure: int) -> None:
    """Drop what the key of an erasure was answered: the work that it told of was not done."""
    if (found := report_of(tx, erasure)) is not None:
        tx.run(DROP_REPORT_SQL, found[0])


def drop_reports_of(tx: Writing, erasure: int) -> None:
    """Drop all that its principal was answered in the moment when an erasure began, whose key cannot be read."""
    for (row,) in list(tx.rows(REPORTS_OF_SQL, erasure)):
        tx.run(DROP_REPORT_SQL, row)


def drop_forsaken(tx: Writing) -> None:
    """Strike off erasures that were called off and whose key was given up: nobody can ask for them again. Whoever drops
    first reports calls this in the same transaction."""
    for each in [OpenErasure(*row) for row in tx.rows(FORSAKEN_SQL)]:
        drop(tx, each.erasure)


def row_of(tx: Reading, erasure: int) -> Row:
    """The columns of an erasure, as they are sealed."""
    found = tx.row(ROW_SQL, erasure)
    assert found is not None
    return found


def restate(tx: Writing, erasure: int, terms: str) -> None:
    """Write down what an erasure has come to."""
    tx.run(STATE_SQL, terms, erasure)


def size(tx: Reading, erasure: int, but: Sequence[str]) -> int:
    """How many turns and records an erasure has left, without the parts of some planes."""
    return tx.value(SIZE_SQL, erasure, json_text([*but, RESTING]))


def count(tx: Reading) -> int:
    """How many erasures are to be finished."""
    return tx.value(COUNT_SQL)


def next_part(tx: Reading, erasure: int) -> LeftPart | None:
    """The part that comes next; None when all is done."""
    found = tx.row(NEXT_SQL, erasure)
    return None if found is None else _left(found)


def parts_of(tx: Reading, erasure: int, planes: Sequence[str]) -> list[Part]:
    """The parts of some planes that are not done."""
    return [_left(row).part for row in tx.rows(OF_PLANES_SQL, erasure, json_text(planes))]


def _left(row: Row) -> LeftPart:
    key, plane, conversation, step, first, last = row
    if step is not None and step < 0:
        return LeftPart(key, Part(plane, first, last, conversation, mark=~step))
    return LeftPart(key, Part(plane, first, last, conversation, step))


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


def move(tx: Writing, erasure: int, plane: str, to: int) -> None:
    """Let another erasure do what one has left in a plane, from where it is."""
    tx.run(MOVE_SQL, to, erasure, plane)


def drop(tx: Writing, erasure: int) -> None:
    """Strike an erasure off, with what it has left."""
    for sql in DROP_SQLS:
        tx.run(sql, erasure)


def keep_planes(tx: Writing, erasure: int, planes: Sequence[str]) -> int:
    """Strike off all that an erasure has left but the parts of some planes; how many parts that were."""
    return len(list(tx.rows(KEEP_SQL, erasure, json_text(planes))))


def drop_conversation(tx: Writing, erasure: int, conversation: int, speakers: str) -> int:
    """Strike off what an erasure has left in a conversation; how many parts that were.

    Args:
        speakers: the plane of parts that name a conversation by their keys.
    """
    return len(list(tx.rows(DROP_CONVERSATION_SQL, erasure, conversation, speakers)))


def drop_records(tx: Writing, erasure: int, plane: str, keys: Sequence[int]) -> int:
    """Strike off records of a plane from what an erasure has left; how many parts that were."""
    return len(list(tx.rows(DROP_RECORDS_SQL, erasure, plane, json_text(keys))))
