"""The daemon that is measured: a child process with a store of its own."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from beetle.bench.disk import BLOCK, written_bytes
from beetle.client import Client
from beetle.contracts.errors import ServicesUnavailable
from beetle.named_tuple import NamedTuple

PATIENCE_S = 120.0
LOOK_S = 0.05
NOT_INHERITED = ("BEETLE_", "XDG_", "NOTIFY_SOCKET", "WATCHDOG_", "LISTEN_")
"""What would lead it to this user's own store, socket, replica or service manager."""


class Launch(NamedTuple):
    """How a daemon is started: the program, the environment that it gets, the profile."""

    program: Sequence[str]
    environment: Mapping[str, str]
    profile: str


class BenchDaemon:
    """A daemon on the store in `folder`, while the block lasts. `start_ms` is from its start to its first answer."""

    def __init__(self, folder: Path, launch: Launch, *, replica: bool) -> None:
        self.socket, self.store = str(folder / "s"), folder / "b.db"
        self._folder, self._launch = folder, launch
        config = folder / "beetle.toml"
        config.write_text(f'[replica]\nurl = "file://{folder}/replica"\n' if replica else "", encoding="utf-8")
        self.start_ms = 0.0
        self.written_in_all: int | None = None
        """Bytes that it and its sidecar wrote from start to end, once it has ended."""

    def __enter__(self) -> BenchDaemon:
        kept = {name: each for name, each in self._launch.environment.items() if not name.startswith(NOT_INHERITED)}
        own = {"HOME": str(self._folder), "NOTIFY_SOCKET": str(self._folder / "n")}
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as ready:
            ready.bind(own["NOTIFY_SOCKET"])
            began = time.perf_counter()
            with open(self._folder / "log", "ab") as log:
                self._process = subprocess.Popen(
                    [*self._launch.program, f"--socket={self.socket}", f"--store={self.store}",
                     f"--config={self._folder / 'beetle.toml'}", f"--profile={self._launch.profile}", "serve"],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder, env=kept | own,
                )  # fmt: skip
            try:
                self._wait_until_ready(ready)
                with self.client() as client:
                    client.hello()
            except BaseException:
                self._process.kill()
                self._process.wait()
                raise
            finally:
                os.unlink(own["NOTIFY_SOCKET"])
        self.start_ms = (time.perf_counter() - began) * 1000
        return self

    def __exit__(self, *_: object) -> None:
        """SIGTERM, and its end; what it and those it waited for have written is known then."""
        # Not by `send_signal`, which waits for one that has ended already, as when the terminal ended it too.
        os.kill(self._process.pid, signal.SIGTERM)
        _pid, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self.written_in_all = usage.ru_oublock * BLOCK

    def client(self) -> Client:
        return Client(self.socket, timeout=PATIENCE_S)

    def written(self, sidecar: int | None) -> int:
        """Bytes that it and its sidecar have caused to be written until now."""
        return sum(written_bytes(pid) or 0 for pid in (self._process.pid, sidecar) if pid is not None)

    def rss_mib(self) -> float:
        """Its resident memory."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise self._ended()

    def _wait_until_ready(self, ready: socket.socket) -> None:
        end = time.monotonic() + PATIENCE_S
        # That it is ready is told at once. That it has ended must be looked at: older kernels have no way to tell.
        while time.monotonic() < end:
            if select.select([ready], [], [], LOOK_S)[0]:
                if b"READY=1" in ready.recv(4096).split(b"\n"):
                    return
            elif self._process.poll() is not None:
                break
        raise self._ended()

    def _ended(self) -> ServicesUnavailable:
        lines = (self._folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
        why = " | ".join(lines[-2:]) or "its log is empty"
        return ServicesUnavailable(reason=f"the daemon to be measured is not ready: {why}", hint="`beetle doctor`")
