"""Columns that hold JSON: a damaged one is one damaged record, which is read as if it held nothing, and is reported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from beetle.contracts.names import CheckName
from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.verify import Finding

MOST = 100


class Column(NamedTuple):
    """A table, its key, a column of it that holds JSON, of which type, and the check that reports it."""

    table: str
    key: str
    column: str
    kind: str
    check: CheckName


COLUMNS = (
    Column("fact_body", "fact_body", "keywords", "array", "long_term"),
    Column("skill_revision", "skill_revision", "citations", "array", "procedural"),
    Column("candidate", "candidate", "evidence", "array", "candidates"),
    Column("candidate_body", "candidate", "keywords", "array", "candidates"),
    Column("registered_tool", "registered_tool", "permission_tags", "array", "tool_registries"),
    Column("registered_tool", "registered_tool", "risk_tags", "array", "tool_registries"),
    Column("tool_observation", "tool_observation", "permission_tags", "array", "tool_experience"),
    Column("tool_observation", "tool_observation", "risk_tags", "array", "tool_experience"),
    Column("tool_brief", "tool_observation", "brief", "object", "tool_experience"),
    *(
        Column("registry_skill_text", "registry_skill", name, "array", "skill_registry")
        for name in ("tags", "triggers", "warnings")
    ),
    *(Column("thought_body", "thought", name, "array", "thoughts") for name in ("tags", "concepts")),
    Column("chunk_body", "chunk", "tags", "array", "chunks"),
    Column("chunk_body", "chunk", "extra", "object", "chunks"),
    Column("proposal_body", "proposal", "change", "object", "proposals"),
    Column("job", "job", "subject", "object", "jobs"),
    Column("device", "device", "capabilities", "array", "devices"),
)
# json_type alone would raise for what is no JSON; the texts of an array are looked at one by one.
DAMAGED = """
SELECT {key} FROM {table} WHERE CASE
  WHEN NOT json_valid({column}) THEN 1
  WHEN json_type({column}) <> '{kind}' THEN 1
  WHEN '{kind}' = 'array' THEN EXISTS (SELECT 1 FROM json_each({column}) WHERE type <> 'text')
  ELSE 0 END
ORDER BY {key} LIMIT ?
"""
MEND_KEYWORDS_SQL = "UPDATE fact_body SET keywords = '[]' WHERE fact_body = ?"


def texts(text: str) -> tuple[str, ...]:
    """The texts of an array; none where it is damaged."""
    found = _decoded(text)
    if not isinstance(found, list):
        return ()
    each = cast("list[Any]", found)
    return tuple(each) if all(isinstance(one, str) for one in each) else ()


def mapping(text: str) -> dict[str, Any]:
    """The members of an object; none where it is damaged."""
    found = _decoded(text)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def is_array(text: str) -> bool:
    """Whether an array of texts is whole."""
    return bool(texts(text)) or _decoded(text) == []


def damaged(tx: Reading) -> Iterator[Finding]:
    """The records of which a column is damaged."""
    for column in COLUMNS:
        for (key,) in tx.rows(DAMAGED.format_map(column._asdict()), MOST):
            yield Finding(column.check, f"{column.table} {key}", f"its {column.column} cannot be read")


def keywords_damaged(tx: Reading) -> bool:
    """Whether a fact's are: the index cannot be rid of what it holds of them, but as a whole."""
    return tx.row(DAMAGED.format_map(COLUMNS[0]._asdict()), 1) is not None


def mend_keywords(tx: Writing) -> int:
    """Leave facts whose keywords are damaged without any, once the index that was made of them is empty; how many."""
    keys = [key for (key,) in tx.rows(DAMAGED.format_map(COLUMNS[0]._asdict()), -1)]
    for key in keys:
        tx.mend(MEND_KEYWORDS_SQL, key)
    return len(keys)


def _decoded(text: str) -> Any:
    import json  # a start has no such column to read

    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
