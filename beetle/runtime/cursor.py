"""Page cursors: opaque, bound to operation, scope, filters and view, and tamper-evident."""

from __future__ import annotations

import base64
import binascii
import hmac
from typing import Any

from beetle.contracts.codec import pack, unpack_any
from beetle.contracts.errors import InvalidRequest
from beetle.memory.digest import keyed

TAG_BYTES = 16


def make_cursor(key: bytes, bound_to: Any, position: Any) -> str:
    """A cursor for the page behind `position`.

    Args:
        bound_to: all that the next request must repeat: operation, scope, filters, view.
        position: where the next page begins; plain values, readable by the caller, so never content.
    """
    body = pack(position)
    return _text(_tag(key, bound_to, body) + body)


def read_cursor(key: bytes, bound_to: Any, cursor: str) -> Any:
    """The position that a cursor stands for.

    Raises:
        InvalidRequest: it was altered, or belongs to another operation, scope, filter or view.
    """
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _foreign() from None
    tag, body = data[:TAG_BYTES], data[TAG_BYTES:]
    # Base64 has several spellings of the same bytes: only the one that was given out counts.
    if _text(data) != cursor or not hmac.compare_digest(tag, _tag(key, bound_to, body)):
        raise _foreign()
    return unpack_any(body)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _tag(key: bytes, bound_to: Any, body: bytes) -> bytes:
    return keyed(key, "cursor", pack((bound_to, body)))[:TAG_BYTES]


def _foreign() -> InvalidRequest:
    return InvalidRequest(
        reason="the cursor does not belong to this request",
        hint="repeat the request that gave the cursor, with the same scope, filters and view; or start without one",
        path="$.args.cursor",
    )
