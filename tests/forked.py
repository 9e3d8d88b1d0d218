"""Daemons and commands that start with a fifth of the work: forked by a process that has loaded the product once.

Loading the modules is most of the work of a start, and the tests start hundreds. From `main` on it is a process as any
other: its own memory, arguments, environment, folder, files and signals. Tests of the start itself, of what a process
loads or weighs, of terminals, and of a build start theirs by its command (tests/running.py).
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from beetle.cli.control import ALLOCATOR
from tests import running

SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER: whose children the orphans among a process's descendants become."""
MOST = 1 << 20
NOTHING = b"\x80"
"""A map of no fields, in MessagePack."""


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
        self._one_at_a_time = threading.Lock()
        self._prctl = ctypes.CDLL(None, use_errno=True).prctl
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forked", str(theirs.fileno())],
                cwd=running.ROOT,
                env={**os.environ, **ALLOCATOR},
                pass_fds=[theirs.fileno()],
            )

    def start(
        self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path | str, streams: Sequence[int]
    ) -> Forked:
        """Run `beetle` with these arguments; `streams` are its input, output and errors."""
        wanted = json.dumps([list(arguments), dict(environment), str(folder)]).encode()
        with self._one_at_a_time:
            self._prctl(SUBREAPER, 1, 0, 0, 0)
            try:
                files = array.array("i", streams)
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
        with open(os.devnull, "rb") as nothing:
            streams = (nothing.fileno(), log.fileno(), log.fileno())
            return forker().start(arguments, environment, self.checkout, streams)


def run(
    arguments: Sequence[str],
    *,
    cwd: Path | str = running.ROOT,
    env: Mapping[str, str] | None = None,
    given: bytes = b"",
    timeout: float = 60,
) -> subprocess.CompletedProcess[bytes]:
    """What `beetle` with these arguments said, and its exit code; `given` is what its input, a pipe, holds.
    subprocess.TimeoutExpired: it had not ended after so many seconds; it is killed."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        read, write = os.pipe()
        with open(write, "wb", buffering=0) as typed:
            with open(read, "rb") as source:
                streams = (source.fileno(), out.fileno(), errors.fileno())
                started = forker().start(arguments, os.environ if env is None else env, cwd, streams)
            with contextlib.suppress(BrokenPipeError):
                typed.write(given)
        try:
            code = started.wait(timeout)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
            raise
        out.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(["beetle", *arguments], code, out.read(), errors.read())


def run_text(arguments: Sequence[str], given: str = "", **more: Any) -> subprocess.CompletedProcess[str]:
    """See run; the streams are text."""
    done = run(arguments, given=given.encode(), **more)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def serve(peer: socket.socket) -> None:
    """Fork what is asked for, until nobody can ask any more."""
    while True:
        wanted, ancillary, _, _ = peer.recvmsg(MOST, socket.CMSG_SPACE(3 * 4))
        if not wanted:
            return
        streams = array.array("i", ancillary[0][2])
        told, tell = os.pipe()
        between = os.fork()
        if between == 0:
            # Its parent ends, so that it becomes the child of the process that asked.
            pid = os.fork()
            if pid == 0:
                peer.close()
                os.close(told)
                os.close(tell)
                become(*json.loads(wanted), streams)
            os.write(tell, b"%d" % pid)
            os._exit(0)
        for each in (*streams, tell):
            os.close(each)
        os.waitpid(between, 0)
        peer.send(os.read(told, 64))
        os.close(told)


def become(arguments: list[str], environment: dict[str, str], folder: str, streams: Sequence[int]) -> None:
    """The command, in this process."""
    from beetle.__main__ import main

    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, each in enumerate(streams):
        os.dup2(each, number)
    for each in streams:
        os.close(each)
    sys.argv = ["beetle", *arguments]
    code = main(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    # As little of the interpreter is taken down as was set up here.
    os._exit(code)


def load() -> None:
    """What a daemon loads, and the commands."""
    import gc
    import tomllib  # noqa: F401
    from importlib import import_module
    from pkgutil import iter_modules, walk_packages

    from beetle.contracts.loading import import_msgspec

    import_msgspec()
    import cronsim  # noqa: F401
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: F401

    import beetle.cli
    import beetle.client
    import beetle.daemon
    import beetle.runtime.areas
    from beetle.runtime.host.profile import load_profile, profile_names

    for each in iter_modules(beetle.cli.__path__, "beetle.cli."):
        import_module(each.name)
    # What a daemon loads when it is first asked for.
    for each in walk_packages(beetle.runtime.areas.__path__, "beetle.runtime.areas."):
        import_module(each.name)
    for name in profile_names():
        load_profile(name)
    warm()

    gc.collect()
    gc.freeze()


def warm() -> None:
    """What a process works out from types and patterns when it first needs it, and then keeps."""
    from msgspec import Struct

    from beetle.contracts.codec import decode_request
    from beetle.contracts.errors import InvalidRequest
    from beetle.contracts.operations import OPERATIONS
    from beetle.domain.lexical import parse_query
    from beetle.domain.time_words import anchor_of, window_of
    from beetle.runtime.pipeline.budgets import bounds
    from beetle.runtime.pipeline.views import field_rules

    for row in OPERATIONS:
        for kind in row.kinds:
            bounds(kind)
        with contextlib.suppress(InvalidRequest):
            decode_request(NOTHING, row.request)
    structs = [Struct]
    for each in structs:
        structs += each.__subclasses__()
        # What is no part of a report has no markers.
        with contextlib.suppress(TypeError):
            field_rules(each)
    parse_query("pump")
    window_of("pump", 0)
    anchor_of("pump")


if __name__ == "__main__":
    load()
    serve(socket.socket(fileno=int(sys.argv[1])))
