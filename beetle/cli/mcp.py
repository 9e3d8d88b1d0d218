"""mcp: the MCP server on stdio, and its entries in the configurations of hosts."""

from __future__ import annotations

import os
from argparse import SUPPRESS, Namespace
from typing import TYPE_CHECKING

from beetle.cli.parser import Code, Command, Parser, typed_option
from beetle.contracts.operation import DAEMON

if TYPE_CHECKING:
    from beetle.client import Client
    from beetle.mcp.tools import Toolset
    from beetle.open import Embedded

TOOLSETS: tuple[Toolset, ...] = ("memory", "all")


def fill_mcp(parser: Parser) -> None:
    """The server's own options."""
    parser.add_argument(
        "--toolset", choices=TOOLSETS, default=SUPPRESS, help="memory: the few that a model needs (default); all"
    )
    parser.add_argument(
        "--autostart",
        action="store_true",
        default=SUPPRESS,
        help="start a daemon when none answers, and leave it running",
    )


def run_mcp(typed: Namespace) -> int:
    """Serve the host at stdin and stdout until it closes stdin."""
    from beetle.mcp.calls import Ways
    from beetle.mcp.server import serve

    def find(seconds: float) -> Client | None:
        from beetle.cli.serve import read_configuration
        from beetle.cli.session import find_daemon, typed_target

        target = typed_target(typed, os.environ, read_configuration(typed), os.getuid())
        return find_daemon(typed, target, seconds)

    def open_here() -> Embedded:
        from beetle.cli.serve import read_configuration
        from beetle.cli.session import open_store_here, typed_target

        config = read_configuration(typed)
        return open_store_here(typed, typed_target(typed, os.environ, config, os.getuid()), config)

    def start() -> None:
        from beetle.cli.control import start_daemon

        start_daemon(typed)

    return serve(Ways(find, open_here, start if typed_option(typed, "autostart") else None), _toolset(typed))


def _toolset(typed: Namespace) -> Toolset:
    return typed_option(typed, "toolset") or TOOLSETS[0]


def _code() -> Code:
    return fill_mcp, run_mcp


COMMAND = Command(
    ("mcp",),
    DAEMON,
    "serve a model's host over MCP, on stdin and stdout",
    _code,
    examples=("beetle mcp", "beetle --store notes.db mcp --autostart"),
    description="Serve the host of a model (Claude, Cursor, VS Code, …) over the Model Context Protocol, on stdin\n"
    "and stdout. It speaks to the daemon; without one it opens the store itself, while something is asked.",
)
