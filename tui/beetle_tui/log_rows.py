"""The rows of the event log as one list: it ends where the log ended when the list was begun."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from beetle.contracts.event_log import EventLogReadReport, EventRow
from beetle_tui.link import Link
from beetle_tui.log_filter import LogFilter
from beetle_tui.rows import Batch, CursorRows
from beetle_tui.text import count


class Entry(NamedTuple):
    """One row. `broken`: it does not follow from the row before it."""

    row: EventRow
    broken: bool


class LogRows(CursorRows[Entry]):
    """Rows never change, so what was read stays as it is, however many come behind the end."""

    def __init__(self, link: Link, wanted: LogFilter, newest_first: bool, end: int) -> None:
        """`end` is the number of the log's last row."""
        super().__init__(self._page)
        self.wanted = wanted
        self.newest_first = newest_first
        self.end = end
        self.dropped = False
        """Nobody wants it any more: what is being read of it ends."""
        self.looked_at = 0
        self.broken: set[int] = set()
        self.on_progress: Callable[[], None] = lambda: None
        self._link = link
        self._searched = 0

    @property
    def state(self) -> str:
        """What it says of itself beside its length."""
        looking = f"looked at {count(self._searched, 'row')}" if self._searched else ""
        if self.broken:
            chain = f"BROKEN at {', '.join(f'{each:,}' for each in sorted(self.broken)[:5])}"
        else:
            chain = f"chain ok for the {self.looked_at:,} read" if self.looked_at else ""
        return "; ".join(each for each in (looking, chain, "" if self.newest_first else "oldest first") if each)

    async def newer(self, most: int) -> EventLogReadReport:
        """Rows behind the end, the newest first.

        Raises:
            BeetleError: as event_log.read.
        """
        return await read_log(self._link, self.wanted, after=self.end, newest_first=True, limit=most)

    async def _page(self, cursor: str | None, most: int) -> Batch[Entry]:
        """A whole page, of as many answers as it takes: one looks at a part of the log, and may hold few rows."""
        found: list[Entry] = []
        while not self.dropped:
            answer = await read_log(
                self._link,
                self.wanted,
                before=self.end + 1,
                newest_first=self.newest_first,
                limit=most - len(found),
                cursor=cursor,
            )
            found += [Entry(row, row.seq in answer.broken) for row in answer.rows]
            cursor = answer.next_cursor
            self.looked_at += len(answer.rows)
            self.broken.update(answer.broken)
            self._searched += answer.scanned
            if cursor is None or len(found) >= most:
                break
            self.on_progress()
        self._searched = 0
        self.on_progress()
        return Batch(tuple(found), cursor)


async def read_log(link: Link, wanted: LogFilter, **arguments: Any) -> EventLogReadReport:
    """One answer of event_log.read.

    Raises:
        BeetleError: its own.
    """
    return cast(EventLogReadReport, await link.call("event_log.read", {**wanted.arguments(), **arguments}))
