"""Work that stops at each of its writes, so that one thread can have many writes wait at once."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

from beetle.store.engine.write_queue import PendingWrite

T = TypeVar("T")

Steps: TypeAlias = Generator[PendingWrite, Any, T]
"""Yields each write, is sent what it returned or thrown its error, and returns what was asked for. Holds no lock where
it stops: it may go on on another thread."""


def complete(steps: Steps[T], write: Callable[[PendingWrite], Any], stopped_at: PendingWrite | None = None) -> T:
    """Run work to its end, waiting for each of its writes.

    Args:
        write: does a write, and returns what it returned.
        stopped_at: the write that it waits for, where it was begun elsewhere.
    """
    try:
        pending = next(steps) if stopped_at is None else stopped_at
        while True:
            try:
                result = write(pending)
            except BaseException as error:  # noqa: BLE001 - raised again, where the write was asked for
                pending = steps.throw(error)
            else:
                pending = steps.send(result)
    except StopIteration as ended:
        return ended.value
