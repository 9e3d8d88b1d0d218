"""What litestream says: its lists of files, its word of a restore, and the answers of its control socket."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from random import Random

from beetle.replication.control import Control, Refused, Silent
from beetle.replication.program import Litestream
from beetle.replication.target import ReplicaSettings, parse_target
from beetle.runtime.areas.replica_restore import range_of
from tests.fuzz.contract import refusal_of
from tests.fuzz.mutation import changed_bytes, changed_json
from tests.fuzz.targets.target import Target

TIME = "2026-01-01T00:00:00.5Z"


class Replica(Target):
    most_bytes = 4_096
    tokens = (b'"timestamp":', b'"min_txid":"', b'"level":', b"null", b"[" * 200, b"1e999", b"\xff", b"HTTP/1.1 ")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._said = folder / "said"
        program = folder / "litestream"
        program.write_text(f"#!/bin/sh\nexec cat {self._said}\n")
        program.chmod(0o700)
        settings = ReplicaSettings(parse_target(f"file://{folder}/replica"), command=str(program))
        self._litestream = Litestream(str(folder / "b.db"), settings, {"PATH": "/bin:/usr/bin"})
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(folder / "control"))
        self._socket.listen()
        self._answer = b""
        self._server = threading.Thread(target=self._serve, daemon=True)
        self._server.start()
        self._control = Control(str(folder / "control"), str(folder / "b.db"))

    def __call__(self, data: bytes) -> None:
        self._said.write_bytes(data)
        refusal_of(lambda: range_of(self._litestream.files()))
        refusal_of(lambda: self._litestream.restore(str(self.folder / "out")))
        refusal_of(lambda: self._litestream.write_state(str(self.folder / "out"), TIME, 1 << 20, 20.0))
        self._answer = data if data.startswith(b"HTTP/") else b"HTTP/1.0 200 OK\r\n\r\n" + data
        try:
            self._control.sync(20.0)
        except (Refused, Silent):
            return

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            with peer:
                peer.recv(8192)
                peer.sendall(self._answer)

    def seeds(self) -> list[bytes]:
        file = {
            "level": 0,
            "min_txid": "0000000000000001",
            "max_txid": "000000000000000a",
            "size": 9,
            "timestamp": TIME,
        }
        return [
            json.dumps([file, {**file, "level": 1}]).encode(),
            json.dumps({"txid": "000000000000000a", "duration_ms": 7}).encode(),
            json.dumps({"status": "synced", "txid": 9, "replicated_txid": 8}).encode(),
            b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"txid":1,"replicated_txid":1}',
            b"HTTP/1.1 500 Internal Server Error\r\n\r\nno", b"[]", b"",
        ]  # fmt: skip

    def changed(self, dice: Random, data: bytes) -> bytes:
        """With other values in its JSON."""
        head, gap, body = data.rpartition(b"\r\n\r\n")
        if dice.random() < 0.25:
            return changed_bytes(dice, data, self.tokens)
        return head + gap + changed_json(dice, body)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._server.join()
        self._socket.close()
