"""Columns that hold JSON, and times: a damaged one is one damaged record, which is reported.

Damaged JSON is read as if it held nothing. A record with a damaged time is left out of lists, see `damaged_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from beetle.contracts.names import CheckName
from beetle.named_tuple import NamedTuple
from beetle.store.damaged_rows import IS_TIME
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.verify import Finding

MOST = 100


class Time(NamedTuple):
    """A table, what names its rows, its columns that hold times, those that may hold none, and the check that reports
    them."""

    table: str
    key: str
    columns: tuple[str, ...]
    check: CheckName
    optional: tuple[str, ...] = ()


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
MADE = ("created_at", "updated_at")
TIMES = (
    Time("space", "memory_space_id", ("created_at",), "evidence"),
    Time("conversation", "conversation", ("created_at",), "evidence", ("first_at", "last_at")),
    Time("turn", "turn", ("at", "committed_at"), "evidence"),
    Time("message", "message", ("at",), "evidence"),
    Time("transcript_lifecycle", "lifecycle", ("at",), "evidence"),
    Time("captured_turn", "turn", ("at",), "evidence"),
    Time("host_key", "fingerprint", ("added_at",), "evidence", ("revoked_at",)),
    Time("skill", "name", MADE, "procedural"),
    Time("skill_revision", "skill_revision", ("at",), "procedural"),
    Time("fact", "record_id", MADE, "long_term"),
    Time("fact_revision", "fact_revision", ("valid_from",), "long_term", ("valid_until",)),
    Time("policy", "number", ("at",), "long_term"),
    Time("candidate", "waiting_id", ("at",), "candidates"),
    Time("private_item", "record_id", ("at",), "private"),
    Time("tool_registry", "registry_id", MADE, "tool_registries"),
    Time("job", "job_id", ("not_before", *MADE), "jobs", ("lease_until",)),
    Time("device", "device_id", MADE, "devices", ("last_seen",)),
    Time("transport", "name", ("updated_at",), "devices"),
    Time("proposal", "proposal_id", MADE, "proposals"),
    Time("registry_skill", "skill_id", MADE, "skill_registry"),
    Time("registry_version", "version_id", ("uploaded_at",), "skill_registry"),
    Time("chain", "chain_key", MADE, "thoughts"),
    Time("chunk", "chunk_id", ("created_at",), "chunks", ("archived_at",)),
    Time("chunk_access", "chunk", ("last_at",), "chunks"),
)
"""The times that answers show. Those of the event log and of thoughts are hashed: their chains tell of them."""
NO_TIME = "SELECT {key} FROM {table} WHERE {wrong} ORDER BY rowid LIMIT ?"
MEND_KEYWORDS_SQL = "UPDATE fact_body SET keywords = '[]' WHERE fact_body = ?"


def texts(text: str | None) -> tuple[str, ...]:
    """The texts of an array; none where it is damaged, or not there."""
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


def damaged_times(tx: Reading) -> Iterator[Finding]:
    """The records that have a time which is of no year that can be shown."""
    for each in TIMES:
        for column in (*each.columns, *each.optional):
            wrong = f"NOT ({IS_TIME.format(column=column)})"
            wrong = f"{column} IS NOT NULL AND {wrong}" if column in each.optional else wrong
            for (key,) in tx.rows(NO_TIME.format(key=each.key, table=each.table, wrong=wrong), MOST):
                yield Finding(each.check, f"{each.table} {key}", f"its {column} is no time")


def keywords_damaged(tx: Reading) -> bool:
    """Whether a fact's are: the index cannot be rid of what it holds of them, but as a whole."""
    return tx.row(DAMAGED.format_map(COLUMNS[0]._asdict()), 1) is not None


def mend_keywords(tx: Writing) -> int:
    """Leave facts whose keywords are damaged without any, once the index that was made of them is empty; how many."""
    keys = [key for (key,) in tx.rows(DAMAGED.format_map(COLUMNS[0]._asdict()), -1)]
    for key in keys:
        tx.mend(MEND_KEYWORDS_SQL, key)
    return len(keys)


def _decoded(text: str | None) -> Any:
    import json  # a start has no such column to read

    try:
        return None if text is None else json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
