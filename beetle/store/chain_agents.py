"""The agents of a chain: names, aliases, keys, and what each has written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Row, Writing


class AgentRow(NamedTuple):
    """A record of the registry. `first_…` and `last_…` are None before its first thought; times in microseconds."""

    agent: int
    chain: int
    agent_id: str
    display_name: str
    owner: str | None
    description: str | None
    status: str
    aliases: tuple[str, ...] = ()
    thoughts: int = 0
    first_position: int | None = None
    last_position: int | None = None
    first_at: int | None = None
    last_at: int | None = None


class KeyRow(NamedTuple):
    """A public key of an agent, 32 bytes; times in microseconds."""

    key_id: str
    algorithm: str
    public_key: bytes
    added_at: int
    revoked_at: int | None


class Standing(NamedTuple):
    """Who an agent of a chain is, and whether it may write under its name: one that was disabled may not."""

    agent_id: str
    display_name: str
    owner: str | None
    is_active: bool
    keys: tuple[KeyRow, ...]
    """Its keys that were not revoked."""


COLUMNS = """
SELECT a.chain_agent, a.chain, a.agent_id, a.display_name, a.owner, a.description, a.status,
  (SELECT json_group_array(l.alias ORDER BY l.chain_alias) FROM chain_alias l WHERE l.chain_agent = a.chain_agent),
  coalesce(s.thoughts, 0), s.first_position, s.last_position, s.first_at, s.last_at
FROM chain_agent a LEFT JOIN chain_activity s ON s.chain_agent = a.chain_agent
"""
FIND_SQL = COLUMNS + "WHERE a.chain = ? AND a.agent_id = ?"
LIST_SQL = COLUMNS + "WHERE a.chain = ? AND a.agent_id > ? AND (? OR s.thoughts > 0) ORDER BY a.agent_id LIMIT ?"
NEW_SQL = """
INSERT INTO chain_agent (chain, agent_id, display_name, owner, description, status) VALUES (?, ?, ?, ?, ?, ?)
"""
CHANGE_SQL = "UPDATE chain_agent SET display_name = ?, owner = ?, description = ?, status = ? WHERE chain_agent = ?"
NEW_ALIAS_SQL = "INSERT INTO chain_alias (chain_agent, alias) VALUES (?, ?)"
DROP_ALIASES_SQL = "DELETE FROM chain_alias WHERE chain_agent = ?"
KEYS_SQL = """
SELECT key_id, algorithm, public_key, added_at, revoked_at FROM chain_agent_key WHERE chain_agent = ?
ORDER BY chain_agent_key
"""
PUT_KEY_SQL = """
INSERT INTO chain_agent_key (chain_agent, key_id, algorithm, public_key, added_at, revoked_at)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (chain_agent, key_id) DO UPDATE SET algorithm = excluded.algorithm, public_key = excluded.public_key,
  added_at = excluded.added_at, revoked_at = excluded.revoked_at
"""
REVOKE_KEY_SQL = "UPDATE chain_agent_key SET revoked_at = ? WHERE chain_agent = ? AND key_id = ?"
ACT_SQL = """
INSERT INTO chain_activity VALUES (?, 1, ?2, ?2, ?3, ?3)
ON CONFLICT DO UPDATE SET thoughts = thoughts + 1, last_position = excluded.last_position, last_at = excluded.last_at
"""
PUT_ACTIVITY_SQL = "INSERT OR REPLACE INTO chain_activity VALUES (?, ?, ?, ?, ?, ?)"
WRITTEN_SQL = """
SELECT count(*), min(position), max(position) FROM thought
WHERE chain = ? AND position >= ? AND position < ? AND agent_id = ?
"""
AT_SQL = "SELECT at FROM thought WHERE chain = ? AND position = ?"
ACTIVE_SQL = """
SELECT a.agent_id, s.thoughts, s.first_position, s.last_position, s.first_at, s.last_at
FROM chain_agent a JOIN chain_activity s ON s.chain_agent = a.chain_agent WHERE a.chain = ? ORDER BY a.agent_id
"""
STANDING_SQL = """
SELECT a.chain_agent, a.agent_id, a.display_name, a.owner, a.status FROM chain_agent a JOIN chain c ON c.chain = a.chain
WHERE c.space = ? AND c.chain_key = ? AND a.agent_id = ?
"""


def find(tx: Reading, chain: int, agent_id: str) -> AgentRow | None:
    """The record of that id."""
    found = tx.row(FIND_SQL, chain, agent_id)
    return None if found is None else _agent(found)


def listed(tx: Reading, chain: int, after: str = "", limit: int = -1, *, wrote: bool = False) -> list[AgentRow]:
    """The records behind an id, by their ids; all of them unless there is a limit, or of those alone that `wrote`."""
    return [_agent(row) for row in tx.rows(LIST_SQL, chain, after, not wrote, limit)]


def add(tx: Writing, row: AgentRow) -> AgentRow:
    """A new record; its row number is filled in."""
    return row._replace(agent=tx.insert(NEW_SQL, *row[1:7]))


def change(tx: Writing, row: AgentRow) -> None:
    """Write down name, owner, description and status."""
    tx.run(CHANGE_SQL, *row[3:7], row.agent)


def add_alias(tx: Writing, agent: int, alias: str) -> None:
    """One more name by which it was known."""
    tx.run(NEW_ALIAS_SQL, agent, alias)


def drop_aliases(tx: Writing, agent: int) -> None:
    """Take all of them away."""
    tx.run(DROP_ALIASES_SQL, agent)


def keys_of(tx: Reading, agent: int) -> tuple[KeyRow, ...]:
    """Its keys as they were added, revoked ones too."""
    return tuple(KeyRow(*row) for row in tx.rows(KEYS_SQL, agent))


def put_key(tx: Writing, agent: int, key: KeyRow) -> None:
    """Add a key, or replace the one of that id."""
    tx.run(PUT_KEY_SQL, agent, *key)


def revoke_key(tx: Writing, agent: int, key_id: str, now: int) -> None:
    """Revoke a key; its record stays."""
    tx.run(REVOKE_KEY_SQL, now, agent, key_id)


def act(tx: Writing, agent: int, position: int, at: int) -> None:
    """Count one more thought of it."""
    tx.run(ACT_SQL, agent, position, at)


def copy_all(tx: Writing, chain: int, to: int, line: Iterable[tuple[int, int, int]]) -> None:
    """Give a branch the registry of its parent, with what each has written of the thoughts that both share."""
    segments = list(line)
    for row in listed(tx, chain):
        copied = add(tx, row._replace(chain=to))
        for alias in row.aliases:
            add_alias(tx, copied.agent, alias)
        for key in keys_of(tx, row.agent):
            put_key(tx, copied.agent, key)
        count_written(tx, copied.agent, row.agent_id, segments)


def count_written(tx: Writing, agent: int, agent_id: str, line: Sequence[tuple[int, int, int]]) -> None:
    """Write down what an agent has written of some segments."""
    found = written(tx, line, agent_id)
    if found is not None:
        tx.run(PUT_ACTIVITY_SQL, agent, *found)


def written(tx: Reading, line: Sequence[tuple[int, int, int]], agent_id: str) -> tuple[int, int, int, int, int] | None:
    """What an agent has written of some segments: thoughts, first and last place, first and last time."""
    count, places = 0, []
    for chain, first, until in line:
        found = tx.row(WRITTEN_SQL, chain, first, until, agent_id)
        if found is not None and found[0]:
            count += found[0]
            places += [(found[1], chain), (found[2], chain)]
    if not count:
        return None
    (first_place, first_chain), (last_place, last_chain) = places[0], places[-1]
    return (
        count, first_place, last_place,
        tx.value(AT_SQL, first_chain, first_place), tx.value(AT_SQL, last_chain, last_place),
    )  # fmt: skip


def activity(tx: Reading, chain: int) -> Iterator[Row]:
    """(agent_id, thoughts, first and last place, first and last time) of all that have written, as it was counted."""
    return tx.rows(ACTIVE_SQL, chain)


def standing(tx: Reading, space: int | None, chain_key: str, agent_id: str) -> Standing | None:
    """Who an agent of a chain is, and whether it may write; None where the chain's registry does not know it."""
    found = tx.row(STANDING_SQL, space, chain_key, agent_id)
    if found is None:
        return None
    agent, known_as, display_name, owner, status = found
    keys = tuple(each for each in keys_of(tx, agent) if each.revoked_at is None)
    return Standing(known_as, display_name, owner, status == "active", keys)


def _agent(row: Row) -> AgentRow:
    aliases: list[Any] = json.loads(row[7])
    return AgentRow._make((*row[:7], tuple(aliases), *row[8:]))
