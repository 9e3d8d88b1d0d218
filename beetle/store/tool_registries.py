"""Tool registries: what a host registered of its tools, in short."""

from __future__ import annotations

import json
from collections.abc import Iterable

from beetle.named_tuple import NamedTuple
from beetle.store.columns import texts
from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.engine.write_transaction import WriteTransaction


class RegistryRow(NamedTuple):
    """A registry without its tools; times in microseconds."""

    registry: int
    registry_id: str
    scope: str
    fingerprint: str
    revision: int
    principal: str
    created_at: int
    updated_at: int


class ToolRow(NamedTuple):
    """One registered tool."""

    tool_id: str
    title: str
    summary: str
    schema_fingerprint: str
    permission_tags: tuple[str, ...]
    risk_tags: tuple[str, ...]


COLUMNS = """
SELECT tool_registry, registry_id, scope, fingerprint, revision, principal, created_at, updated_at FROM tool_registry
"""
FIND_SQL = COLUMNS + "WHERE space = ? AND registry_id = ?"
LIST_SQL = COLUMNS + "WHERE space = ? AND registry_id > ? ORDER BY registry_id LIMIT ?"
IN_SCOPE_SQL = COLUMNS + "WHERE space = ? AND scope = ? ORDER BY registry_id LIMIT ?"
COUNT_SQL = "SELECT count(*) FROM tool_registry WHERE space = ?"
TOOL_COUNT_SQL = "SELECT count(*) FROM registered_tool WHERE tool_registry = ?"
TOOLS_SQL = """
SELECT tool_id, title, summary, schema_fingerprint, permission_tags, risk_tags FROM registered_tool
WHERE tool_registry = ? ORDER BY position
"""
NEW_SQL = """
INSERT INTO tool_registry (space, registry_id, scope, fingerprint, revision, principal, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
REPLACE_SQL = """
UPDATE tool_registry SET scope = ?, fingerprint = ?, revision = revision + 1, principal = ?, updated_at = ?
WHERE tool_registry = ?
"""
NEW_TOOL_SQL = """
INSERT INTO registered_tool (tool_registry, position, tool_id, title, summary, schema_fingerprint, permission_tags,
  risk_tags)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
DROP_TOOLS_SQL = "DELETE FROM registered_tool WHERE tool_registry = ?"
DROP_SQL = "DELETE FROM tool_registry WHERE tool_registry = ?"


def find_registry(tx: Reading, space: int | None, registry_id: str) -> RegistryRow | None:
    """The registry of that id."""
    return tx.one(RegistryRow, FIND_SQL, space, registry_id)


def list_registries(tx: Reading, space: int | None, after: str, limit: int) -> list[RegistryRow]:
    """Registries by id, behind the id `after`."""
    return [RegistryRow(*row) for row in tx.rows(LIST_SQL, space, after, limit)]


def registries_in_scope(tx: Reading, space: int, scope: str, limit: int) -> list[RegistryRow]:
    """The first registries of a scope, by id."""
    return [RegistryRow(*row) for row in tx.rows(IN_SCOPE_SQL, space, scope, limit)]


def count_registries(tx: Reading, space: int | None) -> int:
    """Registries of a space."""
    return tx.value(COUNT_SQL, space)


def count_tools(tx: Reading, registry: int) -> int:
    """Tools of a registry."""
    return tx.value(TOOL_COUNT_SQL, registry)


def tools_of(tx: Reading, registry: int) -> list[ToolRow]:
    """A registry's tools in the host's order."""
    return [tool_of(row) for row in tx.rows(TOOLS_SQL, registry)]


def add_registry(tx: Writing, space: int, row: RegistryRow, tools: Iterable[ToolRow]) -> int:
    """A new registry; its key. The row's own key does not count."""
    registry = tx.insert(NEW_SQL, space, *row[1:])
    _add_tools(tx, registry, tools)
    return registry


def replace_registry(tx: WriteTransaction, row: RegistryRow, tools: Iterable[ToolRow]) -> None:
    """The next revision of the registry with the row's key; the words of the one before leave the store."""
    tx.run(REPLACE_SQL, row.scope, row.fingerprint, row.principal, row.updated_at, row.registry)
    tx.run(DROP_TOOLS_SQL, row.registry)
    _add_tools(tx, row.registry, tools)
    tx.expect_erasure()


def delete_registry(tx: WriteTransaction, registry: int) -> None:
    """Remove a registry and its tools; their words leave the store."""
    tx.run(DROP_TOOLS_SQL, registry)
    tx.run(DROP_SQL, registry)
    tx.expect_erasure()


def _add_tools(tx: Writing, registry: int, tools: Iterable[ToolRow]) -> None:
    for position, tool in enumerate(tools):
        tags = (json.dumps(tool.permission_tags, ensure_ascii=False), json.dumps(tool.risk_tags, ensure_ascii=False))
        tx.run(NEW_TOOL_SQL, registry, position, *tool[:4], *tags)


def tool_of(row: Row) -> ToolRow:
    """A tool from its columns."""
    return ToolRow._make((*row[:4], texts(row[4]), texts(row[5])))
