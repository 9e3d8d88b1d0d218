from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.contracts.codec import convert_request, format_us, from_us, to_us
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.memory import MemoryRecallRequest

MODEST = settings(deadline=None, max_examples=150)
FIRST = -62_135_596_800_000_000
LAST = 253_402_300_799_999_999
moments = st.integers(FIRST, LAST)
zones = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


def read(text: str) -> int:
    """Microseconds of a time as a request gives it."""
    request = convert_request({"query": "x", "since": text}, MemoryRecallRequest)
    assert request.since is not None
    return to_us(request.since)


@MODEST
@given(moments)
def test_a_moment_comes_back_from_its_text(at: int) -> None:
    assert to_us(from_us(at)) == at
    assert read(format_us(at)) == at


@MODEST
@given(moments)
def test_a_time_on_the_way_out_is_rfc_3339_in_utc_with_no_idle_digits(at: int) -> None:
    text = format_us(at)
    assert text.endswith("Z") and text[10] == "T"
    assert len(text.partition("-")[0]) == 4
    assert ("." in text) is (at % 1_000_000 != 0)
    assert not text.removesuffix("Z").endswith("0") or "." not in text
    assert datetime.fromisoformat(text) == from_us(at)


@MODEST
@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 12, 30)), zones)
def test_the_zone_of_a_time_does_not_matter(at: datetime, zone: timezone) -> None:
    here = at.replace(tzinfo=zone)
    assert to_us(here) == to_us(here.astimezone(UTC))
    assert read(here.isoformat()) == to_us(here)


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (1_500_000, "1970-01-01T00:00:01.5Z"),
        (10_000_000, "1970-01-01T00:00:10Z"),
        (FIRST, "0001-01-01T00:00:00Z"),
        (LAST, "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_times_are_written_as_people_expect(at: int, text: str) -> None:
    assert format_us(at) == text


@pytest.mark.parametrize(
    "text", ["2024-05-01", "2024-05-01T10:00:00", "10:00:00Z", "yesterday", "2024-13-01T00:00:00Z", "1714557600", ""]
)
def test_a_time_without_date_or_zone_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(text)
    assert caught.value.details["path"] == "$.args.since"


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_that_utc_cannot_write_is_refused(text: str) -> None:
    """It could be stored, and no report could ever show it."""
    with pytest.raises(InvalidRequest, match="1 to 9999"):
        read(text)
