"""Model servers on this machine: one that answers as it is told, and one that plays with the wire."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from beetle import MemoryRuntime
from beetle.contracts.common import WireScope
from beetle.open import Embedded, Opened, open_store
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.config import Model, model_of
from beetle.runtime.host.dependencies import Dependencies
from beetle.runtime.host.principals import OPERATOR_CAPABILITIES

Plain = dict[str, Any]


class Asked(NamedTuple):
    """A question as the server got it."""

    path: str
    headers: dict[str, str]
    body: Plain

    @property
    def messages(self) -> list[Plain]:
        """The messages that the model was shown."""
        return json.loads(self.body["messages"][1]["content"])["messages"]

    @property
    def shown(self) -> list[str]:
        """Their ids."""
        return [each["id"] for each in self.messages]


class Answer(NamedTuple):
    """What is answered: a status, a body and a content type."""

    status: int
    body: bytes
    kind: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


def item(content: str, *evidence: str, **more: Any) -> Plain:
    """An item as a model would note it."""
    return {"kind": "fact", "topic": "", "content": content, "confidence": 0.9, "evidence": list(evidence), **more}


def openai(text: str | None, **more: Any) -> Answer:
    """What an OpenAI-compatible server wraps around a model's words."""
    message = {"role": "assistant", "content": text, **more}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return Answer(200, json.dumps({"id": "x", "object": "chat.completion", "choices": [choice]}).encode())


def ollama(text: str) -> Answer:
    """What Ollama wraps around a model's words."""
    return Answer(
        200, json.dumps({"model": "x", "message": {"role": "assistant", "content": text}, "done": True}).encode()
    )


def noted(*items: Plain) -> Answer:
    """An OpenAI-compatible answer with these items."""
    return openai(json.dumps({"items": list(items)}))


class ModelServer:
    """Answers each question with `answer`, or what it makes of it; keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answer: Answer | Callable[[Asked], Answer] = noted()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                asked = Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                owner.asked.append(asked)
                found = owner.answer(asked) if callable(owner.answer) else owner.answer
                with suppress(ConnectionError):
                    self.send_response(found.status)
                    self.send_header("Content-Type", found.kind)
                    self.send_header("Content-Length", str(len(found.body)))
                    for name, value in found.headers:
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(found.body)

            def log_message(self, format: str, *args: Any) -> None:
                del format, args

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that goes away in the middle is part of some tests."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def model(self, **more: Any) -> Model:
        """Its place in a configuration."""
        return model_of({"kind": "openai", "name": "small", "url": self.url, "timeout_s": 20, **more})

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def answering() -> Iterator[ModelServer]:
    """A model's server of one's own, which answers as it is told."""
    made = ModelServer()
    try:
        yield made
    finally:
        made.stop()


@contextmanager
def wire(play: Callable[[socket.socket], None]) -> Iterator[str]:
    """The address of a server that reads a question and then does with the wire what `play` does."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        held: list[socket.socket] = []
        threads: list[threading.Thread] = []

        def serve(peer: socket.socket) -> None:
            with suppress(OSError), peer:
                read_question(peer)
                play(peer)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    peer, _ = listening.accept()
                    held.append(peer)
                    threads.append(threading.Thread(target=serve, args=(peer,)))
                    threads[-1].start()

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            for each in (listening, *held):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for each in threads:
                each.join()


def read_question(peer: socket.socket) -> bytes:
    """The whole request, its body too."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(peer)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
    )
    while len(body) < length:
        body += _more(peer)
    return body


def _more(peer: socket.socket) -> bytes:
    data = peer.recv(65536)
    if not data:
        raise OSError("the client went away")
    return data


CONVERSATION = {"channel_id": "local", "conversation_id": "c1"}
OWNER = Caller(
    name="embedded:agent-main",
    kind="embedded",
    capabilities=OPERATOR_CAPABILITIES | {"transcript.raw", "private.read"},
    views=("host_ui", "model_context", "operator_audit", "export", "raw_owner"),
    transport="in_process",
    agent_id="agent-main",
)


def opened(model: Model | None, path: str = "unused", backend: str = "in-memory", **more: Any) -> Opened:
    """An open store with this model; no thread does its jobs."""
    return open_store(path, "dev-full", backend, dependencies=Dependencies(model=model, **more))


def runtime(store: Opened, caller: Caller = OWNER, owner: str = "ana", chat: str = "c1") -> MemoryRuntime:
    """The runtime of a caller over an open store."""
    return MemoryRuntime(Embedded(store, caller, WireScope(owner_id=owner, channel="local", chat_id=chat)))


def turn(turn_id: str, *messages: str | Plain, **more: Any) -> Plain:
    """A turn; a text stands for a user's message, whose id is the turn's and its place."""
    made = [
        {"message_id": f"{turn_id}.{n}", "role": "user", **({"content": each} if isinstance(each, str) else each)}
        for n, each in enumerate(messages)
    ]
    return {"turn_id": turn_id, "at": "2026-03-02T08:12:00Z", "messages": made, **more}


def says(role: str, content: str, **more: Any) -> Plain:
    """A message of a role."""
    return {"role": role, "content": content, **more}
