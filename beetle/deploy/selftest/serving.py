"""The check that starts a daemon: a child process with a socket and a store of its own."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from beetle import __version__
from beetle.client import Client
from beetle.contracts.codec import unpack_any
from beetle.contracts.operations import OPERATIONS
from beetle.deploy.selftest.workspace import CheckFailed, Workspace, is_frozen, package_folder
from beetle.runtime.host.config import SOCKET_PATH_BYTES

PATIENCE_S = 60.0
WRONG_FRAME = b"\xc1"
"""A byte that begins no MessagePack value."""

NOT_INHERITED = ("BEETLE_", "XDG_", "NOTIFY_SOCKET", "WATCHDOG_", "LISTEN_")
"""What would lead the child to this user's own store, socket or service manager."""


def daemon(workspace: Workspace) -> str:
    """A daemon answers over its socket, refuses what is no frame, and ends cleanly on SIGTERM."""
    folder = workspace.room("daemon")
    path = str(folder / "s")
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES:
        raise CheckFailed(
            f"{workspace.folder} is too long a path to make a socket in; name a shorter folder with TMPDIR"
        )
    with _child(folder, path, workspace) as process:
        _ask(path, process.pid)
        _send_nonsense(path)
        with Client(path, timeout=PATIENCE_S) as client:
            client.hello()
        process.terminate()
        code = _wait(process)
    if code != 0:
        raise CheckFailed(f"the daemon ended with {code} on SIGTERM: {_log(folder)}")
    if os.path.lexists(path):
        raise CheckFailed("the daemon left its socket behind")
    return "a daemon answers, refuses what is no frame, and ends on SIGTERM"


@contextmanager
def _child(folder: Path, path: str, workspace: Workspace) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon that is ready; whatever happens, it is gone afterwards."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as ready:
        ready.bind(str(folder / "n"))
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen(
                [*_program(), f"--socket={path}", f"--store={folder / 'b.db'}", "--profile=compact", "serve"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=_environment(folder, workspace),
            )
        try:
            _wait_until_ready(process, ready, folder)
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def _program() -> list[str]:
    return [sys.executable] if is_frozen() else [sys.executable, "-m", "beetle"]


def _environment(folder: Path, workspace: Workspace) -> dict[str, str]:
    kept = {name: value for name, value in workspace.env.items() if not name.startswith(NOT_INHERITED)}
    (folder / "beetle.toml").touch()
    own = {"HOME": str(folder), "BEETLE_CONFIG": str(folder / "beetle.toml"), "NOTIFY_SOCKET": str(folder / "n")}
    if not is_frozen():
        home = str(package_folder().parent)
        own["PYTHONPATH"] = os.pathsep.join(filter(None, (home, kept.get("PYTHONPATH", ""))))
    return {**kept, **own}


def _wait_until_ready(process: subprocess.Popen[bytes], ready: socket.socket, folder: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    # That it is ready is told over the socket. That it has ended must be looked at: older kernels have no way to tell.
    while time.monotonic() < end:
        if select.select([ready], [], [], 0.05)[0]:
            if b"READY=1" in ready.recv(4096).split(b"\n"):
                return
        elif process.poll() is not None:
            raise CheckFailed(f"the daemon ended with {process.returncode} before it was ready: {_log(folder)}")
    raise CheckFailed(f"the daemon was not ready within {PATIENCE_S:.0f} s: {_log(folder)}")


def _wait(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise CheckFailed(f"the daemon did not end within {PATIENCE_S:.0f} s of SIGTERM") from None


def _log(folder: Path) -> str:
    lines = (folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
    return " | ".join(lines[-2:]) or "its log is empty"


def _ask(path: str, pid: int) -> None:
    with Client(path, timeout=PATIENCE_S) as client:
        told = client.hello()
    if (told.server, told.version, told.pid) != ("beetle", __version__, pid):
        raise CheckFailed(f"{told.server} {told.version} (pid {told.pid}) answers in place of the daemon")
    if {each.name for each in told.operations} != {row.name for row in OPERATIONS}:
        raise CheckFailed("the daemon does not offer the operations of this build")


def _send_nonsense(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as peer:
        peer.settimeout(PATIENCE_S)
        peer.connect(path)
        peer.sendall(WRONG_FRAME)
        data = b"".join(iter(lambda: peer.recv(4096), b""))
    answer = unpack_any(data) if data else {}
    if answer.get("id") is not None or answer.get("error", {}).get("key") != "invalid_frame":
        raise CheckFailed("what is no frame is not answered with invalid_frame")
