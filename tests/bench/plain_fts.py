"""The floor of recall: the same texts in a plain full-text index, in process, ranked by bm25."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path

import apsw

from beetle.domain.lexical import parse_query, search_terms

QUESTIONS = 300
LIMIT = 10
MAKE = "CREATE VIRTUAL TABLE note USING fts5(text, content = '', tokenize = 'porter unicode61')"
FIND = "SELECT rowid FROM note WHERE note MATCH ? ORDER BY rank LIMIT ?"


def match_of(question: str) -> str:
    """The OR of a question's words; nothing where it has none that is searched for."""
    asked = parse_query(question)
    words = [f'"{word}"' for word in asked.terms if re.fullmatch(r"\w+", word)]
    return " OR ".join(words) if search_terms(asked) else ""


class Plain:
    """An index of these texts, in a file that is made in a folder."""

    def __init__(self, folder: Path, texts: Iterable[str]) -> None:
        self._connection = apsw.Connection(str(folder / "plain.db"))
        self._connection.execute(MAKE)
        with self._connection:
            self._connection.executemany("INSERT INTO note (text) VALUES (?)", ((text,) for text in texts))

    def ask(self, question: str) -> float | None:
        """Milliseconds of a question; None of one that has no word to be searched for."""
        if not (match := match_of(question)):
            return None
        began = time.perf_counter()
        self._connection.execute(FIND, (match, LIMIT)).fetchall()
        return (time.perf_counter() - began) * 1000

    def close(self) -> None:
        self._connection.close()
