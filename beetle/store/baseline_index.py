"""What recall is measured against: the same lines in one plain full-text table, asked with one plain query."""

from __future__ import annotations

import re
from collections.abc import Iterable

import apsw

WORD = re.compile(r"\w+")
MAKE_TABLE = "CREATE VIRTUAL TABLE line USING fts5(id UNINDEXED, content, tokenize = 'porter unicode61')"
ADD_LINE = "INSERT INTO line (id, content) VALUES (?, ?)"
FIND_LINES = "SELECT id, content FROM line WHERE line MATCH ? ORDER BY bm25(line), rowid LIMIT ?"


class BaselineIndex:
    """Lines in memory, found by any of a query's words and ranked by BM25."""

    def __init__(self, lines: Iterable[tuple[str, str]]) -> None:
        self._connection = apsw.Connection(":memory:")
        self._connection.execute(MAKE_TABLE)
        self._connection.executemany(ADD_LINE, lines)

    def find(self, query: str, limit: int) -> list[str]:
        """Ids of the best lines."""
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(WORD.findall(query.lower())))
        return [row[0] for row in self._connection.execute(FIND_LINES, (words, limit))] if words else []

    def close(self) -> None:
        self._connection.close()
