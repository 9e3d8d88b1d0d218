"""The blocking client over the daemon's Unix socket."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgpack
from msgspec import MsgspecError, Struct

from beetle.contracts.codec import UNSET, Raw, check_values, pack, to_wire, unpack
from beetle.contracts.common import Report, WireScope
from beetle.contracts.control import SubscribeReport
from beetle.contracts.envelope import PROTOCOL, Auth, DeviceAuth, PrincipalAuth, RequestId, WireError, WireEvent
from beetle.contracts.errors import DaemonUnavailable, InvalidFrame, InvalidRequest, from_wire
from beetle.contracts.methods import OperationMethods
from beetle.contracts.operations import BY_NAME
from beetle.contracts.progress import PROGRESS, PROGRESS_TOPIC, OnProgress, ProgressStep

T = TypeVar("T")

CHUNK = 65_536
FIRST_WAIT_S = 0.02
LONGEST_WAIT_S = 1.0


class NoDaemon(DaemonUnavailable, ConnectionError):
    """Nobody answers at the socket: a `BeetleError` with the key `daemon_unavailable`, and a ConnectionError."""

    template = "no daemon answers at {path} ({reason})"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path=path, reason=reason)
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return NoDaemon, (self.path, self.details["reason"])


class ClientClosed(ConnectionError):
    """The client was closed, before the call or while it waited."""

    def __init__(self, path: str) -> None:
        super().__init__(f"the client of {path} is closed")
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return ClientClosed, (self.path,)


class _Sent(Struct, omit_defaults=True):
    """A request as it is sent; what is left out is not sent at all."""

    id: int
    op: str
    v: Any = UNSET
    args: Any = UNSET
    scope: WireScope | None = None
    idempotency_key: str | None = None
    deadline_ms: int | None = None
    auth: Auth | None = None


class _Received(Struct):
    """An answer or an event; the report stays encoded until its type is known."""

    id: RequestId | None = None
    ok: bool | None = None
    report: Raw = Raw(b"\xc0")
    error: WireError | None = None
    repeated: bool = False
    sub: str | None = None
    event: Raw = Raw(b"\x80")


class _Said(Struct):
    """The event of a frame that says how far a call is; others have other fields."""

    event: str = ""
    step: str = ""
    number: int = 0
    steps: int = 0
    done: int = 0
    of: int = 0


class Client(OperationMethods):
    """One connection; a context manager. Threads may share it: their calls take turns.

    A lost connection is opened again and the request repeated; a write carries an idempotency key, so that repeating it
    changes nothing twice. Errors that say they are retryable are tried again until `timeout` has passed.
    """

    def __init__(
        self,
        path: str | None = None,
        *,
        scope: WireScope | None = None,
        auth: DeviceAuth | None = None,
        as_: str | None = None,
        timeout: float = 30.0,
        retry: bool = True,
    ) -> None:
        """Connect.

        Args:
            path: the daemon's socket. Left out, it is found as the command line finds it: $BEETLE_SOCKET, the lock file
                of $BEETLE_STORE, the configuration, the user's usual place, the system's.
            auth: a device's credentials.
            as_: the configured principal of lesser rights as which an operator asks.
            scope: where requests work that name no scope of their own.
            timeout: seconds for one call with all its tries. An operation that may take long (docs/operations.md names
                its deadline) is waited for until its deadline, and a call with a longer `deadline_ms` until that.
            retry: false answers the first error as it is.

        Raises:
            NoDaemon: nobody answers at `path`.
            DaemonUnavailable: no path was given, and nobody answers anywhere.
            InvalidRequest: both `auth` and `as_` were given.
            Forbidden: no path was given, and this user may not use the socket that was found.
            TimeoutError: somebody listens there, and takes no connection.
        """
        self._scope = scope
        if auth is not None and as_ is not None:
            raise InvalidRequest(reason="auth and as_ exclude each other", hint="give one of them")
        self._as = as_
        self._device = auth
        self._auth: Auth | None = auth if as_ is None else PrincipalAuth(principal=as_)
        self._timeout = timeout
        self._retry = retry
        self._ids = itertools.count(1)
        self._guard = threading.Lock()
        self._closed = threading.Event()
        self._told = threading.local()
        end = time.monotonic() + timeout
        self._wire: _Wire | None = _found(end) if path is None else _Wire(path, end)
        self.path = self._wire.path

    @property
    def repeated(self) -> bool:
        """Whether this thread's last call was answered with the report of an earlier request of the same key."""
        return getattr(self._told, "repeated", False)

    def call(
        self,
        operation: str,
        arguments: Any = None,
        *,
        scope: WireScope | None = None,
        idempotency_key: str | None = None,
        deadline_ms: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> Report:
        """Run any operation; the report's type is the table's, and a bare `Report` for what only the daemon knows.

        With `on_progress` the client subscribes to `lifecycle`; a caller that may not follow it gets no progress.

        Raises:
            BeetleError: what the daemon answered.
            NoDaemon, TimeoutError: the daemon could not be reached, or did not answer in time.
            ClientClosed: `close` was called.
        """
        row = BY_NAME.get(operation)
        if idempotency_key is None and (row is None or row.effect != "read"):
            # `secrets` would say the same, and load a crypto library into every command.
            idempotency_key = os.urandom(16).hex()

        def ask(name: str, given: Any) -> Report:
            return self._call(name, given, scope, None, deadline_ms, None)

        def whole(given: Any) -> Report:
            return self._call(operation, given, scope, idempotency_key, deadline_ms, on_progress)

        if row is None or not row.carries:
            return whole(arguments)
        from beetle.pieces import call_in_pieces

        end = time.monotonic() + self._timeout
        return call_in_pieces(row, {} if arguments is None else arguments, ask, whole, on_progress, end)

    def _call(
        self,
        operation: str,
        arguments: Any,
        scope: WireScope | None,
        idempotency_key: str | None,
        deadline_ms: int | None,
        on_progress: OnProgress | None,
    ) -> Report:
        row = BY_NAME.get(operation)
        request = self._request(operation, {} if arguments is None else arguments, scope)
        request.idempotency_key, request.deadline_ms = idempotency_key, deadline_ms
        data = _packed(request)
        longest = max(deadline_ms or 0, 0 if row is None else row.deadline_ms or 0)
        end = time.monotonic() + max(self._timeout, longest / 1000)
        if not self._guard.acquire(timeout=self._timeout):
            raise TimeoutError("the call of another thread has not ended")
        try:
            answer = self._patiently(lambda: self._once(request.id, data, end, on_progress), end)
        finally:
            self._guard.release()
        self._told.repeated = answer.repeated
        return _decoded(answer.report, Report if row is None else row.report, self.path)

    def subscribe(self, topics: Iterable[str], *, scope: WireScope | None = None) -> Events:
        """Events of the topics as they happen, over a connection of their own, until the iterator is closed.

        The subscription stands when this returns: what happens afterwards is delivered. The iterator is a context
        manager; it outlives the client. A connection that is lost raises ConnectionError: events may have been missed.
        """
        request = self._request("subscribe", {"topics": list(topics)}, scope)
        data = _packed(request)
        end = time.monotonic() + self._timeout
        opened: list[Events] = []

        def attempt() -> _Received:
            wire = _Wire(self.path, end)
            try:
                answer = wire.ask(request.id, data, end)
            except BaseException:
                wire.close()
                raise
            if answer.error is None:
                opened.append(Events(wire))
            else:
                wire.close()
            return answer

        self._patiently(attempt, end)
        return opened[0]

    def another(self, timeout: float | None = None) -> Client:
        """A client with a connection of its own: the same daemon, caller and scope; `timeout` in seconds, else as here.

        Raises:
            NoDaemon, TimeoutError: as for the first.
        """
        seconds = self._timeout if timeout is None else timeout
        same = {"scope": self._scope, "auth": self._device, "as_": self._as, "retry": self._retry}
        return Client(self.path, timeout=seconds, **same)

    def close(self) -> None:
        """Close the connection for good; a call that another thread waits in ends with ClientClosed."""
        self._closed.set()
        wire = self._wire
        if wire is not None:
            wire.shut()
        with self._guard:
            self._drop()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _request(self, operation: str, arguments: Any, scope: WireScope | None) -> _Sent:
        return _Sent(
            v=PROTOCOL,
            id=next(self._ids),
            op=operation,
            args=arguments,
            scope=scope or self._scope,
            auth=self._auth,
        )

    def _patiently(self, attempt: Callable[[], _Received], end: float) -> _Received:
        wait = FIRST_WAIT_S
        while True:
            try:
                answer = attempt()
            except (NoDaemon, ClientClosed):
                raise
            except ConnectionError:
                if self._closed.is_set():
                    raise ClientClosed(self.path) from None
                if not self._retry or time.monotonic() + wait > end:
                    raise
            else:
                error = answer.error
                if error is None:
                    return answer
                wait = max(wait, _retry_after(error))
                if not self._retry or not error.retryable or time.monotonic() + wait > end:
                    raise from_wire(error.key, error.message, error.hint, error.retryable, error.details)
            if self._closed.wait(min(wait, LONGEST_WAIT_S)):
                raise ClientClosed(self.path)
            wait = min(wait * 2, LONGEST_WAIT_S)

    def _once(self, request_id: int, data: bytes, end: float, on_progress: OnProgress | None) -> _Received:
        if self._wire is None and not self._closed.is_set():
            self._wire = _Wire(self.path, end)
        # Looked at once the wire is where `close` finds it: either it shuts the wire, or this sees that it was called.
        if self._wire is None or self._closed.is_set():
            raise ClientClosed(self.path)
        try:
            if on_progress is None:
                answer = self._wire.ask(request_id, data, end)
            else:
                answer = self._followed(self._wire, request_id, data, end, on_progress)
        except BaseException:
            # Interrupted anywhere, the next call must not meet half a request or an answer that is not its own.
            self._drop()
            raise
        if answer.id is None:
            self._drop()
        return answer

    def _followed(self, wire: _Wire, request_id: int, data: bytes, end: float, on_progress: OnProgress) -> _Received:
        """Ask, and follow meanwhile on the same connection how far it is."""
        begin = self._request("subscribe", {"topics": [PROGRESS_TOPIC]}, None)
        begun = wire.ask(begin.id, _packed(begin), end)
        if begun.id is None:
            return begun
        if begun.error is not None:
            return wire.ask(request_id, data, end)
        answer = wire.ask(request_id, data, end, on_progress)
        if answer.id is not None:
            sub = _decoded(begun.report, SubscribeReport, self.path).sub
            stop = self._request("unsubscribe", {"sub": sub}, None)
            wire.ask(stop.id, _packed(stop), end)
        return answer

    def _drop(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None


class Events(Iterator[WireEvent]):
    """The events of one subscription; a context manager. `close` ends the iteration, from any thread."""

    def __init__(self, wire: _Wire) -> None:
        self._wire = wire
        self._guard = threading.Lock()
        self._closed = False

    def __next__(self) -> WireEvent:
        with self._guard:
            try:
                if not self._closed:
                    return _decoded(self._wire.receive(None), WireEvent, self._wire.path)
            except Exception:
                ended, self._closed = self._closed, True
                self._wire.close()
                if not ended:
                    raise
            raise StopIteration

    def close(self) -> None:
        """End the subscription and its connection."""
        self._closed = True
        self._wire.shut()
        with self._guard:
            self._wire.close()

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # `for event in client.subscribe(…)` leaves nobody who could close it.
        self._wire.close()


class _Wire:
    """A connection that cuts what it receives into frames. `end` is in monotonic seconds."""

    def __init__(self, path: str, end: float) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            # connect() on a blocking socket waits for room in the backlog, as long as a send may take.
            seconds, rest = divmod(_left(end), 1)
            limit = struct.pack("ll", int(seconds), int(rest * 1_000_000))
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
            self._socket.connect(path)
        except BlockingIOError:
            self._socket.close()
            raise TimeoutError(f"{path} takes no connection") from None
        except OSError as error:
            self._socket.close()
            raise NoDaemon(path, error.strerror or str(error)) from None
        except BaseException:
            self._socket.close()
            raise
        self._buffer = bytearray()
        self._start = 0
        self._unpacker = msgpack.Unpacker(max_buffer_size=0)

    def ask(self, request_id: int, data: bytes, end: float, on_progress: OnProgress | None = None) -> _Received:
        """Send a request and wait for its answer, or for one without an id: that is about the connection itself.

        `on_progress` is told of what comes meanwhile for a subscription of this connection.
        """
        try:
            self._socket.settimeout(_left(end))
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the daemon closed meanwhile; what it said before is still there to be read
        while True:
            answer = _decoded(self.receive(end), _Received, self.path)
            if answer.sub is not None:
                if on_progress is not None:
                    _report_progress(on_progress, _decoded(answer.event, _Said, self.path))
                continue
            if answer.id is None or answer.id == request_id:
                return answer

    def receive(self, end: float | None) -> bytes:
        """The next frame; without an end it is waited for as long as it takes."""
        while True:
            try:
                self._unpacker.skip()
            except msgpack.OutOfData:
                self._socket.settimeout(None if end is None else _left(end))
                data = self._socket.recv(CHUNK)
                if not data:
                    raise ConnectionResetError("the daemon closed the connection") from None
                self._unpacker.feed(data)
                self._buffer += data
                continue
            except ValueError:
                raise _foreign(self.path) from None
            stop = self._unpacker.tell()
            frame = bytes(self._buffer[: stop - self._start])
            del self._buffer[: stop - self._start]
            self._start = stop
            return frame

    def shut(self) -> None:
        """Wake whoever waits in this connection; only its own thread may close it."""
        with contextlib.suppress(OSError):  # it has ended
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()


def _report_progress(on_progress: OnProgress, said: _Said) -> None:
    if said.event == PROGRESS:
        on_progress(ProgressStep(said.step, said.number, said.steps, said.done, said.of))


def _left(end: float) -> float:
    return max(0.001, end - time.monotonic())


def _packed(request: _Sent) -> bytes:
    """Raises InvalidRequest for arguments that no frame can hold, with the path as the daemon would give it."""
    try:
        # A typed request's times become text: as MessagePack they would be an extension, which no frame may hold.
        request.args = to_wire(request.args)
        return pack(request)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        with contextlib.suppress(RecursionError):
            check_values(request.args, "$.args")
        raise InvalidRequest(reason=f"the arguments cannot be sent: {error}", path="$.args") from None


def _decoded(data: bytes | Raw, kind: type[T], path: str) -> T:
    try:
        return unpack(data, kind)
    except (MsgspecError, UnicodeDecodeError):
        raise _foreign(path) from None


def _found(end: float) -> _Wire:
    """A connection to the first daemon that answers where the command line would look."""
    from beetle.find import refuse_closed_socket, usual_sockets

    *others, last = usual_sockets()
    for path in others:
        try:
            return _Wire(path, end)
        except NoDaemon:
            refuse_closed_socket(path)
    try:
        return _Wire(last, end)
    except NoDaemon:
        refuse_closed_socket(last)
        raise


def _foreign(path: str) -> InvalidFrame:
    hint = "is this a beetle daemon's socket, and is the daemon not much newer than this client?"
    return InvalidFrame(reason=f"the answer at {path} is not valid", hint=hint)


def _retry_after(error: WireError) -> float:
    asked = error.details.get("retry_after_ms", 0)
    return asked / 1000 if isinstance(asked, int) else 0.0
