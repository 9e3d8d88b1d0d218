"""What of a space's derived material a caller may know of."""

from __future__ import annotations

from beetle.named_tuple import NamedTuple


class Sight(NamedTuple):
    """`private`: facts and candidates that are; `sealed`: what the private plane holds, and what is derived of it."""

    private: bool
    sealed: bool


ALL = Sight(private=True, sealed=True)
"""All there is."""
