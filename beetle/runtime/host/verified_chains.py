"""What of each chain was recomputed since this process began: a long chain is not verified from its start each time."""

from __future__ import annotations

import threading
from collections import OrderedDict

from beetle.named_tuple import NamedTuple

CHAINS_KEPT = 1024
"""Chains of which that is remembered, the last used ones: some hundred bytes each."""


class Span(NamedTuple):
    """Thoughts that follow from one another: from `first` up to, without, `until`.

    `before` is the hash that stands before `first`, `last` that of the thought at `until - 1`; 32 bytes, `before` none
    at the beginning of a chain.
    """

    first: int
    until: int
    before: bytes
    last: bytes


class VerifiedChains:
    """Spans by the store's epoch and the chain's row: a restore makes another epoch. For several threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._spans: OrderedDict[tuple[int, int], Span] = OrderedDict()

    def get(self, epoch: int, chain: int) -> Span | None:
        """What is remembered of a chain. Whoever uses it looks whether the chain still has its last hash there."""
        with self._guard:
            found = self._spans.get((epoch, chain))
            if found is not None:
                self._spans.move_to_end((epoch, chain))
            return found

    def put(self, epoch: int, chain: int, span: Span) -> None:
        """Remember a span in place of what was remembered of that chain."""
        with self._guard:
            self._spans[epoch, chain] = span
            self._spans.move_to_end((epoch, chain))
            while len(self._spans) > CHAINS_KEPT:
                self._spans.popitem(last=False)
