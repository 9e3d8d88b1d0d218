"""The client for asyncio over the daemon's Unix socket: requests of many tasks share a connection."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextvars import ContextVar
from typing import Any, TypeVar

from beetle.async_import_export import AsyncFileMethods, run
from beetle.async_wire import EventWire, Wire
from beetle.calls import (
    ClientClosed,
    ConnectionLost,
    NoDaemon,
    Patience,
    Received,
    Requests,
    Sent,
    Unanswered,
    conversation_of,
    decoded,
    filled,
    key_of,
    packed,
    report_of,
    seconds_for,
    seconds_of,
    session_scope,
    told_of_forks,
)
from beetle.contracts.async_methods import AsyncOperationMethods, AsyncSessionMethods
from beetle.contracts.common import Report, WireScope
from beetle.contracts.control import SubscribeReport
from beetle.contracts.envelope import DeviceAuth, WireEvent
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.operations import BY_NAME
from beetle.contracts.progress import OnProgress

__all__ = ["AsyncClient", "AsyncEvents", "AsyncSession", "ClientClosed", "ConnectionLost", "NoDaemon"]

W = TypeVar("W", bound=Wire)

_repeated: ContextVar[bool] = ContextVar("repeated", default=False)


class _Lane:
    """A place for one connection, opened when it is first used."""

    def __init__(self) -> None:
        self.wire: Wire | None = None
        self.opening = asyncio.Lock()
        self.calls = 0


class AsyncClient(AsyncFileMethods):
    """A client of one event loop at a time; an asynchronous context manager. The loop's tasks share it.

    Requests are sent as they come and answered by their ids. The daemon works on the requests of one connection one
    after another: with `pool` connections, on so many at once.

    A lost connection is opened again and its requests are repeated; a write carries an idempotency key, so that
    repeating it changes nothing twice. Errors that say they are retryable are tried again until `timeout` has passed.

    A call that is cancelled or times out gives its connection up if no other call uses it: then the daemon stops what
    it reads for it. Otherwise its answer is passed over when it comes. A write that was sent may have been done.

    In another event loop, when the first has ended, and in a forked process it opens connections of its own.
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
        """Nothing is connected yet: `async with`, `connect` or the first call does it.

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
            InvalidRequest: both `auth` and `as_` were given, `pool` is below 1, or a time is no number above 0.
        """
        if pool < 1:
            raise InvalidRequest(reason=f"a pool of {pool} connections", hint="give 1 or more")
        self._requests = Requests(scope, auth, as_)
        self._timeout = seconds_of("timeout", timeout)
        self._retry = retry
        self._away = self._timeout if away is None else seconds_of("away", away, zero=True)
        self._lanes = [_Lane() for _ in range(pool)]
        self._closed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.path = path
        told_of_forks(self)

    @property
    def repeated(self) -> bool:
        """Whether this task's last call was answered with the report of an earlier request of the same key."""
        return _repeated.get()

    async def connect(self) -> None:
        """Open a connection, as a first call would.

        Raises:
            NoDaemon: no daemon answers at `path`.
            DaemonUnavailable: no path was given, and no daemon answers anywhere.
            Forbidden: no path was given, and this user may not use the socket that was found.
            TimeoutError: a process listens there, and accepts no connection.
            InvalidRequest: the client is in use in another event loop.
        """
        self._enter_loop()
        async with asyncio.timeout(self._timeout):
            await self._wire_of(self._lanes[0])

    async def call(
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

        With `on_progress` the client subscribes to `lifecycle`; a caller that may not follow it gets no progress. It is
        called in the event loop.

        Raises:
            BeetleError: what the daemon answered.
            NoDaemon: the daemon could not be reached.
            TimeoutError: it did not answer in time; the text names the idempotency key of what may have been done.
            ConnectionLost: the daemon went away during the call, and did not come back in time.
            ClientClosed: `close` was called.
            InvalidRequest: the client is in use in another event loop, or no request can have these arguments.
        """
        self._enter_loop()
        key = key_of(operation, idempotency_key)
        row = BY_NAME.get(operation)
        lane = min(self._lanes, key=lambda each: each.calls)
        lane.calls += 1
        try:
            if row is None or not row.carries:
                request = self._requests.make(operation, arguments, scope, key, deadline_ms)
                return await self._call(lane, request, on_progress)

            async def ask(name: str, given: Any) -> Report:
                if name != operation:
                    return await self._call(lane, self._requests.make(name, given, scope, None, deadline_ms), None)
                return await self._call(lane, self._requests.make(name, given, scope, key, deadline_ms), on_progress)

            from beetle.pieces import Piecewise

            return await run(Piecewise(row, arguments, on_progress, time.monotonic() + self._timeout).steps(), ask)
        finally:
            lane.calls -= 1

    async def subscribe(self, topics: Iterable[str], *, scope: WireScope | None = None) -> AsyncEvents:
        """Events of the topics as they happen, over a connection of their own, until the iterator is closed.

        The subscription is active when this returns: every later event is delivered. The iterator is an asynchronous
        context manager; it outlives the client. A connection that is lost raises ConnectionError: events may have been
        missed. So does one in a forked process: the events are the parent's.

        Raises:
            BeetleError, NoDaemon, ConnectionLost, TimeoutError, ClientClosed: as for `call`.
        """
        self._enter_loop()
        self._refuse_closed()
        request = self._requests.make("subscribe", {"topics": list(topics)}, scope)
        opened: list[EventWire] = []

        async def attempt() -> Received:
            wire = await self._opened(EventWire)
            try:
                answer = await wire.ask(request, packed(request))
                if answer.error is None:
                    decoded(answer.report, SubscribeReport, wire.path)
            except BaseException:
                wire.abort()
                raise
            if answer.error is None:
                opened.append(wire)
            else:
                wire.abort()
            return answer

        async with asyncio.timeout(self._timeout):
            await self._patiently(attempt, self._patience(self._timeout, None))
        return AsyncEvents(opened[0])

    def session(
        self,
        *,
        owner: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
        channel: str | None = None,
    ) -> AsyncSession:
        """The same client for one owner, agent and conversation, which every call of the session then names.

        Args:
            owner: whose memory; the client's own when left out, as for the others.
            agent: which agent of theirs.
            conversation: id of the conversation that calls are about which need one.
            channel: the channel of that conversation.
        """
        return AsyncSession(self, session_scope(self._requests.scope, owner, agent, conversation, channel))

    async def close(self) -> None:
        """Close the connections for good; calls that other tasks wait in end with ClientClosed."""
        self._enter_loop()
        self._closed.set()
        for lane in self._lanes:
            if lane.wire is not None:
                lane.wire.abort()
        # What was aborted is closed in the next turn of the loop.
        await asyncio.sleep(0)

    def leave_to_parent(self) -> None:
        """In a forked process: begin without connections, in whatever loop comes."""
        self._begin_anew()

    async def __aenter__(self) -> AsyncClient:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _call(self, lane: _Lane, request: Sent, on_progress: OnProgress | None) -> Report:
        data = packed(request)
        seconds = seconds_for(request, self._timeout)
        try:
            async with asyncio.timeout(seconds):
                patience = self._patience(seconds, request.idempotency_key)
                answer = await self._patiently(lambda: self._once(lane, request, data, on_progress), patience)
        except TimeoutError:
            raise Unanswered(self.path or "its socket", request.idempotency_key) from None
        _repeated.set(answer.repeated)
        return report_of(answer, request.op, self.path or "")

    def _patience(self, seconds: float, key: str | None) -> Patience:
        return Patience(time.monotonic() + seconds, self._retry, self._away, key)

    async def _patiently(self, attempt: Callable[[], Awaitable[Received]], patience: Patience) -> Received:
        while True:
            try:
                answer = await attempt()
            except ClientClosed:
                raise
            except ConnectionError as lost:
                self._refuse_closed()
                wait = patience.after_loss(lost, self.path or "")
            else:
                if answer.error is None:
                    return answer
                wait = patience.after(answer.error)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closed.wait(), wait)
            self._refuse_closed()

    async def _once(self, lane: _Lane, request: Sent, data: bytes, on_progress: OnProgress | None) -> Received:
        wire = await self._wire_of(lane)
        try:
            if on_progress is None:
                return await wire.ask(request, data)
            return await self._followed(wire, request, data, on_progress)
        except asyncio.CancelledError:
            if wire.is_idle:
                # The protocol has no other way to call a request off.
                wire.abort()
            raise

    async def _followed(self, wire: Wire, request: Sent, data: bytes, on_progress: OnProgress) -> Received:
        """Ask, and follow meanwhile on the same connection how far it is."""
        begin = self._requests.follow()
        begun = await wire.ask(begin, packed(begin))
        if begun.id is None:
            return begun
        if begun.error is not None:
            return await wire.ask(request, data)
        sub = decoded(begun.report, SubscribeReport, wire.path).sub
        wire.follow(sub, request.id, on_progress)
        try:
            return await wire.ask(request, data)
        finally:
            wire.unfollow(sub)
            wire.send(self._requests.make("unsubscribe", {"sub": sub}))

    async def _wire_of(self, lane: _Lane) -> Wire:
        async with lane.opening:
            self._refuse_closed()
            if lane.wire is None or lane.wire.closed:
                lane.wire = await self._opened(Wire)
                if self._closed.is_set():
                    lane.wire.abort()
            self._refuse_closed()
            return lane.wire

    async def _opened(self, kind: type[W]) -> W:
        """A connection to `path`, or to the first daemon that answers where the command line would look."""
        if self.path is not None:
            wire = kind(self.path)
            await wire.open()
            return wire
        from beetle.find import refuse_closed_socket, usual_sockets

        *others, last = usual_sockets()
        for path in others:
            with contextlib.suppress(NoDaemon):
                return await self._found(kind(path))
            refuse_closed_socket(path)
        try:
            return await self._found(kind(last))
        except NoDaemon:
            refuse_closed_socket(last)
            raise

    async def _found(self, wire: W) -> W:
        await wire.open()
        self.path = wire.path
        return wire

    def _enter_loop(self) -> None:
        """Begin anew in another event loop.

        Raises:
            InvalidRequest: the one before still runs.
        """
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        if self._loop is not None:
            if self._loop.is_running():
                hint = "make an AsyncClient in each event loop, or close this one in its own first"
                raise InvalidRequest(reason="the client is in use in another event loop", hint=hint)
            for lane in self._lanes:
                if lane.wire is not None:
                    lane.wire.leave_loop(self._loop)
            self._begin_anew()
        self._loop = loop

    def _begin_anew(self) -> None:
        """Without connections, and with locks of no loop."""
        closed, self._closed = self._closed.is_set(), asyncio.Event()
        if closed:
            self._closed.set()
        self._lanes = [_Lane() for _ in self._lanes]
        self._loop = None

    def _refuse_closed(self) -> None:
        if self._closed.is_set():
            raise ClientClosed(self.path or "a daemon that was not looked for")


class AsyncEvents(AsyncIterator[WireEvent]):
    """The events of one subscription; an asynchronous context manager. `close` ends the iteration, from any task."""

    def __init__(self, wire: EventWire) -> None:
        self._wire = wire
        self._loop = asyncio.get_running_loop()

    async def __anext__(self) -> WireEvent:
        event = await self._wire.next_event()
        if event is None:
            raise StopAsyncIteration
        return event

    async def close(self) -> None:
        """End the subscription and its connection."""
        self._wire.abort()
        await asyncio.sleep(0)

    async def __aenter__(self) -> AsyncEvents:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __del__(self) -> None:
        # `async for event in await client.subscribe(…)` leaves nobody who could close it.
        if not self._wire.closed and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wire.abort)


class AsyncSession(AsyncSessionMethods):
    """Every call names the session's scope; one whose request needs a `conversation` gets the session's.

    An argument of the call takes precedence. A `conversation` that only narrows a search is not filled in: recall
    answers from the whole memory, with the session's conversation as the current one. Closing is the client's.
    """

    def __init__(self, client: AsyncOperationMethods, scope: WireScope) -> None:
        """`scope.conversation_id`, in the channel of the scope, is the session's conversation."""
        self._client = client
        self.scope = scope
        self.conversation = conversation_of(scope)

    async def call(
        self,
        operation: str,
        arguments: Any = None,
        *,
        scope: WireScope | None = None,
        idempotency_key: str | None = None,
        deadline_ms: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> Report:
        return await self._client.call(
            operation,
            filled(operation, arguments, self.conversation),
            scope=scope or self.scope,
            idempotency_key=idempotency_key,
            deadline_ms=deadline_ms,
            on_progress=on_progress,
        )
