"""Enrolled keys of hosts: host_key.enroll, revoke, list."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from beetle.contracts.capture import (
    HostKey,
    HostKeyEnrollRequest,
    HostKeyListReport,
    HostKeyListRequest,
    HostKeyReport,
    HostKeyRevokeRequest,
)
from beetle.contracts.codec import replace
from beetle.contracts.errors import Conflict, NotFound
from beetle.runtime.areas.capture import signing
from beetle.runtime.host.identity import fingerprint_of
from beetle.runtime.pipeline.cursor import read_cursor
from beetle.runtime.pipeline.handlers import Apply, Handler, Read, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import page
from beetle.store import evidence, host_keys
from beetle.store.damaged_rows import shown_time
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.host_keys import HostKeyRow

FINGERPRINT_CHARS = 16


def enroll(invocation: Invocation, request: HostKeyEnrollRequest) -> Apply:
    """A key of the scope's memory space. Enrolling it again changes its label and host kind."""
    public = signing.public_key(request.host_pubkey_b64)
    signing.check_point(public)
    fingerprint = fingerprint_of(public)

    def apply(tx: WriteTransaction) -> HostKeyReport:
        space = evidence.ensure_space(tx, invocation.space_id, tx.now)
        known = host_keys.by_key(tx, space, public)
        if known is None:
            new = HostKeyRow(0, public, fingerprint, request.label, request.host_kind, tx.now, None)
            host_keys.add(tx, space, new)
            tx.log(
                invocation.event("device", "host_key_enrolled", fingerprint=fingerprint, host_kind=request.host_kind)
            )
            return HostKeyReport(host_key=_shown(new))
        if known.revoked_at is not None:
            raise Conflict(
                reason=f"the host key {fingerprint} was revoked",
                hint="let the host make a new key, and enroll that",
                fingerprint=fingerprint,
            )
        changed = known._replace(label=request.label, host_kind=request.host_kind)
        if changed != known:
            host_keys.change(tx, known.host_key, changed.label, changed.host_kind)
            tx.log(invocation.event("device", "host_key_changed", fingerprint=fingerprint, host_kind=request.host_kind))
        return HostKeyReport(host_key=_shown(changed))

    return apply


def revoke(invocation: Invocation, request: HostKeyRevokeRequest) -> Apply:
    """By its fingerprint or by itself; what is revoked already stays so."""

    def apply(tx: WriteTransaction) -> HostKeyReport:
        row = _named(invocation, tx, request.host_key)
        if row.revoked_at is None:
            row = row._replace(revoked_at=tx.now)
            host_keys.revoke(tx, row.host_key, tx.now)
            tx.log(invocation.event("device", "host_key_revoked", fingerprint=row.fingerprint))
        return HostKeyReport(host_key=_shown(row))

    return apply


def listing(invocation: Invocation, request: HostKeyListRequest, tx: Reading) -> HostKeyListReport:
    """In the order in which they were added."""
    bound_to = invocation.bound(request.host_kind, request.include_revoked)
    after = 0 if request.cursor is None else read_cursor(invocation.key, bound_to, request.cursor)
    space = evidence.find_space(tx, invocation.space_id)
    rows = host_keys.listed(tx, space, after, request.include_revoked, request.host_kind, request.limit + 1)
    found = page(invocation, rows, request.limit, _shown, bound_to=bound_to, place=lambda row: row.host_key)
    return HostKeyListReport(
        host_keys=found.entries,
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        profile_budget_applied=found.cut,
    )


def _named(invocation: Invocation, tx: Reading, name: str) -> HostKeyRow:
    space = evidence.find_space(tx, invocation.space_id)
    if len(name) == FINGERPRINT_CHARS:
        found = host_keys.by_fingerprint(tx, space, name)
        row = found[0] if len(found) == 1 else None
    else:
        row = host_keys.by_key(tx, space, signing.public_key(name, "host_key"))
    if row is None:
        raise NotFound(kind="host key", name=name, listing="`beetle host-key list` lists them")
    return row


def _shown(row: HostKeyRow) -> HostKey:
    return HostKey(
        fingerprint=row.fingerprint,
        host_pubkey_b64=base64.b64encode(row.public_key).decode(),
        label=row.label,
        host_kind=row.host_kind,
        added_at=shown_time(row.added_at, "host_key", row.fingerprint),
        revoked_at=None if row.revoked_at is None else shown_time(row.revoked_at, "host_key", row.fingerprint),
    )


def again(invocation: Invocation, request: Any, tx: Reading, first: HostKeyReport) -> HostKeyReport:
    """A first report with its key as it is now."""
    del request
    public = signing.public_key(first.host_key.host_pubkey_b64)
    row = host_keys.by_key(tx, evidence.find_space(tx, invocation.space_id), public)
    now = None if row is None else _shown(row)
    return first if now is None or now.added_at != first.host_key.added_at else replace(first, host_key=now)


HANDLERS: Mapping[str, Handler] = {
    "host_key.enroll": Write(enroll, again=again),
    "host_key.revoke": Write(revoke, again=again),
    "host_key.list": Read(listing),
}
