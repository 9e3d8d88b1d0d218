"""The blocking client over the daemon's Unix socket."""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from beetle.calls import (
    CHUNK,
    OF_PARENT,
    ClientClosed,
    ConnectionLost,
    Frames,
    NoDaemon,
    NotSent,
    Patience,
    Received,
    Requests,
    Said,
    Sent,
    Unanswered,
    decoded,
    key_of,
    packed,
    report_of,
    seconds_for,
    seconds_of,
    step_of,
    told_of_forks,
)
from beetle.contracts.codec import Raw
from beetle.contracts.common import Report, WireScope
from beetle.contracts.control import SubscribeReport
from beetle.contracts.envelope import DeviceAuth, WireEvent
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.operations import BY_NAME
from beetle.contracts.progress import OnProgress
from beetle.import_export import FileMethods

if TYPE_CHECKING:
    from beetle.session import Session

__all__ = ["Client", "ClientClosed", "ConnectionLost", "Events", "NoDaemon", "key_of"]


class _Lane:
    """A place for one connection, opened when it is first used."""

    def __init__(self) -> None:
        self.wire: _Wire | None = None

    def drop(self) -> None:
        if self.wire is not None:
            self.wire.close()
            self.wire = None


class _Lanes:
    """The client's connections; whoever asks has one of them alone."""

    def __init__(self, count: int) -> None:
        self.all = tuple(_Lane() for _ in range(count))
        self._free = list(self.all)
        self._changed = threading.Condition()
        self._turn = itertools.count()

    def one(self) -> _Lane:
        """For requests that must go over one connection."""
        return self.all[next(self._turn) % len(self.all)]

    def leave_to_parent(self) -> None:
        """Begin anew: what other threads have taken is nobody's in a forked process."""
        self._changed = threading.Condition()
        for lane in self.all:
            lane.wire = None
        self._free = list(self.all)

    @contextlib.contextmanager
    def taken(self, seconds: float | None, lane: _Lane | None = None) -> Iterator[_Lane]:
        """This one, or any: the one used last, so that few stay open where few are needed."""
        with self._changed:
            free = self._free
            if not self._changed.wait_for(lambda: bool(free) if lane is None else lane in free, seconds):
                raise TimeoutError("the calls of other threads have not ended")
            got = free[-1] if lane is None else lane
            free.remove(got)
        try:
            yield got
        finally:
            with self._changed:
                free.append(got)
                self._changed.notify_all()


class Client(FileMethods):
    """A bounded pool of connections, one by default; a context manager. Threads may share it: a call has a
    connection to itself, and waits for one while all are taken.

    A lost connection is opened again and the request repeated; a write carries an idempotency key, so that repeating it
    changes nothing twice. Errors that say they are retryable are tried again until `timeout` has passed.

    A forked process opens connections of its own.
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
        pool: int = 1,
        away: float | None = None,
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
            pool: most connections at once; each is opened when it is needed.
            away: seconds for which a daemon that ends during a call is waited for, 0 for none; else `timeout`.

        Raises:
            NoDaemon: no daemon answers at `path`.
            DaemonUnavailable: no path was given, and no daemon answers anywhere.
            InvalidRequest: both `auth` and `as_` were given, `pool` is below 1, or a time is no number above 0.
            Forbidden: no path was given, and this user may not use the socket that was found.
            TimeoutError: a process listens there, and accepts no connection.
        """
        if pool < 1:
            raise InvalidRequest(reason=f"a pool of {pool} connections", hint="give 1 or more")
        self._requests = Requests(scope, auth, as_)
        self._timeout = seconds_of("timeout", timeout)
        self._retry = retry
        self._away = self._timeout if away is None else seconds_of("away", away, zero=True)
        self._lanes = _Lanes(pool)
        self._closed = threading.Event()
        self._told = threading.local()
        told_of_forks(self)
        end = time.monotonic() + self._timeout
        first = _found(end) if path is None else _Wire(path, end)
        self._lanes.all[-1].wire = first
        self.path = first.path

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
            NoDaemon: the daemon could not be reached.
            TimeoutError: it did not answer in time; the text names the idempotency key of what may have been done.
            ConnectionLost: the daemon went away during the call, and did not come back in time.
            ClientClosed: `close` was called.
        """
        key = key_of(operation, idempotency_key)
        row = BY_NAME.get(operation)
        if row is None or not row.carries:
            request = self._requests.make(operation, arguments, scope, key, deadline_ms)
            return self._call(request, on_progress)
        from beetle.asking import run
        from beetle.pieces import Piecewise

        lane = self._lanes.one()

        def ask(name: str, given: Any) -> Report:
            if name != operation:
                return self._call(self._requests.make(name, given, scope, None, deadline_ms), None, lane)
            return self._call(self._requests.make(name, given, scope, key, deadline_ms), on_progress, lane)

        return run(Piecewise(row, arguments, on_progress, time.monotonic() + self._timeout).steps(), ask)

    def _call(self, request: Sent, on_progress: OnProgress | None, lane: _Lane | None = None) -> Report:
        data = packed(request)
        end = time.monotonic() + seconds_for(request, self._timeout)
        with self._lanes.taken(self._timeout, lane) as taken:
            patience = Patience(end, self._retry, self._away, request.idempotency_key)
            answer = self._patiently(lambda: self._once(taken, request, data, end, on_progress), patience)
        self._told.repeated = answer.repeated
        return report_of(answer, request.op, self.path)

    def subscribe(self, topics: Iterable[str], *, scope: WireScope | None = None) -> Events:
        """Events of the topics as they happen, over a connection of their own, until the iterator is closed.

        The subscription is active when this returns: every later event is delivered. The iterator is a context
        manager; it outlives the client. A connection that is lost raises ConnectionError: events may have been missed.
        So does one in a forked process: the events are the parent's.

        Raises:
            BeetleError, NoDaemon, ConnectionLost, TimeoutError, ClientClosed: as for `call`.
        """
        if self._closed.is_set():
            raise ClientClosed(self.path)
        request = self._requests.make("subscribe", {"topics": list(topics)}, scope)
        data = packed(request)
        end = time.monotonic() + self._timeout
        opened: list[Events] = []

        def attempt() -> Received:
            wire = _Wire(self.path, end)
            try:
                answer = wire.ask(request.id, data, end)
                if answer.error is None:
                    decoded(answer.report, SubscribeReport, self.path)
            except BaseException:
                wire.close()
                raise
            if answer.error is None:
                opened.append(Events(wire))
            else:
                wire.close()
            return answer

        self._patiently(attempt, Patience(end, self._retry, self._away, None))
        return opened[0]

    def session(
        self,
        *,
        owner: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
        channel: str | None = None,
    ) -> Session:
        """The same client for one owner, agent and conversation, which every call of the session then names.

        Args:
            owner: whose memory; the client's own when left out, as for the others.
            agent: which agent of theirs.
            conversation: id of the conversation that calls are about which need one.
            channel: the channel of that conversation.
        """
        from beetle.calls import session_scope
        from beetle.session import Session

        return Session(self, session_scope(self._requests.scope, owner, agent, conversation, channel))

    def another(self, timeout: float | None = None) -> Client:
        """A client with a connection of its own: the same daemon, caller and scope; `timeout` in seconds, else as here.

        Raises:
            NoDaemon, TimeoutError: as for the first.
        """
        seconds = self._timeout if timeout is None else timeout
        same = {"scope": self._requests.scope, "auth": self._requests.device, "as_": self._requests.as_}
        away = None if self._away == self._timeout else self._away
        return Client(self.path, timeout=seconds, retry=self._retry, away=away, **same)

    def close(self) -> None:
        """Close the connections for good; calls that other threads wait in end with ClientClosed."""
        self._closed.set()
        for lane in self._lanes.all:
            wire = lane.wire
            if wire is not None:
                wire.shut()
        for lane in self._lanes.all:
            with self._lanes.taken(None, lane):
                lane.drop()

    def leave_to_parent(self) -> None:
        """In a forked process: begin without connections, and with locks that no thread of the parent holds."""
        self._lanes.leave_to_parent()
        closed, self._closed = self._closed.is_set(), threading.Event()
        if closed:
            self._closed.set()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _patiently(self, attempt: Callable[[], Received], patience: Patience) -> Received:
        while True:
            try:
                answer = attempt()
            except ClientClosed:
                raise
            except TimeoutError as late:
                raise patience.told_late(late, self.path) from None
            except ConnectionError as lost:
                if self._closed.is_set():
                    raise ClientClosed(self.path) from None
                wait = patience.after_loss(lost, self.path)
            else:
                if answer.error is None:
                    return answer
                wait = patience.after(answer.error)
            if self._closed.wait(wait):
                raise ClientClosed(self.path)

    def _once(self, lane: _Lane, request: Sent, data: bytes, end: float, on_progress: OnProgress | None) -> Received:
        if lane.wire is None and not self._closed.is_set():
            lane.wire = _Wire(self.path, end)
        # Looked at once the wire is where `close` finds it: either it shuts the wire, or this sees that it was called.
        if lane.wire is None or self._closed.is_set():
            raise ClientClosed(self.path)
        try:
            if on_progress is None:
                answer = lane.wire.ask(request.id, data, end)
            else:
                answer = self._followed(lane.wire, request.id, data, end, on_progress)
        except TimeoutError:
            lane.drop()
            raise Unanswered(self.path, request.idempotency_key) from None
        except BaseException:
            # Interrupted anywhere, the next call must not meet half a request or an answer that is not its own.
            lane.drop()
            raise
        if answer.id is None:
            lane.drop()
        return answer

    def _followed(self, wire: _Wire, request_id: int, data: bytes, end: float, on_progress: OnProgress) -> Received:
        """Ask, and follow meanwhile on the same connection how far it is."""
        begin = self._requests.follow()
        begun = wire.ask(begin.id, packed(begin), end)
        if begun.id is None:
            return begun
        if begun.error is not None:
            return wire.ask(request_id, data, end)
        answer = wire.ask(request_id, data, end, on_progress)
        if answer.id is not None:
            sub = decoded(begun.report, SubscribeReport, self.path).sub
            stop = self._requests.make("unsubscribe", {"sub": sub})
            wire.ask(stop.id, packed(stop), end)
        return answer


class Events(Iterator[WireEvent]):
    """The events of one subscription; a context manager. `close` ends the iteration, from any thread."""

    def __init__(self, wire: _Wire) -> None:
        self._wire = wire
        self._guard = threading.Lock()
        self._closed = False
        told_of_forks(self)

    def leave_to_parent(self) -> None:
        """In a forked process: go on without the lock, which a thread of the parent may hold."""
        self._guard = threading.Lock()

    def __next__(self) -> WireEvent:
        with self._guard:
            try:
                if not self._closed:
                    return decoded(self._wire.receive(None), WireEvent, self._wire.path)
            except Exception:  # raised again, unless it came of `close`
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
        told_of_forks(self)
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
        self._frames = Frames(path)

    def leave_to_parent(self) -> None:
        """In a forked process: close its descriptor alone; the connection, and what it received, are the parent's."""
        self._socket.close()
        self._frames = Frames(self.path)

    def ask(self, request_id: int, data: bytes, end: float, on_progress: OnProgress | None = None) -> Received:
        """Send a request and wait for its answer, or for one without an id: that is about the connection itself.

        `on_progress` is told of what comes meanwhile for a subscription of this connection.
        """
        sent = True
        try:
            self._socket.settimeout(_left(end))
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            sent = False  # the daemon closed meanwhile; what it said before is still there to be read
        while True:
            try:
                frame = self.receive(end)
            except ConnectionError:
                if sent:
                    raise
                raise NotSent from None
            answer = decoded(frame, Received, self.path)
            if answer.sub is not None:
                if on_progress is not None:
                    _report_progress(on_progress, answer.event, self.path)
                continue
            if answer.id is None or answer.id == request_id:
                return answer

    def receive(self, end: float | None) -> bytes:
        """The next frame; without an end it is waited for as long as it takes."""
        while (frame := self._frames.next_frame()) is None:
            if self._socket.fileno() < 0:
                raise ConnectionResetError(OF_PARENT)
            self._socket.settimeout(None if end is None else _left(end))
            data = self._socket.recv(CHUNK)
            if not data:
                raise ConnectionResetError("the daemon closed the connection")
            self._frames.feed(data)
        return frame

    def shut(self) -> None:
        """Wake whoever waits in this connection; only its own thread may close it."""
        with contextlib.suppress(OSError):  # it has ended
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()


def _report_progress(on_progress: OnProgress, event: Raw, path: str) -> None:
    step = step_of(decoded(event, Said, path))
    if step is not None:
        on_progress(step)


def _left(end: float) -> float:
    return max(0.001, end - time.monotonic())


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
