"""The composition root of a repair without a daemon: a store that cannot be opened, or that nobody has open."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from beetle import __version__
from beetle.contracts.control import StoreVerifyReport
from beetle.contracts.repairing import StoreRepairReport

if TYPE_CHECKING:
    from beetle.open import Embedded


def repair_closed(store: str, opened: Callable[[], Embedded], *, dry_run: bool = False) -> StoreRepairReport:
    """Repair a store that nobody has open; then `opened` opens it, its index is made anew, and it is verified.

    Raises:
        StoreLocked, StoreCorrupt, StorageFull, StoreReadOnly: the store is as it was.
    """
    from beetle.runtime.areas.repairing import report_of
    from beetle.store.salvage import salvage_closed

    done, kept = salvage_closed(store, time.time_ns() // 1000, __version__, dry_run=dry_run)
    if dry_run:
        return report_of(done, None, None)
    embedded = opened()
    try:
        embedded.call("memory.recover", {"trigger": "after_restore"}, None, None, None)
        verified = cast(StoreVerifyReport, embedded.call("store.verify", {}, None, None, None).report)
    finally:
        embedded.release()
    return report_of(done, kept, verified.findings)
