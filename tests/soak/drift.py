"""Figures over time: how fast one grows, which bound it must keep, and how long ago a timer last did its work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

HOUR_S = 3600.0
WARM_UP = 0.25
"""Part of the run that caches and pools take to fill, and that no drift is counted of."""
SHORTEST_S = 600.0
"""A shorter run tells nothing of an hour."""


class Bound(NamedTuple):
    """What a figure must keep. `most` holds at any time. It drifts where it has grown by more than `rise` between the
    first and the last fifth after the warm-up, and by more than `per_hour` an hour. None: it is told, and has no bound.
    """

    name: str
    unit: str
    most: float | None = None
    per_hour: float | None = None
    rise: float = 0.0


class Found(NamedTuple):
    """One figure's way through the run. `per_hour` is the slope after the warm-up."""

    bound: Bound
    first: float
    last: float
    highest: float
    per_hour: float
    rise: float
    seconds: float

    @property
    def failure(self) -> str | None:
        name, most, limit = self.bound.name, self.bound.most, self.bound.per_hour
        if most is not None and self.highest > most:
            return f"{name} was {self.highest:.6g} {self.bound.unit}, above {most:.6g}"
        grows = limit is not None and self.per_hour > limit and self.rise > self.bound.rise
        if grows and self.seconds >= SHORTEST_S:
            return f"{name} grows by {self.per_hour:.3g} {self.bound.unit} an hour, above {limit:.3g}"
        return None

    def plain(self) -> dict[str, Any]:
        return {**self.bound._asdict(), "first": self.first, "last": self.last, "highest": self.highest,
                "drift_per_hour": self.per_hour, "risen": self.rise, "failure": self.failure}  # fmt: skip


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Growth a second: the median of the slopes between points half a run apart, so that no single one decides."""
    half = len(points) // 2
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(points, points[half:], strict=False) if b[0] > a[0]]
    return median(slopes) if slopes else 0.0


def found(bound: Bound, points: Sequence[tuple[float, float]]) -> Found:
    """What became of a figure; `points` are seconds and values, at least one."""
    warm = points[int(len(points) * WARM_UP) :]
    fifth = max(1, len(warm) // 5)
    values = [value for _, value in warm]
    rise = median(values[-fifth:]) - median(values[:fifth])
    highest = max(value for _, value in points)
    seconds = points[-1][0] - points[0][0]
    return Found(bound, points[0][1], points[-1][1], highest, slope(warm) * HOUR_S, rise, seconds)


class Timer:
    """Something that must happen again and again: within `limit_s` of the last time, whatever the clock does."""

    def __init__(self, name: str, period_s: float, limit_s: float, now: float) -> None:
        self.name, self.period_s, self.limit_s = name, period_s, limit_s
        self.count, self.longest_s = 0, 0.0
        self._seen: Any = None
        self._since = now

    def look(self, state: Any, now: float) -> None:
        """`state` is another one when it has happened since the last look; times are monotonic."""
        self.longest_s = max(self.longest_s, now - self._since)
        if state != self._seen:
            self.count += self._seen is not None
            self._seen, self._since = state, now

    @property
    def failure(self) -> str | None:
        if self.longest_s <= self.limit_s:
            return None
        return f"{self.name} did not happen for {self.longest_s:.0f} s, and is to happen every {self.period_s:.0f} s"

    def plain(self) -> dict[str, Any]:
        return {"name": self.name, "period_s": self.period_s, "limit_s": self.limit_s, "count": self.count,
                "longest_s": self.longest_s, "failure": self.failure}  # fmt: skip
