"""The gRPC server: an event loop on a thread of its own; operations run on a few threads beside it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NoReturn

import grpc
import grpc.aio

from beetle.contracts.errors import CapabilityHidden, InvalidRequest
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.config import Grpc
from beetle.runtime.host.principals import Principals
from beetle.runtime.pipeline.capabilities import OWNERS
from beetle.runtime.pipeline.dispatcher import Dispatcher
from beetle.transports.grpc.address import Address, check_principal, credentials, parse_address
from beetle.transports.grpc.calls import TRANSPORT, Calls, Context, Requests, nobody
from beetle.transports.grpc.open_calls import OpenCalls
from beetle.transports.grpc.standard import HEALTH, REFLECTION, STREAMS, Health, Reflection
from beetle.transports.grpc.table import BY_RPC, NO_ANSWER
from beetle.transports.listening import cleared, remove_own

log = logging.getLogger("beetle.grpc")

SERVICE = "/memory.MemoryService/"
FEWEST, MOST = 8, 256
"""Calls that are open at once."""
OVER = 65_536
"""Room for what stands around the longest text in a message."""
HEAD_BYTES = 16_384
IDLE_MS = 600_000
"""A connection without calls is closed after this; clients connect again by themselves."""
STOP_SECONDS = 10.0
HANDSHAKE_MS = 10_000


class GrpcServer:
    """Serves one address. Every peer is the configured principal, or the device that a call proves to be."""

    def __init__(self, dispatcher: Dispatcher, principals: Principals, settings: Grpc, address: str) -> None:
        """Raises:
        CapabilityHidden: the profile does not allow gRPC.
        InvalidRequest: no principal, no valid address, one that needs TLS, unusable certificates.
        """
        profile = dispatcher.shared.profile
        if TRANSPORT not in profile.transports.allowed:
            hint = "start with a profile that allows it: --profile gateway or desktop"
            raise CapabilityHidden(operation=TRANSPORT, reason=f"{profile.name} does not allow it", hint=hint)
        self._dispatcher = dispatcher
        self._principals = principals
        self._address: Address = parse_address(address)
        self._principal = check_principal(principals.named, settings)
        self._credentials = credentials(settings, self._address)
        self._warn()
        budgets = profile.budgets
        self._largest = min(budgets.frame_bytes, 2 * budgets.message_content_bytes + OVER)
        self._open = OpenCalls(max(FEWEST, min(MOST, budgets.held_bytes // (2 * self._largest))))
        self._connections = max(1, budgets.connections // 2)
        self._threads = ThreadPoolExecutor(max(2, min(32, budgets.readers + 2)), thread_name_prefix="beetle-grpc-work")
        self._calls = Calls(dispatcher, self._caller, self._open, self._threads)
        self._thread = threading.Thread(target=self._run, name="beetle-grpc", daemon=True)
        self._bound = threading.Event()
        self._failed: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Event | None = None
        self.endpoint = ""

    def start(self) -> None:
        """Bind and serve.

        Raises:
            InvalidRequest: the address cannot be bound.
            StoreLocked, StoreReadOnly: of a Unix socket, as for the daemon's own.
        """
        with self._place():
            self._thread.start()
            self._bound.wait()
        if self._failed is not None:
            self._thread.join()
            self._threads.shutdown()
            raise self._failed
        self._dispatcher.sessions.transports.listens(TRANSPORT, self.endpoint)
        log.info(
            "gRPC at %s%s, as %s",
            self.endpoint,
            " with TLS" if self._credentials else "",
            self._principal.name,
            extra={"event": "grpc_listening"},
        )

    def stop(self) -> None:
        """Take no more calls, let those that were begun be answered, then close."""
        self._dispatcher.sessions.transports.ended(TRANSPORT)
        assert self._loop is not None and self._ending is not None
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join()
        self._threads.shutdown()
        if self._address.path:
            remove_own(self._address.path, self._made)

    @property
    def open_calls(self) -> int:
        """Calls that are open now."""
        return self._open.count

    @property
    def most_each(self) -> int:
        """Most calls of one connection that may be open at once."""
        return self._open.each

    def _warn(self) -> None:
        if self._credentials is None and not self._address.path and self._principal.is_operator:
            log.warning(
                "the principal %s of gRPC is an operator: every user of this machine who can connect is one too",
                self._principal.name,
                extra={"event": "grpc_without_tls"},
            )

    def _caller(self) -> Caller:
        """The principal with the rights that it has now."""
        name = self._principal.name
        found = self._principals.named(name)
        if found is None:
            return nobody(name)
        return found._replace(transport=TRANSPORT, capabilities=found.capabilities - OWNERS)

    @contextlib.contextmanager
    def _place(self) -> Generator[None]:
        """A Unix socket's folder and path are made ready as the daemon's own are, its mode right from the first."""
        self._made: tuple[int, int] | None = None
        if not self._address.path:
            yield
            return
        with cleared(self._address.path):
            mask = os.umask(0o177)
            try:
                yield
            finally:
                os.umask(mask)
        with contextlib.suppress(OSError):  # it was not bound, which is told
            found = os.lstat(self._address.path)
            self._made = (found.st_dev, found.st_ino)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - whatever it was, who waits in `start` is told
            self._failed = error
        finally:
            self._bound.set()

    async def _serve(self) -> None:
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        health = Health(OpenCalls(STREAMS))
        server = grpc.aio.server(
            handlers=(_Services(self._calls, health, Reflection(OpenCalls(STREAMS))),), options=self._options()
        )
        self.endpoint = ", ".join(self._bind_all(server))
        await server.start()
        self._bound.set()
        await self._ending.wait()
        health.end()
        await server.stop(STOP_SECONDS)

    def _bind_all(self, server: grpc.aio.Server) -> list[str]:
        """Each of the targets at one port, which the system chooses where 0 was asked for."""
        bound: list[str] = []
        for target in self._address.targets:
            if bound and not self._address.path:
                target = f"{target.rpartition(':')[0]}:{bound[0].rpartition(':')[2]}"
            bound.append(self._bind(server, target))
        return bound

    def _bind(self, server: grpc.aio.Server, target: str) -> str:
        try:
            if self._credentials is None:
                port = server.add_insecure_port(target)
            else:
                port = server.add_secure_port(target, self._credentials)
        except RuntimeError:
            reason = f"gRPC cannot listen at {target}: another process does, or this machine has no such address"
            hint = "give another port, or end the process that has it"
            raise InvalidRequest(reason=reason, hint=hint, path="$.grpc.listen") from None
        return target if self._address.path else f"{target.rpartition(':')[0]}:{port}"

    def _options(self) -> list[tuple[str, Any]]:
        return [
            # Two daemons at one port would each get every other connection.
            ("grpc.so_reuseport", 0),
            ("grpc.max_receive_message_length", self._largest),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", HEAD_BYTES),
            ("grpc.absolute_max_metadata_size", HEAD_BYTES),
            ("grpc.max_concurrent_streams", self._open.each),
            ("grpc.max_allowed_incoming_connections", self._connections),
            ("grpc.max_connection_idle_ms", IDLE_MS),
            ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
            ("grpc.http2.max_ping_strikes", 2),
        ]


class _Services(grpc.GenericRpcHandler):
    """The handler of a method by its path.

    Each reads its message itself, so that one whose bytes come slowly, or not at all, ends in time.
    """

    def __init__(self, calls: Calls, health: Health, reflection: Reflection) -> None:
        self._calls = calls
        self._others: dict[str, Any] = {
            f"/{HEALTH}/Check": _stream_unary(health.check),
            f"/{HEALTH}/Watch": _stream_stream(health.watch),
        }
        for name in REFLECTION:
            path = f"/{name}/ServerReflectionInfo"
            self._others[path] = _stream_stream(reflection.answers)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """None for a method that is not here, which gRPC answers with UNIMPLEMENTED."""
        path = handler_call_details.method
        if not path.startswith(SERVICE):
            return self._others.get(path)
        name = path.removeprefix(SERVICE)
        handle: Any = None
        if (rpc := BY_RPC.get(name)) is not None:
            handle = partial(self._calls.answer, rpc)
        elif (hint := NO_ANSWER.get(name)) is not None:
            handle = partial(_unanswered, name, hint)
        return None if handle is None else _stream_unary(handle)


_stream_unary: Any = grpc.stream_unary_rpc_method_handler
_stream_stream: Any = grpc.stream_stream_rpc_method_handler


async def _unanswered(name: str, hint: str, requests: Requests, context: Context) -> NoReturn:
    del requests
    await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"{name} is not served here\n{hint}")
    raise AssertionError("abort does not return")
