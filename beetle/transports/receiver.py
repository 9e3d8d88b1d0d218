"""One thread that takes the requests of connections whose clients write beside each other.

Each connection has a thread of its own, and each change from one thread to another costs as much as a good part of a
small write. So connections that have just written, while others did too, lend themselves to this thread: it reads their
next requests, begins those that are brief writes, commits them together, and sends their answers. Whatever else comes
(another operation, a part of a frame, the end, a peer that does not read) it gives back unread or as far as it was
read, and the connection's own thread goes on from there. Nothing is waited for here but a moment for as many writes as
came together before, and a commit while commits are brief: others are the writer's thread's.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from beetle.runtime.pipeline.dispatcher import Dispatcher
from beetle.transports.messages import Begun, defect_of

if TYPE_CHECKING:
    from beetle.transports.socket_connection import SocketConnection


class Receiver:
    """Serves what is lent to it. Its thread begins with the first connection that is."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = False
        # By the number of the descriptor. A connection that is lent closes none.
        self._lent: dict[int, SocketConnection] = {}
        self._waiting: dict[int, Begun] = {}
        # Something came while a request waited: it is looked at by the connection's own thread, behind the answer.
        self._leaving: set[int] = set()
        self._ended: deque[int] = deque()
        self._is_told = False
        self._soonest: float | None = None
        """Before it no write that waits is late (monotonic seconds)."""

    @property
    def is_of_use(self) -> bool:
        """Whether others write beside a connection that has just written."""
        return bool(self._lent) or self._dispatcher.shared.store.writes_have_company

    def take(self, connection: SocketConnection) -> bool:
        """Serve a connection until it is given back; false where this cannot be, and its own thread goes on."""
        with self._guard:
            if self._stopping or not self._runs():
                return False
            self._lent[connection.descriptor] = connection
            self._poll.register(connection.descriptor, select.EPOLLIN)
            return True

    def stop(self) -> None:
        """Give back what is lent, and end."""
        with self._guard:
            self._stopping = True
            thread = self._thread
        self._ring()
        if thread is not None:
            thread.join()

    def _runs(self) -> bool:
        """Whether its thread does; it is begun here. False where the system has no descriptor or no thread left."""
        if self._thread is not None:
            return True
        try:
            self._poll = select.epoll()
        except OSError:
            return False
        try:
            self._bell = os.eventfd(0)
        except OSError:
            self._poll.close()
            return False
        self._poll.register(self._bell, select.EPOLLIN)
        thread = threading.Thread(target=self._run, name="beetle-receiver", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self._poll.close()
            os.close(self._bell)
            return False
        self._thread = thread
        return True

    def _run(self) -> None:
        while not self._stopping:
            self._read(self._seconds_left())
            self._gather()
            self._withdraw_late()
            self._commit()
            while self._ended:
                self._serve(self._ended.popleft(), self._end)
        with self._guard:
            self._thread = None
            for descriptor in list(self._lent):
                self._give_back(descriptor)
            self._poll.close()
            os.close(self._bell)

    def _read(self, seconds: float | None) -> None:
        """Take what has come, or comes within so many seconds."""
        for descriptor, _ in self._poll.poll(seconds):
            if descriptor == self._bell:
                os.eventfd_read(self._bell)
            elif descriptor in self._waiting:
                self._poll.unregister(descriptor)
                self._leaving.add(descriptor)
            else:
                self._serve(descriptor, self._begin)

    def _gather(self) -> None:
        """Wait a moment for as many writes as came together before: those that were answered together come again
        together, and share a commit."""
        if not self._waiting:
            return
        company, wait = self._dispatcher.shared.store.writes_expected()
        end = time.monotonic() + wait
        while (
            not self._ended
            and len(self._waiting) < min(company, len(self._lent))
            and (left := end - time.monotonic()) > 0
        ):
            self._read(left)

    def _commit(self) -> None:
        # What ends on this thread needs no bell.
        self._is_told = True
        try:
            self._dispatcher.shared.store.go_on()
        except Exception as defect:  # noqa: BLE001 - the boundary: a defect of one commit must not end the thread
            defect_of(defect)
        self._is_told = False

    def _serve(self, descriptor: int, how: Callable[[int], None]) -> None:
        """Do something for a connection. One that fails ends, and no other one with it."""
        try:
            how(descriptor)
            return
        except OSError:
            pass  # its peer is gone
        except Exception as defect:  # noqa: BLE001 - the boundary: one request's defect must not end the others
            defect_of(defect)
        self._waiting.pop(descriptor, None)
        self._lent[descriptor].abort()
        self._give_back(descriptor)

    def _begin(self, descriptor: int) -> None:
        connection = self._lent[descriptor]
        is_alone = len(self._lent) == 1 and not self._dispatcher.shared.store.writes_have_company
        begun = None if is_alone else connection.begin()
        if begun is None:
            self._give_back(descriptor)
        elif isinstance(begun, bytes):
            self._answer(descriptor, begun)
        else:
            self._queue(descriptor, begun)

    def _queue(self, descriptor: int, begun: Begun) -> None:
        if begun.call.queue(lambda: self._tell(descriptor)):
            self._waiting[descriptor] = begun
            deadline = begun.call.deadline
            if deadline is not None and (self._soonest is None or deadline < self._soonest):
                self._soonest = deadline
        else:
            self._lent[descriptor].go_on_with(begun)
            self._give_back(descriptor)

    def _tell(self, descriptor: int) -> None:
        """On the writer's thread: a write has ended."""
        self._ended.append(descriptor)
        if not self._is_told:
            self._is_told = True
            self._ring()

    def _ring(self) -> None:
        """Wake its thread. It closes the bell as it ends, whose number may be another's then."""
        with self._guard:
            if self._thread is not None:
                os.eventfd_write(self._bell, 1)

    def _end(self, descriptor: int) -> None:
        self._answer(descriptor, self._waiting.pop(descriptor).answer())

    def _answer(self, descriptor: int, data: bytes) -> None:
        """Send an answer. Who does not read gets it from the connection's own thread, which may wait for that."""
        if not self._lent[descriptor].send_now(data) or descriptor in self._leaving:
            self._give_back(descriptor)

    def _give_back(self, descriptor: int) -> None:
        connection = self._lent.pop(descriptor)
        if descriptor in self._leaving:
            self._leaving.remove(descriptor)
        else:
            self._poll.unregister(descriptor)
        connection.take_back()

    def _seconds_left(self) -> float | None:
        """Until a write that waits may be late."""
        return None if self._soonest is None else max(0.0, self._soonest - time.monotonic())

    def _withdraw_late(self) -> None:
        if self._soonest is None or (now := time.monotonic()) <= self._soonest:
            return
        later: list[float] = []
        for descriptor, begun in self._waiting.items():
            deadline = begun.call.deadline
            if deadline is not None and deadline >= now:
                later.append(deadline)
            elif deadline is not None and begun.call.withdraw():
                self._ended.append(descriptor)
        # Of one that has passed and was not withdrawn the write runs, and tells when it ends.
        self._soonest = min(later, default=None)
