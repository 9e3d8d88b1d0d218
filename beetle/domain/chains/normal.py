"""The normal form of what an agent says of a thought."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

DEFAULT_IMPORTANCE = 0.5
RETROSPECTIVE_IMPORTANCE = 0.7
BOOTSTRAP_IMPORTANCE = 1.0
ED25519_KEY_BYTES = 32
ED25519_SIGNATURE_BYTES = 64


def importance_of(given: float | None, default: float) -> float:
    """Between 0 and 1; what is not finite is 0.5."""
    if given is None:
        return default
    return _clamped(given) if isfinite(given) else DEFAULT_IMPORTANCE


def confidence_of(given: float | None) -> float | None:
    """Between 0 and 1; None without one, and for what is not finite."""
    return None if given is None or not isfinite(given) else _clamped(given)


def _clamped(value: float) -> float:
    # Of -0.0 and 0.0 the canonical form knows one.
    return min(1.0, max(0.0, float(value))) or 0.0


def labels(given: Iterable[str]) -> tuple[str, ...]:
    """Tags or concepts: trimmed, without blanks, each once whatever its case, in the first spelling and order."""
    kept: dict[str, str] = {}
    for each in given:
        trimmed = each.strip()
        if trimmed:
            kept.setdefault(trimmed.casefold(), trimmed)
    return tuple(kept.values())


def trimmed(given: str | None) -> str | None:
    """Without outer whitespace; None for a blank."""
    return (given or "").strip() or None
