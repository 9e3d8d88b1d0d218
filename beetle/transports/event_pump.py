"""The events of one connection's subscriptions, on their way to its peer (WIRE.md §2)."""

from __future__ import annotations

import select
import socket
import threading
from collections import deque
from collections.abc import Callable

from beetle.contracts.codec import pack
from beetle.contracts.errors import BeetleError
from beetle.runtime.host.caller import Caller
from beetle.runtime.pipeline.crowd import Work
from beetle.runtime.pipeline.dispatcher import Dispatcher
from beetle.runtime.pipeline.subscriptions import NUDGE, Delivery, Inbox, Subscription
from beetle.transports.messages import event_frame

AT_ONCE_BYTES = 16_384
"""Events that are sent with one call, but for a longer one: a small part of what a socket has room for when it says
that it has some."""

LOOK_MS = 1000
"""How often it is looked whether a peer that does not read may still follow."""
Frames = deque[tuple[Subscription, bytes]]


class EventPump:
    """One thread of a connection that has subscriptions, from the first of them to its end."""

    def __init__(
        self,
        peer: socket.socket,
        sending: threading.Lock,
        dispatcher: Dispatcher,
        identify: Callable[[], Caller],
        finish: Callable[[], None],
    ) -> None:
        """
        Args:
            sending: held by whoever sends a frame to the peer.
            identify: whom the transport takes the peer for now.
            finish: ends the connection once what was begun on it is answered.
        """
        self.inbox = Inbox()
        self._socket = peer
        self._sending = sending
        self._dispatcher = dispatcher
        self._identify = identify
        self._finish = finish
        self._thread = threading.Thread(target=self._run, name="beetle-events", daemon=True)

    @property
    def runs(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        """Run, unless it does already. Raises RuntimeError when the system has no thread left."""
        if not self.runs:
            self._thread.start()

    def end(self) -> None:
        """Send nothing more. A peer that reads nothing is waited for, unless its socket is shut down."""
        self.inbox.close()
        if self.runs:
            self._thread.join()

    def _run(self) -> None:
        try:
            while taken := self.inbox.take():
                if not self._hand_over(taken):
                    # The peer has other rights now, or what it proved holds no more: it must ask again.
                    self._finish()
                    return
        except (OSError, BeetleError):  # the peer is gone; or its rights cannot be read
            self._finish()

    def _hand_over(self, taken: list[tuple[Subscription, Delivery]]) -> bool:
        """Send what was taken, when the peer reads; false once it may not be told any more of it."""
        # While others ask, a principal's connections have their events looked at one by one. It does not count as
        # asking itself: beside whoever only follows, nobody takes turns.
        work = Work(self._dispatcher.crowd, taken[0][0].by)
        followed, frames = set(dict(taken)), Frames()
        while True:
            with work.going_on():
                peer = self._identify()
                if not all(self._dispatcher.follows(each, peer) for each in followed):
                    return False
                if taken:
                    frames.extend((each, pack(event_frame(each.sub, what))) for each, what in taken if what != NUDGE)
                    taken = []
                self._send(frames)
            if not frames:
                return True
            followed = {each for each, _ in frames}
            # Its rights may end while it does not read.
            self._has_room(LOOK_MS)

    def _send(self, frames: Frames) -> None:
        """Send from the front what the peer has room for; the rest stays. So an event never holds up an answer, nor is
        a frame torn by a timeout."""
        while frames:
            with self._sending:
                if not self._has_room(0):
                    return
                self._socket.sendall(_cut(frames))

    def _has_room(self, milliseconds: int) -> bool:
        """Whether most of the socket's buffer is free, or the peer gone; waits so long for that."""
        poll = select.poll()
        poll.register(self._socket, select.POLLOUT)
        return bool(poll.poll(milliseconds))


def _cut(frames: Frames) -> bytes:
    """The front of the frames, as much as is sent at once. What has ended since is left out."""
    piece = b""
    while frames and (not piece or len(piece) + len(frames[0][1]) <= AT_ONCE_BYTES):
        subscription, data = frames.popleft()
        if not subscription.closed:
            piece += data
    return piece
