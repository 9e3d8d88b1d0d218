"""The filter of the log: words with a name in front of them, as `topic:device since:2h`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from beetle.contracts.errors import InvalidRequest

NAMES = {
    "topic": "topic", "operation": "operation", "op": "operation", "principal": "principal", "by": "principal",
    "since": "since", "until": "until",
}  # fmt: skip
AGO = re.compile(r"(\d{1,6})([smhd])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2})?")


class FilterNotUnderstood(InvalidRequest):
    """A word of the filter says nothing that the log could be asked for."""

    template = "the filter {word!r}: {reason}"
    hint_template = "as in: topic:device op:device.add by:operator since:2h until:2026-11-21T10:00Z"


class LogFilter(NamedTuple):
    """What rows must be."""

    topics: tuple[str, ...] = ()
    operation: str | None = None
    principal: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def arguments(self) -> dict[str, Any]:
        """As event_log.read takes it."""
        given = {name: value for name, value in self._asdict().items() if value}
        return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in given.items()}


def read_filter(text: str, now: datetime | None = None) -> LogFilter:
    """What a person typed; a bare word with a dot in it is an operation, another one is a topic.

    Raises:
        FilterNotUnderstood: for a word that is none of it.
    """
    found = LogFilter()
    for word in text.split():
        name, colon, value = word.partition(":")
        kind = NAMES.get(name) if colon else "operation" if "." in word else "topic"
        if kind is None:
            raise FilterNotUnderstood(word=word, reason=f"rows are not filtered by {name!r}")
        value = value if colon else word
        if not value:
            raise FilterNotUnderstood(word=word, reason="nothing follows the colon")
        if kind == "topic":
            found = found._replace(topics=tuple(dict.fromkeys((*found.topics, *value.split(",")))))
        elif kind in ("since", "until"):
            found = found._replace(**{kind: _time(word, value, now or datetime.now(UTC))})
        else:
            found = found._replace(**{kind: value})
    return found


def _time(word: str, value: str, now: datetime) -> datetime:
    """A moment: so long ago (`2h`), today at a time (`10:30`), or a date or time of ISO 8601; all of it UTC."""
    ago = AGO.fullmatch(value)
    try:
        if ago is not None:
            return now - timedelta(**{UNITS[ago[2]]: int(ago[1])})
        if CLOCK.fullmatch(value):
            hours, minutes, *rest = (int(part) for part in value.split(":"))
            return now.replace(hour=hours, minute=minutes, second=rest[0] if rest else 0, microsecond=0)
        found = datetime.fromisoformat(value.replace("z", "Z"))
    except (ValueError, OverflowError):
        raise FilterNotUnderstood(word=word, reason="that is not a time") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
