"""private.delete: what the private plane holds goes at its owner's word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from beetle.contracts.errors import NotFound
from beetle.contracts.private import PrivateDeleteReport, PrivateDeleteRequest, PrivatePlane
from beetle.domain.digest import keyed
from beetle.runtime.areas import receipts
from beetle.runtime.areas.evidence.lifecycle import settle
from beetle.runtime.pipeline.handlers import Apply, Handler, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import candidates, evidence, private
from beetle.store.engine.write_transaction import WriteTransaction


def delete(invocation: Invocation, request: PrivateDeleteRequest) -> Apply:
    """In one transaction. No identity is needed: what cannot be read any more can still be deleted.

    Only an operator may see raw_owner, and no authority is stronger.
    """
    receipts.ready(invocation)

    def apply(tx: WriteTransaction) -> PrivateDeleteReport:
        space = evidence.find_space(tx, invocation.space_id)
        row = private.find_item(tx, space, request.record_id)
        if space is None or row is None:
            listing = "`beetle private list` lists the records"
            raise NotFound(kind="private record", name=request.record_id, listing=listing)
        waiting = candidates.holding(tx, space, row.record_id)
        plane = cast(PrivatePlane, row.plane)
        if request.dry_run:
            return PrivateDeleteReport(record_id=row.record_id, plane=plane, dry_run=True, waiting=len(waiting))
        for each in waiting:
            candidates.remove(tx, each.candidate)
        private.remove_derived_refs(tx, space, f"{row.plane}:{row.record_id}")
        private.remove_item(tx, space, row.record_id)
        told = {"record_id": row.record_id, "plane": row.plane, "candidates": len(waiting)}
        seq = tx.log(invocation.event("memory", "private_deleted", "sealed", **told))
        counts = {"records": 1, "candidates": len(waiting)}
        digests = [keyed(invocation.key, "private record", row.sealed)]
        return PrivateDeleteReport(
            record_id=row.record_id,
            plane=plane,
            dry_run=False,
            waiting=len(waiting),
            erasure="pending",
            audit_event_id=invocation.number_of(tx.logged[-1:]),
            receipt=receipts.make(invocation, tx, "private.delete", seq, counts, digests),
        )

    return apply


HANDLERS: Mapping[str, Handler] = {
    "private.delete": Write(delete, settle),
}
