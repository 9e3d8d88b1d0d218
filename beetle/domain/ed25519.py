"""What a strict verification of Ed25519 refuses before it verifies: points that are none, or of small order.

A key of small order fits signatures of many messages, so a signature by it proves nothing.
"""

from __future__ import annotations

from functools import lru_cache

PRIME = 2**255 - 19
D = -121665 * pow(121666, -1, PRIME) % PRIME
_EIGHTH = int.from_bytes(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little")
SMALL = frozenset((0, 1, PRIME - 1, _EIGHTH, PRIME - _EIGHTH))
"""The second coordinates of the eight points of small order."""


@lru_cache(maxsize=64)
def is_sound_point(encoded: bytes) -> bool:
    """Whether 32 bytes are the one spelling of a point of the curve, and its order is not small."""
    y = int.from_bytes(encoded, "little") & (2**255 - 1)
    if len(encoded) != 32 or y >= PRIME or y in SMALL:
        return False
    # x² = (y² - 1) / (d·y² + 1), which has a root or not.
    square = (y * y - 1) * pow(D * y * y + 1, -1, PRIME) % PRIME
    return pow(square, (PRIME - 1) // 2, PRIME) == 1
