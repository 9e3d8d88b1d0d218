"""What a sidecar says on its standard error, into the daemon's log: masked, and at most so many lines in a time."""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from collections.abc import Callable

from beetle.replication.secrets import Secrets

log = logging.getLogger("beetle.replication")

LINE_BYTES = 16 * 1024
LEVELS = {"ERROR": logging.WARNING, "WARN": logging.INFO}
LOG_PAUSE_S = 30.0
LOG_LINES = 20
"""Within LOG_PAUSE_S a message is told once, and so many different ones; the rest is counted."""


class SidecarLog:
    """One sidecar's log. `said` are its last warnings, those among them that were left out of the daemon's log."""

    def __init__(self, secrets: Secrets, clock: Callable[[], float] = time.monotonic) -> None:
        self.said: deque[str] = deque(maxlen=4)
        self._secrets = secrets
        self._clock = clock
        self._rest = b""
        self._told: set[str] = set()
        self._left_out = 0
        self._began = clock()

    def take(self, part: bytes) -> None:
        """The next bytes that it wrote."""
        *lines, self._rest = (self._rest + part)[-4 * LINE_BYTES :].split(b"\n")
        for line in lines:
            self._pass_on(line)

    def settle(self, *, ended: bool = False) -> None:
        """Once the time is over, or the sidecar has `ended`: tell how much was left out, and begin anew."""
        now = self._clock()
        if not ended and now - self._began < LOG_PAUSE_S:
            return
        if self._left_out:
            log.warning("litestream: %d more messages within %.0f s were left out", self._left_out, now - self._began)
        self._told.clear()
        self._left_out, self._began = 0, now

    def _pass_on(self, line: bytes) -> None:
        """What it could not do, and why. It names files and addresses, never content."""
        try:
            told = json.loads(line)
            words = f"{told.get('msg', '')}: {told['error']}" if told.get("error") else str(told.get("msg", ""))
            level = LEVELS.get(told.get("level", ""), logging.DEBUG)
        except (ValueError, TypeError, AttributeError, RecursionError):
            words, level = line.decode(errors="replace"), logging.WARNING
        words = self._secrets.masked(words.strip())[:500]
        if not words:
            return
        if level == logging.WARNING:
            self.said.append(words)
        self.settle()
        if words[:80] in self._told or not log.isEnabledFor(level):
            return
        if len(self._told) == LOG_LINES:
            self._left_out += 1
            return
        self._told.add(words[:80])
        log.log(level, "litestream: %s", words)
