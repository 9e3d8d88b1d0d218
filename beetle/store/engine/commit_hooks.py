"""What a transaction's hooks may tell of it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from beetle.store.engine.transaction import Reading


@runtime_checkable
class Witness(Protocol):
    """A hook that is not to be called twice, or not at all, by a commit that answered an error: whether that is on disk
    all the same can be told by the event log only of a transaction that has logged something."""

    def __call__(self) -> None:
        """The transaction is committed."""
        ...

    def is_committed(self, tx: Reading) -> bool:
        """Whether it is, as the store stands before any later write."""
        ...
