"""What a client may meet in place of a good daemon: a scripted one, and a proxy that loses answers."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any

import msgpack

LISTED = {"total": 0, "active": 0, "disabled": 0, "runtime_skills": []}
"""A report of skill.list."""
DEEP = b"\x83\xa2id\x01\xa2ok\xc3\xa6report" + b"\x91" * 1020 + b"\xc0"
"""An answer that is nested as deep as a frame may be, and deeper than it can be decoded."""


class Far:
    """The scripted daemon's end of one connection."""

    def __init__(self, connection: socket.socket, requests: list[dict[str, Any]]) -> None:
        self.socket = connection
        self._requests = requests
        self._unpacker = msgpack.Unpacker()

    def request(self) -> dict[str, Any]:
        """The next request; EOFError when the client has closed."""
        while True:
            for frame in self._unpacker:
                self._requests.append(frame)
                return frame
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            self._unpacker.feed(data)

    def send(self, frame: dict[str, Any]) -> None:
        self.socket.sendall(msgpack.packb(frame))

    def answer(self, request: dict[str, Any], report: Any = None, **more: Any) -> None:
        self.send({"v": 1, "id": request["id"], "ok": True, "report": LISTED if report is None else report, **more})

    def refuse(self, request: dict[str, Any] | None, key: str, *, retryable: bool = False, **details: Any) -> None:
        error = {"key": key, "message": f"the {key}", "hint": "a hint", "retryable": retryable, "details": details}
        self.send({"v": 1, "id": request and request["id"], "ok": False, "error": error})


def serve_well(far: Far) -> None:
    """Answers everything with an empty list of skills."""
    while True:
        far.answer(far.request())


class Scripted:
    """Plays one act for each connection, one after another, and the last one again; notes the requests."""

    def __init__(self, path: str, *acts: Callable[[Far], None]) -> None:
        self.path = path
        self.requests: list[dict[str, Any]] = []
        self.connections = 0
        self._acts = acts
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen(8)
        self._threads = [threading.Thread(target=self._accept)]
        self._open: list[socket.socket] = []
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            act = self._acts[min(self.connections, len(self._acts) - 1)]
            self.connections += 1
            self._open.append(connection)
            thread = threading.Thread(target=self._play, args=(act, connection))
            self._threads.append(thread)
            thread.start()

    def _play(self, act: Callable[[Far], None], connection: socket.socket) -> None:
        with connection, contextlib.suppress(EOFError, OSError):
            act(Far(connection, self.requests))

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join()


class LosingProxy(Scripted):
    """Passes requests on to a daemon; while `lose` says so, it hears an answer and closes instead of handing it on."""

    def __init__(self, path: str, daemon: str, lose: Callable[[dict[str, Any]], bool]) -> None:
        self._daemon = daemon
        self._lose = lose
        super().__init__(path, self._pass_on)

    def _pass_on(self, far: Far) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as near:
            near.connect(self._daemon)
            unpacker = msgpack.Unpacker()
            while True:
                request = far.request()
                near.sendall(msgpack.packb(request))
                answer = _next(near, unpacker)
                if self._lose(answer):
                    return
                far.send(answer)


def _next(near: socket.socket, unpacker: msgpack.Unpacker) -> dict[str, Any]:
    while True:
        for frame in unpacker:
            return frame
        data = near.recv(65536)
        if not data:
            raise EOFError
        unpacker.feed(data)
