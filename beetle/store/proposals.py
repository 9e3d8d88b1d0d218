"""Proposals of the evolution sandbox. Their text stands in a table of its own and goes when they are closed."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from beetle.named_tuple import NamedTuple
from beetle.store.columns import mapping
from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.engine.write_transaction import WriteTransaction


class ProposalRow(NamedTuple):
    """A proposal. Times in microseconds. `base` is the revision of its target that it was made for."""

    proposal: int
    proposal_id: str
    kind: str
    target: str | None
    base: int | None
    state: str
    outcome: str | None
    result: str | None
    principal: str
    chat_id: str
    visibility: str
    created_at: int
    updated_at: int


class ProposalText(NamedTuple):
    """What a proposal says: the fields that it would change, its evidence, and why."""

    change: dict[str, Any]
    evidence: tuple[str, ...]
    rationale: str


NEWEST = (1 << 63) - 1
"""Above the key of every proposal."""
COLUMNS = """
SELECT proposal, proposal_id, kind, target, base, state, outcome, result, principal, chat_id, visibility, created_at,
  updated_at
FROM proposal
"""
NEW_SQL = """
INSERT INTO proposal (space, proposal_id, kind, target, base, principal, chat_id, visibility, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
NEW_BODY_SQL = "INSERT INTO proposal_body (proposal, change, rationale) VALUES (?, ?, ?)"
FIND_SQL = COLUMNS + "WHERE space = ? AND proposal_id = ?"
APART_SQL = COLUMNS + "WHERE space = ?1 AND proposal_id > ?2 || '~' AND proposal_id < ?2 || '~:' ORDER BY proposal"
SEEN = """
(?3 OR (visibility = 'shared' AND NOT EXISTS (
  SELECT 1 FROM fact f WHERE f.space = ?1 AND f.record_id = substr(proposal.target, 11) AND f.visibility = 'private')))
"""
"""Who sees no private facts sees no proposal about one: a fact's ref is `long_term:` and the record's id."""
PAGE_SQL = f"{COLUMNS} WHERE space = ?1 AND state = ?2 AND {SEEN} AND proposal < ?4 ORDER BY proposal DESC LIMIT ?5"
COUNT_SQL = f"SELECT count(*) FROM proposal WHERE space = ?1 AND state = ?2 AND {SEEN}"  # noqa: S608 - constants
OPEN_SQL = COLUMNS + "WHERE space = ? AND state = 'open' ORDER BY proposal"
OLDEST_SQL = f"""{COLUMNS}
WHERE space = ?1 AND state = 'open' AND {SEEN} = ?2 AND proposal < ?4 ORDER BY proposal LIMIT ?5
"""
TEXT_SQL = "SELECT change, rationale FROM proposal_body WHERE proposal = ?"
CLOSE_SQL = "UPDATE proposal SET state = ?, outcome = ?, result = ?, updated_at = ? WHERE proposal = ?"
FORGET_NAME_SQL = "UPDATE proposal SET target = NULL WHERE proposal = ?"
ERASE_SQL = "DELETE FROM proposal_body WHERE proposal = ?"


def add(tx: Writing, space: int, row: ProposalRow, text: ProposalText) -> None:
    """Write a new proposal; its key is set here."""
    key = tx.insert(
        NEW_SQL, space, row.proposal_id, row.kind, row.target, row.base, row.principal, row.chat_id, row.visibility,
        row.created_at, row.updated_at,
    )  # fmt: skip
    change = json.dumps({"change": text.change, "evidence_refs": text.evidence}, ensure_ascii=False)
    tx.run(NEW_BODY_SQL, key, change, text.rationale)


def find(tx: Reading, space: int | None, proposal_id: str) -> ProposalRow | None:
    """The proposal of that id, whatever its state."""
    return tx.one(ProposalRow, FIND_SQL, space, proposal_id)


def beginning(tx: Reading, space: int | None, name: str) -> list[ProposalRow]:
    """The proposals whose id is a name, `~` and a digit with whatever follows, the oldest first."""
    return [ProposalRow(*row) for row in tx.rows(APART_SQL, space, name)]


def page(
    tx: Reading, space: int | None, states: Collection[str], *, private: bool, below: int, limit: int
) -> list[ProposalRow]:
    """At most `limit` proposals in these states with keys below `below`, the newest first."""
    found: list[Row] = [row for state in states for row in tx.rows(PAGE_SQL, space, state, private, below, limit)]
    return [ProposalRow(*row) for row in sorted(found, key=lambda row: -row[0])[:limit]]


def count(tx: Reading, space: int | None, states: Collection[str], *, private: bool) -> int:
    """How many proposals are in these states."""
    return sum(tx.value(COUNT_SQL, space, state, private) for state in states)


def every_open(tx: Reading, space: int | None) -> list[ProposalRow]:
    """The open proposals of a space, the oldest first."""
    return [ProposalRow(*row) for row in tx.rows(OPEN_SQL, space)]


def oldest_open(tx: Reading, space: int, *, private: bool, most: int) -> list[ProposalRow]:
    """The oldest open proposals that somebody may know of who sees private facts, or not; behind them those of no later
    date that are hidden: what there is of these changes nothing of the others. At most so many of each.
    """
    seen = [ProposalRow(*row) for row in tx.rows(OLDEST_SQL, space, True, private, NEWEST, most)]
    if private:
        return seen
    end = seen[-1].proposal if len(seen) == most else NEWEST
    return seen + [ProposalRow(*row) for row in tx.rows(OLDEST_SQL, space, False, private, end, most)]


def text_of(tx: Reading, proposal: int) -> ProposalText | None:
    """What a proposal says; None once it was closed."""
    found = tx.row(TEXT_SQL, proposal)
    if found is None:
        return None
    told = mapping(found[0])
    change, refs = told.get("change"), told.get("evidence_refs")
    return ProposalText(change, tuple(refs), found[1]) if isinstance(change, dict) and isinstance(refs, list) else None


def close(tx: WriteTransaction, row: ProposalRow, state: str, outcome: str) -> None:
    """Close an open proposal and erase its text."""
    record(tx, row, state, outcome, None)
    tx.run(ERASE_SQL, row.proposal)
    tx.expect_erasure()


def forget_name(tx: WriteTransaction, row: ProposalRow) -> None:
    """Erase the target of a proposal that is closed; the caller expects erasure."""
    tx.run(FORGET_NAME_SQL, row.proposal)


def record(tx: WriteTransaction, row: ProposalRow, state: str, outcome: str, result: str | None) -> None:
    """Write down what became of a proposal."""
    tx.run(CLOSE_SQL, state, outcome, result, tx.now, row.proposal)
