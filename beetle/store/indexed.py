"""How the rows of the recall index stand to the tables: how a record is a row, what each plane hands in, and the
statements made of that; how FTS5 makes terms of texts, and writes numbers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import apsw

from beetle.contracts.errors import IntegrityViolation
from beetle.contracts.names import INDEX_CODES
from beetle.named_tuple import NamedTuple

if TYPE_CHECKING:
    from beetle.store.engine.transaction import Reading

PLANE_BITS = 4
KEYS_END = (1 << 63 - PLANE_BITS) - (1 << 32)
"""Keys of records are below it: the index has rows for them, and for those of all that may come behind."""
FLUSH_SQL = "INSERT INTO recall_index (recall_index) VALUES ('flush')"
ADD_SQL = "INSERT INTO recall_index (rowid, text, names, time, scope) VALUES (?, ?, ?, ?, ?)"

INDEXED = ("shared", "private")
"""Visibilities of messages that the index holds; soul, backend and operator material is never indexed."""
IS_INDEXED = f"state = 'live' AND visibility IN {INDEXED}"
"""Which messages the index is to hold; in SQL."""
REPAIR = "`beetle repair` brings over all that is whole"
Fields = tuple[str, str, str]
"""text, names, time."""


class Entry(NamedTuple):
    """What one index row is about. `conversation` None for planes that have none."""

    plane: str
    key: int
    space: int
    conversation: int | None
    visibility: str
    label: int | None = None
    """Another number by which a search may be narrowed; None for planes that have none."""


def is_key(key: int) -> bool:
    """Whether a record may have that key; one with another is damaged, and in no index."""
    return 0 < key < KEYS_END


def rowid_of(entry: Entry) -> int:
    """The number of a record's row.

    Raises:
        IntegrityViolation: no record has such a key.
    """
    if not is_key(entry.key):
        raise IntegrityViolation(reason=f"{entry.plane} {entry.key} has a number that no record has", hint=REPAIR)
    return entry.key << PLANE_BITS | INDEX_CODES[entry.plane]


def scope_of(entry: Entry) -> str:
    """The tokens by which a query is held to a scope."""
    conversation = "" if entry.conversation is None else f" c{entry.conversation}"
    label = "" if entry.label is None else f" l{entry.label}"
    return f"s{entry.space}{conversation} p{INDEX_CODES[entry.plane]} v{entry.visibility}{label}"


class IndexTable(NamedTuple):
    """The index rows of one code, in SQL: our own text, never a value from outside.

    Attributes:
        name: the code's name in `INDEX_CODES`.
        every: selects the number, as `row`, of every row that the index has to hold.
        belongs: whether row `d.id` is one of those.
        within: whether what stands behind row `hit.rowid` is of a time from ?2 to ?3, and was current at ?4.
    """

    name: str
    every: str
    belongs: str
    within: str

    @property
    def code(self) -> int:
        """The last bits of the numbers of its rows."""
        return INDEX_CODES[self.name]


class IndexedText(NamedTuple):
    """A text that the index holds, with what proves it: its digest, and for a fact its topic's too."""

    key: int
    content: str
    digest: bytes | None
    topic: str = ""
    topic_digest: bytes | None = None
    fact: int = 0


Tables = tuple[IndexTable, ...]


TERMS = """
WITH term (expression, score) AS MATERIALIZED (SELECT value ->> 0, value ->> 1 FROM json_each(?1))
"""
"""The (expression, score) pairs of a JSON array."""
MATCHES = """
SELECT f.rowid AS rowid, sum(term.score) AS score FROM term CROSS JOIN recall_index f
WHERE f.recall_index MATCH term.expression GROUP BY f.rowid
"""
"""Rows that match any of the terms, with the sum of the scores of those that they match."""
AS_JSON = "SELECT json_group_array(json_array(hit.rowid, format('%!.17g', hit.score)))"
"""Of the rows of a query, whose order it keeps; JSON's own numbers would lose a score's last digits."""


@cache
def search_between(tables: Tables) -> str:
    """Searches rows of these tables within a time."""
    return f"""{TERMS}
{AS_JSON} FROM (
  SELECT hit.rowid, hit.score FROM ({MATCHES}) hit
  WHERE CASE hit.rowid & 15{_cases(tables, "within")}
    ELSE 0
  END
  ORDER BY hit.score DESC, hit.rowid DESC LIMIT ?5
) hit
"""  # noqa: S608 - constants


@cache
def rows_between(tables: Tables) -> str:
    """Those of the rows of a JSON array that are of these tables and within a time. Some tables ask for no ?4."""
    return f"""
SELECT json_group_array(hit.rowid) FROM (SELECT value AS rowid FROM json_each(?1)) hit CROSS JOIN (SELECT ?2, ?3, ?4)
WHERE CASE hit.rowid & 15{_cases(tables, "within")}
  ELSE 0
END
"""  # noqa: S608 - constants


@cache
def every_row(tables: Tables) -> str:
    """The numbers of all rows that the index has to hold, in their order."""
    return "\nUNION ALL ".join(each.every.strip() for each in tables) + "\nORDER BY row\n"


@cache
def extra_rows(tables: Tables) -> str:
    """The numbers behind ?1 of rows that the index holds and should not, ?2 at most."""
    return f"""
SELECT id FROM recall_index_docsize d
WHERE id > ?1 AND NOT CASE id & 15{_cases(tables, "belongs")}
  ELSE 0
END
ORDER BY id LIMIT ?2
"""  # noqa: S608 - constants


def _cases(tables: Tables, part: str) -> str:
    return "".join(f"\n  WHEN {each.code} THEN {getattr(each, part).strip()}" for each in tables)


def tokenizer(tx: Reading) -> apsw.FTS5Tokenizer:
    """What makes terms of texts, as the index has it in its definition."""
    return tx.connection.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])


def tokens_of(tx: Reading, text: str) -> list[str]:
    """The terms that the index makes of a text."""
    tokens = tokenizer(tx)
    found = tokens(text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
    return [word for word in found if isinstance(word, str)]


def words_of(tx: Reading, text: str) -> dict[str, str]:
    """The terms that the index makes of a text, each with a word of the text that it is made of."""
    written = text.encode()
    words: dict[str, str] = {}
    for start, end, *terms in tokenizer(tx)(written, apsw.FTS5_TOKENIZE_DOCUMENT, None):
        assert isinstance(start, int) and isinstance(end, int), "a token's place comes before its terms"
        words.update((str(term), written[start:end].decode()) for term in terms)
    return words


def varint(page: bytes, at: int) -> tuple[int, int]:
    """One of SQLite's variable-length integers of up to four bytes, and where it ends."""
    value = 0
    while True:
        value, at = value << 7 | page[at] & 0x7F, at + 1
        if page[at - 1] < 0x80:
            return value, at
