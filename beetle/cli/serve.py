"""serve: the daemon in the foreground. This and what it imports is all of the command line that a daemon loads."""

from __future__ import annotations

import os
from argparse import SUPPRESS, Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from beetle.cli.parser import Parser, typed_option

if TYPE_CHECKING:
    from beetle.runtime.host.config import Config


def absolute(path: str | None) -> str | None:
    """Absolute before its length is judged; nothing stays nothing, which is refused later."""
    return os.path.abspath(path) if path else path


def read_configuration(typed: Namespace) -> Config:
    """The configuration file that `--config`, the environment or the usual place names."""
    from beetle.runtime.host.config import read_config

    return read_config(typed_option(typed, "config"), os.environ, os.getuid())


class Plan(NamedTuple):
    """What a daemon of this command line would use; paths are absolute."""

    config_path: str | None
    socket: str
    store: str
    profile: str
    backend: str | None
    log: str
    grpc: str | None = None


def fill_serve(parser: Parser) -> None:
    """What serve and start take besides the global options."""
    parser.add_argument(
        "--backend", metavar="NAME", default=SUPPRESS, help="in-memory, sqlite, file or embedded; the profile's own"
    )
    parser.add_argument(
        "--grpc", metavar="ADDR", default=SUPPRESS,
        help="serve gRPC too, at HOST:PORT or unix:PATH; as whom its peers ask, [grpc] says in the configuration",
    )  # fmt: skip


def plan(typed: Namespace, env: Mapping[str, str], uid: int) -> Plan:
    """Where a daemon would listen and what it would open.

    Raises:
        InvalidRequest: of the configuration, or a path that cannot be one.
    """
    from beetle.runtime.host.config import socket_path, store_path
    from beetle.runtime.host.profile import check_profile_name

    config = read_configuration(typed)
    store = os.path.abspath(store_path(typed_option(typed, "store"), env, config, uid))
    profile = typed_option(typed, "profile") or config.daemon.profile or "auto"
    if "/" in profile:
        profile = os.path.abspath(profile)
    else:
        check_profile_name(profile, "auto")
    given = typed_option(typed, "config")
    return Plan(
        os.path.abspath(given) if given else None,
        os.path.abspath(socket_path(absolute(typed_option(typed, "socket")), env, config, uid)),
        store,
        profile,
        typed_option(typed, "backend"),
        os.path.splitext(store)[0] + ".log" if config.daemon.log == "stderr" else config.daemon.log,
        typed_option(typed, "grpc"),
    )


def run_serve(typed: Namespace) -> int:
    """The daemon, in the foreground."""
    from beetle.daemon import serve

    wanted = plan(typed, os.environ, os.getuid())
    return serve(
        config=read_configuration(typed),
        config_path=wanted.config_path,
        socket_path=wanted.socket,
        store=wanted.store,
        profile=wanted.profile,
        backend=wanted.backend,
        grpc=wanted.grpc,
        env=os.environ,
    )


OWN = {"serve": (fill_serve, run_serve)}
