"""`beetle mcp` behind Streamable HTTP, for test programs that speak nothing else: a child for each session.

As a program: `python -m tests.mcp.bridge WORDS…` prints its URL and serves until stdin ends; WORDS are beetle's.
"""

from __future__ import annotations

import json
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tests.mcp.host import Host

SESSION = "Mcp-Session-Id"


class Bridge:
    """Serves on a free port of this machine while it is open."""

    def __init__(self, *words: str) -> None:
        self._words = words
        self._hosts: dict[str, Host] = {}
        bridge = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                session = self.headers.get(SESSION) or bridge._begin()
                host = bridge._hosts.get(session)
                if host is None:
                    self._answer(404, b"")
                    return
                host.put(message)
                if "id" not in message or "method" not in message:
                    self._answer(202, b"", session)
                    return
                answer = json.dumps(host.answer(message["id"])).encode()
                self._answer(200, answer, session)

            def do_GET(self) -> None:
                self._answer(405, b"")

            def do_DELETE(self) -> None:
                bridge._end(self.headers.get(SESSION, ""))
                self._answer(200, b"")

            def _answer(self, status: int, body: bytes, session: str = "") -> None:
                self.send_response(status)
                if session:
                    self.send_header(SESSION, session)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing: stderr is the tests'."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/mcp"

    def _begin(self) -> str:
        session = uuid.uuid4().hex
        self._hosts[session] = Host(*self._words, revision=None)
        return session

    def _end(self, session: str) -> None:
        host = self._hosts.pop(session, None)
        if host is not None:
            host.end()
            host.__exit__(None, None, None)

    def __enter__(self) -> Bridge:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        for session in list(self._hosts):
            self._end(session)


if __name__ == "__main__":
    with Bridge(*sys.argv[1:]) as opened:
        print(opened.url, flush=True)
        sys.stdin.read()
