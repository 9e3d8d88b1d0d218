"""Checks over a whole store. Each yields findings; none changes anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import apsw

from beetle.store.event_log import ChainHash, first_break
from beetle.store.transaction import Reading


class Finding(NamedTuple):
    check: str
    subject: str
    problem: str


PAGES_SQL = "PRAGMA integrity_check(100)"
TOUCH_INDEX_SQL = "SELECT rowid FROM recall_index WHERE recall_index MATCH 'x' LIMIT 1"
FOREIGN_KEYS_SQL = "PRAGMA foreign_key_check"
BODY_SQL = """
SELECT m.message, m.state, b.message IS NOT NULL FROM message m LEFT JOIN body b ON b.message = m.message
WHERE (b.message IS NULL) <> (m.state = 'deleted')
UNION ALL
SELECT b.message, 'none', 1 FROM body b LEFT JOIN message m ON m.message = b.message WHERE m.message IS NULL
LIMIT 100
"""
LENGTH_SQL = """
SELECT m.message FROM message m JOIN body b ON b.message = m.message
WHERE m.length <> length(b.content) AND instr(b.content, char(0)) = 0 LIMIT 100
"""
COUNTERS_SQL = """
SELECT c.conversation, c.turns, count(t.turn), c.last_sequence, coalesce(max(t.sequence), 0), c.messages,
  (SELECT count(*) FROM message m WHERE m.conversation = c.conversation) AS held
FROM conversation c LEFT JOIN turn t ON t.conversation = c.conversation GROUP BY c.conversation
HAVING c.turns <> count(t.turn) OR c.last_sequence <> coalesce(max(t.sequence), 0) OR c.messages <> held LIMIT 100
"""
EMPTY_TURNS_SQL = """
SELECT turn FROM turn WHERE NOT EXISTS (SELECT 1 FROM message m WHERE m.turn = turn.turn) LIMIT 100
"""
SKILL_REVISION_SQL = """
SELECT s.skill FROM skill s LEFT JOIN skill_revision r ON r.skill = s.skill AND r.revision = s.revision
WHERE r.skill IS NULL LIMIT 100
"""
INDEXED_SQL = "SELECT id FROM recall_index_docsize ORDER BY id"
EXPECTED_SQL = """
SELECT message << 4 AS row FROM message WHERE state = 'live' AND visibility IN ('shared', 'private')
UNION ALL SELECT skill << 4 | 1 FROM skill WHERE enabled = 1 AND retired = 0 ORDER BY row
"""
COUNTS_SQL = """
SELECT json_object('turns', (SELECT count(*) FROM turn), 'messages', (SELECT count(*) FROM message),
  'derived_refs', (SELECT count(*) FROM derived_ref), 'skills', (SELECT count(*) FROM skill))
"""
DERIVED_SQL = """
SELECT d.derived_ref, d.evidence FROM derived_ref d LEFT JOIN turn t ON t.turn = d.turn
WHERE d.turn IS NOT NULL AND t.turn IS NULL LIMIT 100
"""


def verify(tx: Reading, chain_hash: ChainHash, pages: bool) -> tuple[dict[str, int], list[Finding]]:
    """Rows that each check looked at, and what they found."""
    checked: dict[str, int] = json.loads(tx.value(COUNTS_SQL))
    rows, broken = first_break(tx, chain_hash)
    checked["event_log"] = rows
    findings = [] if broken is None else [Finding("event_log", f"row {broken}", "the hash chain is broken here")]
    for check in (_bodies, _counters, _skills, _derived_refs):
        findings.extend(check(tx))
    entries, missing = _index(tx)
    checked["recall_index"] = entries
    findings.extend(missing)
    if pages:
        checked["pages"] = tx.value("PRAGMA page_count")
        findings.extend(_pages(tx))
    return checked, findings


def _pages(tx: Reading) -> Iterator[Finding]:
    try:
        # FTS5 checks the index by the structure that this connection read last, and only a query makes it read a newer
        # one: without it a sound index that has grown since is reported as corrupt.
        tx.row(TOUCH_INDEX_SQL)
        for (text,) in tx.rows(PAGES_SQL):
            if text != "ok":
                yield Finding("pages", "database", str(text))
        for table, rowid, parent, _ in tx.rows(FOREIGN_KEYS_SQL):
            yield Finding("foreign_keys", f"{table} row {rowid}", f"names a row of {parent} that is not there")
    except apsw.CorruptError:
        yield Finding("pages", "database", "SQLite found a malformed page")


def _bodies(tx: Reading) -> Iterator[Finding]:
    for message, state, has_body in tx.rows(BODY_SQL):
        yield Finding("evidence", f"message {message}", f"is {state} and {'has' if has_body else 'lacks'} content")
    for (message,) in tx.rows(LENGTH_SQL):
        yield Finding("evidence", f"message {message}", "its content is not as long as it was")
    for (turn,) in tx.rows(EMPTY_TURNS_SQL):
        yield Finding("evidence", f"turn {turn}", "has no message")


def _counters(tx: Reading) -> Iterator[Finding]:
    for conversation, turns, counted, last, highest, messages, held in tx.rows(COUNTERS_SQL):
        problem = f"says {turns} turns up to {last} and {messages} messages, holds {counted} up to {highest} and {held}"
        yield Finding("evidence", f"conversation {conversation}", problem)


def _skills(tx: Reading) -> Iterator[Finding]:
    for (skill,) in tx.rows(SKILL_REVISION_SQL):
        yield Finding("procedural", f"skill {skill}", "its current revision is missing")


def _derived_refs(tx: Reading) -> Iterator[Finding]:
    for ref, evidence in tx.rows(DERIVED_SQL):
        yield Finding("derived_refs", f"row {ref}", f"names evidence that is not there ({evidence})")


def _index(tx: Reading) -> tuple[int, list[Finding]]:
    """Compare the rows that the index holds with those that it should, both in order of their number."""
    indexed, expected = tx.rows(INDEXED_SQL), tx.rows(EXPECTED_SQL)
    findings: list[Finding] = []
    entries = 0
    left, right = next(indexed, None), next(expected, None)
    while (left is not None or right is not None) and len(findings) < 100:
        if right is None or (left is not None and left[0] < right[0]):
            assert left is not None
            findings.append(Finding("recall_index", f"row {left[0]}", "is indexed and should not be"))
            entries, left = entries + 1, next(indexed, None)
        elif left is None or right[0] < left[0]:
            findings.append(Finding("recall_index", f"row {right[0]}", "is missing from the index"))
            right = next(expected, None)
        else:
            entries, left, right = entries + 1, next(indexed, None), next(expected, None)
    return entries, findings
