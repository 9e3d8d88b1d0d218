"""mcp: the MCP server on stdio, and its entries in the configurations of hosts."""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS, Namespace
from typing import TYPE_CHECKING

from beetle.cli.parser import GLOBALS, Parser, typed_option
from beetle.contracts.errors import InvalidRequest

if TYPE_CHECKING:
    from beetle.client import Client
    from beetle.mcp.hosts import CannotEdit, Change
    from beetle.mcp.tools import Toolset
    from beetle.open import Embedded

TOOLSETS: tuple[Toolset, ...] = ("memory", "chain", "time", "all")
HOST_NAMES = ("claude-code", "claude-desktop", "cursor", "vscode", "zed", "cline", "codex", "gemini")
PATHS = ("socket", "store", "config", "auth_file")
FROM_ENVIRONMENT = {"socket": "BEETLE_SOCKET", "store": "BEETLE_STORE", "config": "BEETLE_CONFIG"}


def fill_mcp(parser: Parser) -> None:
    """The server's own options."""
    parser.add_argument(
        "--toolset",
        choices=TOOLSETS,
        default=SUPPRESS,
        help="memory: the few that a model needs (default); chain: thought chains and shared skills; "
        "time: the past by time; all",
    )
    parser.add_argument(
        "--autostart", action="store_true", default=SUPPRESS, help="start a daemon when none answers; it keeps running"
    )
    parser.add_argument(
        "--install", metavar="HOST", choices=HOST_NAMES, default=SUPPRESS,
        help=f"show the entry for a host's configuration: {', '.join(HOST_NAMES)}",
    )  # fmt: skip
    parser.add_argument("--write", action="store_true", default=SUPPRESS, help="with --install: write the entry")
    parser.add_argument("--remove", action="store_true", default=SUPPRESS, help="with --install: remove the entry")


def run_mcp(typed: Namespace) -> int:
    """Serve the host at stdin and stdout until it closes stdin; or look after its configuration."""
    if typed_option(typed, "install") is not None:
        return _install(typed)
    for option in ("write", "remove"):
        if typed_option(typed, option):
            raise InvalidRequest(reason=f"mcp: --{option} needs --install", hint="name a host: --install claude-code")
    from beetle.mcp.calls import MemoryAccess
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

    toolset: Toolset = typed_option(typed, "toolset") or TOOLSETS[0]
    return serve(MemoryAccess(find, open_here, start if typed_option(typed, "autostart") else None), toolset)


def _install(typed: Namespace) -> int:
    import shlex

    from beetle.mcp.hosts import HOSTS, CannotEdit, entry_of, planned, text_to_paste, write

    name = typed_option(typed, "install")
    host = HOSTS[name]
    removing = bool(typed_option(typed, "remove"))
    if removing and typed_option(typed, "write"):
        raise InvalidRequest(reason="mcp: --write and --remove exclude each other", hint="give one of them")
    entry = None if removing else entry_of(host, host_command(typed))
    try:
        change = planned(host, os.environ, entry)
    except CannotEdit as error:
        return _to_paste(error)
    if not change.needed:
        print(f"{change.file} is as it should be; nothing was written.")
        return 0
    if removing or typed_option(typed, "write"):
        backup = write(change)
        print(f"{'Removed from' if removing else 'Written to'} {change.file}")
        if backup is not None:
            print(f"Before: {backup}")
        print(f"Restart {name}.")
        return 0
    assert entry is not None
    writing = shlex.join(["beetle", *_words(typed), "--install", name, "--write"])
    print(_shown(change, text_to_paste(host, entry), writing))
    return 0


def _to_paste(error: CannotEdit) -> int:
    """Say why the file was left alone, and show the entry as it is pasted: on lines of its own, which no hint has."""
    from beetle.cli.app import print_error

    print_error(error)
    if error.text:
        print(f"\n{error.text}", file=sys.stderr)
    return error.exit_code


def _shown(change: Change, text: str, writing: str) -> str:
    new = "which does not exist yet" if change.before is None else "keeping the other entries"
    return f"Would write to {change.file}, {new}:\n\n{text}\nTo write it: {writing}"


def host_command(typed: Namespace) -> list[str]:
    """The command line with which a host starts the server: this program, with the options that were typed.

    What the environment says here instead of an option is an option too: a host of a desktop is started without it.
    """
    # As find_target has it: socket and store say together where the memory is.
    placed = any(typed_option(typed, each) is not None for each in ("socket", "store"))
    unsaid = [each for each in FROM_ENVIRONMENT if typed_option(typed, each) is None]
    found = {
        each: value for each in unsaid
        if not (placed and each != "config") and (value := os.environ.get(FROM_ENVIRONMENT[each]))
    }  # fmt: skip
    return [*_program(), *_words(Namespace(**{**vars(typed), **found}))]


def _words(typed: Namespace) -> list[str]:
    """`mcp` with the options that were typed, but those of an installation."""
    options: list[str] = []
    for each in GLOBALS:
        value = typed_option(typed, each.dest)
        if each.metavar is not None and value is not None:
            options += [each.option, os.path.abspath(value) if each.dest in PATHS else value]
    toolset = typed_option(typed, "toolset")
    options += ["mcp", *(["--toolset", toolset] if toolset else [])]
    return [*options, *(["--autostart"] if typed_option(typed, "autostart") else [])]


def _program() -> list[str]:
    """This program as a host can start it: by the link in the path, which a new version takes over."""
    own = sys.executable if getattr(sys, "frozen", False) else os.path.abspath(sys.argv[0])
    if os.path.basename(own) == "beetle":
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            link = os.path.join(folder, "beetle")
            if os.path.isabs(folder) and os.path.exists(link) and os.path.samefile(link, own):
                return [link]
        return [own]
    return [sys.executable, "-m", "beetle"]


OWN = {"mcp": (fill_mcp, run_mcp)}
