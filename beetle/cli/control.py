"""start, stop, reload: the life of a daemon in the background."""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS, Namespace
from typing import TYPE_CHECKING

from beetle.cli.parser import Parser, fill_nothing, typed_option
from beetle.cli.serve import Plan, fill_serve, plan, read_configuration, run_serve
from beetle.cli.session import (
    Busy,
    holder_in_view,
    start_command,
    typed_target,
)
from beetle.contracts.errors import (
    ERRORS,
    BeetleError,
    DaemonUnavailable,
    DeadlineExceeded,
    Forbidden,
    StoreLocked,
    StoreReadOnly,
    from_wire,
)

if TYPE_CHECKING:
    import socket

    from beetle.cli.process import Process
    from beetle.find import Target

START_SECONDS = 60.0
STOP_SECONDS = 60.0
CONNECT_SECONDS = 2.0
LOG_TAIL = 64 * 1024
ALLOCATOR = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "131072"}
"""Has glibc give large blocks back when they are freed: else each of many threads keeps some of its own."""


def fill_start(parser: Parser) -> None:
    """What start takes besides what serve does."""
    fill_serve(parser)
    parser.add_argument(
        "--foreground", "-f", action="store_true", default=SUPPRESS, help="stay in the foreground, as `beetle serve`"
    )
    parser.add_argument(
        "--port", "-p", metavar="PORT", default=SUPPRESS, help="serve gRPC at this port, as `--grpc localhost:PORT`"
    )


def run_start(typed: Namespace) -> int:
    """`serve` in the background: answers when it is ready, or says why it ended."""
    if typed_option(typed, "foreground"):
        return run_serve(typed)
    from beetle.cli.text import pairs

    wanted = plan(typed, os.environ, os.getuid())
    running = _running_already(wanted, typed)
    if running is not None:
        print(f"Daemon already running (pid {running})")
        return 0
    pid = _start(wanted)
    print(f"Daemon started (pid {pid})")
    chosen, reasons = _chosen_profile(wanted)
    shown = [("Socket", wanted.socket), ("Store", wanted.store), ("Log", wanted.log), ("Profile", chosen)]
    print(pairs([*shown, *(("Why" if not index else "", each) for index, each in enumerate(reasons))], "  "))
    return 0


def start_daemon(typed: Namespace) -> None:
    """As `beetle start`, without a word: a daemon runs when this returns.

    Raises:
        BeetleError: it could not be started, or another process has the store.
    """
    wanted = plan(typed, os.environ, os.getuid())
    if _running_already(wanted, typed) is None:
        _start(wanted)


def _chosen_profile(wanted: Plan) -> tuple[str, tuple[str, ...]]:
    from beetle.runtime.host.profile import load_profile

    if wanted.profile != "auto":
        return load_profile(wanted.profile).name, ("it was asked for",)

    from beetle.runtime.host.choosing import choose_profile, read_machine

    return choose_profile(read_machine(os.path.dirname(wanted.store)))


def _running_already(wanted: Plan, typed: Namespace) -> int | None:
    """The pid of the daemon that has this store, None when nobody has.

    Raises:
        StoreLocked: another process has it, or a daemon at another socket than the one asked for.
    """
    holder = None if wanted.backend == "in-memory" else holder_in_view(wanted.store)
    if holder is None:
        return None
    asked = typed_option(typed, "socket")
    if holder.socket and (asked is None or os.path.realpath(asked) == os.path.realpath(holder.socket)):
        return holder.pid
    advice = "wait until that process ends; it serves no socket"
    if holder.socket:
        advice = f"use the running daemon: beetle --socket {holder.socket} status"
    raise StoreLocked(store=wanted.store, pid=holder.pid or "unknown", socket=holder.socket, advice=advice)


def _start(wanted: Plan) -> int:
    import socket
    import subprocess
    import tempfile

    log, begin = _open_log(wanted.log)
    with tempfile.TemporaryDirectory(prefix="beetle-start-") as folder, os.fdopen(log, "ab") as output:
        address = os.path.join(folder, "ready")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as ready:
            ready.bind(address)
            child = subprocess.Popen(
                _serve_command(wanted),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**environment(), "NOTIFY_SOCKET": address},
            )
            # It outlives this process, and what is waited for below is waited for by its number.
            child.returncode = 0
            code = _wait_until_ready(child.pid, ready)
    if code is not None:
        raise _childs_error(wanted.log, begin, code)
    return child.pid


def _open_log(path: str) -> tuple[int, int]:
    """The log, opened for appending, and its length; its folder is made where it is missing."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        hint = "it is the daemon's log: name another place with [daemon] log, or another --store"
        raise StoreReadOnly(path=path, reason=error.strerror or "unknown", hint=hint) from None
    return log, os.fstat(log).st_size


def program() -> list[str]:
    """What starts beetle again, as this process was started."""
    return [sys.executable] if getattr(sys, "frozen", False) else [sys.executable, "-m", "beetle"]


def environment() -> dict[str, str]:
    """This environment, with the allocator's settings and this package on the path."""

    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH", ""))))
    kept = {name: value for name, value in os.environ.items() if name not in ("WATCHDOG_USEC", "WATCHDOG_PID")}
    return {**ALLOCATOR, **kept, "PYTHONPATH": path}


def _serve_command(wanted: Plan) -> list[str]:
    options = [f"--socket={wanted.socket}", f"--store={wanted.store}", f"--profile={wanted.profile}"]
    if wanted.config_path is not None:
        options.append(f"--config={wanted.config_path}")
    # Named, so that it is rotated: of what stands on its standard error a daemon does not know whose it is.
    given = (
        ("--backend", wanted.backend),
        ("--grpc", wanted.grpc),
        ("--log-level", wanted.log_level),
        ("--log-file", wanted.log),
    )
    return [*program(), *options, "serve", *(f"{name}={value}" for name, value in given if value is not None)]


def _wait_until_ready(pid: int, ready: socket.socket) -> int | None:
    """None once the daemon says that it is ready; its exit code when it ended before.

    Raises:
        DeadlineExceeded: neither happened for a minute; it goes on.
    """
    import select
    import time

    from beetle.cli.process import LOOK_SECONDS, has_ended, hold

    end = time.monotonic() + START_SECONDS
    process = hold(pid)
    try:
        poller = select.poll()
        poller.register(ready, select.POLLIN)
        if process.tells:
            poller.register(process.descriptor, select.POLLIN)
        while (left := end - time.monotonic()) > 0:
            happened = {each for each, _ in poller.poll((left if process.tells else LOOK_SECONDS) * 1000)}
            if ready.fileno() in happened:
                if b"READY=1" in ready.recv(4096).split(b"\n"):
                    return None
                # It restores its store first, and says so.
                end = time.monotonic() + START_SECONDS
            elif has_ended(process):
                return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        os.close(process.descriptor)
    raise _StillStarting(pid=pid)


class _StillStarting(DeadlineExceeded):
    template = "process {pid} is not ready yet; it continues to start"
    hint_template = "`beetle status` shows when it answers"


def _childs_error(log: str, begin: int, code: int) -> BeetleError:
    """The error that the child printed last, as it would look had it been ours."""
    with open(log, "rb") as stream:
        stream.seek(max(begin, os.fstat(stream.fileno()).st_size - LOG_TAIL))
        lines = stream.read(LOG_TAIL).decode(errors="replace").splitlines()
    for index in range(len(lines) - 1, -1, -1):
        program, _, rest = lines[index].partition(": ")
        key, colon, message = rest.partition(": ")
        if program == "beetle" and colon and key in ERRORS:
            hint = lines[index + 1] if index + 1 < len(lines) else ""
            return from_wire(key, message, hint)
    how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
    return from_wire("internal", f"the daemon {how} before it was ready", f"read its log: {log}")


def run_stop(typed: Namespace) -> int:
    """SIGTERM to the daemon, then wait until it is gone."""
    target = typed_target(typed, os.environ, read_configuration(typed), os.getuid())
    process = _find_process(target)
    if process is None:
        print("Daemon is not running")
        return 0
    try:
        _end(process)
    finally:
        os.close(process.descriptor)
    print("Daemon stopped")
    return 0


def run_reload(typed: Namespace) -> int:
    """SIGHUP to the daemon: it reads its configuration again. A file that it would not take is refused here.

    Raises:
        InvalidRequest: the configuration is not as it must be.
        DaemonUnavailable: no daemon runs.
    """
    import signal

    from beetle.open import check_configured

    config = read_configuration(typed)
    check_configured(config)
    process = _find_process(typed_target(typed, os.environ, config, os.getuid()))
    if process is None:
        raise DaemonUnavailable(reason="no daemon runs: nothing to reload", hint=f"start one: `{start_command(typed)}`")
    try:
        _send(process, signal.SIGHUP)
    finally:
        os.close(process.descriptor)
    print(f"Daemon reads its configuration again (pid {process.pid})")
    return 0


def _find_process(target: Target) -> Process | None:
    """The daemon that a data command would have spoken to, or the one in the store's lock file.

    Raises:
        StoreLocked: the store is held by a process that is no daemon.
        Busy: somebody listens at the socket, takes no connection, and no lock file says who it is.
    """
    from beetle.find import refuse_closed_socket

    busy: Busy | None = None
    for path in target.sockets:
        try:
            if (found := _listener(path)) is not None:
                return found
        except Busy as error:
            busy = busy or error
        if target.named:
            refuse_closed_socket(path)
    holder = None if target.store is None else holder_in_view(target.store)
    if holder is None or target.store is None:
        if busy is not None:
            raise Busy(path=busy.details["path"], hint="name its store too, whose lock file says which process it is")
        return None
    if holder.socket is None:
        advice = "it is not a daemon; it ends by itself"
        raise StoreLocked(store=target.store, pid=holder.pid or "unknown", advice=advice)
    try:
        found = _listener(holder.socket)
    except Busy:
        found = None
    return found if found is not None else _lock_holder(target.store, holder.pid)


def _listener(path: str) -> Process | None:
    """Who listens at a socket, as the kernel says, whether or not it has room for us.

    Raises:
        Busy: somebody does, and takes no connection.
    """
    pid = _listening_pid(path)
    if pid is None:
        return None
    from beetle.cli.process import hold

    try:
        process = hold(pid)
    except OSError:
        return None
    # It listens still: so the descriptor is of the listener, and its number was nobody else's meanwhile.
    if _listening_pid(path) == pid:
        return process
    os.close(process.descriptor)
    return None


def _listening_pid(path: str) -> int | None:
    import socket
    import struct

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as connection:
        # connect() waits for room in the backlog as long as a send may take.
        micros = int(CONNECT_SECONDS * 1_000_000)
        limit = struct.pack("ll", micros // 1_000_000, micros % 1_000_000)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        try:
            connection.connect(path)
            return struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        except BlockingIOError:
            raise Busy(path=path, retry_after_ms=1000) from None
        except OSError:
            return None


def _lock_holder(store: str, pid: int | None) -> Process | None:
    """The process of the lock file, if it is one of this machine and has that file open."""
    from beetle.cli.process import hold
    from beetle.store.engine.lock import lock_path

    if pid is None:
        return None
    try:
        process = hold(pid)
    except OSError:
        return None
    lock = os.stat(lock_path(store))
    try:
        opened = [os.stat(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        opened = []
    if any((each.st_dev, each.st_ino) == (lock.st_dev, lock.st_ino) for each in opened):
        return process
    os.close(process.descriptor)
    raise Forbidden(
        reason=f"process {pid} of the lock file is not to be seen from here",
        hint="stop the daemon as its own user, in its own container",
    )


def _end(process: Process) -> None:
    import signal

    from beetle.cli.process import wait_for_end

    if not _send(process, signal.SIGTERM):
        return
    if not wait_for_end(process, STOP_SECONDS):
        raise _StillEnding(pid=process.pid)


def _send(process: Process, number: int) -> bool:
    """False where it has ended already."""
    from beetle.cli.process import send_signal

    try:
        send_signal(process, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        raise Forbidden(
            reason=f"the daemon (pid {process.pid}) belongs to another user", hint="ask as that user, or as root"
        ) from None
    return True


class _StillEnding(DeadlineExceeded):
    template = "process {pid} has not ended yet"
    hint_template = "try again, or look at its log; kill -9 {pid} loses nothing that was acknowledged"


OWN = {
    "start": (fill_start, run_start),
    "stop": (fill_nothing, run_stop),
    "reload": (fill_nothing, run_reload),
}
