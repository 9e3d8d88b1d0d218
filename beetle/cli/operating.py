"""status, health and metrics: the daemon for a person, a probe and a monitoring system. None opens a store itself."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from beetle.cli.parser import fill_nothing, typed_option
from beetle.cli.serve import read_configuration
from beetle.cli.session import answered_in_time, find_daemon, holder_in_view, start_command, typed_target
from beetle.contracts.errors import STATUS, BeetleError, DaemonUnavailable, Forbidden

if TYPE_CHECKING:
    from beetle.client import Client

SECONDS = 10.0
STATUS_SECONDS = 5.0
NOT_RUNNING = 3


def _daemon(typed: Namespace) -> Client:
    """The running daemon.

    Raises:
        DaemonUnavailable: none runs.
    """
    target = typed_target(typed, os.environ, read_configuration(typed), os.getuid())
    client = find_daemon(typed, target, SECONDS)
    if client is None:
        raise DaemonUnavailable(reason="no daemon runs", hint=f"start one: `{start_command(typed)}`")
    return client


def run_health(typed: Namespace) -> int:
    """Each check; the exit code is 0 unless one fails, and then that of the error that requests meet."""
    from beetle.cli.render import as_json
    from beetle.cli.text import pairs

    with answered_in_time(_daemon(typed)) as client:
        found = client.admin_health()
    if found.state is None or found.checks is None:
        raise Forbidden(reason="only operators see how the daemon is", hint="ask as the daemon's user, or as root")
    failing = [each for each in found.checks if each.state == "failing"]
    if typed_option(typed, "json"):
        print(as_json(found))
    else:
        print(f"Health: {found.state}")
        print(pairs([(each.name, each.state if each.state == "ok" else f"{each.state}: {each.says}")
                     for each in found.checks], "  "))  # fmt: skip
    return STATUS[failing[0].key or "internal"].exit_code if failing else 0


def run_metrics(typed: Namespace) -> int:
    """The text that Prometheus reads, or the report as JSON."""
    from beetle.cli.render import as_json
    from beetle.contracts.exposition import exposition

    with answered_in_time(_daemon(typed)) as client:
        found = client.admin_metrics()
    if found.metrics is None:
        raise Forbidden(reason="only operators see the figures of the daemon", hint="ask as its user, or as root")
    if typed_option(typed, "json"):
        print(as_json(found))
    else:
        print(exposition(found.metrics), end="")
    return 0


def run_status(typed: Namespace) -> int:
    """What runs, for people and as JSON; exit code 3 when nothing does."""
    from beetle.cli.render import as_json
    from beetle.cli.text import duration, pairs, size
    from beetle.spool import spool_line

    found, reason = _status(typed)
    found["spool"] = _spool()
    waiting = [("Hook spool", spool_line(found["spool"]))] if any(found["spool"].values()) else []
    if typed_option(typed, "json"):
        print(as_json(found))
        return 0 if found["running"] else NOT_RUNNING
    if not found["running"]:
        print(f"Daemon Status: Not running\n{pairs([('Why', reason), *waiting], '  ')}")
        return NOT_RUNNING
    print("Daemon Status: Running")
    entries = [
        ("PID", str(found["pid"])),
        ("Socket", found["socket"]),
        *((("Port", found["grpc"]),) if found.get("grpc") else ()),
        ("Uptime", duration(found["uptime_s"])),
        ("Version", found["version"]),
        ("Profile", found["profile"]),
    ]
    if "turns" in found:
        entries += [
            ("Store", found["store"] or "(not shown to this caller)"),
            ("Events stored", f"{found['events']:,}"),
            ("Turns", f"{found['turns']:,}"),
            ("Database size", size(found["database_bytes"])),
            *(("Finding", each) for each in found["findings"]),
        ]
    print(pairs([*entries, *waiting], "  "))
    return 0


def _spool() -> dict[str, Any]:
    """What hooks of this user have spooled, for whichever daemon; nothing where that cannot be read."""
    from beetle.spool import spool_folder, spool_state

    try:
        return spool_state(spool_folder(os.environ))
    except OSError:
        return {"events": 0, "oldest_at": None, "refused": 0}


def _status(typed: Namespace) -> tuple[dict[str, Any], str]:
    """What a running daemon says of itself, or that none runs, and why that is known."""
    target = typed_target(typed, os.environ, read_configuration(typed), os.getuid())
    try:
        client = find_daemon(typed, target, STATUS_SECONDS, retry=False)
    except DaemonUnavailable as error:
        return {"running": False}, error.message
    if client is None:
        holder = None if target.store is None else holder_in_view(target.store)
        looked = ", ".join((*target.sockets, target.store or ""))
        return {"running": False}, (
            f"no daemon answers at {looked}"
            if holder is None
            else f"process {holder.pid} holds {target.store}, and it is not a daemon"
        )
    try:
        return _running(client), ""
    except DaemonUnavailable as error:
        return {"running": False}, error.message


def _running(client: Client) -> dict[str, Any]:
    """What the daemon says of itself. Raises DaemonUnavailable where it ends meanwhile."""
    with answered_in_time(client):
        told = client.hello()
        found: dict[str, Any] = {
            "running": True,
            "pid": told.pid,
            "socket": client.path,
            "uptime_s": told.uptime_s,
            "version": told.version,
            "profile": told.profile,
        }
        found |= _grpc_of(client)
        try:
            seen = client.inspect()
        except DaemonUnavailable:
            raise
        except BeetleError:
            # A caller without the capability still learns that the daemon runs.
            return found
    counted = {"events": seen.counts.messages, "turns": seen.counts.turns}
    found |= {"store": seen.store.path, **counted, "database_bytes": seen.store.bytes}
    found["findings"] = list(seen.operator.findings or ())
    return found


def _grpc_of(client: Client) -> dict[str, Any]:
    """Where gRPC is served, for who may know."""
    try:
        listed = client.list_transports().transports
    except DaemonUnavailable:
        raise
    except BeetleError:
        return {}
    found = next(each for each in listed if each.name == "grpc")
    return {"grpc": found.endpoint} if found.listening else {}


OWN = {
    "status": (fill_nothing, run_status),
    "health": (fill_nothing, run_health),
    "metrics": (fill_nothing, run_metrics),
}
