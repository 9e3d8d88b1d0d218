"""Litestream's control socket: HTTP over a Unix socket, in the few words that are needed of it."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

from beetle.named_tuple import NamedTuple

MOST_BYTES = 64 * 1024


class Silent(Exception):
    """Nobody answered in time, or what answered was no such server."""


class Refused(Exception):
    """The sidecar answered that it could not."""


class Position(NamedTuple):
    """Litestream's last transaction here and at the target; all commits before the question are in the first."""

    txid: int
    replicated_txid: int


class Control:
    """One sidecar's socket."""

    def __init__(self, path: str, store: str) -> None:
        self._path = path
        self._store = store

    def alive(self, timeout_s: float) -> bool:
        """Whether it answers at all: it needs no lock for that."""
        try:
            self._ask("GET", "/info", None, timeout_s)
        except (Silent, Refused):
            return False
        return True

    def sync(self, timeout_s: float, *, wait: bool = False) -> Position:
        """Have it read the log now, and with `wait` send what it has read; how far it is.

        Raises:
            Silent: no answer in time.
            Refused: it could not: no connection to the target yet, no room for its files.
        """
        asked = {"path": self._store, "wait": wait, "timeout": max(1, int(timeout_s))}
        told = self._ask("POST", "/sync", asked, timeout_s + 0.5)
        txid, replicated = told.get("txid"), told.get("replicated_txid")
        if not isinstance(txid, int) or not isinstance(replicated, int):
            raise Silent
        return Position(txid, replicated)

    def _ask(self, method: str, target: str, content: dict[str, Any] | None, timeout_s: float) -> dict[str, Any]:
        body = b"" if content is None else json.dumps(content).encode()
        head = f"{method} {target} HTTP/1.0\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        end = time.monotonic() + timeout_s
        told = b""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as link:
                link.settimeout(timeout_s)
                link.connect(self._path)
                link.sendall(head + body)
                while len(told) <= MOST_BYTES:
                    link.settimeout(max(0.001, end - time.monotonic()))
                    if not (part := link.recv(8192)):
                        break
                    told += part
        except OSError:
            raise Silent from None
        status, _, rest = told.partition(b"\r\n")
        found = status.split(b" ")
        if len(found) < 2 or not found[0].startswith(b"HTTP/1."):
            raise Silent
        if found[1] != b"200":
            raise Refused
        try:
            answer = json.loads(rest.partition(b"\r\n\r\n")[2])
        except (ValueError, RecursionError):
            raise Silent from None
        if not isinstance(answer, dict):
            raise Silent
        return answer
