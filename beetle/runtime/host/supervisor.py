"""What a service manager is told (sd_notify(3)): that the daemon is ready, does its work, and ends."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Mapping

log = logging.getLogger("beetle.daemon")

NOTIFY_SECONDS = 5.0
STUCK_S = 30.0
"""A write that has not moved for so long is taken for stuck."""


class Notifier:
    """Datagrams to $NOTIFY_SOCKET; nothing where it is not set.

    The socket is made once: a daemon that has no descriptor left must still be able to say that it lives, and to end.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        address = env.get("NOTIFY_SOCKET") or ""
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket: socket.socket | None = None
        if address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            # A supervisor that does not read must not keep the daemon from ending.
            self._socket.settimeout(NOTIFY_SECONDS)

    def say(self, state: str) -> None:
        """Send one message, such as `READY=1`."""
        if self._socket is None:
            return
        try:
            self._socket.sendto(state.encode(), self._address)
        except (FileNotFoundError, ConnectionRefusedError):
            pass  # whoever waited for READY, `beetle start` for one, may be gone by now
        except OSError as error:
            why = error.strerror or str(error)
            log.warning("systemd could not be told %s: %s", state, why, extra={"event": "notify_failed"})

    def close(self) -> None:
        """Say no more."""
        if self._socket is not None:
            self._socket.close()


class Watchdog:
    """Says at half of $WATCHDOG_USEC that the daemon lives, each time that it answers.

    A daemon that does not answer is not told of: the service manager kills it then, and starts it again. Nothing that
    was acknowledged is lost by that.
    """

    def __init__(self, env: Mapping[str, str], notifier: Notifier, answers: Callable[[], bool]) -> None:
        """`answers` may take its time, or never come back."""
        self._notifier = notifier
        self._answers = answers
        self._end = threading.Event()
        period = env.get("WATCHDOG_USEC", "")
        # systemd names the process that it watches; a parent's variables are not for its children.
        mine = env.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        if mine and period.isdecimal() and int(period):
            args = (int(period) / 2_000_000,)
            threading.Thread(target=self._watch, args=args, name="beetle-watchdog", daemon=True).start()

    def stop(self) -> None:
        """Say no more; systemd watches no daemon that has said STOPPING."""
        self._end.set()

    def _watch(self, seconds: float) -> None:
        silent = False
        while not self._end.wait(seconds):
            if self._answers():
                self._notifier.say("WATCHDOG=1")
                silent = False
            elif not silent:
                silent = True
                log.error("the daemon does not do its work: the watchdog is silent", extra={"event": "watchdog_silent"})
