"""The time zone in which schedules are read: the configured one, else this machine's."""

from __future__ import annotations

import os
from datetime import UTC, tzinfo

from beetle.contracts.errors import InvalidRequest

LOCALTIME = "/etc/localtime"
FOLDER = "/zoneinfo/"
UTC_NAMES = ("UTC", "Etc/UTC", "UTC0")


def zone_of(name: str | None, variable: str = "") -> tzinfo:
    """The zone of a name, this machine's for None.

    Args:
        variable: $TZ, which outranks /etc/localtime; neither can be read: UTC, as the C library has it.

    Raises:
        InvalidRequest: this machine knows no zone of that name.
    """
    if name in UTC_NAMES:
        return UTC
    if name is None:
        return _own_zone(variable.removeprefix(":"))
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        raise _unknown(name) from None


def _own_zone(variable: str) -> tzinfo:
    name = variable
    place = os.path.realpath(name if name.startswith("/") else LOCALTIME)
    if not name or name.startswith("/"):
        name = place.partition(FOLDER)[2]
    if name in UTC_NAMES:
        return UTC
    from zoneinfo import ZoneInfo

    try:
        if name:
            return ZoneInfo(name)
        with open(place, "rb") as file:
            return ZoneInfo.from_file(file, key="localtime")
    except (OSError, ValueError, KeyError):
        return UTC


def _unknown(name: str) -> InvalidRequest:
    return InvalidRequest(
        reason=f"$.scheduler.time_zone: this machine knows no time zone {name!r}",
        hint='give a name such as "Europe/Berlin" or "UTC"; the package tzdata brings the zones',
        path="$.scheduler.time_zone",
    )
