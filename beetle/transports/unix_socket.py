"""The Unix socket: a thread per connection cuts frames, dispatches them, and sends the answers (WIRE.md §2)."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import stat
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from beetle.contracts.codec import UNSET, decode_request, pack
from beetle.contracts.control import UnsubscribeReport, UnsubscribeRequest
from beetle.contracts.envelope import PROTOCOL, RequestId, WireAnswer, WireError, WireEvent, WireRequest
from beetle.contracts.errors import (
    BeetleError,
    InvalidFrame,
    InvalidRequest,
    NotFound,
    Overloaded,
    PayloadTooLarge,
    StoreLocked,
    StoreReadOnly,
)
from beetle.runtime.dispatcher import Call, Dispatcher
from beetle.runtime.hub import Subscription
from beetle.runtime.principals import Peer, Principals
from beetle.transports.frames import Frame, FrameLimits, FrameReader

log = logging.getLogger("beetle.socket")

BACKLOG = 1024
CHUNK = 65_536
SEND_SECONDS = 30
"""A reader that takes nothing for this long is given up."""
STACK_BYTES = 512 * 1024
SO_PEERGROUPS = 59
STOP_SECONDS = 10.0


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
        self._stopping = False
        self._listener: socket.socket | None = None
        self._acceptor = threading.Thread(target=self._accept, name="beetle-accept", daemon=True)

    def start(self) -> None:
        """Bind and serve.

        Raises:
            StoreLocked: another daemon answers at the path.
            StoreReadOnly: the path cannot be bound, or is something that is not a socket.
        """
        threading.stack_size(STACK_BYTES)
        self._listener = _bind(self._path, self._group)
        self._acceptor.start()

    def stop(self) -> None:
        """Take no more connections, let every request that was begun be answered, then close."""
        with self._guard:
            self._stopping = True
            waiting = list(self._open.values())
        assert self._listener is not None
        # Wakes the accepting thread, which close() alone would leave waiting.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join()
        Path(self._path).unlink(missing_ok=True)
        for connection in waiting:
            connection.finish()
        end = time.monotonic() + STOP_SECONDS
        for connection in waiting:
            connection.join(max(0.0, end - time.monotonic()))

    @property
    def connections(self) -> int:
        """Connections that are open now."""
        return len(self._open)

    def _accept(self) -> None:
        assert self._listener is not None
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError as error:
                if self._stopping:
                    return
                log.warning("accept failed: %s", error.strerror)
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    time.sleep(0.05)  # out of descriptors: only a connection that ends helps
                    continue
                return
            self._admit(peer)

    def _admit(self, peer: socket.socket) -> None:
        if len(self._open) >= self._budgets.connections:
            _turn_away(peer, self._budgets.connections)
            return
        connection = _Connection(peer, self._dispatcher, self._principals, self._forget)
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
        self._reader = FrameReader(FrameLimits(budgets.frame_bytes, budgets.nesting))
        self._begun_seconds = budgets.begun_frame_seconds
        self._deadline: float | None = time.monotonic() + budgets.first_frame_seconds
        self._sending = threading.Lock()
        self._subscriptions: dict[str, Subscription] = {}
        self._thread = threading.Thread(target=self._run, name="beetle-connection", daemon=True)
        _timeout(peer, socket.SO_SNDTIMEO, SEND_SECONDS)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """Read nothing more; what was begun is answered."""
        with contextlib.suppress(OSError):  # the peer may be gone already
            self._socket.shutdown(socket.SHUT_RD)

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
            for subscription in self._subscriptions.values():
                self._dispatcher.hub.close(subscription)
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
        opened: Subscription | None = None
        try:
            request = _decode(frame)
            if request.op == "subscribe":
                report, opened = self._dispatcher.subscribe(self._call(request))
                answer = WireAnswer(id=request.id, ok=True, report=report)
            elif request.op == "unsubscribe":
                answer = WireAnswer(id=request.id, ok=True, report=self._unsubscribe(request))
            else:
                report, repeated = self._dispatcher.dispatch(self._call(request))
                answer = WireAnswer(id=request.id, ok=True, report=report, repeated=repeated or UNSET)
        except BeetleError as error:
            answer = _refusal(_id_of(frame) if request is None else request.id, error)
        if opened is not None:
            self._subscriptions[opened.sub] = opened
        self._send(answer)
        if opened is not None:
            # Only now: an event must not name a subscription that the peer has not heard of.
            threading.Thread(target=self._pump, args=(opened,), name="beetle-events", daemon=True).start()

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
        )

    def _unsubscribe(self, request: WireRequest) -> UnsubscribeReport:
        wanted = decode_request(request.args, UnsubscribeRequest, scanned=True)
        subscription = self._subscriptions.pop(wanted.sub, None)
        if subscription is None:
            raise NotFound(
                kind="subscription", name=wanted.sub, listing="a connection ends its own subscriptions alone"
            )
        self._dispatcher.hub.close(subscription)
        return UnsubscribeReport(sub=wanted.sub)

    def _pump(self, subscription: Subscription) -> None:
        try:
            while (delivery := subscription.take()) is not None:
                if delivery.logged is None:
                    self._send(WireEvent(sub=subscription.sub, event={"dropped": delivery.dropped}))
                    continue
                event = delivery.logged.event
                told = {"event": event.event, "operation": event.operation, **event.subject}
                self._send(WireEvent(sub=subscription.sub, topic=event.topic, event=told, seq=delivery.logged.seq))
        except OSError:
            self.finish()

    def _send(self, message: Any) -> None:
        data = pack(message)
        with self._sending:
            self._socket.sendall(data)

    def _last_words(self, error: BeetleError) -> None:
        try:
            self._send(_refusal(None, error))
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it does not listen


def _decode(frame: Frame) -> WireRequest:
    if frame.fault is not None:
        path, reason = frame.fault
        raise InvalidRequest(reason=f"{reason} - at {path}", path=path)
    request = decode_request(frame.data, WireRequest, "$", scanned=True)
    if request.v != PROTOCOL:
        raise InvalidRequest(reason=f"this daemon speaks protocol {PROTOCOL}, not {request.v}", path="$.v")
    return request


def _id_of(frame: Frame) -> RequestId | None:
    if frame.fault is not None and frame.fault.path == "$.id":
        return None
    try:
        return decode_request(frame.data, _LenientId, "$", scanned=True).id
    except InvalidRequest:
        return None


def _refusal(request_id: RequestId | None, error: BeetleError) -> WireAnswer:
    told = WireError(
        key=error.key, message=error.message, hint=error.hint, retryable=error.retryable, details=error.details
    )
    return WireAnswer(id=request_id, ok=False, error=told)


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
    pid, uid, gid = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    try:
        data = peer.getsockopt(socket.SOL_SOCKET, SO_PEERGROUPS, 4096)
    except OSError:
        data = b""  # an old kernel, or more groups than fit: the primary group still counts
    groups = struct.unpack(f"{len(data) // 4}I", data)
    return Peer(uid, (gid, *(each for each in groups if each != gid)), pid)


def _timeout(peer: socket.socket, option: int, seconds: float) -> None:
    """A timeout for one direction alone; 0 waits for ever."""
    micros = max(1, int(seconds * 1_000_000)) if seconds else 0
    peer.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", micros // 1_000_000, micros % 1_000_000))


def _bind(path: str, group: int | None) -> socket.socket:
    _clear(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    # The mode must be right from the moment the socket is there; before any thread runs, the mask may be changed.
    mask = os.umask(0o177)
    try:
        _make_folder(Path(path).parent, group)
        listener.bind(path)
        if group is not None:
            os.chown(path, -1, group)
            os.chmod(path, 0o660)
    except OSError as error:
        listener.close()
        raise StoreReadOnly(path=path, reason=f"the socket cannot be made there ({error.strerror})") from error
    finally:
        os.umask(mask)
    listener.listen(BACKLOG)
    return listener


def _make_folder(folder: Path, group: int | None) -> None:
    """A folder that beetle makes is its own; one that was there is left as it is."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir()
    folder.chmod(0o700 if group is None else 0o750)
    if group is not None:
        os.chown(folder, -1, group)


def _clear(path: str) -> None:
    """Remove a stale socket, and nothing else."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreReadOnly(path=path, reason=f"the socket cannot be made there ({error.strerror})") from error
    if not stat.S_ISSOCK(mode):
        raise StoreReadOnly(path=path, reason="something that is not a socket is there")
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.settimeout(2)
        probe.connect(path)
    except OSError:
        os.unlink(path)
    else:
        advice = f"use it: beetle --socket {path} status; or give another --socket"
        raise StoreLocked(store=f"the socket {path}", pid="unknown", socket=path, advice=advice)
    finally:
        probe.close()
