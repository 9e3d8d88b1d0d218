"""Checks over a whole store. Each yields findings; none changes anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

import apsw

from beetle.store.event_log import ChainHash, first_break, read_head
from beetle.store.progress import EVERY, Progress
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
FACT_STANDS_SQL = """
SELECT f.fact FROM fact f LEFT JOIN fact_revision r ON r.fact = f.fact AND r.revision = f.revision
WHERE r.fact IS NULL OR r.state <> f.state OR r.visibility <> f.visibility OR r.content_mac IS NOT f.content_mac
LIMIT 100
"""
FACT_CHAIN_SQL = """
SELECT DISTINCT r.fact FROM fact_revision r LEFT JOIN fact_revision p ON p.fact = r.fact AND p.revision = r.revision - 1
WHERE r.revision > 1 AND (p.fact IS NULL OR p.valid_until IS NOT r.valid_from) LIMIT 100
"""
FACT_HOLDS_SQL = """
SELECT DISTINCT r.fact FROM fact_revision r JOIN fact f ON f.fact = r.fact
WHERE (r.valid_until IS NULL) <> (r.revision = f.revision) LIMIT 100
"""
FACT_TEXT_SQL = """
SELECT DISTINCT r.fact FROM fact_revision r JOIN fact f ON f.fact = r.fact
LEFT JOIN fact_body b ON b.fact_body = r.body AND b.fact = r.fact
WHERE (b.fact IS NULL) <> (f.state = 'deleted') OR (r.body IS NULL) <> (f.state = 'deleted') LIMIT 100
"""
FACT_UNSHOWN_SQL = """
SELECT DISTINCT b.fact FROM fact_body b LEFT JOIN fact_revision r ON r.body = b.fact_body
WHERE r.body IS NULL LIMIT 100
"""
FACT_SUPERSEDED_SQL = """
SELECT fact FROM fact WHERE state = 'superseded' AND superseded_by IS NULL LIMIT 100
"""
FACT_CHECKS = {
    FACT_STANDS_SQL: "its last revision is missing, or says otherwise than the record",
    FACT_CHAIN_SQL: "its revisions do not follow one another",
    FACT_HOLDS_SQL: "another revision than its last one holds",
    FACT_TEXT_SQL: "is deleted and has a text, or is not and lacks one",
    FACT_UNSHOWN_SQL: "has a text that no revision shows",
    FACT_SUPERSEDED_SQL: "is superseded, and nothing says by which",
}
FACT_DERIVED_SQL = """
SELECT d.derived_ref, d.derived FROM derived_ref d LEFT JOIN fact f ON f.fact = d.fact
WHERE d.fact IS NOT NULL AND d.derived IS NOT 'long_term:' || f.record_id LIMIT 100
"""
INDEX_ROWS_SQL = "SELECT count(*) FROM recall_index_docsize"
INDEXED_SQL = "SELECT id FROM recall_index_docsize ORDER BY id"
EXPECTED_SQL = """
SELECT message << 4 AS row FROM message WHERE state = 'live' AND visibility IN ('shared', 'private')
UNION ALL SELECT skill << 4 | 1 FROM skill WHERE enabled = 1 AND retired = 0
UNION ALL SELECT fact << 4 | 2 FROM fact WHERE state = 'current'
UNION ALL SELECT b.fact_body << 4 | 3 FROM fact_body b JOIN fact f ON f.fact = b.fact
  JOIN fact_revision r ON r.fact = f.fact AND r.revision = f.revision
  WHERE f.state <> 'current' OR r.body IS NOT b.fact_body
ORDER BY row
"""
COUNTS_SQL = """
SELECT json_object('turns', (SELECT count(*) FROM turn), 'messages', (SELECT count(*) FROM message),
  'derived_refs', (SELECT count(*) FROM derived_ref), 'skills', (SELECT count(*) FROM skill),
  'facts', (SELECT count(*) FROM fact))
"""
DERIVED_SQL = """
SELECT d.derived_ref, d.evidence FROM derived_ref d LEFT JOIN turn t ON t.turn = d.turn
WHERE d.turn IS NOT NULL AND t.turn IS NULL LIMIT 100
"""


def verify(tx: Reading, chain_hash: ChainHash, pages: bool, progress: Progress) -> tuple[dict[str, int], list[Finding]]:
    """Rows that each check looked at, and what they found. `progress` was given a plan of `steps_of`."""
    checked: dict[str, int] = json.loads(tx.value(COUNTS_SQL))
    progress.step("event_log", of=read_head(tx).seq)
    rows, broken = first_break(tx, chain_hash, progress.at)
    checked["event_log"] = rows
    findings = [] if broken is None else [Finding("event_log", f"row {broken}", "the hash chain is broken here")]
    for name, check in CHECKS.items():
        progress.step(name)
        findings.extend(check(tx))
    progress.step("recall_index", of=tx.value(INDEX_ROWS_SQL))
    entries, missing = _index(tx, progress)
    checked["recall_index"] = entries
    findings.extend(missing)
    if pages:
        checked["pages"] = tx.value("PRAGMA page_count")
        progress.step("pages")
        findings.extend(_pages(tx))
    return checked, findings


def steps_of(pages: bool) -> tuple[str, ...]:
    """The steps of `verify`, in their order."""
    return ("event_log", *CHECKS, "recall_index", *(("pages",) if pages else ()))


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


def _facts(tx: Reading) -> Iterator[Finding]:
    for sql, problem in FACT_CHECKS.items():
        for (fact,) in tx.rows(sql):
            yield Finding("long_term", f"fact {fact}", problem)


def _derived_refs(tx: Reading) -> Iterator[Finding]:
    for ref, evidence in tx.rows(DERIVED_SQL):
        yield Finding("derived_refs", f"row {ref}", f"names evidence that is not there ({evidence})")
    for ref, derived in tx.rows(FACT_DERIVED_SQL):
        yield Finding("derived_refs", f"row {ref}", f"is of another record than it says ({derived})")


def _index(tx: Reading, progress: Progress) -> tuple[int, list[Finding]]:
    """Compare the rows that the index holds with those that it should, both in order of their number."""
    indexed, expected = tx.rows(INDEXED_SQL), tx.rows(EXPECTED_SQL)
    findings: list[Finding] = []
    entries = 0
    left, right = next(indexed, None), next(expected, None)
    while (left is not None or right is not None) and len(findings) < 100:
        if not entries % EVERY:
            progress.at(entries)
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


CHECKS: dict[str, Callable[[Reading], Iterator[Finding]]] = {
    "bodies": _bodies,
    "counters": _counters,
    "skills": _skills,
    "facts": _facts,
    "derived_refs": _derived_refs,
}
"""The checks that look at the tables alone."""
