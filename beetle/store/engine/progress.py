"""Says how far work is while it runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from beetle.contracts.progress import OnProgress, ProgressStep

T = TypeVar("T")

BETWEEN_S = 0.25
"""How often what is done of a step is told at most: a person reads no faster."""
EVERY = 1024
"""After how many rows a loop over all of them says where it is."""


class Progress:
    """Of one call, on the thread that does the work. Nothing waits for whoever is told."""

    def __init__(self, on_progress: OnProgress | None = None) -> None:
        """`on_progress` is None where nobody listens."""
        self._on_progress = on_progress
        self._names: tuple[str, ...] = ()
        self._at = ProgressStep("", 0, 0)
        self._next = 0.0

    def plan(self, names: Iterable[str]) -> None:
        """The steps to come, in their order."""
        self._names = tuple(names)

    def plans(self, name: str) -> bool:
        """Whether a step of that name is planned."""
        return name in self._names

    def step(self, name: str, of: int = 0) -> None:
        """One of the planned steps begins; told at once.

        Raises:
            ValueError: nobody has planned it.
        """
        self._at = ProgressStep(name, self._names.index(name) + 1, len(self._names), 0, of)
        self._say(time.monotonic())

    def at(self, done: int, of: int | None = None) -> None:
        """So much of the step is done; told unless something was told just now."""
        if self._on_progress is None or (now := time.monotonic()) < self._next:
            return
        self._at = self._at._replace(done=done, of=self._at.of if of is None else of)
        self._say(now)

    def through(self, things: Iterable[T], before: int = 0) -> Iterator[T]:
        """The things of a step, each told of as it comes; `before` of the step were done earlier."""
        for done, each in enumerate(things, before):
            self.at(done)
            yield each

    def _say(self, now: float) -> None:
        if self._on_progress is not None:
            self._next = now + BETWEEN_S
            self._on_progress(self._at)
