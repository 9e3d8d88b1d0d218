"""The Unix socket: a thread per connection cuts frames, dispatches them, and sends the answers (WIRE.md §2)."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from beetle.contracts.codec import UNSET, decode_request, pack
from beetle.contracts.control import UnsubscribeReport
from beetle.contracts.envelope import PROTOCOL, RequestId, WireAnswer, WireError, WireEvent, WireRequest
from beetle.contracts.errors import (
    BeetleError,
    Internal,
    InvalidFrame,
    InvalidRequest,
    Overloaded,
    PayloadTooLarge,
)
from beetle.contracts.progress import PROGRESS, PROGRESS_TOPIC, Step
from beetle.runtime.dispatcher import Call, Dispatcher
from beetle.runtime.hub import NUDGE, Delivery, Progressed, Subscription, followed_as
from beetle.runtime.principals import Peer, Principals
from beetle.transports.frames import Frame, FrameLimits, FrameReader
from beetle.transports.listening import Listening, listen

log = logging.getLogger("beetle.socket")

TRANSPORT = "unix_socket"
CHUNK = 65_536
SEND_SECONDS = 30
"""A reader that takes nothing for this long is given up."""
STACK_BYTES = 512 * 1024
SO_PEERGROUPS = 59
GROUP_BYTES = 1024
"""Most that Python lets getsockopt answer: 256 supplementary groups."""
ID_BYTES = 64
SUBSCRIPTIONS = 16
"""Most of one connection: each costs a thread, and there are six topics."""
STOP_SECONDS = 10.0
ABORT_SECONDS = 2.0
RETRY_SECONDS = 0.05


class SocketServer:
    """Listens at one path and serves every connection on a thread of its own."""

    def __init__(self, dispatcher: Dispatcher, principals: Principals, path: str, group: int | None = None) -> None:
        self._dispatcher = dispatcher
        self._principals = principals
        self._path = path
        self._group = group
        self._budgets = dispatcher.profile.budgets
        self._open: dict[int, _Connection] = {}
        self._guard = threading.Lock()
        self._stopping = threading.Event()
        self._listening: Listening | None = None
        self._acceptor = threading.Thread(target=self._accept, name="beetle-accept", daemon=True)

    def start(self) -> None:
        """Bind and serve.

        Raises:
            StoreLocked: another daemon answers at the path.
            StoreReadOnly: the path cannot be bound, or is something that is not a socket.
        """
        threading.stack_size(STACK_BYTES)
        self._listening = listen(self._path, self._group)
        self._dispatcher.presence.transports.listens(TRANSPORT, self._path)
        self._acceptor.start()

    def stop(self) -> None:
        """Take no more connections, let every request that was begun be answered, then close."""
        assert self._listening is not None
        self._stopping.set()
        self._dispatcher.presence.transports.ended(TRANSPORT)
        # While it still listens: a daemon that starts here from now on makes a socket of its own.
        self._listening.remove()
        # Wakes the accepting thread, which close() alone would leave waiting.
        self._listening.socket.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._listening.socket.close()
        with self._guard:
            waiting = list(self._open.values())
        for connection in waiting:
            connection.finish()
        _join(waiting, STOP_SECONDS)
        for connection in waiting:
            connection.abort()
        _join(waiting, ABORT_SECONDS)

    @property
    def connections(self) -> int:
        """Connections that are open now."""
        return len(self._open)

    def _accept(self) -> None:
        assert self._listening is not None
        failing = False
        while True:
            try:
                peer, _ = self._listening.socket.accept()
            except OSError as error:
                if self._stopping.is_set():
                    return
                if not failing:
                    log.warning("accept failed: %s", error.strerror)
                failing = True
                # Out of descriptors or memory: only a connection that ends helps. It is tried until the daemon ends,
                # since a daemon that accepts no more would look alive and answer nobody.
                self._stopping.wait(RETRY_SECONDS)
                continue
            failing = False
            if self._stopping.is_set():
                peer.close()
                return
            self._admit(peer)

    def _admit(self, peer: socket.socket) -> None:
        if len(self._open) >= self._budgets.connections:
            _turn_away(peer, self._budgets.connections)
            return
        try:
            connection = _Connection(peer, self._dispatcher, self._principals, self._forget)
        except OSError as error:
            log.warning("a connection was not taken: %s", error.strerror)
            peer.close()
            return
        with self._guard:
            self._open[id(connection)] = connection
        try:
            connection.start()
        except RuntimeError:  # the system has no thread left
            self._forget(connection)
            _turn_away(peer, len(self._open))

    def _forget(self, connection: _Connection) -> None:
        with self._guard:
            self._open.pop(id(connection), None)
        self._dispatcher.presence.lines.close(connection.line)


class _LenientId(Struct):
    """Reads the id of a request whose other fields are wrong."""

    id: RequestId | None = None


class _Connection:
    """One peer. Requests are answered in the order they came."""

    def __init__(
        self,
        peer: socket.socket,
        dispatcher: Dispatcher,
        principals: Principals,
        forget: Callable[[_Connection], None],
    ) -> None:
        budgets = dispatcher.profile.budgets
        self._socket = peer
        self._dispatcher = dispatcher
        self._principals = principals
        self._forget = forget
        self._peer = _credentials(peer)
        self.line = dispatcher.presence.lines.open(TRANSPORT)
        self._hangup = select.poll()
        self._hangup.register(peer, 0)
        self._reader = FrameReader(FrameLimits(budgets.frame_bytes, budgets.nesting))
        self._begun_seconds = budgets.begun_frame_seconds
        self._deadline: float | None = time.monotonic() + budgets.first_frame_seconds
        self._sending = threading.Lock()
        self._subscriptions: dict[str, Subscription] = {}
        self._pumps: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._run, name="beetle-connection", daemon=True)
        _timeout(peer, socket.SO_SNDTIMEO, SEND_SECONDS)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """Read nothing more; what was begun is answered."""
        with contextlib.suppress(OSError):  # the peer may be gone already
            self._socket.shutdown(socket.SHUT_RD)

    def abort(self) -> None:
        """End it although its peer has not read its answers."""
        with contextlib.suppress(OSError):  # it has ended
            self._socket.shutdown(socket.SHUT_RDWR)

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            while (frame := self._next()) is not None:
                self._answer(frame)
        except (InvalidFrame, PayloadTooLarge) as error:
            self._last_words(error)
        except OSError:
            pass  # the peer is gone, or too slow
        finally:
            self._end()

    def _end(self) -> None:
        for subscription in self._subscriptions.values():
            self._dispatcher.hub.close(subscription)
        self.abort()
        # A pump may be polling the descriptor, whose number another connection gets once it is closed.
        for pump in self._pumps:
            pump.join()
        self._socket.close()
        self._forget(self)

    def _next(self) -> Frame | None:
        """The next frame; None when the peer has ended, or taken longer for a frame than it may."""
        while (frame := self._reader.next_frame()) is None:
            if self._reader.begun and self._deadline is None:
                self._deadline = time.monotonic() + self._begun_seconds
            if self._deadline is not None:
                left = self._deadline - time.monotonic()
                if left <= 0:
                    return None
                _timeout(self._socket, socket.SO_RCVTIMEO, left)
            try:
                data = self._socket.recv(CHUNK)
            except BlockingIOError:
                return None
            if not data:
                return None
            self._reader.feed(data)
        if self._deadline is not None:
            self._deadline = None
            _timeout(self._socket, socket.SO_RCVTIMEO, 0)
        return frame

    def _answer(self, frame: Frame) -> None:
        request: WireRequest | None = None
        try:
            request = _decode(frame)
            if request.op == "subscribe":
                self._subscribe(request)
                return
            data = pack(self._perform(request))
        except BeetleError as error:
            data = pack(_refusal(_id_of(frame) if request is None else request.id, error))
        except OSError:
            raise  # of sending: the peer is gone
        except Exception as defect:  # noqa: BLE001 - the boundary: one request's defect must not end the connection
            data = pack(_refusal(_id_of(frame), _defect(defect)))
        self._send(data)

    def _perform(self, request: WireRequest) -> WireAnswer:
        if request.op == "unsubscribe":
            return WireAnswer(id=request.id, ok=True, report=self._unsubscribe(request))
        report, repeated = self._dispatcher.dispatch(self._call(request))
        return WireAnswer(id=request.id, ok=True, report=report, repeated=repeated or UNSET)

    def _subscribe(self, request: WireRequest) -> None:
        self._pumps = [pump for pump in self._pumps if pump.is_alive()]
        if len(self._pumps) >= SUBSCRIPTIONS:
            what = "too many subscriptions are open on this connection"
            raise Overloaded(what=what, maximum=SUBSCRIPTIONS, retry_after_ms=1000)
        call = self._call(request)
        report, opened = self._dispatcher.subscribe(call)
        pump = threading.Thread(target=self._pump, args=(opened,), name="beetle-events", daemon=True)
        # The lock keeps the pump from sending: no event comes before the answer that names its subscription.
        with self._sending:
            try:
                pump.start()
            except RuntimeError:  # the system has no thread left
                self._dispatcher.hub.close(opened)
                raise Overloaded(what="too many threads run", maximum="no more", retry_after_ms=1000) from None
            self._pumps.append(pump)
            self._subscriptions[opened.sub] = opened
            self._socket.sendall(pack(WireAnswer(id=request.id, ok=True, report=report)))

    def _call(self, request: WireRequest) -> Call:
        return Call(
            operation=request.op,
            arguments=request.args,
            caller=self._principals.identify(self._peer),
            scope=request.scope,
            idempotency_key=request.idempotency_key,
            deadline_ms=request.deadline_ms,
            auth=request.auth,
            scanned=True,
            line=self.line,
            gone=self._gone,
            tell=partial(self._tell, request) if self._subscriptions else None,
        )

    def _tell(self, request: WireRequest, step: Step) -> None:
        """How far a call of this connection is, for who follows the topic on this connection; for nobody else."""
        for subscription in self._subscriptions.values():
            if PROGRESS_TOPIC in subscription.topics:
                subscription.tell(Progressed(request.op, request.id, step))

    def _gone(self) -> bool:
        """Whether the peer has closed, not just said its last word; for this connection's own thread."""
        return bool(self._hangup.poll(0))

    def _unsubscribe(self, request: WireRequest) -> UnsubscribeReport:
        report = self._dispatcher.unsubscribe(self._call(request), self._subscriptions)
        del self._subscriptions[report.sub]
        return report

    def _pump(self, subscription: Subscription) -> None:
        try:
            while (delivery := subscription.take()) is not None:
                if not self._dispatcher.follows(subscription, self._principals.identify(self._peer)):
                    # The peer has other rights now, or what it proved holds no more: it must ask again.
                    self.finish()
                    return
                if delivery == NUDGE:
                    continue
                data = pack(_event(subscription.sub, delivery))
                while not self._send_event(subscription, data):
                    self._has_room(None)
        except (OSError, BeetleError):  # the peer is gone; or its rights cannot be read
            self.finish()

    def _send_event(self, subscription: Subscription, data: bytes) -> bool:
        """False when the peer must read first. So an event never holds up an answer, nor tears a frame by a timeout."""
        with self._sending:
            if subscription.closed:
                return True
            if not self._has_room(0):
                return False
            self._socket.sendall(data)
            return True

    def _has_room(self, milliseconds: int | None) -> bool:
        """Whether most of the socket's buffer is free, or the peer gone; waits so long for that, None for ever."""
        poll = select.poll()
        poll.register(self._socket, select.POLLOUT)
        return bool(poll.poll(milliseconds))

    def _send(self, data: bytes) -> None:
        with self._sending:
            self._socket.sendall(data)

    def _last_words(self, error: BeetleError) -> None:
        try:
            self._send(pack(_refusal(None, error)))
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it does not listen


def _event(sub: str, delivery: Delivery) -> WireEvent:
    if delivery.progressed is not None:
        operation, request, step = delivery.progressed
        said = {"event": PROGRESS, "operation": operation, "id": request, "step": step.name, "number": step.number}
        rest = {"steps": step.steps, "done": step.done, "of": step.of}
        return WireEvent(sub=sub, topic=PROGRESS_TOPIC, event=said | rest)
    if delivery.logged is None:
        return WireEvent(sub=sub, event={"dropped": delivery.dropped})
    event = delivery.logged.event
    told = {"event": event.event, "operation": event.operation, **event.subject}
    return WireEvent(sub=sub, topic=followed_as(event), event=told, seq=delivery.logged.seq)


def _decode(frame: Frame) -> WireRequest:
    if frame.fault is not None:
        path, reason = frame.fault
        raise InvalidRequest(reason=f"{reason} - at {path}", path=path)
    request = decode_request(frame.data, WireRequest, "$", scanned=True)
    if request.v != PROTOCOL:
        raise InvalidRequest(reason=f"this daemon speaks protocol {PROTOCOL}, not {request.v}", path="$.v")
    if not _fits(request.id):
        raise InvalidRequest(reason=f"an id has at most {ID_BYTES} bytes - at $.id", path="$.id")
    return request


def _fits(request_id: RequestId | None) -> bool:
    # The struct's own limit counts characters.
    return not isinstance(request_id, str) or len(request_id.encode()) <= ID_BYTES


def _id_of(frame: Frame) -> RequestId | None:
    if frame.fault is not None and frame.fault.path == "$.id":
        return None
    try:
        found = decode_request(frame.data, _LenientId, "$", scanned=True).id
    except InvalidRequest:
        return None
    return found if _fits(found) else None


def _refusal(request_id: RequestId | None, error: BeetleError) -> WireAnswer:
    told = WireError(
        key=error.key, message=error.message, hint=error.hint, retryable=error.retryable, details=error.details
    )
    return WireAnswer(id=request_id, ok=False, error=told)


def _defect(error: Exception) -> Internal:
    import traceback

    reference = f"E{os.urandom(4).hex()}"
    # The frames name code, never values; the error's own text might hold content, and is left out.
    frames = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s: %s in a connection\n%s", reference, type(error).__name__, frames)
    return Internal(reference=reference)


def _turn_away(peer: socket.socket, maximum: int) -> None:
    """Answer `overloaded` without waiting, and close."""
    error = Overloaded(what="too many connections are open", maximum=maximum, retry_after_ms=500)
    try:
        peer.setblocking(False)
        peer.send(pack(_refusal(None, error)))
    except OSError:
        pass  # it has gone already
    finally:
        peer.close()


def _credentials(peer: socket.socket) -> Peer:
    pid, uid, gid = struct.unpack("iII", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    try:
        data = peer.getsockopt(socket.SOL_SOCKET, SO_PEERGROUPS, GROUP_BYTES)
    except OSError:
        data = b""  # an old kernel, or more groups than fit: the primary group still counts
    groups = struct.unpack(f"{len(data) // 4}I", data)
    return Peer(uid, (gid, *(each for each in groups if each != gid)), pid)


def _join(connections: list[_Connection], seconds: float) -> None:
    end = time.monotonic() + seconds
    for connection in connections:
        connection.join(max(0.0, end - time.monotonic()))


def _timeout(peer: socket.socket, option: int, seconds: float) -> None:
    """A timeout for one direction alone; 0 waits for ever."""
    micros = max(1, int(seconds * 1_000_000)) if seconds else 0
    peer.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", micros // 1_000_000, micros % 1_000_000))
