"""What the upkeep of thoughts asks of their tables: the rows of the recall index, signals, checks, counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from beetle.named_tuple import NamedTuple
from beetle.store import chains, restores
from beetle.store.chain_agents import drop_aliases
from beetle.store.chains import Segment
from beetle.store.damaged_rows import check_row
from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.indexed import IndexTable
from beetle.store.place_checks import subject_of

LIVE = """
EXISTS (SELECT 1 FROM thought_body b WHERE b.thought = {key})
  AND NOT EXISTS (SELECT 1 FROM thought_mark m WHERE m.thought = {key})
"""
THOUGHTS = IndexTable(
    "thoughts",
    every=f"SELECT t.thought << 4 | 4 AS row FROM thought t WHERE {LIVE.format(key='t.thought')}",  # noqa: S608 - constants
    belongs=LIVE.format(key="d.id >> 4"),
    within="EXISTS (SELECT 1 FROM thought WHERE thought = hit.rowid >> 4 AND at BETWEEN ?2 AND ?3)",
)
MISSING_SQL = f"""
SELECT t.thought FROM thought t
WHERE t.thought > ? AND NOT EXISTS (SELECT 1 FROM recall_index_docsize WHERE id = t.thought << 4 | 4)
  AND {LIVE.format(key="t.thought")}
ORDER BY t.thought LIMIT ?
"""  # noqa: S608 - constants
SPACE_SQL = "SELECT c.space FROM thought t JOIN chain c ON c.chain = t.chain WHERE t.thought = ?"
ROWS_SQL = """
SELECT json_object('chains', (SELECT count(*) FROM chain), 'thoughts', (SELECT count(*) FROM thought))
"""
COUNTS_SQL = """
SELECT json_object(
  'chains', (SELECT count(*) FROM chain WHERE space = ?1),
  'thoughts', (SELECT CAST(total(length - shared) AS INTEGER) FROM chain WHERE space = ?1)
)
"""
NAMED_SQL = """
SELECT t.thought, c.chain_key, c.space, t.position FROM thought t JOIN chain c ON c.chain = t.chain
WHERE t.thought IN (SELECT value FROM json_each(?))
"""
LINKED_SQL = """
SELECT l.target, sum(l.kind <> 'contradicts'), sum(l.kind = 'supersedes' AND coalesce(l.valid_at, ?2) <= ?2
    AND coalesce(l.invalid_at, ?2 + 1) > ?2)
FROM thought_link l JOIN thought t ON t.thought = l.thought
WHERE l.target IN (SELECT value FROM json_each(?1)) AND t.at <= ?2 GROUP BY l.target
"""
LINKS = """
FROM thought_link l JOIN thought t ON t.thought = l.thought
JOIN chain c ON c.chain = t.chain LEFT JOIN thought o ON o.thought = l.target
WHERE (?1 IS NULL OR c.space = ?1) AND
"""
STRAY_LINKS_SQL = f"""
SELECT c.chain_key, t.position {LINKS} (l.position IS NOT o.position
  OR l.place <> (SELECT count(*) FROM thought_link p WHERE p.thought = l.thought AND p.place < l.place)) LIMIT 100
"""  # noqa: S608 - constants
SHARED_LINKS_SQL = f"""
SELECT t.chain, c.chain_key, t.position, o.chain, o.position {LINKS} o.chain <> t.chain ORDER BY t.chain
"""
STRAY_SQL = """
SELECT o.thought FROM thought o LEFT JOIN chain c ON c.chain = o.chain WHERE c.chain IS NULL LIMIT 100
"""
SAID_SQL = """
SELECT t.thought, c.chain_key, t.position, t.agent_id, coalesce(a.display_name, ''), t.hash, m.thought IS NOT NULL,
  b.content, b.tags, b.concepts
FROM chain c JOIN thought t ON t.chain = c.chain JOIN thought_body b ON b.thought = t.thought
LEFT JOIN thought_mark m ON m.thought = t.thought
LEFT JOIN chain_agent a ON a.chain = c.chain AND a.agent_id = t.agent_id
WHERE c.space = ? ORDER BY c.chain_key, t.position
"""
AGENT_ROW = """
SELECT a.chain_agent, c.chain_key, a.agent_id, a.display_name, a.owner, a.description,
  (SELECT json_group_array(alias) FROM (
    SELECT alias FROM chain_alias l WHERE l.chain_agent = a.chain_agent ORDER BY alias))
FROM chain c JOIN chain_agent a ON a.chain = c.chain
"""
AGENTS_SQL = f"{AGENT_ROW} WHERE c.space = ? ORDER BY c.chain_key, a.agent_id"
AGENT_BY_KEY_SQL = f"{AGENT_ROW} WHERE a.chain_agent = ? AND c.space = ?"
FORGET_AGENT_SQL = """
UPDATE chain_agent SET display_name = agent_id, owner = NULL, description = NULL WHERE chain_agent = ?
"""
HAS_AGENT_SQL = "SELECT 1 FROM chain_agent WHERE chain_agent = ?"
PINS_SQL = "SELECT seq, space, event, subject FROM event_log WHERE topic = 'chain' ORDER BY seq"
REMOVED = "removed"
"""The event of a chain that gave way to what was restored."""
PINNED_SQL = "SELECT space, topic, subject FROM event_log WHERE seq = ?"
SPACE_NAME_SQL = "SELECT memory_space_id FROM space WHERE space = ?"


class Linked(NamedTuple):
    """How later thoughts relate to one: how many build on it, and whether one of them stands in its place."""

    references: int
    superseded: bool


class SaidThought(NamedTuple):
    """A thought whose content is there: its chain and place, its writer by id and name, and all that it says: tags
    and concepts as JSON."""

    thought: int
    chain_key: str
    position: int
    agent_id: str
    agent_name: str
    hash: bytes
    masked: bool
    content: str
    tags: str
    concepts: str


class SaidAgent(NamedTuple):
    """What a registry says of an agent."""

    agent: int
    chain_key: str
    agent_id: str
    name: str
    owner: str | None
    description: str | None
    aliases: tuple[str, ...]

    @property
    def said(self) -> tuple[str, ...]:
        """All of it but its id, which stays."""
        name = () if self.name == self.agent_id else (self.name,)
        return (*name, *filter(None, (self.owner, self.description)), *self.aliases)


class Pin(NamedTuple):
    """What the event log tells last of a chain: its length, and the hash of its newest thought in hex."""

    length: int
    hash: str


def counts(tx: Reading, space: int | None) -> dict[str, int]:
    """What a space holds, as an inspection counts it."""
    return json.loads(tx.value(COUNTS_SQL, space))


def rows(tx: Reading) -> dict[str, int]:
    """What the store holds, as a verification counts it."""
    return json.loads(tx.value(ROWS_SQL))


def missing(tx: Reading, after: int, limit: int) -> list[int]:
    """Keys behind `after` of thoughts that the index should hold and does not."""
    return [row[0] for row in tx.rows(MISSING_SQL, after, limit)]


def space_of(tx: Reading, thought: int) -> int | None:
    """The space of a thought."""
    return tx.value(SPACE_SQL, thought)


def names_of(tx: Reading, keys: Iterable[int]) -> dict[int, tuple[str, int, int]]:
    """By their row numbers: (chain_key, space, position) of thoughts."""
    return {row[0]: (row[1], row[2], row[3]) for row in tx.rows(NAMED_SQL, json.dumps(list(keys)))}


def linked(tx: Reading, keys: Iterable[int], then: int) -> dict[int, Linked]:
    """How thoughts written until a time relate to some, as of then (microseconds)."""
    found = tx.rows(LINKED_SQL, json.dumps(list(keys)), then)
    return {target: Linked(count, bool(superseded)) for target, count, superseded in found}


def said(tx: Reading, space: int) -> Iterator[SaidThought]:
    """The thoughts of a space that say something."""
    return (SaidThought._make((*row[:6], bool(row[6]), *row[7:])) for row in tx.rows(SAID_SQL, space))


def agents(tx: Reading, space: int) -> Iterator[SaidAgent]:
    """The agents of a space's chains."""
    return (_agent(row) for row in tx.rows(AGENTS_SQL, space))


def agent_by_key(tx: Reading, space: int, agent: int) -> SaidAgent | None:
    """An agent of a space's chains."""
    found = tx.row(AGENT_BY_KEY_SQL, agent, space)
    return None if found is None else _agent(found)


def _agent(row: Row) -> SaidAgent:
    agent = SaidAgent._make((*row[:-1], tuple(json.loads(row[-1]))))
    check_row("chain_agent", agent.agent, texts=(agent.chain_key, agent.agent_id, agent.name, *agent.said))
    return agent


def forget_agent(tx: Writing, agent: int) -> bool:
    """Take away what the registry says of an agent but its id and keys; whether it is there."""
    if tx.value(HAS_AGENT_SQL, agent) is None:
        return False
    drop_aliases(tx, agent)
    tx.run(FORGET_AGENT_SQL, agent)
    return True


def stray_links(tx: Reading, space: int | None = None) -> Iterator[tuple[str, int]]:
    """(chain_key, position) of thoughts of which a link leads elsewhere than it says, or is not in its place."""
    for row in tx.rows(STRAY_LINKS_SQL, space):
        yield row[0], row[1]
    of, line = None, list[Segment]()
    for chain, chain_key, position, other, target in tx.rows(SHARED_LINKS_SQL, space):
        if chain != of:
            of, line = chain, chains.segments(tx, chain)
        if not any(each.chain == other and each.first <= target < each.until for each in line):
            yield chain_key, position


def stray(tx: Reading) -> Iterator[int]:
    """Keys of thoughts whose chain is not there."""
    return (row[0] for row in tx.rows(STRAY_SQL))


def pins(tx: Reading) -> dict[tuple[str, str], Pin]:
    """By memory_space_id and chain_key: what the event log tells last, without what a restore has undone."""
    told: dict[tuple[str, str], Pin] = {}
    undone = restores.undone(tx)
    for seq, space, event, text in tx.rows(PINS_SQL):
        if restores.is_undone(undone, seq):
            continue
        subject = subject_of(text)
        if event == REMOVED:
            told.pop((space, subject.get("chain_key", "")), None)
            continue
        found = _pin(subject)
        if found is not None:
            told[space, found[0]] = found[1]
    return told


def pinned(tx: Reading, seq: int) -> tuple[str, str, Pin] | None:
    """(memory_space_id, chain_key, what it tells) of one event."""
    row = tx.row(PINNED_SQL, seq)
    found = None if row is None or row[1] != "chain" else _pin(subject_of(row[2]))
    return None if row is None or found is None else (row[0], *found)


def space_name(tx: Reading, space: int) -> str | None:
    """The memory_space_id of a space."""
    return tx.value(SPACE_NAME_SQL, space)


def _pin(subject: dict[str, Any]) -> tuple[str, Pin] | None:
    key, length, head = subject.get("chain_key"), subject.get("length"), subject.get("hash")
    if isinstance(key, str) and isinstance(length, int) and isinstance(head, str):
        return key, Pin(length, head)
    return None
