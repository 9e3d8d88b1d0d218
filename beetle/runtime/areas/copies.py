"""Until when a replica holds what was erased."""

from __future__ import annotations

from beetle.contracts.codec import format_us
from beetle.store.engine import erasing
from beetle.store.engine.store import Store


def replicated_until(store: Store, now: int) -> str | None:
    """Until when the replica, or what was sent to one before, holds something that was erased; None when nothing.

    The sidecar removes it by then if it reaches its target; `replica forget` removes it at once.

    Args:
        now: microseconds.
    """
    with store.read() as tx:
        known = erasing.kept_until(tx)
    promise = store.follower.kept_until
    if store.writer.erasures and promise is not None:
        known = max(known or 0, promise(now))
    return None if known is None or known <= now else format_us(known)
