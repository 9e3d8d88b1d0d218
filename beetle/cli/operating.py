"""health and metrics: the daemon for a probe and for a monitoring system. Neither opens a store itself."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import TYPE_CHECKING

from beetle.cli.parser import fill_nothing, typed_option
from beetle.cli.serve import read_configuration
from beetle.cli.session import answered_in_time, find_daemon, start_command, typed_target
from beetle.contracts.errors import STATUS, DaemonUnavailable, Forbidden

if TYPE_CHECKING:
    from beetle.client import Client

SECONDS = 10.0


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


OWN = {"health": (fill_nothing, run_health), "metrics": (fill_nothing, run_metrics)}
