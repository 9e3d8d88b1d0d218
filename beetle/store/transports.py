"""What an operator changed of the transports; one that is not here is as the profile has it."""

from __future__ import annotations

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing

ALL_TRANSPORTS_SQL = "SELECT name, enabled, endpoint, updated_at FROM transport ORDER BY transport"
SET_SQL = """
INSERT INTO transport (name, enabled, endpoint, principal, updated_at) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (name) DO UPDATE SET enabled = ?2, endpoint = ?3, principal = ?4, updated_at = ?5
"""


class TransportRow(NamedTuple):
    """One transport as it was last changed; `updated_at` in microseconds."""

    name: str
    enabled: bool
    endpoint: str | None
    updated_at: int


def by_name(tx: Reading) -> dict[str, TransportRow]:
    """Every transport that was changed."""
    rows = tx.rows(ALL_TRANSPORTS_SQL)
    return {name: TransportRow(name, bool(enabled), *rest) for name, enabled, *rest in rows}


def set_transport(tx: Writing, row: TransportRow, principal: str) -> None:
    """Write down how a transport is from now on, and who said so."""
    tx.run(SET_SQL, row.name, row.enabled, row.endpoint, principal, row.updated_at)
