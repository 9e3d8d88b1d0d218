"""The configured model: one question, one answer, over HTTP, in bounded time and memory.

What answers may be anything: slow, endless, broken, hostile. Every failure is `services_unavailable` with a code; none
quotes what the model said, the key or the address, which the log of the daemon names.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec import Struct

from beetle.contracts.codec import pack_json, refuse_double_keys
from beetle.domain.maintenance import Prompt
from beetle.runtime.host.config import Model
from beetle.runtime.host.held_back import HeldBack
from beetle.runtime.host.model_failure import ModelFailed
from beetle.runtime.host.secret_file import read_secret

if TYPE_CHECKING:
    import ssl

    from urllib3.response import BaseHTTPResponse

log = logging.getLogger("beetle.model")

ANSWER_BYTES = 256 * 1024
"""Most bytes of an answer that are read: some hundred times what 64 items take."""
PIECE_BYTES = 16 * 1024
PORTS: Mapping[str, int] = {"http": 80, "https": 443}
UNIX = "unix"
UNIX_BASES: Mapping[str, str] = {"openai": "/v1", "ollama": ""}
"""What paths begin with at a Unix socket, whose address has no room for it."""
JSON_TYPES = ("application/json", "text/json")
REST_S = 15.0
MOST_REST_S = 900.0
CERTIFICATES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where distributions keep the certificates that they trust; a frozen build's libssl may look elsewhere."""

STATUS_CODES: Mapping[int, str] = {401: "refused", 403: "refused", 408: "busy", 429: "busy", 503: "busy"}


class _Message(Struct):
    content: str | None = None
    tool_calls: list[Any] | None = None


class _Choice(Struct):
    message: _Message


class _ChatCompletion(Struct):
    choices: list[_Choice]


class _OllamaChat(Struct):
    message: _Message


class ModelClient:
    """Asks the configured model. Threads may share it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._address = urlsplit(model.address)
        self._guard = threading.Lock()
        self._running: set[_Exchange] = set()
        self._closed = False
        self._plain = False
        self._rest = 0.0
        self._rests_until = 0.0
        self.held_back = HeldBack()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    @property
    def timeout_s(self) -> int:
        """Seconds that one question may take."""
        return self._model.timeout_s

    @property
    def summarizes(self) -> bool:
        """Whether it writes the table of contents too."""
        return self._model.summaries

    @property
    def local(self) -> bool:
        """Whether what is sent stays on this machine."""
        return self._address.scheme == UNIX or _is_loopback(self._address.hostname or "")

    @property
    def rest_s(self) -> float:
        """Seconds for which nobody should ask who can wait: after a failure it is left alone, each time for longer."""
        return max(0.0, self._rests_until - time.monotonic())

    def ask(self, prompt: Prompt) -> bytes:
        """The text of the model's answer, in at most `timeout_s` seconds.

        Raises:
            ModelFailed: there is none.
        """
        try:
            text = self._ask(prompt)
        except ModelFailed as failure:
            log.warning(
                "the model %s at %s: %s",
                self._model.name,
                self._model.address,
                failure.code,
                extra={"event": "model_failed"},
            )
            self.failed()
            raise
        self._rest = self._rests_until = 0.0
        return text

    def failed(self) -> None:
        """Leave the model alone for a while: it gave no answer, or one that is worth nothing."""
        self._rest = min(max(REST_S, self._rest * 2), MOST_REST_S)
        self._rests_until = time.monotonic() + self._rest

    def close(self) -> None:
        """Break off what is being asked; later questions fail."""
        with self._guard:
            self._closed = True
            running = list(self._running)
        for each in running:
            each.break_off()

    def _ask(self, prompt: Prompt) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if self._model.api_key_file is not None:
            if self._address.scheme != "https" and not self.local:
                raise ModelFailed("insecure")
            headers["Authorization"] = f"Bearer {_read_key(self._model.api_key_file)}"
        with self._exchange() as exchange:
            status, body = exchange.post(self._path(), headers, self._question(prompt, plain=self._plain))
            if status in (400, 422) and self._model.kind == "openai" and not self._plain:
                # Not every server knows JSON mode; one that does not says so once.
                self._plain = True
                status, body = exchange.post(self._path(), headers, self._question(prompt, plain=True))
        if status != 200:
            raise ModelFailed("redirected" if 300 <= status < 400 else STATUS_CODES.get(status, "failed"))
        return self._text(body)

    @contextmanager
    def _exchange(self) -> Generator[_Exchange]:
        exchange = _Exchange(self._address, self._model.timeout_s)
        with self._guard:
            if self._closed:
                raise ModelFailed("closing")
            self._running.add(exchange)
        try:
            yield exchange
        finally:
            with self._guard:
                self._running.discard(exchange)
            exchange.end()

    def _path(self) -> str:
        base = UNIX_BASES[self._model.kind] if self._address.scheme == UNIX else self._address.path.rstrip("/")
        return base + {"openai": "/chat/completions", "ollama": "/api/chat"}[self._model.kind]

    def _question(self, prompt: Prompt, *, plain: bool) -> bytes:
        question: dict[str, Any] = {
            "model": self._model.name,
            "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
            "stream": False,
        }
        if self._model.kind == "ollama":
            question |= {"format": "json", "options": {"temperature": 0}}
        elif not plain:
            question |= {"response_format": {"type": "json_object"}, "temperature": 0}
        return pack_json(question)

    def _text(self, body: bytes) -> bytes:
        """What the model says, out of what its server wraps around it. A call of a tool is no answer."""
        try:
            if self._model.kind == "ollama":
                message = msgspec.json.decode(body, type=_OllamaChat).message
            else:
                choices = msgspec.json.decode(body, type=_ChatCompletion).choices
                message = choices[0].message if len(choices) == 1 else _Message()
            text = (message.content or "").encode()
            refuse_double_keys(body)
        except (ValueError, RecursionError):
            raise ModelFailed("wrong_answer") from None
        if not text or message.tool_calls:
            raise ModelFailed("wrong_answer")
        return text


class _Exchange:
    """One question on its way: all of it, however it is dripped, within one deadline, and to be broken off any time."""

    def __init__(self, address: SplitResult, seconds: float) -> None:
        self._address = address
        self._end = time.monotonic() + seconds
        self._guard = threading.Lock()
        self._over = threading.Event()
        self._late = False
        self._joined = False
        self._stirred = threading.Event()
        self._wires: list[socket.socket] = []
        # A read of headers has no deadline of its own, only each byte of it: so the wire is cut from outside.
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """Give back what it holds."""
        self._timer.cancel()
        with self._guard:
            wires, self._wires = self._wires, []
        for wire in wires:
            wire.close()

    def break_off(self) -> None:
        """Cut the wire: whoever reads it fails at once."""
        with self._guard:
            self._over.set()
            self._stirred.set()
            for wire in self._wires:
                # It may be cut already, or was never joined.
                with suppress(OSError):
                    wire.shutdown(socket.SHUT_RDWR)

    def _expire(self) -> None:
        self._late = True
        self.break_off()

    def post(self, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        from http.client import HTTPException

        from urllib3.exceptions import HTTPError

        connection = self._connection()
        status, answer, failure = 0, b"", None
        try:
            connection.request(
                "POST", path, body=body, headers={**headers, "User-Agent": "beetle"},
                preload_content=False, decode_content=False,
            )  # fmt: skip
            response = connection.getresponse()
            status = response.status
            try:
                answer = self._body(response) if status == 200 else b""
            finally:
                response.close()
        except ModelFailed as failed:
            failure = failed.code
        except (HTTPError, HTTPException, OSError, ValueError) as error:
            failure = "slow" if isinstance(error, TimeoutError) else "broken"
        finally:
            connection.close()
        # Not in a handler: what it raised from would keep the wire open. What was cut looks finished, or like anything.
        self._check()
        if failure is not None:
            raise ModelFailed(failure)
        return status, answer

    def _body(self, response: BaseHTTPResponse) -> bytes:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in JSON_TYPES or response.headers.get("content-encoding", "identity").lower() != "identity":
            raise ModelFailed("wrong_answer")
        told = response.headers.get("content-length", "")
        if told.isdecimal() and int(told[:20]) > ANSWER_BYTES:
            raise ModelFailed("too_large")
        parts: list[bytes] = []
        size = 0
        for part in response.stream(PIECE_BYTES, decode_content=False):
            size += len(part)
            if size > ANSWER_BYTES:
                raise ModelFailed("too_large")
            parts.append(part)
        return b"".join(parts)

    def _check(self) -> None:
        """Whether it goes on.

        Raises:
            ModelFailed: its time has passed, or it was broken off.
        """
        if self._over.is_set():
            late = "slow" if self._joined else "unreachable"
            raise ModelFailed(late if self._late else "closing")

    def _connection(self) -> Any:
        """An urllib3 connection over a wire of ours: it resolves no name, follows nothing, knows no proxy."""
        from urllib3.connection import HTTPConnection

        host = self._address.hostname or "localhost"
        port = self._address.port or PORTS.get(self._address.scheme, PORTS["http"])
        wire = self._connect(host, port)
        try:
            connection = HTTPConnection(host, port, timeout=self._left())
            connection.sock = self._secured(wire, host) if self._address.scheme == "https" else wire
            self._joined = True
        except BaseException:
            wire.close()
            raise
        return connection

    def _connect(self, host: str, port: int) -> socket.socket:
        unix = self._address.scheme == UNIX
        for family, where in [(socket.AF_UNIX, self._address.path)] if unix else self._resolve(host, port):
            wire = socket.socket(family, socket.SOCK_STREAM)
            try:
                self._hold(wire)
                wire.settimeout(self._left())
                wire.connect(where)
            except OSError:
                wire.close()
                self._check()
                continue
            except BaseException:
                wire.close()
                raise
            wire.settimeout(self._left())
            return wire
        raise ModelFailed("unreachable")

    def _hold(self, wire: socket.socket) -> None:
        """Keep a second handle of the wire, to cut it by: TLS takes the first one for itself."""
        with self._guard:
            self._check()
            self._wires.append(wire.dup())

    def _left(self) -> float:
        return max(0.001, self._end - time.monotonic())

    def _resolve(self, host: str, port: int) -> list[tuple[int, Any]]:
        """The addresses of a host; of `localhost` only what is this machine."""
        if _is_address(host):
            return _addresses(host, port)
        found: list[tuple[int, Any]] = []

        def look_up() -> None:
            with suppress(OSError):
                found.extend(_addresses(host, port))
            self._stirred.set()

        # A look-up can take minutes and cannot be broken off; one that is late is left to itself.
        threading.Thread(target=look_up, name="beetle-resolve", daemon=True).start()
        self._stirred.wait()
        self._check()
        if host == "localhost":
            return [each for each in found if _is_loopback(each[1][0])]
        return found

    def _secured(self, wire: socket.socket, host: str) -> ssl.SSLSocket:
        import ssl

        try:
            return _trust().wrap_socket(wire, server_hostname=host)
        except ssl.SSLCertVerificationError:
            raise ModelFailed("untrusted") from None
        except OSError:
            self._check()
            raise ModelFailed("unreachable") from None


def _addresses(host: str, port: int) -> list[tuple[int, Any]]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(family, where) for family, _, _, _, where in found]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    """Whether a host's name or address can only be this machine."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _trust() -> ssl.SSLContext:
    """What this machine trusts, for the name of the host that is asked."""
    import ssl

    context = ssl.create_default_context()
    if not context.cert_store_stats()["x509_ca"]:
        for file in CERTIFICATES:
            if os.path.exists(file):
                context.load_verify_locations(file)
                break
    return context


def _read_key(path: str) -> str:
    if (key := read_secret(path)) is None:
        raise ModelFailed("no_key")
    return key
