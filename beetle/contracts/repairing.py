"""store.repair: what damage has left of the store is brought into a new one."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from beetle.contracts.common import Report
from beetle.contracts.control import VerifyFinding
from beetle.contracts.fields import Open, OperatorOnly, Piece, Request
from beetle.contracts.operation import CARE, Operation, Tool


class StoreRepairRequest(Request, frozen=True, kw_only=True):
    """Salvage what damage left: bring every readable row into a new store, and report what is gone."""

    dry_run: Annotated[bool, Meta(description="report what can be saved; change nothing")] = False


class SalvagedTable(Piece, frozen=True, kw_only=True):
    """A table of the store: rows that were brought over, and rows that were seen and cannot be read. `incomplete`:
    pages are missing, so that more rows may be gone than were seen."""

    table: Open[str]
    saved: Open[int]
    lost: Open[int]
    incomplete: Open[bool]


class StoreRepairReport(Report, frozen=True, kw_only=True):
    """`whole` when every row of every table was read. `tables` has those of which something is gone, `damaged_pages`
    the first hundred pages that cannot be read as a whole; `unclear_pages` counts those whose rows are of no table that
    anybody can tell, and `notes` say what else is gone. `findings` is what `store.verify` says of the new store, the
    first hundred: it names records that are gone or were altered. The damaged file stands at `kept_as`, its log beside
    it. Of a dry run `findings` is empty and `clean` is null."""

    dry_run: Open[bool]
    changed: Open[bool]
    whole: Open[bool]
    clean: Open[bool | None]
    saved: Open[int]
    lost: Open[int]
    pages: Open[int]
    damaged_pages: Open[tuple[int, ...]]
    unclear_pages: Open[int]
    tables: Open[tuple[SalvagedTable, ...]]
    notes: Open[tuple[str, ...]]
    findings: Open[tuple[VerifyFinding, ...]]
    kept_as: OperatorOnly[str | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "store.repair", "repair_store", StoreRepairRequest, StoreRepairReport, "admin", "recover", CARE, ("repair",),
        "salvage what damage left: bring every readable row into a new store, and report what is gone",
        batch=False, grows=False, heavy=True, deadline_ms=3_600_000,
        example={"dry_run": True},
        shell=("beetle repair --dry-run", "beetle repair"),
        progress=True,
        destructive=True,
        tool=Tool(none="it puts another file in the store's place, which a person decides"),
    ),
)  # fmt: skip
