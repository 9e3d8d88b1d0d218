"""serve: the daemon in the foreground. This and what it imports is all of the command line that a daemon loads."""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS, Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING

from beetle.cli.parser import Parser, typed_option
from beetle.named_tuple import NamedTuple

if TYPE_CHECKING:
    from beetle.runtime.host.config import Config


LOG_LEVELS = ("trace", "debug", "info", "warn", "error")


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
    log_level: str | None = None
    log_file: str | None = None


def fill_serve(parser: Parser) -> None:
    """What serve and start take besides the global options."""
    parser.add_argument(
        "--backend", metavar="NAME", default=SUPPRESS, help="in-memory, sqlite, file or embedded; the profile's own"
    )
    parser.add_argument(
        "--log-file", metavar="FILE", default=SUPPRESS,
        help="log to this file, which is rotated; else to where [daemon] log says",
    )  # fmt: skip
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
        absolute(typed_option(typed, "log_file")) or _usual_log(store, config.daemon.log),
        _grpc_address(typed),
        _log_level(typed),
        absolute(typed_option(typed, "log_file")),
    )


def _usual_log(store: str, configured: str) -> str:
    return os.path.splitext(store)[0] + ".log" if configured == "stderr" else configured


def _grpc_address(typed: Namespace) -> str | None:
    """Where gRPC is served: `--grpc`, or a port of both loopback addresses."""
    port = typed_option(typed, "port")
    if port is None:
        return typed_option(typed, "grpc")
    from beetle.contracts.errors import InvalidRequest

    if typed_option(typed, "grpc") is not None:
        raise InvalidRequest(reason="--port and --grpc are both given", hint="give one")
    if not (port.isascii() and port.isdecimal() and int(port) < 65536):
        raise InvalidRequest(reason=f"--port: {port[:20]!r} is no port", hint="give a number from 0 to 65535")
    return f"localhost:{int(port)}"


def _log_level(typed: Namespace) -> str | None:
    level = typed_option(typed, "log_level")
    if level is not None and level not in LOG_LEVELS:
        from beetle.contracts.errors import InvalidRequest

        hint = f"give one of {', '.join(LOG_LEVELS)}"
        raise InvalidRequest(reason=f"--log-level: {level[:20]!r} is none", hint=hint)
    return level


def run_serve(typed: Namespace) -> int:
    """The daemon, in the foreground."""
    # libcrypto would take 3.5 MiB of an idle daemon: hashlib has digests of its own, which the built program uses too.
    sys.modules["_hashlib"] = None  # type: ignore[assignment]
    from beetle.daemon import Asked, serve

    wanted = plan(typed, os.environ, os.getuid())
    return serve(
        config=read_configuration(typed),
        config_path=wanted.config_path,
        socket_path=wanted.socket,
        store=wanted.store,
        profile=wanted.profile,
        backend=wanted.backend,
        asked=Asked(wanted.grpc, wanted.log_level, wanted.log_file),
        env=os.environ,
    )


OWN = {"serve": (fill_serve, run_serve)}
