"""How much slower a core is now than an undisturbed one of the machine by which budgets were set.

A second of work is not the same everywhere: two cores share caches and a clock, and a virtual machine shares them with
its neighbours. So a fixed piece of work is timed again and again beside the tests, and theirs is divided by the result.
"""

from __future__ import annotations

import json
import time
from collections import deque
from statistics import median

UNDISTURBED_S = 0.00085
"""CPU seconds of the piece on an undisturbed core."""
EVERY_S = 2.0
REMEMBERED = 9
TEXT = json.dumps([{"name": f"row {n}", "n": n, "words": ["kettle", "window"] * 3} for n in range(60)])


def piece() -> float:
    """CPU seconds that the fixed piece of work takes now."""
    began = time.process_time()
    for _ in range(10):
        rows = json.loads(TEXT)
        found: dict[int, list[str]] = {}
        for row in rows:
            found.setdefault(row["n"] % 7, []).append(" ".join(row["words"]).upper())
        "".join(json.dumps(each) for each in sorted(found.items()))
    return time.process_time() - began


class Pace:
    """Times the piece every two seconds at most, and remembers the last nine."""

    def __init__(self) -> None:
        self._pieces: deque[float] = deque(maxlen=REMEMBERED)
        self._next = 0.0

    def slowness(self) -> float:
        """How many times longer work takes now, at least 1."""
        if time.monotonic() >= self._next:
            self._pieces.append(piece())
            self._next = time.monotonic() + EVERY_S
        return max(1.0, median(self._pieces) / UNDISTURBED_S)
