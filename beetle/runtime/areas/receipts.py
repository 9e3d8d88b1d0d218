"""Receipts: one line of text that proves a change without its content.

A receipt is `MARK.BODY.SIGNATURE`. An operator's, `beetle-receipt-1`, names a row of the event log and its hash in the
chain. Anybody else's, `beetle-receipt-2`, names the event's place in its space and a keyed digest of it: row and hash
would tell what others do. BODY is the base64url of a JSON object with sorted keys, SIGNATURE the
base64url of the Ed25519 signature over all that stands before the second full stop; it is empty where the device
identity could not be used. docs/store.md tells the fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from msgspec import Meta, Struct

from beetle.contracts.control import ReceiptCheck, ReceiptFault
from beetle.domain.digest import decode, encode, keyed, shown_digest
from beetle.runtime.areas import event_log
from beetle.runtime.host.identity import fingerprint_of, is_signed
from beetle.runtime.host.signed_text import body_of, known_keys, text_of
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import evidence, private
from beetle.store.damaged_rows import known_time, shown_time
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.event_log import EventFilter, LoggedRow, read_row, read_rows
from beetle.store.event_places import Level, places_between

MARK = "beetle-receipt-1"
SPACE_MARK = "beetle-receipt-2"
ANY_MARK = "beetle-receipt-"
EMBEDDED = "embedded:"
ROWS_READ = 10_000
"""Most events that are looked at for one number."""


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


class SpaceBody(Body, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a receipt of no operator says: `event` and `head` are the number and the hash by which `event_log.read`
    shows the row to whoever may know of events up to `level`. An event that these may not know of has the number of
    the one before it.
    """

    event: Annotated[int, Meta(ge=0)]
    level: Level


KINDS: Mapping[str, tuple[int, type[Body]]] = {MARK: (1, Body), SPACE_MARK: (2, SpaceBody)}


def ready(invocation: Invocation) -> None:
    """Load what signing takes. Call it in a handler's part before the transaction: the writer must not wait for it."""
    invocation.shared.identity.keys()


def make(
    invocation: Invocation,
    tx: WriteTransaction,
    kind: str,
    seq: int,
    counts: Mapping[str, int],
    digests: Iterable[bytes],
) -> str:
    """The receipt of an event that this transaction has logged.

    Args:
        kind: what was done, such as `transcript.mask`; a word of ours, never of a caller's making.
        seq: number of the event's row.
        counts: what was touched, by our own names.
        digests: keyed digests of what was touched, in any order; the receipt holds one digest of them all,
            salted by the event: no two receipts are to tell that two texts are equal.
    """
    row = read_row(tx, seq)
    assert row is not None, "a receipt is made after its event"
    keys = invocation.shared.identity.keys()
    level = invocation.level
    mark, number, head = MARK, seq, row.hash
    if level is not None:
        mark, number = SPACE_MARK, _number(tx, seq, level)
        head = event_log.row_digest(invocation.key, number, row)
    version, body_type = KINDS[mark]
    body = body_type(
        v=version,
        kind=kind,
        operation=row.operation,
        store=invocation.shared.store.store_id,
        space=_space(invocation, row.space),
        event=number,
        at=shown_time(row.at, "event_log", row.seq),
        principal=_principal(row.principal),
        counts=dict(counts),
        digest=shown_digest(invocation.key, (number, head), b"".join(sorted(digests))).hex(),
        head=head.hex(),
        device=None if keys is None else keys.fingerprint,
        key=None if keys is None else encode(keys.public),
        **({} if level is None else {"level": level}),
    )
    said = text_of(mark, body)
    if keys is None:
        return f"{said}."
    private.record_public_key(tx, keys.public)
    return f"{said}.{encode(keys.sign(said.encode()))}"


def check(invocation: Invocation, tx: Reading, receipt: str) -> ReceiptCheck:
    """Whether a receipt is this store's, is as it was signed, and tells of an event that the log still has."""
    mark, _, rest = receipt.strip().partition(".")
    if mark not in KINDS:
        versioned = mark.startswith(ANY_MARK) and mark.removeprefix(ANY_MARK).isdecimal()
        return ReceiptCheck(valid=False, reasons=("unknown_version" if versioned else "malformed",))
    encoded, _, signed = rest.partition(".")
    version, body_type = KINDS[mark]
    body, signature = body_of(encoded, body_type), decode(signed)
    if body is None or body.v != version or signature is None or "." not in rest:
        return ReceiptCheck(valid=False, reasons=("malformed",))
    if body.store != invocation.shared.store.store_id:
        reasons: list[ReceiptFault] = ["other_store"]
    else:
        said = f"{mark}.{encoded}".encode()
        reasons = list(_signature_faults(invocation, tx, body, said, signature))
        # Of a row that no signature of this store names nobody but an operator is told whether it is there.
        if not reasons or invocation.caller.is_operator:
            reasons.extend(_event_faults(invocation, tx, body))
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
    invocation: Invocation, tx: Reading, body: Body, said: bytes, signature: bytes
) -> Iterable[ReceiptFault]:
    if not signature:
        yield "unsigned"
        return
    public = decode(body.key or "") or b""
    if not is_signed(said, signature, public):
        yield "wrong_signature"
    fault = known_keys(invocation.shared.identity, tx).fault(public)
    if body.device != fingerprint_of(public):
        yield "other_device"
    elif fault is not None:
        yield fault


def _event_faults(invocation: Invocation, tx: Reading, body: Body) -> Iterable[ReceiptFault]:
    if isinstance(body, SpaceBody):
        rows = [(each, event_log.row_digest(invocation.key, body.event, each)) for each in _rows(invocation, tx, body)]
    else:
        found = read_row(tx, body.event)
        rows = [] if found is None else [(found, found.hash)]
    row = next((row for row, head in rows if head.hex() == body.head), None)
    if not rows:
        yield "event_missing"
    elif row is None:
        yield "event_changed"
    else:
        told = (row.operation, _principal(row.principal), _space(invocation, row.space), known_time(row.at))
        if told != (body.operation, body.principal, body.space, body.at):
            yield "event_differs"


def _number(tx: WriteTransaction, seq: int, level: Level) -> int:
    """How many events of its space that a level may know of there were up to one that this transaction has logged."""
    logged = next(each for each in tx.logged if each.seq == seq)
    assert logged.places is not None, "a receipt is of an event of a space"
    return logged.places.at(level)


def _rows(invocation: Invocation, tx: Reading, body: SpaceBody) -> list[LoggedRow]:
    """The event of that number and the ones behind it that its level may not know of, in the space that is meant."""
    for space in evidence.space_names(tx):
        if _space(invocation, space) == body.space:
            between = places_between(tx, space, body.level, (body.event - 1, body.event + 1))
            found = read_rows(tx, EventFilter(space, "sealed"), between, ROWS_READ, backwards=False)
            return [each.row for each in found]
    return []


def _space(invocation: Invocation, space: str | None) -> str:
    """Eight bytes in hex that stand for a space: its name holds an owner's."""
    return keyed(invocation.key, "receipt space", (space or "").encode())[:8].hex()


def _principal(name: str) -> str:
    """The principal's name; of an embedding program, only that it is one, since the rest is an agent's id."""
    return EMBEDDED[:-1] if name.startswith(EMBEDDED) else name
