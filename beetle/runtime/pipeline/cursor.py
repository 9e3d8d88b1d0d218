"""Page cursors: sealed, bound to operation, scope, filters and view, and tamper-evident.

Where a page ends is often the key of a row, and keys count the rows of all owners: so nobody reads a position, and all
positions of up to `POSITION_BYTES` are cursors of one length.
"""

from __future__ import annotations

import hmac
from typing import Any

from beetle.contracts.codec import pack, unpack_any
from beetle.contracts.errors import InvalidRequest
from beetle.domain.digest import decode, encode, keyed

TAG_BYTES = 16
POSITION_BYTES = 62
BLOCK_BYTES = 32


def make_cursor(key: bytes, bound_to: Any, position: Any) -> str:
    """A cursor for the page behind `position`.

    Args:
        bound_to: all that the next request must repeat: operation, scope, filters, view.
        position: where the next page begins; plain values.
    """
    body = pack(position)
    # A position of another size is padded to the next whole block.
    size = max(POSITION_BYTES, len(body) + -(len(body) + 2) % BLOCK_BYTES)
    body = len(body).to_bytes(2, "big") + body.ljust(size, b"\x00")
    tag = _tag(key, bound_to, body)
    return encode(tag + _sealed(key, tag, body))


def read_cursor(key: bytes, bound_to: Any, cursor: str) -> Any:
    """The position that a cursor stands for.

    Raises:
        InvalidRequest: it was altered, or belongs to another operation, scope, filter or view.
    """
    data = decode(cursor)
    if data is None:
        raise _foreign()
    tag, body = data[:TAG_BYTES], _sealed(key, data[:TAG_BYTES], data[TAG_BYTES:])
    if not hmac.compare_digest(tag, _tag(key, bound_to, body)):
        raise _foreign()
    return unpack_any(body[2 : 2 + int.from_bytes(body[:2], "big")])


def _sealed(key: bytes, tag: bytes, body: bytes) -> bytes:
    """A body sealed, or opened again: the tag of what it says is the nonce, so no two bodies share a stream."""
    blocks = range(0, len(body), BLOCK_BYTES)
    stream = b"".join(keyed(key, "cursor stream", tag + at.to_bytes(4, "big")) for at in blocks)
    return bytes(a ^ b for a, b in zip(body, stream, strict=False))


def _tag(key: bytes, bound_to: Any, body: bytes) -> bytes:
    return keyed(key, "cursor", pack((bound_to, body)))[:TAG_BYTES]


def _foreign() -> InvalidRequest:
    return InvalidRequest(
        reason="the cursor does not belong to this request",
        hint="repeat the request that gave the cursor, with the same scope, filters and view; or start without one",
        path="$.args.cursor",
    )
