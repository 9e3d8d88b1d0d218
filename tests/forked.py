"""Daemons that start in a tenth of the time: forked by a process that has loaded the product once.

Loading the modules is three quarters of the work of a daemon's start, and the tests start hundreds. From `beetle serve`
on it is the same process as any other daemon: its own memory, arguments, environment, files and signals. Tests of the
start itself, of what a daemon loads or weighs, and of a build start it by its command (tests/running.py).
"""

from __future__ import annotations

import array
import ctypes
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

from beetle.cli.control import ALLOCATOR
from tests import running

SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER: whose children the orphans among a process's descendants become."""
MOST = 1 << 20


class Forked:
    """A process that another one forked for this one, which is its parent now. As subprocess.Popen."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        return self._look(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. subprocess.TimeoutExpired: it has not ended after so many seconds."""
        if self.returncode is None and timeout is not None:
            child = os.pidfd_open(self.pid)
            try:
                if not select.select([child], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired("beetle serve", timeout)
            finally:
                os.close(child)
        code = self._look(0)
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        """Nothing, if it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _look(self, how: int) -> int | None:
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, how)
            if ended:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


class Forker:
    """The process that has loaded the product, at the end of a pipe."""

    def __init__(self) -> None:
        self._peer, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._prctl = ctypes.CDLL(None, use_errno=True).prctl
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forked", str(theirs.fileno())],
                cwd=running.ROOT,
                env={**os.environ, **ALLOCATOR},
                pass_fds=[theirs.fileno()],
            )

    def start(self, arguments: list[str], environment: dict[str, str], folder: Path, log: IO[bytes]) -> Forked:
        """Run `beetle` with these arguments, with `log` as its output."""
        wanted = json.dumps([arguments, environment, str(folder)]).encode()
        self._prctl(SUBREAPER, 1, 0, 0, 0)
        try:
            files = array.array("i", [log.fileno()])
            self._peer.sendmsg([wanted], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
            pid = self._peer.recv(64)
        finally:
            self._prctl(SUBREAPER, 0, 0, 0, 0)
        if not pid:
            raise RuntimeError(f"what forks daemons has ended with {self._process.wait()}")
        return Forked(int(pid))


@functools.cache
def forker() -> Forker:
    """This process's; it ends with it."""
    return Forker()


class Daemon(running.Daemon):
    """A daemon of this checkout that loads nothing again."""

    def spawn(self, arguments: list[str], environment: dict[str, str], log: IO[bytes]) -> Any:
        """See running.Daemon; a command that was asked for is run as it is."""
        if self.command != running.COMMAND or self.checkout != running.ROOT:
            return super().spawn(arguments, environment, log)
        return forker().start(arguments, environment, self.checkout, log)


def serve(peer: socket.socket) -> None:
    """Fork what is asked for, until nobody can ask any more."""
    while True:
        wanted, ancillary, _, _ = peer.recvmsg(MOST, socket.CMSG_SPACE(4))
        if not wanted:
            return
        (log,) = array.array("i", ancillary[0][2])
        told, tell = os.pipe()
        between = os.fork()
        if between == 0:
            # Its parent ends, so that it becomes the child of the process that asked.
            pid = os.fork()
            if pid == 0:
                peer.close()
                os.close(told)
                os.close(tell)
                become(*json.loads(wanted), log)
            os.write(tell, b"%d" % pid)
            os._exit(0)
        os.close(log)
        os.close(tell)
        os.waitpid(between, 0)
        peer.send(os.read(told, 64))
        os.close(told)


def become(arguments: list[str], environment: dict[str, str], folder: str, log: int) -> None:
    """The command, in this process."""
    from beetle.__main__ import main

    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    sys.argv = ["beetle", *arguments]
    code = main(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    # As little of the interpreter is taken down as was set up here.
    os._exit(code)


def load() -> None:
    """What a daemon loads before it serves."""
    import gc
    import tomllib  # noqa: F401

    from beetle.__main__ import _import_msgspec

    _import_msgspec()
    import beetle.cli.app
    import beetle.cli.commands
    import beetle.cli.serve
    import beetle.daemon  # noqa: F401

    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    load()
    serve(socket.socket(fileno=int(sys.argv[1])))
