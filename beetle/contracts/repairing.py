"""store.repair: what damage has left is brought into a new store. identity.renew: a lost identity gets a successor."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from beetle.contracts.common import Report
from beetle.contracts.control import VerifyFinding
from beetle.contracts.fields import Open, OperatorOnly, Piece, Request
from beetle.contracts.memory import IdentityName
from beetle.contracts.operation import CARE, IDENTITY, Operation, Tool


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
    first hundred: it names records that are gone or were altered. The damaged file is kept at `kept_as`, its log
    beside it. Of a dry run `findings` is empty and `clean` is null."""

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


class IdentityRenewRequest(Request, frozen=True, kw_only=True):
    """Give a store whose device identity is lost another one: a dry run first, then its token."""

    dry_run: Annotated[bool, Meta(description="report what would be closed and taken over; change nothing")] = False
    token: Annotated[str, Meta(min_length=1, max_length=256, description="token of the dry run")] | None = None
    despite_findings: Annotated[bool, Meta(description="renew although `store.verify` has findings; they remain")] = (
        False
    )

    def __post_init__(self) -> None:
        if self.dry_run == (self.token is not None):
            raise ValueError("give dry_run first, then the token that it answers")


class IdentityRenewReport(Report, frozen=True, kw_only=True):
    """`state` is that of the identity before; a dry run has a `token` where another one may take its place. `former` is
    the fingerprint of the identity that is given up, null where it never signed anything, and `device` that of its
    successor, null in a dry run where it has still to be made; where the identity works, they are null and its own.

    `closes` counts the private records and waiting texts that the former identity sealed: they cannot be read any
    more. `closed` counts those of all former identities, and `closed_refs` names the first thousand.

    Rows and turns by their seals: `proven` ones are what the runtime wrote; of `unproven` ones only the lost identity
    could tell, and they are taken over as they are; `broken` ones were changed, added or removed by another program,
    and stay found. `findings` are the first hundred of `store.verify`, `found` counts them all.

    `head_signed`: the new identity has signed the event log's head, which fitted its former signature. `kept_as` is
    where the file is that stood in the key file's place and is none."""

    dry_run: Open[bool]
    changed: Open[bool]
    state: Open[IdentityName]
    former: OperatorOnly[str | None] = None
    device: OperatorOnly[str | None] = None
    closes: OperatorOnly[int | None] = 0
    closed: OperatorOnly[int | None] = 0
    closed_refs: OperatorOnly[tuple[str, ...] | None] = ()
    proven: OperatorOnly[int | None] = 0
    unproven: OperatorOnly[int | None] = 0
    broken: OperatorOnly[int | None] = 0
    found: OperatorOnly[int | None] = 0
    findings: OperatorOnly[tuple[VerifyFinding, ...] | None] = ()
    head_signed: Open[bool] = False
    kept_as: OperatorOnly[str | None] = None
    token: OperatorOnly[str | None] = None


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
    Operation(
        "identity.renew", "renew_identity", IdentityRenewRequest, IdentityRenewReport, "admin", "recover", IDENTITY,
        ("identity", "renew"),
        "give a store whose device identity is lost another one: a dry run first, then its token",
        batch=False, grows=False, heavy=True, deadline_ms=3_600_000,
        example={"dry_run": True},
        shell=("beetle identity renew --dry-run", "beetle identity renew"),
        destructive=True, idempotent=False,
        tool=Tool(none="it gives up what the lost identity sealed, which a person decides"),
    ),
)  # fmt: skip
