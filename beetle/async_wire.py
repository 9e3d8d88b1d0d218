"""A connection of the client for asyncio: many requests at once, or one subscription."""

from __future__ import annotations

import asyncio
import socket
from collections import deque

from beetle.calls import (
    FIRST_WAIT_S,
    OF_PARENT,
    Frames,
    NoDaemon,
    NotSent,
    Received,
    Said,
    Sent,
    decoded,
    packed,
    step_of,
    told_of_forks,
)
from beetle.contracts.codec import Raw
from beetle.contracts.envelope import WireEvent
from beetle.contracts.errors import BeetleError
from beetle.contracts.progress import OnProgress

MANY_EVENTS = 256
"""Events that nobody has taken: then the connection is not read, and the daemon counts what it drops."""


class Wire(asyncio.Protocol):
    """Cuts what it receives into frames, and hands each answer to whoever waits for its id."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.closed = False
        self._waiting: dict[int, asyncio.Future[Received]] = {}
        self._followers: dict[str, tuple[int, OnProgress]] = {}
        self._frames = Frames(path)
        self._room = asyncio.Event()
        self._room.set()
        self._transport: asyncio.Transport | None = None
        self._peer: socket.socket | None = None
        told_of_forks(self)

    def leave_to_parent(self) -> None:
        """In a forked process: close its descriptor alone, as the parent's loop watches the connection."""
        self._let_go()

    def leave_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """End the connection outside of its loop, which does not run."""
        if loop.is_closed():
            self._let_go()
        else:
            self.abort()

    def _let_go(self) -> None:
        # Nothing here may touch the loop: it is closed, or what it watches is shared with the parent process.
        self._transport = None
        self.closed = True
        if self._peer is not None:
            self._peer.close()

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for an answer."""
        return not self._waiting

    async def open(self) -> None:
        """Connect.

        Raises:
            NoDaemon: nobody answers at the path.
        """
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        self._peer = peer
        try:
            while not _connected(peer, self.path):
                # Its backlog is full, and no descriptor tells when it has room again.
                await asyncio.sleep(FIRST_WAIT_S)
            await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=peer)
        except BaseException:
            peer.close()
            raise

    async def ask(self, request: Sent, data: bytes) -> Received:
        """Send a request and wait for its answer, or for one without an id: that is about the connection itself.

        Raises:
            ConnectionError: the connection ended first.
            InvalidFrame: what came is no answer.
        """
        answer: asyncio.Future[Received] = asyncio.get_running_loop().create_future()
        self._waiting[request.id] = answer
        try:
            while not self._room.is_set():
                await self._room.wait()
            self._send(data)
            return await answer
        finally:
            self._waiting.pop(request.id, None)

    def send(self, request: Sent) -> None:
        """Send a request whose answer is of no interest."""
        if not self.closed:
            self._send(packed(request))

    def follow(self, sub: str, request_id: int, on_progress: OnProgress) -> None:
        """Hand on what a subscription says of this request, until `unfollow`."""
        self._followers[sub] = (request_id, on_progress)

    def unfollow(self, sub: str) -> None:
        self._followers.pop(sub, None)

    def abort(self) -> None:
        """End the connection now; what is not sent yet is dropped."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            self._frames.feed(data)
            while (frame := self._frames.next_frame()) is not None:
                self.take(frame)
        except BeetleError as error:  # whoever is there speaks something else
            self._end(error)
            self.abort()

    def take(self, frame: bytes) -> None:
        """One frame that came."""
        answer = decoded(frame, Received, self.path)
        if answer.sub is not None:
            self._hand_on(answer.sub, answer.event)
        elif answer.id is None:
            self.closed = True
            for waiting in self._waiting.values():
                _settle(waiting, answer)
            self.abort()
        elif isinstance(answer.id, int) and (waiting := self._waiting.get(answer.id)) is not None:
            _settle(waiting, answer)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._end(ConnectionResetError("the daemon closed the connection"))

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def _send(self, data: bytes) -> None:
        if self.closed or self._transport is None:
            raise NotSent
        self._transport.write(data)
        if self._transport.is_closing():
            raise NotSent

    def _end(self, error: Exception) -> None:
        self.closed = True
        self._room.set()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(error)

    def _hand_on(self, sub: str, event: Raw) -> None:
        request_id, on_progress = self._followers.get(sub, (0, None))
        if on_progress is None:
            return
        said = decoded(event, Said, self.path)
        step = step_of(said)
        if step is not None and said.id == request_id:
            # Apart from reading: what it raises is the loop's to report, and no other call's.
            asyncio.get_running_loop().call_soon(on_progress, step)


class EventWire(Wire):
    """A connection whose one subscription's events are taken one by one."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._events: deque[WireEvent] = deque()
        self._came = asyncio.Event()
        self._failed: Exception | None = None

    async def next_event(self) -> WireEvent | None:
        """The next event; None once the connection was closed on this side.

        Raises:
            ConnectionError, InvalidFrame: it ended otherwise.
        """
        while not self._events:
            if self._failed is not None:
                raise self._failed
            if self.closed:
                return None
            self._came.clear()
            await self._came.wait()
        event = self._events.popleft()
        if self._transport is not None and len(self._events) == MANY_EVENTS // 2:
            self._transport.resume_reading()
        return event

    def take(self, frame: bytes) -> None:
        if decoded(frame, Received, self.path).sub is None:
            super().take(frame)
            return
        self._events.append(decoded(frame, WireEvent, self.path))
        self._came.set()
        if self._transport is not None and len(self._events) >= MANY_EVENTS:
            self._transport.pause_reading()

    def abort(self) -> None:
        super().abort()
        self._came.set()

    def leave_to_parent(self) -> None:
        if not self.closed:
            self._failed = ConnectionResetError(OF_PARENT)
        super().leave_to_parent()
        self._events.clear()

    def _end(self, error: Exception) -> None:
        if not self.closed:
            self._failed = error
        super()._end(error)
        self._came.set()


def _connected(peer: socket.socket, path: str) -> bool:
    try:
        peer.connect(path)
    except BlockingIOError:
        return False
    except OSError as error:
        raise NoDaemon(path, error.strerror or str(error)) from None
    return True


def _settle(waiting: asyncio.Future[Received], answer: Received) -> None:
    if not waiting.done():
        waiting.set_result(answer)
