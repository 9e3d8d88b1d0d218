"""Progress of long calls, as reported to the waiting caller."""

from __future__ import annotations

from collections.abc import Callable

from beetle.contracts.names import TopicName
from beetle.named_tuple import NamedTuple

PROGRESS = "progress"
"""The event that reports the progress of a call."""
PROGRESS_TOPIC: TopicName = "lifecycle"
"""The topic of this event; it is sent on the connection of the call only."""


class ProgressStep(NamedTuple):
    """Progress of a call: step `number` of `steps`, with `done` of `of` items done; `of` is 0 if the total is unknown.

    A step's things are of one kind: rows, bytes or pages. Steps take unequal times.
    """

    name: str
    number: int
    steps: int
    done: int = 0
    of: int = 0


OnProgress = Callable[[ProgressStep], None]
"""A callback that gets the progress of a call. It must be quick and raise nothing."""
