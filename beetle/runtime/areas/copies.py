"""Until when a replica holds what was erased."""

from __future__ import annotations

from contextlib import nullcontext

from beetle.contracts.codec import format_us
from beetle.store.engine import erasing
from beetle.store.engine.store import Store
from beetle.store.engine.transaction import Reading


def replicated_until(store: Store, now: int, tx: Reading | None = None) -> str | None:
    """Until when the replica, or what was sent to one before, holds something that was erased; None when nothing.

    The sidecar removes it by then if it reaches its target; `replica forget` removes it at once. A time that has passed
    is told until it was seen that the target has nothing of it.

    Args:
        now: microseconds.
        tx: a read that has begun, if there is one.
    """
    with nullcontext(tx) if tx is not None else store.read() as reading:
        known = erasing.kept_until(reading)
    promise = store.follower.kept_until
    if store.writer.erasures and promise is not None:
        known = max(known or 0, promise(now))
    return None if known is None else format_us(known)
