"""Time and ids that can be played again: what a runtime under test sees of both, and the steps that it was asked."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from beetle.runtime.host.dependencies import Dependencies

START_US = 1_750_000_000_000_000
STEP_US = 1_000
DAY_US = 86_400_000_000


class Recorded:
    """A clock that stands still until it is told to go on, and ids that follow from a seed alone.

    The clock does not move by being looked at: how often a backend's own threads look is not what is to be compared.
    """

    def __init__(self, seed: str = "recorded", start: int = START_US) -> None:
        self.now = start
        self.drawn = 0
        self._seed = seed
        self._lock = threading.Lock()

    def clock(self) -> int:
        return self.now

    def go_on(self, microseconds: int = STEP_US) -> None:
        """Let time pass."""
        self.now += microseconds

    def ids(self, count: int) -> bytes:
        """The next bytes of the recording."""
        with self._lock:
            self.drawn += 1
            return hashlib.shake_256(f"{self._seed}/{self.drawn}".encode()).digest(count)

    def dependencies(self, **more: Any) -> Dependencies:
        """What a runtime is opened with to live in this recording."""
        return Dependencies(clock=self.clock, ids=self.ids, elapsed=self.clock, **more)


@dataclass(frozen=True)
class Earlier:
    """Stands in a step's arguments for what a place answered before, and no other place would."""

    name: str


@dataclass(frozen=True)
class Request:
    """One request of a run. `keep` says what of its report later steps stand on: names to paths (`records.0.ref`)."""

    op: str
    args: Mapping[str, Any] = field(default_factory=dict)
    who: str = "owner"
    owner: str = "ann"
    chat: str = "c1"
    key: str | None = None
    keep: Mapping[str, str] = field(default_factory=dict)
    device: str | None = None
    """A device that presents what its place keeps as `device_key`."""
    device_key: str = ""
    after: int = STEP_US
    """Microseconds that pass before it."""

    def to_json(self) -> str:
        """The step as one line, which a process of its own can be given."""
        return json.dumps(self.__dict__, default=_plain)

    @staticmethod
    def from_json(line: str) -> Request:
        return Request(**json.loads(line, object_hook=_kept))


def _plain(value: Any) -> Any:
    if isinstance(value, Earlier):
        return {"$kept": value.name}
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    return dict(value) if isinstance(value, Mapping) else list(value)


def _kept(found: dict[str, Any]) -> Any:
    if set(found) == {"$kept"}:
        return Earlier(found["$kept"])
    return bytes.fromhex(found["$bytes"]) if set(found) == {"$bytes"} else found


def filled(value: Any, kept: Mapping[str, Any]) -> Any:
    """Arguments with what a place kept in the place of its names."""
    if isinstance(value, Earlier):
        return kept[value.name]
    if isinstance(value, Mapping):
        return {name: filled(each, kept) for name, each in value.items()}
    return [filled(each, kept) for each in value] if isinstance(value, list | tuple) else value
