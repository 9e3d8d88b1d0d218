"""One peer of the Unix socket: a thread cuts its frames, dispatches them, and sends the answers (WIRE.md §2)."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from beetle.contracts.codec import pack
from beetle.contracts.envelope import WireAnswer, WireRequest
from beetle.contracts.errors import BeetleError, DeadlineExceeded, InvalidFrame, Overloaded, PayloadTooLarge
from beetle.contracts.progress import PROGRESS_TOPIC, ProgressStep
from beetle.runtime.host.principals import Principals
from beetle.runtime.pipeline.begun import BegunCall
from beetle.runtime.pipeline.dispatcher import Dispatcher
from beetle.runtime.pipeline.invocation import Call
from beetle.runtime.pipeline.subscriptions import Progressed, Subscription
from beetle.transports.frames import Frame, FrameLimits, FrameReader
from beetle.transports.messages import Begun, answered, decoded, defect_of, id_of, refused
from beetle.transports.peer_socket import credentials, set_timeout
from beetle.transports.receiver import Receiver
from beetle.transports.room import FREE_BYTES, HeldBytes, Places, Share

if TYPE_CHECKING:
    from beetle.transports.event_pump import EventPump

TRANSPORT = "unix_socket"
CHUNK, FIRST_CHUNK = 65_536, 4_096
"""Bytes that are read at once within a frame, and of a new one. Each read takes as many from the heap and gives most
back: where small blocks that stay take a bit of each, the next needs another place, and a heap of large ones grows."""
SEND_SECONDS = 30
"""A reader that takes nothing for this long is given up."""
NOBODY_PAUSE_MS = 50
"""Between two requests of somebody whom nobody knows: each is refused, and that is work too."""
SUBSCRIPTIONS = 16
"""Most of one connection: each has a queue, and there are six topics."""
LARGE_PART = 16
"""A request over this part of the longest frame is large: what it decodes to may take many times its bytes, so that
few are worked at together."""


class SocketConnection:
    """One peer. Requests are answered in the order they came."""

    def __init__(
        self,
        peer: socket.socket,
        dispatcher: Dispatcher,
        principals: Principals,
        places: Places,
        held: HeldBytes,
        receiver: Receiver,
        forget: Callable[[SocketConnection], None],
    ) -> None:
        """Raises Overloaded when there is no place for it, OSError when the peer has gone."""
        budgets = dispatcher.shared.profile.budgets
        self._socket = peer
        self._dispatcher = dispatcher
        self._principals = principals
        self._receiver = receiver
        self._forget = forget
        self._peer = credentials(peer)
        caller = principals.identify(self._peer)
        self._proven = caller.kind != "unknown"
        set_timeout(peer, socket.SO_SNDTIMEO, SEND_SECONDS)
        self._places = places
        places.take(self._peer.uid, operator=caller.is_operator, proven=self._proven)
        # Whose place it has: its user's, until an operator's turns out to be somebody else's.
        self._user: int | str = self._peer.uid
        self._as_operator = caller.is_operator
        self._held = held
        self._share = Share(self._peer.uid, self._give_way)
        self.state = dispatcher.sessions.connections.open(TRANSPORT)
        self._hangup = select.poll()
        self._hangup.register(peer, 0)
        self._reader = FrameReader(FrameLimits(budgets.frame_bytes, budgets.nesting))
        self._large_bytes = max(FREE_BYTES, budgets.frame_bytes // LARGE_PART)
        self._begun_seconds = budgets.begun_frame_seconds
        self._first: float | None = time.monotonic() + budgets.first_frame_seconds
        self._begun: float | None = None
        self._timed = False
        self._answering = False
        # Whether its last request was one that the receiver could have begun; and what that gives back with it.
        self._may_lend = False
        self._back = threading.Event()
        self._ahead: Frame | None = None
        self._begun_apart: Begun | None = None
        self._unsent = b""
        self._sending = threading.Lock()
        self._subscriptions: dict[str, Subscription] = {}
        self._pump: EventPump | None = None
        self._thread = threading.Thread(target=self._run, name="beetle-connection", daemon=True)

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

    def leave(self) -> None:
        """Give back what it had of the server's room: first the bytes, then the right to them."""
        self._reader.drop()
        self._held.hold(self._share, 0)
        self._places.free(self._user, proven=self._proven)
        self._dispatcher.sessions.connections.close(self.state)
        self._dispatcher.shared.transfers.leave(self.state)

    def is_nobody(self) -> bool:
        """Whether its user is no principal, and no device that was proved on it may be used now."""
        try:
            return self._dispatcher.sessions.is_nobody(self._principals.identify(self._peer), self.state)
        except BeetleError:
            return False  # the store cannot say it now; each request is judged all the same

    def _run(self) -> None:
        try:
            while (data := self._respond()) is not None:
                if data:
                    self._send(data)
                    self._answering = False
                del data  # or it would be held while the next frame is waited for
                self._held.hold(self._share, self._reader.buffered)
                self._note_whose_it_is()
                if self._may_lend:
                    self._lend()
        except (InvalidFrame, PayloadTooLarge, Overloaded) as error:
            self._last_words(error)
        except (OSError, DeadlineExceeded):
            pass  # the peer is gone, or too slow
        finally:
            self._end()

    def _lend(self) -> None:
        """Have the receiver serve it, until something comes that is this thread's."""
        if self._reader.buffered or self._subscriptions or self._first is not None:
            return
        self._back.clear()
        if not self._receiver.take(self):
            return
        self._back.wait()
        begun, self._begun_apart = self._begun_apart, None
        if begun is not None:
            self._unsent = begun.answer()
        if self._unsent:
            self._send(self._unsent)
            self._unsent = b""

    @property
    def descriptor(self) -> int:
        """The number of its socket."""
        return self._socket.fileno()

    def begin(self) -> Begun | bytes | None:
        """On the receiver's thread: read what has come, and begin it where that is one brief write.

        Returns:
            What waits for its write, or the answer where there is one already; None where it is this connection's own
            thread that reads on, or answers what was read.
        """
        try:
            data = self._socket.recv(FIRST_CHUNK, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        if not data:
            return None
        self._reader.feed(data)
        try:
            self._ahead = self._reader.next_frame()
            if self._ahead is None or self._reader.buffered:
                return None
            request = decoded(self._ahead)
        except BeetleError:
            return None  # its own thread meets it too
        call = self._call(request)
        if not self._dispatcher.is_brief(call):
            return None
        self._ahead = None
        try:
            begun = self._dispatcher.begin(call)
        except BeetleError as error:
            return pack(refused(request.id, error))
        if isinstance(begun, BegunCall):
            return Begun(request.id, begun)
        return pack(answered(request.id, begun.report, begun.repeated))

    def send_now(self, data: bytes) -> bool:
        """On the receiver's thread: send what the peer has room for; false where its own thread sends the rest."""
        try:
            sent = self._socket.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            sent = 0
        self._unsent = data[sent:]
        return not self._unsent

    def go_on_with(self, begun: Begun) -> None:
        """Its own thread is to wait for the write of a request that was begun, and to answer it."""
        self._begun_apart = begun

    def take_back(self) -> None:
        """Its own thread goes on."""
        self._back.set()

    def _note_whose_it_is(self) -> None:
        """Until somebody's, it has no longer than a new connection has for its first frame."""
        if self._first is None:
            return
        if self.is_nobody():
            # Unless its peer goes first.
            self._hangup.poll(NOBODY_PAUSE_MS)
            return
        self._first = None
        if not self._proven:
            self._proven = True
            self._places.prove()

    def _give_way(self) -> None:
        """Its bytes are another's: what it reads is refused, and what it sends is not waited for."""
        if self._answering:
            self.abort()
        else:
            self.finish()

    def _end(self) -> None:
        for subscription in self._subscriptions.values():
            self._dispatcher.hub.close(subscription)
        self.abort()
        # It may be polling the descriptor, whose number another connection gets once it is closed.
        if self._pump is not None:
            self._pump.end()
        self._socket.close()
        self._forget(self)

    def _next(self) -> Frame | None:
        """The next frame; None when the peer has ended, or taken longer for a frame than it may.

        Raises:
            Overloaded: there is no room for what it sends.
        """
        while True:
            if self._first is not None and time.monotonic() >= self._first:
                return None
            frame, self._ahead = self._ahead, None
            if frame is not None or (frame := self._scan()) is not None:
                self._begun = None
                self._held.hold(self._share, len(frame.data) + self._reader.buffered)
                return frame
            if self._reader.begun and self._begun is None:
                self._begun = time.monotonic() + self._begun_seconds
            data = self._receive()
            if not data:
                self._held.check(self._share)
                return None
            self._held.hold(self._share, self._reader.buffered + len(data))
            self._reader.feed(data)

    def _scan(self) -> Frame | None:
        """What the reader finds in what it holds. Of large frames a chunk takes long where its values are small: so
        principals take turns at them, and many connections of one do not take the processor from another."""
        if self._reader.buffered <= FREE_BYTES:
            return self._reader.next_frame()
        ends = self._begun or self._first or time.monotonic() + self._begun_seconds
        # The frame may say whom it is from, which nobody has proved yet.
        by = self.state.principal or self._principals.identify(self._peer).name
        scan = self._dispatcher.shared.scan_turns.held(by, ends, self._of_no_use)
        with scan, self._dispatcher.crowd.asking(by) as work, work.going_on():
            return self._reader.next_frame(work.breathe)

    def _of_no_use(self) -> bool:
        return self._share.gone or self._gone()

    def _receive(self) -> bytes:
        """What the peer sends next; nothing when it has ended, or its time has."""
        ends = [each for each in (self._first, self._begun) if each is not None]
        left = min(ends) - time.monotonic() if ends else 0.0
        if ends and left <= 0:
            return b""
        if ends or self._timed:
            set_timeout(self._socket, socket.SO_RCVTIMEO, left)
            self._timed = bool(ends)
        try:
            return self._socket.recv(CHUNK if self._reader.begun else FIRST_CHUNK)
        except BlockingIOError:
            return b""

    def _respond(self) -> bytes | None:
        """What is to be sent for the next request, empty when it was sent; None at the end. The request is held no
        longer: its peer may take its time over the answer."""
        frame = self._next()
        return None if frame is None else self._answer(frame)

    def _answer(self, frame: Frame) -> bytes:
        request: WireRequest | None = None
        self._may_lend = False
        try:
            request = decoded(frame)
            if self._as_operator:
                self._find_whose_place(request)
            if request.op == "subscribe":
                self._subscribe(request)
                return b""
            with self._large_turn(request) if len(frame.data) > self._large_bytes else contextlib.nullcontext():
                self._share.busy = True
                try:
                    data = pack(self._perform(request, small=len(frame.data) <= FIRST_CHUNK))
                finally:
                    self._share.busy = False
            self._answering = True
            self._held.hold(self._share, len(data) + self._reader.buffered)
            return data
        except BeetleError as error:
            self._held.check(self._share)
            return pack(refused(id_of(frame) if request is None else request.id, error))
        except OSError:
            raise  # of sending: the peer is gone
        except Exception as defect:  # noqa: BLE001 - the boundary: one request's defect must not end the connection
            return pack(refused(id_of(frame), defect_of(defect)))

    def _large_turn(self, request: WireRequest) -> contextlib.AbstractContextManager[None]:
        """Few large requests are decoded and worked at together; principals take turns.

        Raises:
            Overloaded: its turn did not come in time, or its room was given to another.
            DeadlineExceeded: the peer has gone.
        """
        shared = self._dispatcher.shared
        deadline = time.monotonic() + shared.profile.budgets.default_deadline_ms / 1000
        return shared.large_turns.held(self._whose(request), deadline, self._of_no_use)

    def _find_whose_place(self, request: WireRequest) -> None:
        """Once a lesser principal or a device is proved on it, an operator's connection counts as theirs.

        Raises:
            Overloaded: there is no place for it as that; it ends.
        """
        if request.auth is not None:
            self._whose(request)
        if self.state.acting is None and self.state.proof is None:
            return
        try:
            self._places.move(self._peer.uid, self.state.principal)
        except Overloaded:
            self.finish()
            raise
        self._user, self._as_operator = self.state.principal, False

    def _whose(self, request: WireRequest) -> str:
        """As whom a request takes turns. What it proves is its connection's from now on."""
        auth = None if request.auth is None else request.auth.given
        return self._dispatcher.sessions.takes_turns_as(self._principals.identify(self._peer), auth, self.state)

    def _perform(self, request: WireRequest, *, small: bool) -> WireAnswer:
        if request.op == "unsubscribe":
            return answered(request.id, self._dispatcher.unsubscribe(self._call(request), self._subscriptions))
        call = self._call(request)
        report, repeated = self._dispatcher.dispatch(call)
        self._may_lend = small and self._receiver.is_of_use and self._dispatcher.is_brief(call)
        return answered(request.id, report, repeated)

    def _subscribe(self, request: WireRequest) -> None:
        if len(self._subscriptions) >= SUBSCRIPTIONS:
            what = "too many subscriptions are open on this connection"
            raise Overloaded(what=what, maximum=SUBSCRIPTIONS, retry_after_ms=1000)
        self._pump = pump = self._usable_pump()
        report, opened = self._dispatcher.subscribe(self._call(request), pump.inbox)
        try:
            pump.start()
        except RuntimeError:  # the system has no thread left
            self._dispatcher.hub.close(opened)
            raise Overloaded(what="too many threads run", maximum="no more", retry_after_ms=1000) from None
        self._subscriptions[opened.sub] = opened
        self._send(pack(answered(request.id, report)))
        # Not before: no event comes ahead of the answer that names its subscription.
        pump.inbox.begin(opened)

    def _usable_pump(self) -> EventPump:
        from beetle.transports.event_pump import EventPump

        if self._pump is not None and self._pump.runs:
            return self._pump
        identify = partial(self._principals.identify, self._peer)
        return EventPump(self._socket, self._sending, self._dispatcher, identify, self.finish)

    def _call(self, request: WireRequest) -> Call:
        return Call(
            operation=request.op,
            arguments=request.args,
            caller=self._principals.identify(self._peer),
            scope=request.scope,
            idempotency_key=request.idempotency_key,
            deadline_ms=request.deadline_ms,
            auth=None if request.auth is None else request.auth.given,
            scanned=True,
            connection=self.state,
            is_abandoned=self._gone,
            on_progress=partial(self._send_progress, request) if self._subscriptions else None,
        )

    def _send_progress(self, request: WireRequest, step: ProgressStep) -> None:
        """How far a call of this connection is, for who follows the topic on this connection; for nobody else."""
        for subscription in self._subscriptions.values():
            if PROGRESS_TOPIC in subscription.view.topics:
                subscription.deliver(Progressed(request.op, request.id, step))

    def _gone(self) -> bool:
        """Whether the peer has closed, not just said its last word; for this connection's own thread."""
        return bool(self._hangup.poll(0))

    def _send(self, data: bytes) -> None:
        with self._sending:
            self._socket.sendall(data)

    def _last_words(self, error: BeetleError) -> None:
        try:
            self._send(pack(refused(None, error)))
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it does not listen
