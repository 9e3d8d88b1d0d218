"""The daemon: one store, its socket, its signals."""

from __future__ import annotations

import grp
import logging
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING

from beetle.contracts.codec import replace
from beetle.contracts.control import HelloRequest
from beetle.contracts.errors import BeetleError, InvalidRequest
from beetle.garbage import EVERY_S, Garbage
from beetle.heap import Heap
from beetle.mapped_pages import MappedPages
from beetle.named_tuple import NamedTuple
from beetle.open import Opened, check_configured, configured_dependencies, open_store, start_jobs, stop_jobs
from beetle.runtime.areas.table import HANDLERS
from beetle.runtime.host import logs
from beetle.runtime.host.built_transports import check_built
from beetle.runtime.host.config import AT_START, RELOADED, SECTIONS, Config, Grpc, Metrics, Replica, read_config
from beetle.runtime.host.principals import OPERATOR, Principals
from beetle.runtime.host.retention import policy_of
from beetle.runtime.host.supervisor import STUCK_S, Notifier, Watchdog
from beetle.runtime.pipeline.invocation import Call
from beetle.spool import spool_folder
from beetle.store.engine.presence import has_content
from beetle.store.event_log import Event
from beetle.transports import turned_away
from beetle.transports.unix_socket import SocketServer

if TYPE_CHECKING:
    from beetle import first_boot
    from beetle.replication.supervisor import Supervisor
    from beetle.transports.grpc.server import GrpcServer
    from beetle.transports.metrics_port import MetricsPort

log = logging.getLogger("beetle.daemon")

SWITCH_SECONDS = 0.0005
"""How long a thread may keep the interpreter while another wants it. SQLite lets go of it at every row, and Python's
own 5 ms make a read of a hundred rows wait half a second beside one thread that computes."""
WATCHDOG = OPERATOR._replace(name="watchdog", transport="in_process")
OWN_DESCRIPTORS = 64
"""Files, logs and pipes beside connections and readers."""
THREADS_SECONDS = 1.0
ALIVE_US = 900_000_000
"""Until then the service manager waits for a start that restores, from each word of it."""
SPOOL_SECONDS = 30.0
SETTLED_S = 1.0
"""From the start of the wait for signals to the first quiet look at what the start has left."""
PAGES_S = 1.0
"""So often it is looked how much of files is mapped: it counts until it is given back."""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Asked(NamedTuple):
    """What the command line asks for and a configuration may say: where gRPC is served, what is logged and where."""

    grpc: str | None = None
    log_level: str | None = None
    log_file: str | None = None


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
    _start_log(asked.log_file or config.daemon.log, asked.log_level, env)
    sys.setswitchinterval(SWITCH_SECONDS)
    # Blocked before any thread exists, so that every thread inherits it and only `sigwait` below takes them.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    notifier = Notifier(env)
    HANDLERS.load("hello", "memory.close")  # answered also when no file descriptor is left
    restored = None if config.replica is None else _first_boot(config.replica, store, env, notifier)
    opened = open_store(store, profile, backend, dependencies=configured_dependencies(config, env), env=env)
    replica: Supervisor | None = None
    try:
        budgets = opened.profile.budgets
        logs.bound(logs.Bounds(budgets.log_file_bytes, budgets.log_files))
        _say_what_was_opened(opened)
        _allow_open_files(budgets.connections + turned_away.MOST + budgets.readers * 3 + OWN_DESCRIPTORS)
        opened.dispatcher.lifecycle.ends_by(_end)
        principals = Principals(os.getuid(), config.principals, opened.dispatcher.sessions.devices)
        server = SocketServer(opened.dispatcher, principals, socket_path, _group(config.daemon.group))
        server.start()
        rpc = _grpc(opened, principals, config.grpc, asked.grpc or config.grpc.listen, server)
        port = _metrics(opened, config.metrics, server)
        start_jobs(opened, principals.by_name)
        replica = None if config.replica is None else _replica(opened, config.replica, socket_path, env)
        try:
            opened.store.announce(socket_path)
            _record(opened, "daemon_started")
            if restored is not None:
                _record(opened, "replica_restored", txid=restored.txid, event_log_rows=restored.rows)
            log.info("listening at %s (pid %d)", socket_path, os.getpid(), extra={"event": "listening"})
            notifier.say("READY=1")
            Spooled(socket_path, env).start()
            watchdog = Watchdog(env, notifier, lambda: answers(opened))
            _wait(opened, config, config_path, env, principals)
            watchdog.stop()
            notifier.say("STOPPING=1")
        finally:
            opened.dispatcher.lifecycle.stop_tasks()
            stop_jobs(opened)
            for each in (port, rpc, server):
                if each is not None:
                    each.stop()
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
    log.info("stopped", extra={"event": "stopped"})
    return 0


def _first_boot(
    settings: Replica, store: str, env: Mapping[str, str], notifier: Notifier
) -> first_boot.Restored | None:
    if settings.restore_on_first_boot == "never" or has_content(store):
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


def check_grpc(config: Config) -> None:
    """Look at where a configuration has gRPC served, and as whom its peers ask.

    Raises:
        InvalidRequest: a start would be refused.
        CapabilityHidden: this build has no gRPC.
    """
    check_built("grpc")
    from beetle.transports.grpc.address import check_principal, parse_address

    parse_address(config.grpc.listen or "")
    check_principal(Principals(os.getuid(), config.principals).named, config.grpc)


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
            log.error(
                "gRPC is not served at %s: %s; %s",
                stored,
                error.message,
                error.hint,
                extra={"event": "grpc_not_served"},
            )
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


def _metrics(opened: Opened, settings: Metrics, server: SocketServer) -> MetricsPort | None:
    """The port for Prometheus, where the configuration names one.

    Raises:
        BeetleError: it is taken, or the token cannot be read. The socket's server is stopped then.
    """
    if settings.listen is None or settings.token_file is None:
        return None
    from beetle.runtime.host.secret_file import read_secret
    from beetle.transports.metrics_port import MetricsPort

    file = settings.token_file

    def token() -> str:
        if (found := read_secret(file)) is None:
            hint = "put a token of printable characters there, in a file of mode 0600 of the daemon's user"
            raise InvalidRequest(reason=f"{file} holds no token", hint=hint, path="$.metrics.token_file")
        return found

    caller = OPERATOR._replace(
        name="metrics", transport="in_process", capabilities=frozenset({"inspect"}), views=("operator_audit",)
    )
    port = MetricsPort(opened.dispatcher, caller, settings.address, token)
    try:
        token()
        port.start()
    except BeetleError:
        server.stop()
        raise
    return port


def answers(opened: Opened) -> bool:
    """Whether the daemon does its work: the dispatcher answers, and the writer is not stuck."""
    try:
        opened.dispatcher.dispatch(Call("hello", HelloRequest(), WATCHDOG))
    except BeetleError:
        return opened.dispatcher.lifecycle.closed_with is not None  # it ends, which the service manager has bounds for
    store = opened.store
    return store.settings.immutable or (not store.writer.ended and store.still_s() <= STUCK_S)


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
    heap, pages, next_look = Heap(), MappedPages(), time.monotonic() + SETTLED_S
    while True:
        found = signal.sigtimedwait(SIGNALS, PAGES_S)
        # After SIGSTOP and SIGCONT Python returns what no signal was, if the time has run out meanwhile.
        if found is None or found.si_signo not in SIGNALS:
            pages.look()
            if time.monotonic() >= next_look:
                next_look = time.monotonic() + EVERY_S
                if garbage.look():
                    heap.look()
            continue
        received = found.si_signo
        if received != signal.SIGHUP:
            log.info("received %s", signal.Signals(received).name, extra={"event": "signal"})
            return
        try:
            read = read_config(config_path, env, os.getuid())
            check_configured(read)
            principals.replace(read.principals)
            # Subscriptions are looked at now, not when their next event comes.
            opened.dispatcher.hub.nudge()
            if (read.scheduler, read.snapshots) != (config.scheduler, config.snapshots):
                timed, keep = read.scheduler, policy_of(opened.profile.budgets, read.snapshots)
                opened.dispatcher.scheduler.configure(timed.jobs, timed.time_zone, keep)
                kept = replace(read.snapshots, folder=config.snapshots.folder)
                config = replace(config, scheduler=timed, snapshots=kept)
        except BeetleError as error:
            # What is running stays as it was: a mistyped file must not lock anyone out, nor let anyone in.
            log.error(
                "the configuration was not taken: %s; %s",
                error.message,
                error.hint,
                extra={"event": "configuration_refused"},
            )
        else:
            log.info(
                "configuration read again: its principals, schedules and numbers of snapshots hold from now on",
                extra={"event": "configuration_read"},
            )
            if differs(read, config):
                log.warning(
                    "what else has changed in it holds from the next start of the daemon",
                    extra={"event": "restart_needed"},
                )


def differs(read: Config, running: Config) -> bool:
    """Whether what is read only at a start differs from what a daemon runs with."""
    sections = ((each,) for each in SECTIONS if each not in RELOADED)
    return any(attrgetter(".".join(key))(read) != attrgetter(".".join(key))(running) for key in (*sections, *AT_START))


def _allow_open_files(needed: int) -> None:
    """Room for every connection of the profile: at the limit nobody would be let in, the operator neither."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < needed:
        log.warning(
            "%d open files are allowed; the connections of the profile need %d",
            most,
            needed,
            extra={"event": "open_files_limited"},
        )


def _say_what_was_opened(opened: Opened) -> None:
    report = opened.store.open_report
    log.info("profile %s: %s", opened.profile.name, "; ".join(opened.reasons), extra={"event": "profile"})
    log.info(
        "store %s (%s, schema %d, %d bytes)%s",
        report.path or "in memory",
        report.backend,
        report.schema,
        report.bytes,
        ", created" if report.created else "",
        extra={"event": "store_opened"},
    )
    for finding in report.findings:
        log.warning("%s", finding, extra={"event": "store_finding"})
    if (found := opened.identity.problem(opened.identity.state, whole_path=True)) is not None:
        log.warning("the device identity cannot be used: %s; %s", *found, extra={"event": "identity_unusable"})


def _record(opened: Opened, event: str, **told: int) -> None:
    """A lifecycle row of the daemon's own; a store that cannot be written still serves reads."""
    try:
        row = Event("lifecycle", event, "serve", "daemon", None, {"pid": os.getpid(), **told})
        opened.store.write(lambda tx: tx.log(row), grows=False)
    except BeetleError as error:
        log.warning("%s could not be logged: %s", event, error.message, extra={"event": "event_not_logged"})


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


def _start_log(place: str, level: str | None, env: Mapping[str, str]) -> None:
    try:
        logs.start(place, level or "info", env)
    except OSError as error:
        raise InvalidRequest(
            reason=f"the log {place} cannot be written ({error.strerror})",
            hint="make its folder and file writable for this user, or name another [daemon] log",
            path="$.daemon.log",
        ) from error


class Spooled(threading.Thread):
    """Takes in the events that hooks of this user have spooled for this daemon while none answered."""

    def __init__(self, socket_path: str, env: Mapping[str, str]) -> None:
        super().__init__(name="beetle-spool", daemon=True)
        self._socket = os.path.abspath(socket_path)
        self._folder = spool_folder(env)

    def run(self) -> None:
        if not os.path.isdir(self._folder):
            return
        from beetle.hook import Link, drain

        link = Link.first([self._socket], None, SPOOL_SECONDS)
        if link is None:
            return
        try:
            found = drain(self._folder, link, SPOOL_SECONDS)
            if found.delivered:
                log.info("%d spooled events taken in", found.delivered, extra={"event": "spool_taken"})
            if told := found.told():
                log.warning("%s", told, extra={"event": "spool_not_taken"})
        except OSError as error:
            log.warning(
                "the spool %s could not be read: %s",
                self._folder,
                error.strerror or error,
                extra={"event": "spool_not_read"},
            )
        finally:
            link.close()
