"""Chains: their rows, and which thoughts a chain is made of: a branch shares its first ones with its parent."""

from __future__ import annotations

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing

JSONL = "jsonl"
"""The storage adapter of a chain that is kept in a readable file too."""


class ChainRow(NamedTuple):
    """A chain as it stands. Times in microseconds; `head` has 32 bytes, none while it is empty."""

    chain: int
    space: int
    chain_key: str
    adapter: str
    parent: int | None
    shared: int
    created_at: int
    updated_at: int
    length: int
    head: bytes
    pinned: int


class Segment(NamedTuple):
    """The thoughts from `first` up to, without, `until` of a chain, by the rows of that chain."""

    chain: int
    first: int
    until: int


COLUMNS = """
SELECT chain, space, chain_key, adapter, parent, shared, created_at, updated_at, length, head, pinned
FROM chain
"""
FIND_SQL = COLUMNS + "WHERE space = ? AND chain_key = ?"
BY_KEY_SQL = COLUMNS + "WHERE chain = ? AND +space = ?"
LIST_SQL = COLUMNS + "WHERE space = ? AND chain_key > ? ORDER BY chain_key LIMIT ?"
EVERY_SQL = COLUMNS + "WHERE chain > ? ORDER BY chain LIMIT ?"
OF_SPACE_SQL = COLUMNS + "WHERE space = ? ORDER BY chain"
MIRRORED_SQL = """
SELECT s.memory_space_id, c.chain_key FROM chain c JOIN space s ON s.space = c.space WHERE c.adapter = ?
ORDER BY c.chain
"""
WITH_BRANCHES_SQL = """
WITH RECURSIVE tree (chain, space) AS (
  SELECT chain, space FROM chain WHERE chain = ?1
  UNION SELECT c.chain, c.space FROM tree JOIN chain c ON c.parent = tree.chain AND +c.space = tree.space
)
SELECT s.memory_space_id, c.chain_key
FROM tree CROSS JOIN chain c ON c.chain = tree.chain JOIN space s ON s.space = c.space
WHERE c.adapter = ?2
"""
NEW_SQL = """
INSERT INTO chain (space, chain_key, adapter, parent, shared, created_at, updated_at, length, head, pinned)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
GROW_SQL = "UPDATE chain SET updated_at = ?, length = ?, head = ?, pinned = ? WHERE chain = ?"
SEGMENTS_SQL = """
WITH RECURSIVE line (chain, space, parent, shared, until) AS (
  SELECT chain, space, parent, shared, length FROM chain WHERE chain = ?
  UNION ALL
  SELECT c.chain, c.space, c.parent, c.shared, min(line.until, line.shared)
  FROM line JOIN chain c ON c.chain = line.parent AND c.space = line.space
  LIMIT 10000
)
SELECT chain, iif(parent IS NULL, 0, shared), until FROM line
WHERE iif(parent IS NULL, 0, shared) < until ORDER BY until
"""
OF_THOUGHTS = "thought IN (SELECT t.thought FROM thought t JOIN chain c ON c.chain = t.chain WHERE c.space = ?)"
OF_CHAINS = "chain IN (SELECT chain FROM chain WHERE space = ?)"
OF_AGENTS = (
    "chain_agent IN (SELECT a.chain_agent FROM chain_agent a JOIN chain c ON c.chain = a.chain WHERE c.space = ?)"
)
REMOVE_SQLS = (
    *(f"DELETE FROM {name} WHERE {OF_THOUGHTS}" for name in ("thought_mark", "thought_link", "thought_body")),  # noqa: S608 - constants
    *(f"DELETE FROM {name} WHERE {OF_AGENTS}" for name in ("chain_activity", "chain_agent_key", "chain_alias")),  # noqa: S608 - constants
    *(f"DELETE FROM {name} WHERE {OF_CHAINS}" for name in ("chain_agent", "thought")),  # noqa: S608 - constants
    "DELETE FROM chain WHERE space = ?",
)
AGENTS_SQL = "SELECT count(*) FROM chain_agent WHERE chain = ?"


def find(tx: Reading, space: int | None, chain_key: str) -> ChainRow | None:
    """The chain of that key."""
    return tx.one(ChainRow, FIND_SQL, space, chain_key)


def by_key(tx: Reading, space: int, chain: int) -> ChainRow | None:
    """The chain of a space of that row."""
    return tx.one(ChainRow, BY_KEY_SQL, chain, space)


def listed(tx: Reading, space: int | None, after: str, limit: int) -> list[ChainRow]:
    """A space's chains behind a key, by their keys."""
    return [ChainRow(*row) for row in tx.rows(LIST_SQL, space, after, limit)]


def every(tx: Reading, after: int, limit: int) -> list[ChainRow]:
    """The chains of all spaces behind a row."""
    return [ChainRow(*row) for row in tx.rows(EVERY_SQL, after, limit)]


def of_space(tx: Reading, space: int) -> list[ChainRow]:
    """All of a space's chains, each behind the one that it branched from."""
    return [ChainRow(*row) for row in tx.rows(OF_SPACE_SQL, space)]


def mirrored(tx: Reading, adapter: str) -> list[tuple[str, str]]:
    """(memory_space_id, chain_key) of the chains of all spaces with an adapter."""
    return [(row[0], row[1]) for row in tx.rows(MIRRORED_SQL, adapter)]


def with_branches(tx: Reading, chain: int, adapter: str) -> list[tuple[str, str]]:
    """As `mirrored`, of a chain and all that branched from it."""
    return [(row[0], row[1]) for row in tx.rows(WITH_BRANCHES_SQL, chain, adapter)]


def add(tx: Writing, row: ChainRow) -> ChainRow:
    """A new chain; its own row number is filled in."""
    return row._replace(chain=tx.insert(NEW_SQL, *row[1:]))


def grow(tx: Writing, row: ChainRow) -> None:
    """Write down the newest thought of a chain, and the event that tells of it."""
    tx.run(GROW_SQL, row.updated_at, row.length, row.head, row.pinned, row.chain)


def segments(tx: Reading, chain: int) -> list[Segment]:
    """What a chain is made of, the oldest first."""
    return [Segment(*row) for row in tx.rows(SEGMENTS_SQL, chain)]


def count_agents(tx: Reading, chain: int) -> int:
    """How many agents its registry has."""
    return tx.value(AGENTS_SQL, chain)


def remove_all(tx: Writing, space: int) -> None:
    """Take away all chains of a space; their rows of the recall index are gone before."""
    for sql in REMOVE_SQLS:
        tx.run(sql, space)
