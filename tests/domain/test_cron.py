"""Cron schedules: six fields, in zones whose clocks are changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.contracts.errors import InvalidRequest
from beetle.domain.cron import EPOCH, Schedule

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia")
STEP = timedelta(microseconds=1)


def us(at: datetime) -> int:
    return (at - EPOCH) // STEP


def following(schedule: Schedule, at: datetime, count: int) -> list[datetime]:
    found = [at]
    for _ in range(count):
        after = schedule.next_us(us(found[-1]))
        assert after is not None
        found.append(EPOCH + after * STEP)
    return found[1:]


moments = st.datetimes(datetime(1999, 1, 1), datetime(2037, 12, 1)).map(lambda each: each.replace(tzinfo=UTC))
seconds, minutes, hours = (st.integers(0, most) for most in (59, 59, 23))


@settings(max_examples=25, derandomize=True, deadline=None)
@given(moments, st.sampled_from(ZONES), seconds, minutes, hours)
def test_a_fixed_time_of_day_comes_once_on_every_day(at: datetime, zone: str, s: int, m: int, h: int) -> None:
    """Also where clocks are changed: none is left out, and none comes twice."""
    times = following(Schedule(f"{s} {m} {h} * * *", ZoneInfo(zone)), at, 30)
    days = [each.astimezone(ZoneInfo(zone)).date() for each in times]
    gaps = {(after - before).days for before, after in pairwise(days)}
    # Apia had no 30 December 2011 at all.
    assert gaps == {1} or (zone == "Pacific/Apia" and gaps == {1, 2})
    assert times == sorted(set(times)) and times[0] > at


@pytest.mark.parametrize("seconds", ["0,30", "*/20", "5-7", "*", "59"])
@pytest.mark.parametrize("day", [datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)])
def test_a_minute_of_the_day_comes_once_with_each_of_its_seconds(seconds: str, day: datetime) -> None:
    """In the night in which half past two never comes, and in the one in which it comes twice."""
    of_minute = sorted(CronSim(f"{seconds} * * * * *", day).seconds)
    times = following(Schedule(f"{seconds} 30 2 * * *", ZoneInfo("Europe/Berlin")), day, 2 * len(of_minute))
    assert [each.second for each in times] == of_minute * 2
    minutes = [each.replace(second=0) for each in times]
    first = datetime(2026, 3, 29, 1, tzinfo=UTC) if day.month == 3 else datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    second = datetime(2026, 3, 30, 0, 30, tzinfo=UTC) if day.month == 3 else datetime(2026, 10, 26, 1, 30, tzinfo=UTC)
    assert minutes == [first] * len(of_minute) + [second] * len(of_minute)


@settings(max_examples=25, derandomize=True, deadline=None)
@given(moments, st.sampled_from(("0 */15 * * * *", "0 0 * * * *", "0 * * * * *", "*/20 5 * * * *")))
def test_in_utc_the_times_are_the_library_s(at: datetime, expression: str) -> None:
    library = CronSim(expression, at)
    assert following(Schedule(expression, UTC), at, 5) == [next(library) for _ in range(5)]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe"])
@pytest.mark.parametrize(
    ("first", "days"), [(datetime(2026, 3, 25, tzinfo=UTC), 14), (datetime(2026, 10, 2, tzinfo=UTC), 24)]
)
def test_intervals_go_on_through_the_hour_that_comes_twice_and_the_one_that_never_comes(
    zone: str, first: datetime, days: int
) -> None:
    times = following(Schedule("0 */15 * * * *", ZoneInfo(zone)), first.replace(tzinfo=UTC), 4 * 24 * days)
    assert {after - before for before, after in pairwise(times)} == {timedelta(minutes=15)}


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("", "six fields"), ("0 3 * * *", "six fields"), ("0 " * 7, "six fields"), ("0 " * 60, "six fields"),
        ("@hourly", "six fields"), ("61 * * * * *", "second"), ("0 0 24 * * *", "hour"),
        ("0 0 0 0 * *", "day-of-month"),
        ("0 0 0 * 13 *", "month"), ("0 0 0 * * 8", "day-of-week"), ("0 */0 * * * *", "minute"),
        ("٣ * * * * *", "second"),
        ("0 0 0 30 2 *", "day-of-month"), ("0 0 0 * * ²L", "day-of-week"), ("9" * 90 + " * * * * *", "second"),
    ],
)  # fmt: skip
def test_what_is_no_schedule_is_refused_with_a_hint(expression: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as raised:
        Schedule(expression, UTC, "$.scheduler.jobs.x")
    assert "second minute hour day month weekday" in raised.value.hint and raised.value.details["path"].endswith(".x")


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.text("0123456789*/,-#LW SUNMON ", max_size=30), st.integers(-(2**62), 2**62))
def test_any_text_is_a_schedule_or_is_refused(expression: str, now: int) -> None:
    try:
        schedule = Schedule(expression, UTC)
    except InvalidRequest:
        return
    after = schedule.next_us(now)
    assert after is None or after > now


def test_off_is_no_schedule_and_no_calendar_goes_on_for_ever() -> None:
    assert Schedule("off", UTC).next_us(0) is None
    assert Schedule("0 0 0 * * *", UTC).next_us(253_402_300_799_000_000) is None
    assert Schedule("0 0 0 * * *", UTC).next_us(-(2**62)) is None
