"""Which snapshots a policy keeps, and when it will have removed those that there are.

Snapshots are taken in the order in which they were made, never by their times: a clock may have gone back between two
of them. Their times only say to which hour, day and week each belongs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal

from beetle.named_tuple import NamedTuple

HOUR_US = 3_600_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, tzinfo=UTC)
"""Times beyond count as these: a zone's offset must not lead out of the calendar."""

Rule = Literal["newest", "hourly", "daily", "weekly"]
Bucket = tuple[int, ...]


class Policy(NamedTuple):
    """How many are kept: of the last ones made, and of the last hours, days and weeks that have any, the newest of
    each. The last one made is always kept.
    """

    newest: int
    hourly: int
    daily: int
    weekly: int


def reasons(held: Sequence[int], policy: Policy, zone: tzinfo) -> list[tuple[Rule, ...]]:
    """Why each is kept; for what the policy removes, nothing.

    Args:
        held: the times of snapshots in microseconds since the epoch, the last one made first.
        zone: whose days and weeks are meant.
    """
    found: list[list[Rule]] = [[] for _ in held]
    for place in range(min(len(held), max(1, policy.newest))):
        found[place].append("newest")
    for rule in RULES:
        for place in _kept(held, rule, _count(policy, rule), zone):
            found[place].append(rule)
    return [tuple(each) for each in found]


def gone_at(
    held: Sequence[int], policy: Policy, zone: tzinfo, now: int, next_us: Callable[[int], int | None]
) -> int | None:
    """When the last of these snapshots will have been removed, if the policy is applied after each one that is made
    from now on; microseconds, None when that is never.

    Args:
        held: as in `reasons`.
        next_us: the time of the first snapshot that is made after a time.
    """
    made: list[int] = []
    while len(made) < max(1, policy.newest):
        at = next_us(made[-1] if made else now)
        if at is None:
            return None
        made.append(at)
    # One that the policy has no reason for goes with the first run.
    ends = [made[max(1, policy.newest) - place - 1] for place in range(min(len(held), max(1, policy.newest)))]
    ends.append(made[0])
    for rule in RULES:
        count = _count(policy, rule)
        found = _ends(held, rule, count, zone, now, next_us)
        if found is None:
            return None
        ends.extend(found)
    return max(ends)


def _ends(
    held: Sequence[int], rule: Rule, count: int, zone: tzinfo, now: int, next_us: Callable[[int], int | None]
) -> list[int] | None:
    """When a rule lets go of each that it keeps: another of its hour, day or week is made, or enough later ones."""
    kept = [_bucket(held[place], rule, zone) for place in _kept(held, rule, count, zone)]
    replaced: dict[Bucket, int] = {}
    fresh: list[int] = []
    at = now
    while kept and len(fresh) < count:
        found = next_us(at)
        if found is None:
            return None
        bucket = _bucket(found, rule, zone)
        if bucket in kept:
            replaced.setdefault(bucket, found)
        else:
            fresh.append(found)
        # The others of that bucket change nothing.
        at = _last_us(found, rule, zone)
    return [min(fresh[count - rank - 1], replaced.get(each, LAST_US)) for rank, each in enumerate(kept)]


def _kept(held: Sequence[int], rule: Rule, count: int, zone: tzinfo) -> list[int]:
    """The places of those that a rule keeps: the last one made of each of the last buckets that have any."""
    seen: set[Bucket] = set()
    found: list[int] = []
    for place, at in enumerate(held):
        bucket = _bucket(at, rule, zone)
        if bucket not in seen:
            if len(seen) == count:
                break
            seen.add(bucket)
            found.append(place)
    return found


def _count(policy: Policy, rule: Rule) -> int:
    return policy[Policy._fields.index(rule)]


def _bucket(at: int, rule: Rule, zone: tzinfo) -> Bucket:
    if rule == "hourly":
        return (at // HOUR_US,)
    local = _moment(at).astimezone(zone)
    return local.isocalendar()[:2] if rule == "weekly" else (local.year, local.month, local.day)


def _last_us(at: int, rule: Rule, zone: tzinfo) -> int:
    """The last microsecond of a time's hour, day or week."""
    if rule == "hourly":
        return (at // HOUR_US + 1) * HOUR_US - 1
    local = _moment(at).astimezone(zone)
    days = 7 - local.weekday() if rule == "weekly" else 1
    midnight = datetime(local.year, local.month, local.day, tzinfo=zone) + timedelta(days=days)
    return max(at, _us(midnight.astimezone(UTC)) - 1)


def _moment(at: int) -> datetime:
    return min(max(EPOCH + timedelta(microseconds=min(max(at, FIRST_US), LAST_US)), FIRST), LAST)


def _us(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


RULES: tuple[Rule, ...] = ("hourly", "daily", "weekly")
FIRST_US, LAST_US = _us(FIRST), _us(LAST)
