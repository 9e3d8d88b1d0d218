"""A call that works between its transactions: it reads, does what no transaction may wait for, and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from beetle.contracts.codec import replace
from beetle.contracts.common import Report
from beetle.runtime.handling import Apply

R = TypeVar("R", bound=Report)


class Stages:
    """The transactions of one call. Its idempotency key holds for all of them: it keeps the report of the last one.

    Args:
        earlier: the report that the key was answered before, or None.
        commit: runs the first write of the call, for its key; its report, and whether the key had it already.
        again: runs a later one, and keeps its report in the place of the first.
    """

    def __init__(
        self,
        earlier: Callable[[], Any],
        commit: Callable[[Apply, bool], tuple[Any, bool]],
        again: Callable[[Apply], Any],
    ) -> None:
        self._earlier = earlier
        self._commit = commit
        self._again = again
        self._last: Any = None
        self.repeated = False

    def earlier(self) -> Any:
        """The report that this call's idempotency key was answered before; None when there is none."""
        found = self._earlier()
        self.repeated = found is not None
        return found

    def commit(self, apply: Callable[[Any], R], *, begun: bool = False) -> R:
        """Write, and be answered when it is on disk.

        A first write whose key was used already changes nothing: it answers what the key was answered then, and
        `repeated` is set. `begun` says that the call has done work before, so that its deadline counts no more.
        """
        if self._last is None:
            report, self.repeated = self._commit(apply, begun)
        else:
            report = self._joined(self._again(apply))
        self._last = report
        return report

    def _joined(self, report: Any) -> Any:
        """A call that changed something in any of its transactions changed something."""
        before, after = self._last.lifecycle, report.lifecycle
        if after.changed or not before.changed:
            return report
        return replace(report, lifecycle=replace(after, changed=True, event_id=before.event_id))
