"""A daemon for the socket's tests, and a peer that can send anything."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgpack
import pytest

from tests.forked import Daemon

if TYPE_CHECKING:
    from tests.transports.serving import Served


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """One daemon of the compact profile for a module's tests."""
    with Daemon(profile="profile-linux-device-compact-memory") as running:
        yield running


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is short enough for a socket."""
    from tests.transports.serving import open_folder

    with open_folder() as made:
        yield made


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A server in this process, for a module's tests."""
    from tests.transports.serving import Served, open_folder

    with open_folder() as place, Served(place) as running:
        yield running


class Peer:
    """A raw connection: sends bytes, reads answers one by one."""

    def __init__(self, path: str, timeout: float = 30.0) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        try:
            self.socket.connect(path)
        except OSError:
            self.socket.close()
            raise
        self._unpacker = msgpack.Unpacker(max_buffer_size=0)

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def ask(self, op: str, args: Any = None, **more: Any) -> dict[str, Any]:
        self.send(msgpack.packb({"v": 1, "id": 1, "op": op, "args": args or {}, **more}))
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """The next frame; EOFError when the daemon has closed."""
        while True:
            for frame in self._unpacker:
                return frame
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            self._unpacker.feed(data)

    def closed(self) -> bool:
        """Whether the daemon has closed and sends nothing more."""
        try:
            self.answer()
        except (EOFError, ConnectionResetError):
            return True
        return False

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def turn(number: int, text: str = "the kettle is on", **message: Any) -> dict[str, Any]:
    """A turn of one message."""
    return {
        "turn_id": f"t{number}",
        "at": "2026-01-02T03:04:05Z",
        "messages": [{"message_id": f"m{number}", "role": "user", "content": text, **message}],
    }


def commit(number: int, conversation: str = "c", text: str = "the kettle is on") -> dict[str, Any]:
    """Arguments of transcript.commit for one turn."""
    return {"conversation": {"conversation_id": conversation}, "turns": [turn(number, text)]}
