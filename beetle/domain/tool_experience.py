"""When what was observed of a tool becomes experience that a host is told of, and how good it is. No clock, no I/O.

A tool is known when it succeeded in two sittings: two turns, or two feedback calls at least a minute apart where no
turn is named. Its score is (s + 1) / (s + f + 2), with s the uses that succeeded and f the others: 0.75 after two
successes, and each failure, refusal or break-off lowers it.
"""

from __future__ import annotations

from collections.abc import Iterable

from beetle.domain.lexical import utc_time
from beetle.named_tuple import NamedTuple

MINUTE_US = 60_000_000
SITTINGS = 2
"""Sittings in which a tool must have succeeded: one success may be luck, or one agent's word."""
RECENT = 32
"""A tool is judged by its last uses under its present schema, so that what was mended is not held against it."""


class Use(NamedTuple):
    """One use of a tool. `turn` names its turn, None where none was named; `at` in microseconds."""

    outcome: str
    turn: str | None
    at: int


class Experience(NamedTuple):
    """What the uses of one tool under one schema come to. `last_success` in microseconds."""

    succeeded: int
    failed: int
    sittings: int
    last_success: int

    @property
    def known(self) -> bool:
        """Whether a host is told of it."""
        return self.sittings >= SITTINGS

    @property
    def score(self) -> float:
        """Between 0 and 1; higher is better."""
        return (self.succeeded + 1) / (self.succeeded + self.failed + 2)

    @property
    def reason(self) -> str:
        """A sentence out of the counts."""
        uses = self.succeeded + self.failed
        day = utc_time(self.last_success).date()
        return f"Succeeded in {self.succeeded} of its last {uses} uses, in {self.sittings} sittings; last on {day}."


def weigh(uses: Iterable[Use]) -> Experience:
    """What the uses come to, in whatever order they are."""
    ordered = sorted(uses, key=lambda use: use.at)
    good = [use for use in ordered if use.outcome == "succeeded"]
    return Experience(
        succeeded=len(good),
        failed=len(ordered) - len(good),
        sittings=_sittings(good),
        last_success=good[-1].at if good else 0,
    )


def _sittings(good: list[Use]) -> int:
    """Turns, each once; and of the uses without one those that are a minute from every other sitting's first use."""
    first: dict[str, int] = {}
    for use in good:
        if use.turn is not None:
            first.setdefault(use.turn, use.at)
    starts = list(first.values())
    for use in good:
        if use.turn is None and all(abs(use.at - start) >= MINUTE_US for start in starts):
            starts.append(use.at)
    return len(starts)
