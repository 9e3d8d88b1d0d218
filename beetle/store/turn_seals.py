"""The seal of a turn: one keyed digest of the turn and of all that was committed with it, as it stands."""

from __future__ import annotations

from typing import Any

from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.seals import Sealer
from beetle.store.turn_messages import OF_ONE_TURN

NAME = "turn"
TURN_SQL = """
SELECT conversation, sequence, turn_id, door, at, committed_at, archived, digest FROM turn WHERE turn = ?
"""
MESSAGES_SQL = f"""
SELECT m.conversation, m.position, m.ordinal, m.message_id, m.role, m.event_type, m.at, m.visibility, m.state, m.length,
  m.digest, m.speaker, m.subject_id, m.actor_subject_id, m.mounted_subject_id, m.agent_id, m.trigger_source, m.lifecycle
{OF_ONE_TURN} WHERE t.turn = ? ORDER BY m.position, m.message
"""
REFS_SQL = """
SELECT r.position, r.kind, r.ref_id, r.relation, r.visibility, l.label
FROM host_ref r LEFT JOIN host_ref_label l ON l.host_ref = r.host_ref WHERE r.turn = ? ORDER BY r.position, r.host_ref
"""
ATTRS_SQL = """
SELECT a.position, m.position, a.message IS NULL, a.visibility, a.export_allowed, a.key, a.value
FROM attr a LEFT JOIN message m ON m.message = a.message AND m.turn = a.turn
WHERE a.turn = ? ORDER BY a.position, a.attr
"""
SET_SQL = "UPDATE turn SET seal = ? WHERE turn = ?"
SEAL_SQL = "SELECT seal FROM turn WHERE turn = ?"
EVERY_SQL = "SELECT turn, seal FROM turn WHERE turn > ? ORDER BY turn LIMIT ?"
LAST_SQL = "SELECT coalesce(max(turn), 0) FROM turn"


def values(turn: Row, messages: list[Row], refs: list[Row], attrs: list[Row]) -> tuple[Any, ...]:
    """What a seal covers, in the columns' order of the statements above."""
    return (*turn, messages, refs, attrs)


def values_of(tx: Reading, turn: int) -> tuple[Any, ...] | None:
    """What the seal of a turn covers, as the tables have it; None without the turn."""
    found = tx.row(TURN_SQL, turn)
    if found is None:
        return None
    parts = [list(tx.rows(sql, turn)) for sql in (MESSAGES_SQL, REFS_SQL, ATTRS_SQL)]
    return values(found, *parts)


def seal_again(tx: Writing, sealer: Sealer, turn: int) -> None:
    """Seal a turn as it stands now, when it is still there."""
    found = values_of(tx, turn)
    if found is not None:
        tx.run(SET_SQL, sealer.seal(NAME, found), turn)


def seal_of(tx: Reading, turn: int) -> bytes | None:
    """The seal that a turn has."""
    return tx.value(SEAL_SQL, turn)


def every(tx: Reading, after: int, limit: int) -> list[tuple[int, bytes | None]]:
    """(turn, seal) of turns behind a key."""
    return [(row[0], row[1]) for row in tx.rows(EVERY_SQL, after, limit)]


def last(tx: Reading) -> int:
    """The highest key of a turn; 0 without one."""
    return tx.value(LAST_SQL)
