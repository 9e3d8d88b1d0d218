"""What opening a store found."""

from __future__ import annotations

from beetle.contracts.fields import Open, OperatorOnly, Piece


class StoreOpenReport(Piece, frozen=True, kw_only=True):
    """Schema, repair and capacity findings of one opening. Sizes in bytes."""

    path: OperatorOnly[str | None]
    backend: Open[str]
    created: Open[bool]
    store_id: Open[str]
    schema: Open[int]
    migrations_applied: Open[tuple[str, ...]]
    bytes: Open[int]
    ceiling_bytes: Open[int]
    disk_free_bytes: Open[int | None]
    pending_erasures: Open[int]
    findings: Open[tuple[str, ...]]
