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


def times(folder: Path, texts: Iterable[str], questions: list[str]) -> list[float]:
    """Milliseconds of each question against an index of these texts, which is made in `folder` and removed."""
    path = folder / "plain.db"
    connection = apsw.Connection(str(path))
    connection.execute(MAKE)
    with connection:
        connection.executemany("INSERT INTO note (text) VALUES (?)", ((text,) for text in texts))
    spent: list[float] = []
    for match in filter(None, map(match_of, questions[:QUESTIONS])):
        began = time.perf_counter()
        connection.execute(FIND, (match, LIMIT)).fetchall()
        spent.append((time.perf_counter() - began) * 1000)
    connection.close()
    path.unlink()
    return spent
