"""The seal of a turn: one keyed digest of the turn and of all that was committed with it, as it stands."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from beetle.contracts.codec import json_text
from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.seals import Sealer
from beetle.store.turn_messages import OF_TURNS, by_turn

NAME = "turn"
TURNS_SQL = """
SELECT t.turn, t.conversation, t.sequence, t.turn_id, t.door, t.at, t.committed_at, t.archived, t.digest
FROM json_each(?) j CROSS JOIN turn t ON t.turn = j.value ORDER BY t.turn
"""
MESSAGES_SQL = f"""
SELECT t.turn, m.conversation, m.position, m.ordinal, m.message_id, m.role, m.event_type, m.at, m.visibility, m.state,
  m.length, m.digest, m.speaker, m.subject_id, m.actor_subject_id, m.mounted_subject_id, m.agent_id,
  m.trigger_source, m.lifecycle
{OF_TURNS} ORDER BY t.turn, m.position, m.message
"""
REFS_SQL = """
SELECT r.turn, r.position, r.kind, r.ref_id, r.relation, r.visibility, l.label
FROM json_each(?) j CROSS JOIN host_ref r ON r.turn = j.value
LEFT JOIN host_ref_label l ON l.host_ref = r.host_ref ORDER BY r.turn, r.position, r.host_ref
"""
ATTRS_SQL = """
SELECT a.turn, a.position, m.position, a.message IS NULL, a.visibility, a.export_allowed, a.key, a.value
FROM json_each(?) j CROSS JOIN attr a ON a.turn = j.value
LEFT JOIN message m ON m.message = a.message AND m.turn = a.turn ORDER BY a.turn, a.position, a.attr
"""
SET_SQL = "UPDATE turn SET seal = ? WHERE turn = ?"
SEALS_SQL = """
SELECT t.turn, t.seal FROM json_each(?) j CROSS JOIN turn t ON t.turn = j.value
"""
EVERY_SQL = "SELECT turn, seal FROM turn WHERE turn > ? ORDER BY turn LIMIT ?"
LAST_SQL = "SELECT coalesce(max(turn), 0) FROM turn"


def values(turn: Row, messages: list[Row], refs: list[Row], attrs: list[Row]) -> tuple[Any, ...]:
    """What a seal covers, in the columns' order of the statements above."""
    return (*turn, messages, refs, attrs)


def values_by_turn(tx: Reading, turns: Iterable[int]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Each of the turns that are there, with what its seal covers, as the tables have it."""
    keys = json_text(list(turns))
    messages, refs, attrs = (by_turn(tx.rows(sql, keys)) for sql in (MESSAGES_SQL, REFS_SQL, ATTRS_SQL))
    for turn, *head in list(tx.rows(TURNS_SQL, keys)):
        yield turn, values(tuple(head), messages[turn], refs[turn], attrs[turn])


def seal_again(tx: Writing, sealer: Sealer, turns: Collection[int]) -> None:
    """Seal turns as they stand now, those that are still there."""
    if not turns:
        return
    for turn, found in values_by_turn(tx, turns):
        tx.run(SET_SQL, sealer.seal(NAME, found), turn)


def seals_of(tx: Reading, turns: Iterable[int]) -> list[tuple[int, bytes | None]]:
    """(turn, seal) of turns."""
    return [(row[0], row[1]) for row in tx.rows(SEALS_SQL, json_text(list(turns)))]


def every(tx: Reading, after: int, limit: int) -> list[tuple[int, bytes | None]]:
    """(turn, seal) of turns behind a key."""
    return [(row[0], row[1]) for row in tx.rows(EVERY_SQL, after, limit)]


def last(tx: Reading) -> int:
    """The highest key of a turn; 0 without one."""
    return tx.value(LAST_SQL)
