"""The time that a query speaks of: "last week", "three days ago", "in May", "before the move", "the day we met".

All in UTC, weeks from Monday on. A time that is named is a hint of where to look, not a fence: who asks may be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from beetle.domain.lexical import MONTHS, STOP_WORDS, WEEKDAYS, utc_time
from beetle.named_tuple import NamedTuple

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_US = 86_400_000_000
_DAYS = {"day": 1, "week": 7, "month": 31, "year": 366}
NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "couple of": 2, "a couple of": 2, "few": 3, "a few": 3,
}  # fmt: skip
_NUMBER = r"([0-9]{1,3}|" + "|".join(sorted(NUMBERS, key=len, reverse=True)) + ")"
_UNIT = r"(day|week|month|year)"
_AGO = rf"(?i)\b(?:about\s+)?{_NUMBER}\s+{_UNIT}s?\s+ago\b"
_PAST = rf"(?i)\b(?:in|over|during|within)?\s*(?:the\s+)?(?:last|past)\s+{_NUMBER}\s+{_UNIT}s\b"
_LAST = r"(?i)\b(last|past|this|previous)\s+(week|weekend|month|year|night|" + "|".join(WEEKDAYS) + r")\b"
_DAY = r"(?i)\b(?:the\s+)?(day\s+before\s+yesterday|yesterday|today|tonight)\b"
_MONTH = r"\b(?i:in|during|since|last|this)\s+((?i:" + "|".join(MONTHS) + r"))\b(?!\s+[0-9])"
_ANCHOR = (
    r"(?i)\b(?P<how>before|after|since|until)\s+(?P<what>(?:the|our|my|his|her|their|your|we|i|he|she|they)\s+"
    r"[^?.,;!]{2,60})"
)
_LOOKALIKES = "[\u0131\u0130\u017f\u212a]"
"""Where case does not count, these are an i, an s and a k too. No word of a time has them."""
_SAME_DAY = r"(?i)\bthe\s+(?P<how>day|week)\s+(?:that\s+|when\s+)?(?P<what>(?:we|i|he|she|they|you)\s+[^?.,;!]{2,60})"
GENERAL = frozenset(
    """
    talk talked talking discuss discussed discussing speak spoke speaking chat chatted happen happened happening say
    said tell told mention mentioned remember conversation conversations topic topics thing things summary summarize
    recap recently week day month
    """.split()  # noqa: SIM905
)
"""Words of a question that asks for all that was said in a time."""


class Window(NamedTuple):
    """A time in microseconds, both ends included, and the words that named it."""

    since: int
    until: int
    words: str


class Anchor(NamedTuple):
    """A time named by what happened then, which recall has to find: `what` are its words."""

    how: Literal["before", "after", "day", "week"]
    what: str


def window_of(query: str, asked_at: int) -> Window | None:
    """The time that a query names, seen from when it was asked; the first that it names."""
    now = utc_time(asked_at)
    for pattern, read in READERS:
        for match in re.finditer(pattern, query):
            if re.search(_LOOKALIKES, match.group()):
                continue
            try:
                found = read(match, now)
            except (OverflowError, ValueError):
                continue  # before the first year
            if found is not None:
                return Window(_us(found[0]), _us(found[1]) - 1, match.group().strip())
    return None


def anchor_of(query: str) -> Anchor | None:
    """What a query dates itself by, where it is no date."""
    match = re.search(_SAME_DAY, query)
    if match is not None:
        return Anchor("week" if match["how"].lower() == "week" else "day", match["what"])
    match = re.search(_ANCHOR, query)
    if match is None:
        return None
    how = match["how"].lower()
    return Anchor("before" if how in ("before", "until") else "after", match["what"])


def window_at(anchor: Anchor, at: int) -> Window:
    """The time that an anchor means once it is known when that was."""
    if anchor.how == "before":
        return Window(-(2**62), at - 1, anchor.what)
    if anchor.how == "after":
        return Window(at + 1, 2**62, anchor.what)
    day = utc_time(at)
    begin, days = _us(_day(day)), 1
    if anchor.how == "week":
        begin, days = begin - day.weekday() * _DAY_US, 7
    # Numbers, since the end may lie behind the last year that a date has.
    return Window(begin, begin + days * _DAY_US - 1, anchor.what)


def without(query: str, words: str) -> str | None:
    """A query without the words that name its time; None where no word is left."""
    rest = query.replace(words, " ", 1)
    return rest if re.search(r"\w", rest) else None


def asks_for_all(terms: tuple[str, ...]) -> bool:
    """Whether a query has no subject but its time."""
    return all(term in GENERAL or term in STOP_WORDS for term in terms)


def _ago(match: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    count, unit = _number(match[1]), match[2].lower()
    day = _day(now)
    if unit == "day":
        return day - timedelta(days=count), day - timedelta(days=count - 1)
    if unit == "week":
        # Who says two weeks ago means a day around it.
        at = day - timedelta(days=7 * count)
        return at - timedelta(days=3), at + timedelta(days=4)
    if unit == "month":
        begin = _month(now, -count)
        return begin, _month(begin, 1)
    begin = day.replace(year=now.year - count, month=1, day=1)
    return begin, begin.replace(year=begin.year + 1)


def _trailing(now: datetime, days: int) -> tuple[datetime, datetime]:
    """So many days and today."""
    day = _day(now)
    return day - timedelta(days=days), day + timedelta(days=1)


def _past(match: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    return _trailing(now, _DAYS[match[2].lower()] * _number(match[1]))


def _last(match: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    which, unit = match[1].lower(), match[2].lower()
    if which == "past" and unit in _DAYS:
        return _trailing(now, _DAYS[unit])
    back = 0 if which == "this" else 1
    day = _day(now)
    monday = day - timedelta(days=day.weekday())
    if unit == "night":
        return day - timedelta(days=back), day + timedelta(days=1)
    if unit == "week":
        begin = monday - timedelta(days=7 * back)
        return begin, begin + timedelta(days=7)
    if unit == "weekend":
        begin = monday + timedelta(days=5 - 7 * back)
        return begin, begin + timedelta(days=2)
    if unit == "month":
        begin = _month(now, -back)
        return begin, _month(begin, 1)
    if unit == "year":
        begin = day.replace(year=now.year - back, month=1, day=1)
        return begin, begin.replace(year=begin.year + 1)
    if which == "this":
        begin = monday + timedelta(days=WEEKDAYS.index(unit))
    else:
        begin = day - timedelta(days=(day.weekday() - WEEKDAYS.index(unit) - 1) % 7 + 1)
    return begin, begin + timedelta(days=1)


def _named_day(match: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    word = match[1].lower()
    back = 2 if word.startswith("day") else 1 if word == "yesterday" else 0
    begin = _day(now) - timedelta(days=back)
    return begin, begin + timedelta(days=1)


def _named_month(match: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    """The last such month: this year's unless that is still to come."""
    month = MONTHS.index(match[1].lower()) + 1
    if match[1][0].islower() and month in (3, 5):
        return None  # march and may are verbs
    begin = datetime.combine(date(now.year - (month > now.month), month, 1), datetime.min.time(), UTC)
    after = _month(begin, 1)
    return begin, _day(now) + timedelta(days=1) if match.group().lower().startswith("since") else after


def _number(text: str) -> int:
    return int(text) if text.isdigit() else NUMBERS[" ".join(text.lower().split())]


def _day(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def _month(at: datetime, months: int) -> datetime:
    count = at.year * 12 + at.month - 1 + months
    return datetime(count // 12, count % 12 + 1, 1, tzinfo=UTC)


def _us(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)


Read = Callable[["re.Match[str]", datetime], "tuple[datetime, datetime] | None"]
READERS: tuple[tuple[str, Read], ...] = (
    (_AGO, _ago),
    (_PAST, _past),
    (_LAST, _last),
    (_DAY, _named_day),
    (_MONTH, _named_month),
)
"""In this order: "the last two weeks" holds no "last week"."""
