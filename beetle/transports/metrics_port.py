"""`GET /metrics` on a loopback port, for Prometheus. Every user of the machine reaches it: so it asks for a token.

One connection is served at a time, and each has a few seconds and a few kilobytes: a reader of metrics needs no more.
"""

from __future__ import annotations

import hmac
import logging
import socket
import threading
import time
from collections.abc import Callable

from beetle.contracts.admin import AdminMetricsReport, AdminMetricsRequest
from beetle.contracts.errors import BeetleError, StoreLocked
from beetle.contracts.exposition import CONTENT_TYPE, exposition
from beetle.runtime.pipeline.dispatcher import Dispatcher
from beetle.runtime.pipeline.invocation import Call, Caller

log = logging.getLogger("beetle.metrics")

HEAD_BYTES = 8192
SECONDS = 5.0
BACKLOG = 8
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed",
           503: "Service Unavailable"}  # fmt: skip


class MetricsPort:
    """The port, served by one thread until `stop`."""

    def __init__(
        self, dispatcher: Dispatcher, caller: Caller, address: tuple[str, int], token: Callable[[], str]
    ) -> None:
        """`token` reads the token anew for each request, so that one that was changed counts at once."""
        self._dispatcher = dispatcher
        self._caller = caller
        self._address = address
        self._token = token
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._serve, name="beetle-metrics", daemon=True)
        self._ending = False

    @property
    def port(self) -> int:
        """The port that it listens at."""
        assert self._socket is not None
        return self._socket.getsockname()[1]

    def start(self) -> None:
        """Listen.

        Raises:
            StoreLocked: the port is another's.
        """
        family = socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET
        found = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(self._address)
            found.listen(BACKLOG)
        except OSError as error:
            found.close()
            where = f"{self._address[0]}:{self._address[1]}"
            raise PortTaken(where=where, reason=error.strerror or "unknown") from error
        self._socket = found
        self._thread.start()
        log.info("metrics at http://%s:%d/metrics", self._address[0], self.port, extra={"event": "metrics_listening"})

    def stop(self) -> None:
        """Answer what was begun, and listen no more."""
        if self._socket is not None:
            self._ending = True
            self._socket.shutdown(socket.SHUT_RDWR)
            self._thread.join(SECONDS)
            self._socket.close()

    def _serve(self) -> None:
        assert self._socket is not None
        while not self._ending:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                if not self._ending:
                    time.sleep(1.0)  # out of descriptors: what else runs may end
                continue
            with peer:
                try:
                    self._answer(peer)
                except OSError:
                    continue  # it is gone, or too slow

    def _answer(self, peer: socket.socket) -> None:
        head = _head(peer)
        status, body = self._asked(head)
        lines = [
            f"HTTP/1.1 {status} {REASONS[status]}",
            f"Content-Type: {CONTENT_TYPE if status == 200 else 'text/plain; charset=utf-8'}",
            f"Content-Length: {len(body)}",
            "Connection: close",
            "Cache-Control: no-store",
        ]
        if status == 401:
            lines.append('WWW-Authenticate: Bearer realm="beetle"')
        peer.settimeout(SECONDS)
        peer.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    def _asked(self, head: bytes) -> tuple[int, bytes]:
        """The status and the body for a request's head."""
        first, *rest = head.split(b"\r\n")
        words = first.split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return 400, b"not a request of HTTP/1\n"
        if not self._is_known(rest):
            return 401, b"give the token of [metrics] token_file as a bearer token\n"
        if words[0] != b"GET":
            return 405, b"GET alone\n"
        if words[1].partition(b"?")[0] != b"/metrics":
            return 404, b"/metrics alone\n"
        try:
            call = Call("admin.metrics", AdminMetricsRequest(), self._caller)
            report = self._dispatcher.dispatch(call).report
        except BeetleError as error:
            return 503, f"{error.key}\n".encode()
        assert isinstance(report, AdminMetricsReport)
        return 200, exposition(report.metrics or ()).encode()

    def _is_known(self, headers: list[bytes]) -> bool:
        try:
            token = self._token().encode()
        except BeetleError as error:
            log.warning("the token of metrics cannot be read: %s", error.key, extra={"event": "metrics_token"})
            return False
        for each in headers:
            name, _, value = each.partition(b":")
            kind, _, given = value.strip().partition(b" ")
            if name.strip().lower() == b"authorization" and kind.lower() == b"bearer":
                return hmac.compare_digest(given.strip(), token)
        return False


class PortTaken(StoreLocked):
    """Another process listens there, or the address is none of this machine's."""

    template = "metrics cannot be served at {where}: {reason}"
    hint_template = "name another port in [metrics] listen"


def _head(peer: socket.socket) -> bytes:
    """The request's head, without the empty line that ends it. Raises OSError where it does not come in time."""
    end, head = time.monotonic() + SECONDS, b""
    while (at := head.find(b"\r\n\r\n")) < 0:
        left = end - time.monotonic()
        if left <= 0 or len(head) > HEAD_BYTES:
            raise TimeoutError
        peer.settimeout(left)
        data = peer.recv(HEAD_BYTES)
        if not data:
            raise ConnectionResetError
        head += data
    return head[:at]
