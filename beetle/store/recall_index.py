"""The recall index behind a narrow interface: add, remove, search.

One FTS5 table over all planes. Rows are named by plane and the plane's own key, so no second table maps them. `scope`
holds tokens for space, conversation, plane and visibility, ANDed into a query: the postings of the scope are read, not
every row that matches the words.
"""

from __future__ import annotations

from typing import NamedTuple

from beetle.store.transaction import Reading, Writing

PLANES: dict[str, int] = {"evidence": 0, "procedural": 1}
PLANE_NAMES: dict[int, str] = {code: name for name, code in PLANES.items()}
PLANE_BITS = 4

ADD_SQL = "INSERT INTO recall_index (rowid, text, names, time, scope) VALUES (?, ?, ?, ?, ?)"
REMOVE_SQL = """
INSERT INTO recall_index (recall_index, rowid, text, names, time, scope) VALUES ('delete', ?, ?, ?, ?, ?)
"""
SEARCH_SQL = """
SELECT rowid, -bm25(recall_index, ?, ?, ?, 0.0) AS score FROM recall_index WHERE recall_index MATCH ?
ORDER BY score DESC, rowid LIMIT ?
"""
SEARCH_BETWEEN_SQL = """
SELECT f.rowid, -bm25(recall_index, ?, ?, ?, 0.0) AS score FROM recall_index f
WHERE recall_index MATCH ? AND CASE f.rowid & 15
  WHEN 0 THEN EXISTS (SELECT 1 FROM message WHERE message = f.rowid >> 4 AND at BETWEEN ? AND ?)
  ELSE EXISTS (SELECT 1 FROM skill WHERE skill = f.rowid >> 4 AND updated_at >= ? AND created_at <= ?)
END
ORDER BY score DESC, f.rowid LIMIT ?
"""
SPACES_SQL = "SELECT count(*) FROM (SELECT 1 FROM space LIMIT 2)"

Fields = tuple[str, str, str]
"""text, names, time."""


class Entry(NamedTuple):
    """What one index row is about. `conversation` None for planes that have none."""

    plane: str
    key: int
    space: int
    conversation: int | None
    visibility: str


class Found(NamedTuple):
    """One match; a higher score is better."""

    plane: str
    key: int
    score: float


class SearchScope(NamedTuple):
    """Where to look. `private` says whether private rows count; times are microseconds, both ends included."""

    space: int
    conversation: int | None = None
    private: bool = False
    planes: tuple[str, ...] | None = None
    since: int | None = None
    until: int | None = None


def add(tx: Writing, entry: Entry, fields: Fields) -> None:
    """Index one record."""
    tx.run(ADD_SQL, _rowid(entry), *fields, _scope(entry))


def remove(tx: Writing, entry: Entry, fields: Fields) -> None:
    """Take one record out; `fields` must be exactly what was added, or terms of it stay behind."""
    tx.run(REMOVE_SQL, _rowid(entry), *fields, _scope(entry))


def search(
    tx: Reading, expression: str, scope: SearchScope, weights: tuple[float, float, float], limit: int
) -> list[Found]:
    """The best `limit` matches of an FTS5 expression within the scope."""
    tokens = _match_scope(tx, scope)
    match = f"({expression}) AND {tokens}" if tokens else expression
    if scope.since is None and scope.until is None:
        rows = tx.rows(SEARCH_SQL, *weights, match, limit)
    else:
        since = -(2**63) if scope.since is None else scope.since
        until = 2**63 - 1 if scope.until is None else scope.until
        rows = tx.rows(SEARCH_BETWEEN_SQL, *weights, match, since, until, since, until, limit)
    return [Found(PLANE_NAMES[rowid & 15], rowid >> PLANE_BITS, score) for rowid, score in rows]


def _rowid(entry: Entry) -> int:
    return entry.key << PLANE_BITS | PLANES[entry.plane]


def _scope(entry: Entry) -> str:
    conversation = "" if entry.conversation is None else f" c{entry.conversation}"
    return f"s{entry.space}{conversation} p{PLANES[entry.plane]} v{entry.visibility}"


def _match_scope(tx: Reading, scope: SearchScope) -> str:
    """Tokens that every match must carry; a token that every row carries is left out, since its postings cost time."""
    wanted: list[str] = []
    if tx.value(SPACES_SQL) > 1:
        wanted.append(f'"s{scope.space}"')
    if scope.conversation is not None:
        # Only evidence belongs to a conversation; the other planes stay in view.
        wanted.append(f'("c{scope.conversation}" OR "p{PLANES["procedural"]}")')
    if not scope.private:
        wanted.append('"vshared"')
    if scope.planes is not None and set(scope.planes) < set(PLANES):
        wanted.append("(" + " OR ".join(f'"p{PLANES[p]}"' for p in scope.planes if p in PLANES) + ")")
    return "{scope} : (" + " AND ".join(wanted) + ")" if wanted else ""
