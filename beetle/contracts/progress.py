"""How far work is that takes long: what a caller is told of it while it waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from beetle.contracts.control import Topic

PROGRESS = "progress"
"""The event that says how far a call is."""
PROGRESS_TOPIC: Topic = "lifecycle"
"""The topic under which it is told on the connection of the call."""


class Step(NamedTuple):
    """Where work is: in the `number`th of its `steps`, with `done` of `of` things done; `of` is 0 where nobody counts.

    A step's things are of one kind: rows, bytes or pages. Steps take unequal times.
    """

    name: str
    number: int
    steps: int
    done: int = 0
    of: int = 0


Tell = Callable[[Step], None]
"""Is told how far a call is: quick, and raises nothing."""
