"""Hash chaining of append-only logs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from beetle.contracts.codec import pack

GENESIS = bytes(32)


def chain_hash(previous: bytes, fields: Sequence[Any]) -> bytes:
    """SHA-256 over the previous hash (32 bytes) and the MessagePack of the row's fields, in column order."""
    return hashlib.sha256(previous + pack(tuple(fields))).digest()
