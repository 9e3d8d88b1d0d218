"""transfer.begin, put and get."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.transfer import (
    TransferBeginReport,
    TransferBeginRequest,
    TransferGetReport,
    TransferGetRequest,
    TransferPutReport,
    TransferPutRequest,
)
from beetle.runtime.pipeline.handlers import Handler, Plain
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.pieces import holder_of


def begin(invocation: Invocation, request: TransferBeginRequest) -> TransferBeginReport:
    """A place for the bytes of an import."""
    transfers = invocation.shared.transfers
    handle = transfers.begin(holder_of(invocation), invocation.new_id("t"), request.total_bytes, invocation.now)
    return TransferBeginReport(transfer=handle)


def put(invocation: Invocation, request: TransferPutRequest) -> TransferPutReport:
    """The next piece of an import."""
    received, handle = invocation.shared.transfers.put(
        holder_of(invocation), request.transfer_id, request.offset, request.data, invocation.now
    )
    return TransferPutReport(received=received, total_bytes=handle.total_bytes, expires_at=handle.expires_at)


def get(invocation: Invocation, request: TransferGetRequest) -> TransferGetReport:
    """A piece of an export."""
    data, size = invocation.shared.transfers.get(
        holder_of(invocation), request.transfer_id, request.offset, invocation.now
    )
    done = request.offset + len(data) >= size
    return TransferGetReport(data=data, offset=request.offset, total_bytes=size, done=done)


HANDLERS: Mapping[str, Handler] = {
    "transfer.begin": Plain(begin),
    "transfer.put": Plain(put),
    "transfer.get": Plain(get),
}
