"""What the runtime has done since it started: calls, errors and times by operation, and each caller's last projection.

Times are kept in a fixed number of buckets, each a quarter of an octave wide: 352 bytes for an operation that was
asked.
"""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar

from beetle.contracts.operations import BY_NAME
from beetle.named_tuple import NamedTuple

if TYPE_CHECKING:
    from beetle.contracts.memory import ProjectionAudit

FIRST_BIT = 4
"""Times below 16 µs share the first bucket."""
OCTAVES = 22
STEPS = 4
BUCKETS = OCTAVES * STEPS
EDGES = (4, 6, 8, 10, 12, 14, 16, 18)
"""Octaves at whose ends the calls are counted up for a histogram: from 0.5 ms in steps of four to 8 s."""
PRINCIPALS, PROJECTIONS = 128, 8
"""Principals whose last projections are remembered, the last ones to ask; and how many of each, one a scope."""
UNKNOWN = "unknown"
"""Stands for every operation that there is not: a caller must not be able to make up counters."""

Asker = tuple[str, ...]
K = TypeVar("K")
V = TypeVar("V")


class Measured(NamedTuple):
    """One operation's figures; times in milliseconds."""

    operation: str
    calls: int
    errors: dict[str, int]
    quantiles: tuple[float, float, float]
    longest: float
    total_s: float = 0.0
    within: tuple[tuple[float, int], ...] = ()
    """How many calls ended within so many seconds, each of `EDGES`."""


class Projected(NamedTuple):
    """A projection that was given out; `at` in microseconds."""

    audit: ProjectionAudit
    at: int


class _Counters:
    __slots__ = ("buckets", "calls", "errors", "longest", "total")

    def __init__(self) -> None:
        self.calls = 0
        self.errors: dict[str, int] = {}
        self.buckets = array("I", bytes(4 * BUCKETS))
        self.longest = self.total = 0


class Metrics:
    """Counters of one runtime; every thread may note."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._operations: dict[str, _Counters] = {}
        self._projections: OrderedDict[str, OrderedDict[Asker, Projected]] = OrderedDict()

    def note(self, operation: str, seconds: float, error: str | None) -> None:
        """One call has ended; `error` is the key of its error."""
        name = operation if operation in BY_NAME else UNKNOWN
        micros = max(0, int(seconds * 1_000_000))
        bucket = bucket_of(micros)
        with self._guard:
            found = self._operations.get(name)
            if found is None:
                found = self._operations[name] = _Counters()
            found.calls += 1
            found.buckets[bucket] += 1
            found.total += micros
            if micros > found.longest:
                found.longest = micros
            if error is not None:
                found.errors[error] = found.errors.get(error, 0) + 1

    def note_projection(self, asker: Asker, audit: ProjectionAudit, at: int) -> None:
        """What went into the block that a caller was just given. A principal, the asker's first name, has places of
        its own: however many scopes it asks from, it takes none from another."""
        with self._guard:
            own = self._projections.setdefault(asker[0], OrderedDict())
            _remember(own, asker, Projected(audit, at), PROJECTIONS)
            _remember(self._projections, asker[0], own, PRINCIPALS)

    def last_projection(self, asker: Asker) -> Projected | None:
        """What the caller was last given, where that is still known."""
        with self._guard:
            own = self._projections.get(asker[0])
            return None if own is None else own.get(asker)

    def measured(self) -> list[Measured]:
        """The figures of every operation that was asked, by name."""
        with self._guard:
            return [_measured(name, found) for name, found in sorted(self._operations.items())]


def _remember(places: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    """Put it last, and let the first go where there are too many."""
    places[key] = value
    places.move_to_end(key)
    if len(places) > most:
        places.popitem(last=False)


def bucket_of(micros: int) -> int:
    """The bucket of a time in microseconds."""
    octave = micros.bit_length() - 1 - FIRST_BIT
    if octave < 0:
        return 0
    step = (micros >> (octave + FIRST_BIT - 2)) & (STEPS - 1)
    return min(octave * STEPS + step, BUCKETS - 1)


def upper_edge(bucket: int) -> int:
    """The least number of microseconds that is in no bucket up to this one."""
    octave, step = divmod(bucket, STEPS)
    return (STEPS + step + 1) << (octave + FIRST_BIT - 2)


def _measured(name: str, found: _Counters) -> Measured:
    quantiles = tuple(_quantile(found, share) for share in (0.5, 0.9, 0.99))
    within = tuple(_within(found, octave) for octave in EDGES)
    total_s = found.total / 1_000_000
    return Measured(name, found.calls, dict(found.errors), quantiles, found.longest / 1000, total_s, within)  # type: ignore[arg-type]


def _within(found: _Counters, octave: int) -> tuple[float, int]:
    """The seconds at the end of an octave, and how many calls ended within them."""
    end = (octave + 1) * STEPS
    return upper_edge(end - 1) / 1_000_000, sum(found.buckets[:end])


def _quantile(found: _Counters, share: float) -> float:
    """Milliseconds within which that share of the calls ended: a bucket's upper edge, never above the longest."""
    wanted, seen = share * found.calls, 0
    for bucket, count in enumerate(found.buckets):
        seen += count
        if count and seen >= wanted:
            return min(upper_edge(bucket), found.longest) / 1000
    return found.longest / 1000
