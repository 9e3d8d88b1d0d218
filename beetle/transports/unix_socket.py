"""The Unix socket: accepts connections, each with a thread of its own, and ends them (WIRE.md §2)."""

from __future__ import annotations

import logging
import select
import socket
import threading
import time

from beetle.contracts.errors import BeetleError, Overloaded
from beetle.runtime.host.principals import Principals
from beetle.runtime.pipeline.dispatcher import Dispatcher
from beetle.transports.listening import Listening, listen
from beetle.transports.receiver import Receiver
from beetle.transports.room import RETRY_MS, HeldBytes, Places
from beetle.transports.socket_connection import TRANSPORT, SocketConnection
from beetle.transports.turned_away import TurnedAway

log = logging.getLogger("beetle.socket")

STACK_BYTES = 512 * 1024
STOP_SECONDS = 10.0
ABORT_SECONDS = 2.0
RETRY_SECONDS = 0.05
LOOK_MS = 5000
"""How often it is looked whether the socket's file is still there: what clears old files may take it."""


class SocketServer:
    """Listens at one path and serves every connection on a thread of its own."""

    def __init__(self, dispatcher: Dispatcher, principals: Principals, path: str, group: int | None = None) -> None:
        self._dispatcher = dispatcher
        self._principals = principals
        self._path = path
        self._group = group
        self._budgets = dispatcher.shared.profile.budgets
        self._places = Places(self._budgets.connections)
        self._held = HeldBytes(self._budgets.held_bytes, self._budgets.connections)
        self._receiver = Receiver(dispatcher)
        self._open: dict[int, SocketConnection] = {}
        self._guard = threading.Lock()
        self._looking: threading.Timer | None = None
        self._stopping = threading.Event()
        self._listening: Listening | None = None
        self._lost = False
        self._turned_away = TurnedAway()
        self._acceptor = threading.Thread(target=self._accept, name="beetle-accept", daemon=True)

    def start(self) -> None:
        """Bind and serve.

        Raises:
            StoreLocked: another daemon answers at the path.
            StoreReadOnly: the path cannot be bound, or is something that is not a socket.
        """
        threading.stack_size(STACK_BYTES)
        self._listening = listen(self._path, self._group)
        self._dispatcher.hub.on_nudge = self._look_again
        self._dispatcher.sessions.act_as = self._principals.act_as
        self._dispatcher.sessions.transports.listens(TRANSPORT, self._path)
        self._acceptor.start()

    def stop(self) -> None:
        """Take no more connections, let every request that was begun be answered, then close."""
        self._stopping.set()
        self._dispatcher.hub.on_nudge = None
        with self._guard:
            looking, listening = self._looking, self._listening
        assert listening is not None
        if looking is not None:
            looking.cancel()
            looking.join()
        self._dispatcher.sessions.transports.ended(TRANSPORT)
        # While it still listens: a daemon that starts here from now on makes a socket of its own.
        listening.remove()
        # Wakes the accepting thread, which close() alone would leave waiting.
        listening.socket.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        listening.socket.close()
        with self._guard:
            waiting = list(self._open.values())
        for connection in waiting:
            connection.finish()
        _join(waiting, STOP_SECONDS)
        for connection in waiting:
            connection.abort()
        _join(waiting, ABORT_SECONDS)
        self._receiver.stop()

    @property
    def connections(self) -> int:
        """Connections that are open now."""
        return len(self._open)

    @property
    def held_bytes(self) -> int:
        """Bytes of frames and answers that are counted now."""
        return self._held.held

    def _accept(self) -> None:
        failing = False
        while not self._stopping.is_set():
            listening = self._waited()
            try:
                peer, _ = listening.accept()
            except BlockingIOError:
                continue
            except OSError as error:
                if not failing and not self._stopping.is_set():
                    log.warning("accept failed: %s", error.strerror, extra={"event": "accept_failed"})
                failing = True
                # Out of descriptors or memory: only a connection that ends helps. It is tried until the daemon ends,
                # since a daemon that accepts no more would look alive and answer nobody.
                self._stopping.wait(RETRY_SECONDS)
                continue
            failing = False
            peer.setblocking(True)
            self._admit(peer)
        self._turned_away.close()

    def _waited(self) -> socket.socket:
        """The listening socket, once somebody may have come to it."""
        assert self._listening is not None
        listening = self._listening.socket
        listening.setblocking(False)
        waiting = select.poll()
        waiting.register(listening, select.POLLIN)
        next_ms = self._turned_away.next_ms
        came = waiting.poll(LOOK_MS if next_ms is None else min(LOOK_MS, next_ms))
        self._turned_away.end()
        if not came and not self._listening.is_there():
            self._listen_again(self._listening)
        return self._listening.socket

    def _listen_again(self, gone: Listening) -> None:
        """Make the socket anew where its file is gone. One that another has made there stays."""
        try:
            made = listen(self._path, self._group)
        except BeetleError as error:
            if not self._lost:
                log.warning(
                    "the socket is gone, and cannot be made again: %s", error.message, extra={"event": "socket_lost"}
                )
            self._lost = True
            return
        with self._guard:
            ended = self._stopping.is_set()
            if not ended:
                self._listening, self._lost = made, False
        if ended:
            made.remove()
            made.socket.close()
            return
        gone.socket.close()
        log.warning("the socket %s was gone, and is made again", self._path, extra={"event": "socket_made_again"})

    def _admit(self, peer: socket.socket) -> None:
        try:
            connection = SocketConnection(
                peer, self._dispatcher, self._principals, self._places, self._held, self._receiver, self._forget
            )
        except Overloaded as error:
            self._turned_away.add(peer, error)
            return
        except OSError as error:
            log.warning("a connection was not taken: %s", error.strerror, extra={"event": "connection_not_taken"})
            peer.close()
            return
        with self._guard:
            self._open[id(connection)] = connection
        try:
            connection.start()
        except RuntimeError:  # the system has no thread left
            self._forget(connection)
            full = Overloaded(what="too many threads run", maximum=len(self._open), retry_after_ms=RETRY_MS)
            self._turned_away.add(peer, full)

    def _forget(self, connection: SocketConnection) -> None:
        # First its room: whoever sees that it is gone finds a place.
        connection.leave()
        with self._guard:
            self._open.pop(id(connection), None)

    def _look_again(self) -> None:
        """Rights have changed: who is nobody now may prove itself again as long as a new connection may, then ends."""
        with self._guard:
            if self._looking is not None or self._stopping.is_set():
                return
            self._looking = threading.Timer(self._budgets.first_frame_seconds, self._end_nobodies)
            self._looking.daemon = True
            self._looking.start()

    def _end_nobodies(self) -> None:
        with self._guard:
            self._looking = None
            connections = list(self._open.values())
        for connection in connections:
            if connection.is_nobody():
                connection.finish()


def _join(connections: list[SocketConnection], seconds: float) -> None:
    end = time.monotonic() + seconds
    for connection in connections:
        connection.join(max(0.0, end - time.monotonic()))
