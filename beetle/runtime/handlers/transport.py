"""transport.list and transport.update."""

from __future__ import annotations

import re

from beetle.contracts.devices import (
    TransportListReport,
    TransportListRequest,
    TransportReport,
    TransportUpdateRequest,
)
from beetle.contracts.errors import InvalidRequest
from beetle.runtime.handling import Apply, Context
from beetle.runtime.transports import TRANSPORT_UPDATED, TRANSPORTS
from beetle.store.transaction import Reading
from beetle.store.transports import TransportRow, by_name, set_transport
from beetle.store.writer import WriteTransaction

HOST_PORT = re.compile(r"(?:\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9.-]{1,253}):([0-9]{1,5})")


def list_transports(context: Context, request: TransportListRequest, tx: Reading) -> TransportListReport:
    """Every way in."""
    del request
    presence = context.shared.presence
    return TransportListReport(transports=presence.transports.entries(presence.lines, by_name(tx)))


def update(context: Context, request: TransportUpdateRequest) -> Apply:
    """Open or close a way in; holds from the next request on, also of connections that are open."""
    presence = context.shared.presence
    presence.transports.may_change(request.name, request.enabled, request.endpoint)
    if request.endpoint is not None:
        _check_endpoint(request.endpoint)

    def apply(tx: WriteTransaction) -> TransportReport:
        rows = by_name(tx)
        before = rows.get(request.name) or TransportRow(request.name, True, None, tx.now)
        after = TransportRow(
            request.name,
            before.enabled if request.enabled is None else request.enabled,
            request.endpoint or before.endpoint,
            tx.now,
        )
        if after[:3] != before[:3]:
            set_transport(tx, after, context.caller.name)
            tx.log(context.own_event("lifecycle", TRANSPORT_UPDATED, transport=request.name, enabled=after.enabled))
            rows[request.name] = after
        entry = presence.transports.entries(presence.lines, rows)[TRANSPORTS.index(request.name)]
        return TransportReport(transport=entry)

    return apply


def _check_endpoint(endpoint: str) -> None:
    found = HOST_PORT.fullmatch(endpoint)
    if found is None or not 0 < int(found[1]) < 65536:
        raise InvalidRequest(
            reason=f"{endpoint!r} is no address to listen at", hint="write HOST:PORT", path="$.args.endpoint"
        )
