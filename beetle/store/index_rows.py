"""How a record is a row of the recall index: its number, and the tokens by which a query is held to a scope."""

from __future__ import annotations

from typing import NamedTuple

from beetle.contracts.names import INDEX_CODES

PLANE_BITS = 4
ADD_SQL = "INSERT INTO recall_index (rowid, text, names, time, scope) VALUES (?, ?, ?, ?, ?)"

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


def rowid_of(entry: Entry) -> int:
    """The number of a record's row."""
    return entry.key << PLANE_BITS | INDEX_CODES[entry.plane]


def scope_of(entry: Entry) -> str:
    """The tokens by which a query is held to a scope."""
    conversation = "" if entry.conversation is None else f" c{entry.conversation}"
    label = "" if entry.label is None else f" l{entry.label}"
    return f"s{entry.space}{conversation} p{INDEX_CODES[entry.plane]} v{entry.visibility}{label}"
