"""Times as other programs write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECONDS = 10**11
"""From here on a number of seconds would be after the year 5000: milliseconds are meant."""


def moment(value: datetime | float | None) -> datetime | None:
    """A time with a zone: a number is seconds or milliseconds since 1970, a time without a zone is UTC; None where the
    number is no time of the years that a store takes."""
    if value is None or isinstance(value, datetime):
        return value if value is None or value.tzinfo is not None else value.replace(tzinfo=UTC)
    try:
        return EPOCH + timedelta(seconds=value / 1000 if abs(value) >= MILLISECONDS else value)
    except (OverflowError, ValueError):
        return None
