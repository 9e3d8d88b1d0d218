"""Years, months, weeks and days as nodes: their ids, titles and bounds. All in UTC, times in milliseconds.

A week is ISO 8601's; it belongs to the month, and the year, of its Thursday.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from beetle.contracts.toc import TocLevel
from beetle.named_tuple import NamedTuple

DAY_MS = 86_400_000
EPOCH = date(1970, 1, 1)
FIRST_DAY, LAST_DAY = (date.min - EPOCH).days, (date.max - EPOCH).days
MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
ULID_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ULID_TIME_MS = 2**48 - 1


class Period(NamedTuple):
    """A calendar node. `end_ms` is its last millisecond."""

    level: TocLevel
    node_id: str
    title: str
    start_ms: int
    end_ms: int


def day_of(at_ms: int) -> int:
    """The day of a time, counted from the epoch's; a time outside the years 1 to 9999 is of the first or last day."""
    return min(LAST_DAY, max(FIRST_DAY, at_ms // DAY_MS))


def day_named(text: str) -> int | None:
    """The day that `YYYY-MM-DD` names; None where it names none."""
    try:
        return (date.fromisoformat(text) - EPOCH).days if len(text) == 10 else None
    except ValueError:
        return None


def periods_of_day(day: int) -> tuple[Period, Period, Period, Period]:
    """The year, month, week and day that a day stands in, from the top down."""
    at = EPOCH + timedelta(days=day)
    thursday = _thursday(at)
    year, month = thursday.year, thursday.month
    iso_year, week, weekday = at.isocalendar()
    monday = day - weekday + 1
    begin, after = _days(date(year, month, 1)), _days_of_next_month(year, month)
    whole_year = _bounds(_days(date(year, 1, 1)), _days_of_next_year(year))
    return (
        Period("year", f"toc:year:{year:04}", f"{year:04}", *whole_year),
        Period("month", f"toc:month:{year:04}-{month:02}", f"{MONTH_NAMES[month - 1]} {year:04}",
               *_bounds(begin, after)),
        Period("week", f"toc:week:{iso_year:04}-W{week:02}", f"Week {week}, {iso_year:04}",
               *_bounds(monday, monday + 7)),
        Period("day", f"toc:day:{at.isoformat()}", f"{MONTH_NAMES[at.month - 1]} {at.day}, {at.year:04}",
               *_bounds(day, day + 1)),
    )  # fmt: skip


def title_of(node_id: str, start_ms: int) -> str:
    """The title of a calendar node, by its id and where it begins."""
    level = node_id.split(":")[1]
    if level == "week":
        year, week = node_id.rsplit(":", 1)[1].split("-W")
        return f"Week {int(week)}, {year}"
    begin = EPOCH + timedelta(days=start_ms // DAY_MS)
    if level == "year":
        return f"{begin.year:04}"
    month = MONTH_NAMES[begin.month - 1]
    return f"{month} {begin.year:04}" if level == "month" else f"{month} {begin.day}, {begin.year:04}"


def clock_title(start_ms: int, end_ms: int) -> str:
    """The title of a segment of which nothing is known but its times."""
    begin, end = (datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=each) for each in (start_ms, end_ms))
    return f"{begin:%H:%M} to {end:%H:%M}"


def ulid(at_ms: int, digest: bytes) -> str:
    """A ULID of a time and ten bytes of a digest: the same from the same."""
    number = min(ULID_TIME_MS, max(0, at_ms)) << 80 | int.from_bytes(digest[:10], "big")
    return "".join(ULID_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def _thursday(at: date) -> date:
    """The Thursday of a day's week; at both ends of the calendar the nearest day that there is."""
    day = _days(at) - at.weekday() + 3
    return EPOCH + timedelta(days=min(LAST_DAY, max(FIRST_DAY, day)))


def _days(at: date) -> int:
    return (at - EPOCH).days


def _days_of_next_month(year: int, month: int) -> int:
    return _days_of_next_year(year) if month == 12 else _days(date(year, month + 1, 1))


def _days_of_next_year(year: int) -> int:
    return LAST_DAY + 1 if year == date.max.year else _days(date(year + 1, 1, 1))


def _bounds(first: int, after: int) -> tuple[int, int]:
    return first * DAY_MS, after * DAY_MS - 1
