"""A request that is worked at: whether it was cancelled, what ends it, and how far it is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from beetle.contracts.progress import ProgressStep
from beetle.mcp.messages import RpcId, notification

Send = Callable[[dict[str, Any]], None]


class Cancelled(Exception):
    """The host wants no answer any more."""


class Running:
    """One request. `ender` is what breaks off the work that it waits for now."""

    def __init__(self, request_id: RpcId) -> None:
        self.id = request_id
        self._guard = threading.Lock()
        self._cancelled = threading.Event()
        self._ender: Callable[[], None] | None = None

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """End it, from another thread."""
        with self._guard:
            self._cancelled.set()
            ender = self._ender
        if ender is not None:
            ender()

    def ends_by(self, ender: Callable[[], None] | None) -> None:
        """What `cancel` is to call from now on.

        Raises:
            Cancelled: it was called already.
        """
        with self._guard:
            self._ender = ender
            if ender is not None and self._cancelled.is_set():
                raise Cancelled

    def pause(self, seconds: float) -> None:
        """Wait, but no longer than until it is cancelled.

        Raises:
            Cancelled: it is.
        """
        if self._cancelled.wait(seconds):
            raise Cancelled


class ProgressTold:
    """Sends notifications of progress: each further than the one before, as the protocol wants it."""

    def __init__(self, token: RpcId, send: Send, *, worded: bool) -> None:
        self._token = token
        self._send = send
        self._worded = worded
        self._last = -1.0

    def __call__(self, step: ProgressStep) -> None:
        share = min(1.0, step.done / step.of) if step.of else 0.0
        progress = round(step.number - 1 + share, 3)
        if progress <= self._last:
            return
        self._last = progress
        params: dict[str, Any] = {"progressToken": self._token, "progress": progress, "total": step.steps}
        if self._worded:
            counted = f" ({step.done} of {step.of})" if step.of else ""
            params["message"] = f"{step.name.replace('_', ' ')}{counted}"
        self._send(notification("notifications/progress", params))
