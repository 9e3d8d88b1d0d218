"""The blocking client over the daemon's Unix socket."""

from __future__ import annotations

import itertools
import secrets
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

import msgpack
from msgspec import Struct

from beetle.contracts.codec import UNSET, Raw, pack, unpack
from beetle.contracts.common import Report, WireScope
from beetle.contracts.envelope import PROTOCOL, DeviceAuth, RequestId, WireError, WireEvent
from beetle.contracts.errors import ERRORS, BeetleError, Internal, UnknownOperation
from beetle.contracts.methods import OperationMethods
from beetle.contracts.operations import BY_NAME, Operation

CHUNK = 65_536
FIRST_WAIT_S = 0.02
LONGEST_WAIT_S = 1.0


class NoDaemon(ConnectionError):
    """Nobody answers at the socket."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"no daemon answers at {path} ({reason})")
        self.path = path


class _Sent(Struct, omit_defaults=True):
    """A request as it is sent; what is left out is not sent at all."""

    id: int
    op: str
    v: Any = UNSET
    args: Any = UNSET
    scope: WireScope | None = None
    idempotency_key: str | None = None
    deadline_ms: int | None = None
    auth: DeviceAuth | None = None


class _Received(Struct):
    """An answer or an event; the report stays encoded until its type is known."""

    id: RequestId | None = None
    ok: bool | None = None
    report: Raw = Raw(b"\xc0")
    error: WireError | None = None
    repeated: bool = False
    sub: str | None = None


class Client(OperationMethods):
    """One connection, used by one thread at a time; a context manager.

    A lost connection is opened again and the request repeated; a write carries an idempotency key, so that repeating it
    changes nothing twice. Errors that say they are retryable are tried again until `timeout` has passed.
    """

    def __init__(
        self,
        path: str,
        *,
        scope: WireScope | None = None,
        auth: DeviceAuth | None = None,
        timeout: float = 30.0,
        retry: bool = True,
    ) -> None:
        """Connect.

        Args:
            scope: where requests work that name no scope of their own.
            timeout: seconds for one call with all its tries.
            retry: false answers the first error as it is.

        Raises:
            NoDaemon: nobody answers at `path`.
        """
        self.path = path
        self._scope = scope
        self._auth = auth
        self._timeout = timeout
        self._retry = retry
        self._ids = itertools.count(1)
        self._guard = threading.Lock()
        self._wire: _Wire | None = _Wire(path)
        self.repeated = False

    def call(
        self,
        operation: str,
        arguments: Any = None,
        *,
        scope: WireScope | None = None,
        idempotency_key: str | None = None,
        deadline_ms: int | None = None,
    ) -> Report:
        """Run any operation; the report's type is the table's.

        `repeated` of this client then tells whether the answer was first given to an earlier request of that key.

        Raises:
            BeetleError: what the daemon answered.
            NoDaemon, TimeoutError: the daemon could not be reached, or did not answer in time.
        """
        row = BY_NAME.get(operation)
        if idempotency_key is None and row is not None and row.effect != "read":
            idempotency_key = secrets.token_hex(16)
        request = _Sent(
            v=PROTOCOL,
            id=next(self._ids),
            op=operation,
            args={} if arguments is None else arguments,
            scope=scope or self._scope,
            idempotency_key=idempotency_key,
            deadline_ms=deadline_ms,
            auth=self._auth,
        )
        with self._guard:
            answer = self._exchange(request)
        self.repeated = answer.repeated
        return _report(row, operation, answer)

    def subscribe(self, topics: Iterable[str], *, scope: WireScope | None = None) -> Iterator[WireEvent]:
        """Events of the topics as they happen, over a connection of their own, until the iterator is closed.

        The subscription stands when this returns: what happens afterwards is delivered.
        """
        wire = _Wire(self.path)
        request = _Sent(
            v=PROTOCOL,
            id=next(self._ids),
            op="subscribe",
            args={"topics": list(topics)},
            scope=scope or self._scope,
            auth=self._auth,
        )
        wire.send(pack(request))
        answer = unpack(wire.receive(time.monotonic() + self._timeout), _Received)
        if answer.error is not None:
            wire.close()
            raise _error(answer.error)
        return _events(wire)

    def close(self) -> None:
        """Close the connection."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _exchange(self, request: _Sent) -> _Received:
        end = time.monotonic() + self._timeout
        wait = FIRST_WAIT_S
        while True:
            try:
                answer = self._once(request, end)
            except NoDaemon:
                raise
            except ConnectionError:
                if not self._retry or time.monotonic() + wait > end:
                    raise
            else:
                error = answer.error
                if error is None:
                    return answer
                if not self._retry or not error.retryable or time.monotonic() + wait > end:
                    raise _error(error)
                wait = max(wait, error.details.get("retry_after_ms", 0) / 1000)
            time.sleep(min(wait, LONGEST_WAIT_S))
            wait = min(wait * 2, LONGEST_WAIT_S)

    def _once(self, request: _Sent, end: float) -> _Received:
        if self._wire is None:
            self._wire = _Wire(self.path)
        try:
            self._wire.send(pack(request))
            while True:
                answer = unpack(self._wire.receive(end), _Received)
                # An answer without an id is about the connection itself, which the daemon then closes.
                if answer.id is None or answer.id == request.id:
                    break
            if answer.id is None:
                self.close()
            return answer
        except BrokenPipeError:
            # The daemon closed while this was being sent; what it said before is still there to be read.
            return self._last_words(end)
        except (ConnectionError, TimeoutError):
            self.close()
            raise

    def _last_words(self, end: float) -> _Received:
        assert self._wire is not None
        try:
            return unpack(self._wire.receive(end), _Received)
        finally:
            self.close()


class _Wire:
    """A connection that cuts what it receives into frames."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise NoDaemon(path, error.strerror or "unknown") from None
        self._buffer = bytearray()
        self._start = 0
        self._unpacker = msgpack.Unpacker(max_buffer_size=0)

    def send(self, data: bytes) -> None:
        self._socket.settimeout(None)
        self._socket.sendall(data)

    def receive(self, end: float | None) -> bytes:
        """The next frame; `end` in monotonic seconds, None waits for ever."""
        while True:
            try:
                self._unpacker.skip()
            except msgpack.OutOfData:
                self._socket.settimeout(None if end is None else max(0.001, end - time.monotonic()))
                data = self._socket.recv(CHUNK)
                if not data:
                    raise ConnectionResetError("the daemon closed the connection") from None
                self._unpacker.feed(data)
                self._buffer += data
                continue
            stop = self._unpacker.tell()
            frame = bytes(self._buffer[: stop - self._start])
            del self._buffer[: stop - self._start]
            self._start = stop
            return frame

    def close(self) -> None:
        self._socket.close()


def _events(wire: _Wire) -> Iterator[WireEvent]:
    try:
        while True:
            yield unpack(wire.receive(None), WireEvent)
    finally:
        wire.close()


def _report(row: Operation | None, operation: str, answer: _Received) -> Report:
    if row is None:
        raise UnknownOperation(operation=operation, nearest="this client is older than the daemon")
    return unpack(answer.report, row.report)


def _error(told: WireError) -> BeetleError:
    """The daemon's error as its class, with the daemon's own words."""
    kind = ERRORS.get(told.key, Internal)
    error = kind.__new__(kind)
    error.details, error.message, error.hint = told.details, told.message, told.hint
    Exception.__init__(error, f"{told.key}: {told.message}")
    return error
