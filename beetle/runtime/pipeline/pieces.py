"""What goes in pieces: an import is put together before anything looks at it, an export taken apart behind the gate."""

from __future__ import annotations

from typing import Any

from beetle.contracts.codec import replace
from beetle.contracts.errors import InvalidRequest
from beetle.runtime.host.transfers import Holder
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.views import RevealedReport


def holder_of(invocation: Invocation) -> Holder:
    """Whose the transfers are that a call begins or names."""
    return Holder(invocation.caller, invocation.connection)


def joined(invocation: Invocation, request: Any) -> Any:
    """The request of an import with its bytes, as if they had come with it.

    Raises:
        InvalidRequest: it has neither bytes nor a transfer, or both.
        NotFound, Conflict: as `Transfers.take`.
    """
    row = invocation.operation
    if not row.carries or row.takes_out:
        return request
    given, transfer_id = getattr(request, row.carries), request.transfer_id
    path = f"$.args.{row.carries}"
    if (given is None) is (transfer_id is None):
        reason = "is missing, and so is transfer_id" if given is None else "is given together with a transfer_id"
        raise InvalidRequest(reason=f"{row.carries} {reason} - at {path}", path=path, hint="give one of the two")
    if transfer_id is None:
        return request
    data = invocation.shared.transfers.take(holder_of(invocation), transfer_id, invocation.now)
    return replace(request, **{row.carries: data, "transfer_id": None})


def parted(invocation: Invocation, request: Any, report: RevealedReport) -> RevealedReport:
    """The report of an export; where its bytes are to go in pieces and are more than one, with a handle in their place.

    Raises:
        Overloaded, StorageFull, StoreReadOnly: as `Transfers.offer`.
    """
    if not getattr(request, "in_pieces", False):
        return report
    shared, field = invocation.shared, invocation.operation.carries
    data: bytes | None = getattr(report, field)
    if data is None or len(data) <= shared.profile.budgets.piece_bytes:
        return report
    handle = shared.transfers.offer(holder_of(invocation), invocation.new_id("t"), data, invocation.now)
    return replace(report, **{field: None, "transfer": handle})
