"""The daemon: one store, its socket, its signals."""

from __future__ import annotations

import grp
import logging
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from beetle.contracts.codec import replace
from beetle.contracts.errors import BeetleError, InvalidRequest
from beetle.garbage import EVERY_S, Garbage
from beetle.hook import Link, drain
from beetle.open import Opened, check_configured, configured_dependencies, open_store, start_jobs, stop_jobs
from beetle.runtime.areas.table import HANDLERS
from beetle.runtime.host.built_transports import check_built
from beetle.runtime.host.config import Config, Grpc, Replica, read_config
from beetle.runtime.host.principals import Principals
from beetle.spool import spool_folder
from beetle.store.event_log import Event
from beetle.transports import turned_away
from beetle.transports.unix_socket import SocketServer

if TYPE_CHECKING:
    from beetle import first_boot
    from beetle.replication.supervisor import Supervisor
    from beetle.transports.grpc.server import GrpcServer

log = logging.getLogger("beetle.daemon")

NOTIFY_SECONDS = 5.0
SWITCH_SECONDS = 0.0005
"""How long a thread may keep the interpreter while another wants it. SQLite lets go of it at every row, and Python's
own 5 ms make a read of a hundred rows wait half a second beside one thread that computes."""
OWN_DESCRIPTORS = 64
"""Files, logs and pipes beside connections and readers."""
LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}
THREADS_SECONDS = 1.0
ALIVE_US = 900_000_000
"""Until then the service manager waits for a start that restores, from each word of it."""
SPOOL_SECONDS = 30.0
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Asked(NamedTuple):
    """What the command line asks for and a configuration may say: where gRPC is served, what is logged."""

    grpc: str | None = None
    log_level: str | None = None


NOTHING_ASKED = Asked()


def serve(
    *,
    config: Config,
    config_path: str | None,
    socket_path: str,
    store: str,
    profile: str,
    backend: str | None = None,
    asked: Asked = NOTHING_ASKED,
    env: Mapping[str, str],
) -> int:
    """Run in the foreground until SIGTERM or SIGINT; SIGHUP reads the configuration again.

    Raises:
        BeetleError: the store, the socket or the address of gRPC could not be opened.
    """
    _start_log(config.daemon.log, asked.log_level)
    sys.setswitchinterval(SWITCH_SECONDS)
    # Blocked before any thread exists, so that every thread inherits it and only `sigwait` below takes them.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    notifier = _Notifier(env)
    HANDLERS.load("hello", "memory.close")  # answered also when no file descriptor is left
    restored = None if config.replica is None else _first_boot(config.replica, store, env, notifier)
    opened = open_store(store, profile, backend, dependencies=configured_dependencies(config, env), env=env)
    replica: Supervisor | None = None
    try:
        _say_what_was_opened(opened)
        budgets = opened.profile.budgets
        _allow_open_files(budgets.connections + turned_away.MOST + budgets.readers * 3 + OWN_DESCRIPTORS)
        opened.dispatcher.lifecycle.ends_by(_end)
        principals = Principals(os.getuid(), config.principals, opened.dispatcher.sessions.devices)
        server = SocketServer(opened.dispatcher, principals, socket_path, _group(config.daemon.group))
        server.start()
        rpc = _grpc(opened, principals, config.grpc, asked.grpc or config.grpc.listen, server)
        start_jobs(opened, principals.by_name)
        replica = None if config.replica is None else _replica(opened, config.replica, socket_path, env)
        try:
            opened.store.announce(socket_path)
            _record(opened, "daemon_started")
            if restored is not None:
                _record(opened, "replica_restored", txid=restored.txid, event_log_rows=restored.rows)
            log.info("listening at %s (pid %d)", socket_path, os.getpid())
            notifier.say("READY=1")
            Spooled(socket_path, env).start()
            watchdog = _Watchdog(env, notifier)
            _wait(opened, config, config_path, env, principals)
            watchdog.stop()
            notifier.say("STOPPING=1")
        finally:
            opened.dispatcher.lifecycle.stop_tasks()
            stop_jobs(opened)
            if rpc is not None:
                rpc.stop()
            server.stop()
        # Before the daemon's last row, which a reader of the log takes for the end of it.
        opened.dispatcher.refusals.finish()
        _record(opened, "daemon_stopped")
    finally:
        # The last commits are replicated as it closes: the sidecar lets go of the log before it is folded.
        opened.store.close()
        if replica is not None:
            replica.close()
        notifier.close()
    _wait_for_threads()
    log.info("stopped")
    return 0


def _first_boot(
    settings: Replica, store: str, env: Mapping[str, str], notifier: _Notifier
) -> first_boot.Restored | None:
    if settings.restore_on_first_boot == "never" or os.path.lexists(store):
        return None
    # Once in a device's life.
    from beetle import first_boot

    def alive(said: str) -> None:
        notifier.say(f"STATUS={said}\nEXTEND_TIMEOUT_USEC={ALIVE_US}")

    return first_boot.restore(settings, store, env, env.get("CREDENTIALS_DIRECTORY"), alive)


def _replica(opened: Opened, settings: Replica, socket_path: str, env: Mapping[str, str]) -> Supervisor | None:
    # A daemon without one loads none of it.
    from beetle.replicating import keep_replica

    return keep_replica(opened, settings, socket_path, env)


def _grpc(
    opened: Opened, principals: Principals, settings: Grpc, asked: str | None, server: SocketServer
) -> GrpcServer | None:
    """The gRPC server, where one is asked for, or an operator has given it an address by `transport.update`.

    Raises:
        BeetleError: it was asked for, and this build has none, or the address or who its peers are is not as it must
            be. The socket's server is stopped then.
    """
    stored = opened.dispatcher.sessions.transports.configured_endpoint("grpc")
    if asked is None and stored is None:
        return None
    try:
        return _start_grpc(opened, principals, settings, asked or stored or "")
    except BeetleError as error:
        if asked is None:
            # The store keeps that address, and a daemon that did not start could not be told another.
            log.error("gRPC is not served at %s: %s; %s", stored, error.message, error.hint)
            return None
        server.stop()
        raise


def _start_grpc(opened: Opened, principals: Principals, settings: Grpc, address: str) -> GrpcServer:
    check_built("grpc")
    # A daemon without it loads none of it.
    from beetle.transports.grpc.server import GrpcServer

    found = GrpcServer(opened.dispatcher, principals, settings, address)
    found.start()
    return found


def _wait_for_threads() -> None:
    """A thread that runs on while the interpreter ends is broken off by glibc, which loads a library for that, and
    aborts the process where no file descriptor is left."""
    end = time.monotonic() + THREADS_SECONDS
    for each in threading.enumerate():
        if each is not threading.current_thread():
            each.join(max(0.0, end - time.monotonic()))


def _end() -> None:
    """As if somebody had asked for it from outside: what has begun is answered first."""
    os.kill(os.getpid(), signal.SIGTERM)


def _wait(
    opened: Opened, config: Config, config_path: str | None, env: Mapping[str, str], principals: Principals
) -> None:
    """Until a signal that ends the daemon."""
    shared = opened.dispatcher.shared
    garbage = Garbage(lambda: bool(shared.large_turns.taken or shared.scan_turns.taken))
    while True:
        found = signal.sigtimedwait(SIGNALS, EVERY_S)
        # After SIGSTOP and SIGCONT Python returns what no signal was, if the time has run out meanwhile.
        if found is None or found.si_signo not in SIGNALS:
            garbage.look()
            continue
        received = found.si_signo
        if received != signal.SIGHUP:
            log.info("received %s", signal.Signals(received).name)
            return
        try:
            read = read_config(config_path, env, os.getuid())
            check_configured(read)
            principals.replace(read.principals)
            # Subscriptions are looked at now, not when their next event comes.
            opened.dispatcher.hub.nudge()
            if read.scheduler != config.scheduler:
                timed = read.scheduler
                opened.dispatcher.scheduler.configure(timed.jobs, timed.time_zone, timed.keep_snapshots)
                config = replace(config, scheduler=timed)
        except BeetleError as error:
            # What is running stays as it was: a mistyped file must not lock anyone out, nor let anyone in.
            log.error("the configuration was not taken: %s; %s", error.message, error.hint)
        else:
            log.info("configuration read again: its principals and schedules hold from now on")
            if (read.daemon, read.agent_skills, read.model, read.replica, read.grpc) != (
                config.daemon, config.agent_skills, config.model, config.replica, config.grpc
            ):  # fmt: skip
                log.warning("what else has changed in it holds from the next start of the daemon")


def _allow_open_files(needed: int) -> None:
    """Room for every connection of the profile: at the limit nobody would be let in, the operator neither."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < needed:
        log.warning("%d open files are allowed; the connections of the profile need %d", most, needed)


def _say_what_was_opened(opened: Opened) -> None:
    report = opened.store.open_report
    log.info("profile %s: %s", opened.profile.name, "; ".join(opened.reasons))
    log.info(
        "store %s (%s, schema %d, %d bytes)%s",
        report.path or "in memory",
        report.backend,
        report.schema,
        report.bytes,
        ", created" if report.created else "",
    )
    for finding in report.findings:
        log.warning("%s", finding)
    if (found := opened.identity.problem(opened.identity.state, whole_path=True)) is not None:
        log.warning("the device identity cannot be used: %s; %s", *found)


def _record(opened: Opened, event: str, **told: int) -> None:
    """A lifecycle row of the daemon's own; a store that cannot be written still serves reads."""
    try:
        row = Event("lifecycle", event, "serve", "daemon", None, {"pid": os.getpid(), **told})
        opened.store.write(lambda tx: tx.log(row), grows=False)
    except BeetleError as error:
        log.warning("%s could not be logged: %s", event, error.message)


def _group(name: str | None) -> int | None:
    if name is None:
        return None
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise InvalidRequest(
            reason=f"no group {name!r} on this machine",
            hint="create it, or name another group in [daemon] group",
            path="$.daemon.group",
        ) from None


def _start_log(place: str, level: str | None) -> None:
    try:
        handler = logging.StreamHandler(sys.stderr) if place == "stderr" else logging.FileHandler(place)
    except OSError as error:
        raise InvalidRequest(
            reason=f"the log {place} cannot be written ({error.strerror})",
            hint="make its folder and file writable for this user, or name another [daemon] log",
            path="$.daemon.log",
        ) from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("beetle")
    root.handlers[:] = [handler]
    root.setLevel(LEVELS[level or "info"])
    root.propagate = False


class Spooled(threading.Thread):
    """Takes in the events that hooks of this user have spooled for this daemon while none answered."""

    def __init__(self, socket_path: str, env: Mapping[str, str]) -> None:
        super().__init__(name="beetle-spool", daemon=True)
        self._socket = os.path.abspath(socket_path)
        self._folder = spool_folder(env)

    def run(self) -> None:
        if not os.path.isdir(self._folder):
            return
        link = Link.first([self._socket], None, SPOOL_SECONDS)
        if link is None:
            return
        try:
            if taken := drain(self._folder, link, {self._socket}, SPOOL_SECONDS):
                log.info("%d spooled events taken in", taken)
        except OSError as error:
            log.warning("the spool %s could not be read: %s", self._folder, error.strerror or error)
        finally:
            link.close()


class _Notifier:
    """Tells systemd (sd_notify(3)): datagrams to $NOTIFY_SOCKET.

    The socket is made once: a daemon that has no descriptor left must still be able to say that it lives, and to end.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        address = env.get("NOTIFY_SOCKET") or ""
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket: socket.socket | None = None
        if address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            # A supervisor that does not read must not keep the daemon from ending.
            self._socket.settimeout(NOTIFY_SECONDS)

    def say(self, state: str) -> None:
        if self._socket is None:
            return
        try:
            self._socket.sendto(state.encode(), self._address)
        except (FileNotFoundError, ConnectionRefusedError):
            pass  # whoever waited for READY, `beetle start` for one, may be gone by now
        except OSError as error:
            log.warning("systemd could not be told %s: %s", state, error.strerror or error)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()


class _Watchdog:
    """Pings systemd at half of $WATCHDOG_USEC while the daemon lives."""

    def __init__(self, env: Mapping[str, str], notifier: _Notifier) -> None:
        self._notifier = notifier
        self._end = threading.Event()
        period = env.get("WATCHDOG_USEC", "")
        # systemd names the process that it watches; a parent's variables are not for its children.
        mine = env.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        if mine and period.isdecimal() and int(period):
            args = (int(period) / 2_000_000,)
            threading.Thread(target=self._ping, args=args, name="beetle-watchdog", daemon=True).start()

    def stop(self) -> None:
        self._end.set()

    def _ping(self, seconds: float) -> None:
        while not self._end.wait(seconds):
            self._notifier.say("WATCHDOG=1")
