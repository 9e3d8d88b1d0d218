"""Cron schedules of six fields, seconds first: when the next time is, in a time zone.

What is to run at a fixed time of day runs once on every day, also on the two days on which the clock is changed: a time
that is left out comes when the clock has gone forward, one that comes twice counts the first time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from beetle.contracts.errors import InvalidRequest

if TYPE_CHECKING:
    from cronsim import CronSim

OFF = "off"
"""In place of an expression: there is no schedule."""
MOST_CHARS = 100
FIELDS = 6
SECOND_US = 1_000_000
HINT = 'give six fields: second minute hour day month weekday, for example "0 30 3 * * *"; or "off"'
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Schedule:
    """An expression in a zone.

    Args:
        expression: six fields, or `off`.
        path: where it stands, for the error.

    Raises:
        InvalidRequest: it is no expression, or no time ever fits it.
    """

    def __init__(self, expression: str, zone: tzinfo, path: str = "$.cron_expr") -> None:
        self.expression = " ".join(expression[: MOST_CHARS + 1].split())
        self.zone = zone
        fields = self.expression.split()
        self._minutes = ""
        self._seconds: list[timedelta] = []
        if self.expression == OFF:
            return
        if len(expression) > MOST_CHARS or len(fields) != FIELDS:
            raise _refused(path, f"a schedule has six fields and at most {MOST_CHARS} characters")
        # The library keeps fixed times of day whole where clocks change, but for expressions of five fields alone.
        self._minutes = " ".join(fields[1:])
        try:
            self._seconds = [timedelta(seconds=each) for each in sorted(_times(self.expression, EPOCH).seconds)]
            first = self._next(EPOCH)
        except ValueError as error:
            raise _refused(path, str(error)) from None
        if first is None:
            raise _refused(path, "no time ever fits this schedule")

    def next_us(self, now_us: int) -> int | None:
        """The first time behind `now_us`; both in microseconds since the epoch. None where there is none, or none that
        a calendar of four digits holds."""
        if self.expression == OFF:
            return None
        try:
            found = self._next(EPOCH + timedelta(microseconds=now_us))
        except (OverflowError, ValueError):
            return None  # beyond the calendar
        return None if found is None else (found - EPOCH) // timedelta(microseconds=1)

    def _next(self, now: datetime) -> datetime | None:
        """Raises ValueError, with what is wrong, when the library cannot read the expression."""
        zone = UTC if str(self.zone) == "UTC" else self.zone
        # From before the minute that goes on just now, which may have a time left. In an hour that comes twice, a fixed
        # time of day is told of its first coming, which may be past.
        for minute in _times(self._minutes, (now - MINUTE).astimezone(zone)):
            begins = minute.astimezone(UTC)
            if begins + self._seconds[-1] > now:
                return next(begins + each for each in self._seconds if begins + each > now)
        return None


def _times(expression: str, after: datetime) -> CronSim:
    """The times of five or six fields behind one. Raises ValueError as `_next`."""
    from cronsim import CronSim, CronSimError

    try:
        return CronSim(expression, after)
    except CronSimError as error:
        raise ValueError(f"the schedule cannot be read: {str(error).lower()}") from None


def _refused(path: str, reason: str) -> InvalidRequest:
    return InvalidRequest(reason=f"{path}: {reason}", hint=HINT, path=path)
