"""Receipts: one line of text that proves a change without its content.

A receipt is `beetle-receipt-1.BODY.SIGNATURE`. BODY is the base64url of a JSON object with sorted keys, SIGNATURE the
base64url of the Ed25519 signature over all that stands before the second full stop; it is empty where the device
identity could not be used. docs/store.md tells the fields.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from beetle.contracts.codec import check_values, format_us, from_plain, pack_json
from beetle.contracts.control import ReceiptCheck, ReceiptFault
from beetle.contracts.errors import InvalidRequest
from beetle.memory.digest import keyed
from beetle.runtime.handling import Context
from beetle.runtime.identity import fingerprint_of, is_signed
from beetle.store import private
from beetle.store.event_log import LoggedRow, read_row
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction

MARK = "beetle-receipt-1"
ANY_MARK = "beetle-receipt-"
EMBEDDED = "embedded:"


class Body(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a receipt says. `space` is an HMAC under the store's key, `head` the hash of the event-log row `event`."""

    v: int
    kind: str
    operation: str
    store: str
    space: str
    event: Annotated[int, Meta(ge=1)]
    at: str
    principal: str
    counts: dict[str, int]
    digest: str
    head: str
    device: str | None
    key: str | None


def ready(context: Context) -> None:
    """Load what signing takes. Call it in a handler's part before the transaction: the writer must not wait for it."""
    context.shared.identity.keys()


def make(
    context: Context, tx: WriteTransaction, kind: str, seq: int, counts: Mapping[str, int], digests: Iterable[bytes]
) -> str:
    """The receipt of an event that this transaction has logged.

    Args:
        kind: what was done, such as `transcript.mask`; a word of ours, never of a caller's making.
        seq: number of the event's row.
        counts: what was touched, by our own names.
        digests: keyed digests of what was touched, in any order; the receipt holds one digest of them all.
    """
    row = read_row(tx, seq)
    assert row is not None, "a receipt is made after its event"
    keys = context.shared.identity.keys()
    body = Body(
        v=1,
        kind=kind,
        operation=row.operation,
        store=context.shared.store.store_id,
        space=_space(context, row.space),
        event=seq,
        at=format_us(row.at),
        principal=_principal(row.principal),
        counts=dict(counts),
        digest=hashlib.sha256(b"".join(sorted(digests))).hexdigest(),
        head=row.hash.hex(),
        device=None if keys is None else keys.fingerprint,
        key=None if keys is None else _encode(keys.public),
    )
    said = f"{MARK}.{_encode(pack_json(body, in_order=True))}"
    if keys is None:
        return f"{said}."
    private.record_public_key(tx, keys.public)
    return f"{said}.{_encode(keys.sign(said.encode()))}"


def check(context: Context, tx: Reading, receipt: str) -> ReceiptCheck:
    """Whether a receipt is this store's, is as it was signed, and tells of an event that the log still has."""
    mark, _, rest = receipt.strip().partition(".")
    if mark != MARK:
        versioned = mark.startswith(ANY_MARK) and mark.removeprefix(ANY_MARK).isdecimal()
        return ReceiptCheck(valid=False, reasons=("unknown_version" if versioned else "malformed",))
    encoded, _, signed = rest.partition(".")
    body, signature = _body(encoded), _decode(signed)
    if body is None or signature is None or "." not in rest:
        return ReceiptCheck(valid=False, reasons=("malformed",))
    if body.store != context.shared.store.store_id:
        reasons: list[ReceiptFault] = ["other_store"]
    else:
        said = f"{MARK}.{encoded}".encode()
        reasons = [*_signature_faults(context, tx, body, said, signature), *_event_faults(context, tx, body)]
    return ReceiptCheck(
        valid=not reasons,
        reasons=tuple(reasons),
        signed=bool(signature),
        kind=body.kind,
        event=body.event,
        at=body.at,
        device=body.device,
    )


def _signature_faults(
    context: Context, tx: Reading, body: Body, said: bytes, signature: bytes
) -> Iterable[ReceiptFault]:
    if not signature:
        yield "unsigned"
        return
    public = _decode(body.key or "") or b""
    if not is_signed(said, signature, public):
        yield "wrong_signature"
    # The device's own key counts for more than what the store has written down of it.
    keys = context.shared.identity.keys()
    known = private.public_key(tx) if keys is None else keys.public
    if public != known or body.device != fingerprint_of(public):
        yield "other_device"


def _event_faults(context: Context, tx: Reading, body: Body) -> Iterable[ReceiptFault]:
    row = read_row(tx, body.event)
    if row is None:
        yield "event_missing"
    elif row.hash.hex() != body.head:
        yield "event_changed"
    elif _told(context, row) != (body.operation, body.principal, body.space, body.at):
        yield "event_differs"


def _told(context: Context, row: LoggedRow) -> tuple[str, str, str, str]:
    return row.operation, _principal(row.principal), _space(context, row.space), format_us(row.at)


def _space(context: Context, space: str | None) -> str:
    """Eight bytes in hex that stand for a space: its name holds an owner's."""
    return keyed(context.key, "receipt space", (space or "").encode())[:8].hex()


def _principal(name: str) -> str:
    """The principal's name; of an embedding program, only that it is one, since the rest is an agent's id."""
    return EMBEDDED[:-1] if name.startswith(EMBEDDED) else name


def _body(encoded: str) -> Body | None:
    data = _decode(encoded)
    if data is None:
        return None
    try:
        found = msgspec.json.decode(data)
        check_values(found, "$")
        body = from_plain(found, Body)
    except (msgspec.MsgspecError, UnicodeDecodeError, InvalidRequest, RecursionError):
        return None
    return body if body.v == 1 and pack_json(body, in_order=True) == data else None


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes | None:
    """The bytes, or None for anything but the one spelling of them: no changed character is to pass unseen."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if _encode(data) == text else None
