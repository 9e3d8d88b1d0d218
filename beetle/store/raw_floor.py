"""What writing and recall are measured against: one table and one full-text index in a file, each commit synced."""

from __future__ import annotations

import re
from collections.abc import Sequence

import apsw

WORD = re.compile(r"\w+")
MAKE_TABLE = "CREATE TABLE turn (turn INTEGER PRIMARY KEY, content TEXT NOT NULL) STRICT"
MAKE_INDEX = "CREATE VIRTUAL TABLE word USING fts5(content, content = '', tokenize = 'porter unicode61')"
ADD_TURN = "INSERT INTO turn (content) VALUES (?)"
ADD_WORDS = "INSERT INTO word (rowid, content) VALUES (?, ?)"
FIND_TURNS = """
SELECT turn.turn, turn.content FROM word JOIN turn ON turn.turn = word.rowid
WHERE word MATCH ? ORDER BY bm25(word) LIMIT ?
"""


class RawFloor:
    """The floor, in a new file. A commit is on the disk when it returns, as one of a daemon is."""

    def __init__(self, path: str) -> None:
        self._connection = apsw.Connection(path)
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", 2)
        self._connection.execute(MAKE_TABLE)
        self._connection.execute(MAKE_INDEX)

    def commit(self, contents: Sequence[str]) -> None:
        """Write these turns in one transaction."""
        with self._connection:
            for each in contents:
                self._connection.execute(ADD_TURN, (each,))
                self._connection.execute(ADD_WORDS, (self._connection.last_insert_rowid(), each))

    def find(self, query: str, limit: int) -> list[str]:
        """Contents of the turns with any of the words, best first."""
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(WORD.findall(query.lower())))
        return [row[1] for row in self._connection.execute(FIND_TURNS, (words, limit))] if words else []

    def close(self) -> None:
        """Fold the log into the file."""
        self._connection.close()
