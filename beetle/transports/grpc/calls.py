"""One RPC: its message read and decoded, its operation dispatched on a thread, its report encoded."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from time import monotonic
from typing import Any, NoReturn

import grpc
import grpc.aio

from beetle.contracts.codec import to_plain as report_as_plain
from beetle.contracts.envelope import Auth
from beetle.contracts.errors import BeetleError, DeadlineExceeded, InvalidRequest, NotFound, PayloadTooLarge
from beetle.rpc.messages import BadMessage, decode, method_messages, to_message, to_plain
from beetle.runtime.host.caller import Caller
from beetle.runtime.pipeline.dispatcher import Dispatcher
from beetle.runtime.pipeline.invocation import Call
from beetle.transports.grpc.envelope import (
    IDEMPOTENCY_KEY,
    auth_of,
    headers,
    scope_of,
    status_of,
    trailers,
    words_of,
)
from beetle.transports.grpc.open_calls import OpenCalls
from beetle.transports.grpc.table import Rpc, absent, arguments
from beetle.transports.messages import defect_of
from beetle.transports.room import FREE_BYTES

TRANSPORT = "grpc"
Context = grpc.aio.ServicerContext[Any, Any]
Requests = AsyncIterator[bytes]


class Asked(threading.Event):
    """What is known of a call beside its message; set when its peer has gone."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        given = headers(context.invocation_metadata())
        self.scope = scope_of(given)
        self.auth: Auth | None = auth_of(given)
        self.key = given.get(IDEMPOTENCY_KEY)
        left: Any = context.time_remaining()  # None without a deadline, whatever its declared type says
        self.deadline_ms = None if left is None else max(1, int(left * 1000))


class Calls:
    """Answers RPCs: `caller` is whom every peer is taken for."""

    def __init__(
        self, dispatcher: Dispatcher, caller: Callable[[], Caller], open_calls: OpenCalls, threads: ThreadPoolExecutor
    ) -> None:
        self._dispatcher = dispatcher
        self._caller = caller
        self._open = open_calls
        self._threads = threads
        self._budgets = dispatcher.shared.profile.budgets

    async def answer(self, rpc: Rpc, requests: Requests, context: Context) -> bytes:
        """The answer's bytes; an error ends the call with its status."""
        peer = context.peer() or ""
        try:
            self._open.take(peer)
        except BeetleError as error:
            await end(context, error)
        work: asyncio.Future[bytes] | None = None
        try:
            asked = Asked(context)
            data = await first_message(requests, self._budgets.begun_frame_seconds)
            work = asyncio.get_running_loop().run_in_executor(self._threads, partial(self._work, rpc, data, asked))
            # The thread works on when the peer goes, until it notices: so long the call has its place.
            work.add_done_callback(partial(self._ended, peer))
            try:
                return await asyncio.shield(work)
            except asyncio.CancelledError:
                asked.set()
                raise
        except BeetleError as error:
            await end(context, error)
        finally:
            if work is None:
                self._open.free(peer)

    def _ended(self, peer: str, work: asyncio.Future[bytes]) -> None:
        self._open.free(peer)
        if not work.cancelled():
            # Of a call that its peer gave up nobody asks for the error, and the event loop would log it as forgotten.
            work.exception()

    def _work(self, rpc: Rpc, data: bytes, asked: Asked) -> bytes:
        """On a thread of the pool.

        Raises:
            BeetleError: what the operation answers; a defect is logged and told by its reference.
        """
        if asked.is_set():
            raise DeadlineExceeded.before("its turn came")
        try:
            return self._ask(rpc, data, asked)
        except BeetleError:
            raise
        except Exception as defect:  # noqa: BLE001 - the boundary: one call's defect is logged and answered as internal
            raise defect_of(defect) from None

    def _ask(self, rpc: Rpc, data: bytes, asked: Asked) -> bytes:
        request_class, answer_class = method_messages(rpc.name)
        caller = self._caller()
        with self._turn(caller, data, asked):
            try:
                given = to_plain(decode(request_class, data), rpc.always)
            except BadMessage as error:
                raise InvalidRequest(
                    reason=str(error), hint="send the message that reflection describes; see `beetle help grpc`"
                ) from None
            answer = self._dispatched(rpc, given, caller, asked)
            found = to_message(answer_class, answer).SerializeToString()
        if len(found) > self._budgets.frame_bytes:
            raise PayloadTooLarge(
                what="the answer", maximum=self._budgets.frame_bytes, unit="bytes", hint="ask for fewer with `limit`"
            )
        return found

    def _dispatched(self, rpc: Rpc, given: dict[str, Any], caller: Caller, asked: Asked) -> Any:
        connections = self._dispatcher.sessions.connections
        state = connections.open(TRANSPORT)
        call = Call(
            operation=rpc.operation,
            arguments=arguments(rpc, given),
            caller=caller,
            scope=asked.scope,
            idempotency_key=asked.key,
            deadline_ms=asked.deadline_ms,
            auth=asked.auth,
            connection=state,
            is_abandoned=asked.is_set,
        )
        try:
            return rpc.answer(report_as_plain(self._dispatcher.dispatch(call).report), given)
        except NotFound:
            if rpc.absent is None:
                raise
            return absent(rpc, given)
        except InvalidRequest:
            if not rpc.absent_if_empty or rpc.absent_if_empty in given:
                raise
            return absent(rpc, given)
        finally:
            connections.close(state)

    def _turn(self, caller: Caller, data: bytes, asked: Asked) -> Any:
        """Few large requests are decoded and worked at together, as those of the socket are."""
        if len(data) <= FREE_BYTES:
            return nullcontext()
        latest = monotonic() + self._budgets.default_deadline_ms / 1000
        by = self._dispatcher.sessions.takes_turns_as(caller, asked.auth, None)
        return self._dispatcher.shared.large_turns.held(by, latest, asked.is_set)


async def first_message(requests: Requests, seconds: float) -> bytes:
    """The message of a call that has one.

    Raises:
        InvalidRequest: the peer sends none.
        DeadlineExceeded: it takes too long.
    """
    try:
        found = await asyncio.wait_for(anext(requests, None), seconds)
    except TimeoutError:
        raise DeadlineExceeded(what="the request's message was there", deadline_ms=int(seconds * 1000)) from None
    if found is None:
        raise InvalidRequest(reason="the call has no message", hint="send one, an empty one where there are no fields")
    return found


async def end(context: Context, error: BeetleError) -> NoReturn:
    """End a call with an error."""
    await context.abort(status_of(error), words_of(error), trailers(error))
    raise AssertionError("abort does not return")


def nobody(name: str) -> Caller:
    """Whom a peer is taken for whose principal is no more: each call is refused, and logged."""
    return Caller(name, "unknown", frozenset(), (), TRANSPORT)
