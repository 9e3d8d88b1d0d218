"""tui: the terminal console."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from beetle.cli.parser import typed_option
from beetle.cli.serve import read_configuration
from beetle.cli.session import find_daemon, open_session, typed_target
from beetle.contracts.errors import CapabilityHidden, DaemonUnavailable, Internal, InvalidRequest, nearest

if TYPE_CHECKING:
    from beetle.cli.parser import Parser
    from beetle.runtime.host.config import Config
    from beetle_tui.source import DaemonSource


class NoTerminal(InvalidRequest):
    """The console needs one that it can draw on."""

    template = "the console needs a terminal, and {reason}"
    hint_template = "without one, `beetle status` and `beetle memory inspect --json` show the same"


class Defect(Internal):
    """The console ended where no one foresaw it."""

    template = "the console stopped on a defect: {kind} at {where}"
    hint_template = "the daemon keeps running; please report this line"


class NoConsole(CapabilityHidden):
    """A library that the console is made with is not there: it is an extra of the package."""

    template = "this installation has no console: the Python package {package} is missing"
    hint_template = "install the extra `console`: pip install 'beetle-memory[console]'; the one-file program has it"


LIBRARIES = ("textual", "segno")
"""What the extra `console` brings."""


def run_tui(typed: Namespace) -> int:
    """The console, until `q`.

    Raises:
        NoTerminal: stdin, stdout or stderr is none, or one that cannot place text.
        InvalidRequest: a theme, or a key of the configuration, that is not there.
        NoConsole: the extra `console` is not installed.
        BeetleError: as for every command that reads: nobody answers and there is no store.
        Defect: of the console itself.
    """
    check_libraries()
    check_terminal(os.environ)
    from beetle_tui.app import Console
    from beetle_tui.charset import charset_of
    from beetle_tui.source import DaemonSource, StoreSource

    config = read_configuration(typed)
    looks = {
        "theme": chosen_theme(typed, config, os.environ),
        "keys": config.console.keys,
        "charset": charset_of(_environment()),
    }
    check_console_keys(config.console.keys)
    session = open_session(typed, "memory.inspect")
    if session.client is not None:
        console = Console(DaemonSource(session.client), partial(_find_again, typed), **looks)
    else:
        assert session.embedded is not None
        console = Console(StoreSource(session.embedded), **looks)
    for name in ("COLUMNS", "LINES"):
        # Exported by some shells and parents, they would outlive the size that the terminal has by then.
        os.environ.pop(name, None)
    # Without mouse reports the terminal's own marking and copying works, on paths for example.
    console.run(mouse=bool(typed_option(typed, "mouse")))
    if console.defect is not None:
        raise Defect(kind=type(console.defect).__name__, where=_where(console.defect))
    return console.return_code or 0


def check_libraries() -> None:
    """Raises NoConsole where the extra is not installed."""
    if (package := missing_library()) is not None:
        raise NoConsole(package=package)


def missing_library() -> str | None:
    """A library that the console needs and that is not installed; None where it has all."""
    from importlib.util import find_spec

    return next((package for package in LIBRARIES if find_spec(package) is None), None)


def check_console_keys(keys: Mapping[str, str]) -> None:
    """See that the console would take them. Its libraries must be there.

    Raises:
        InvalidRequest: with the `path` of the binding.
    """
    from beetle_tui.app import Console
    from beetle_tui.keys import check_keys
    from beetle_tui.places import places

    check_keys(keys, places(Console))


def fill_tui(parser: Parser) -> None:
    """The console's own options."""
    parser.add_argument("--theme", metavar="NAME", help="beetle-dark, beetle-light, high-contrast, ansi or monochrome")
    parser.add_argument("--mouse", action="store_true", help="use the mouse too; select text with shift then")


def chosen_theme(typed: Namespace, config: Config, env: Mapping[str, str]) -> str:
    """The theme that was named by a flag, else in the configuration, else the one that fits the terminal.

    Raises:
        InvalidRequest: there is none of that name.
    """
    from beetle_tui.theme import THEME_NAMES, usual_theme

    named = typed_option(typed, "theme")
    if named is not None and named not in THEME_NAMES:
        raise InvalidRequest(reason=f"--theme: {named[:80]!r} is none of the themes", hint=nearest(named, THEME_NAMES))
    return named or config.console.theme or usual_theme(env.get("TERM", ""))


def check_terminal(env: Mapping[str, str]) -> None:
    """Raises NoTerminal where the console could not be seen or used."""
    # Textual draws on stderr.
    for name, stream in (("stdin", sys.__stdin__), ("stdout", sys.__stdout__), ("stderr", sys.__stderr__)):
        if stream is None or stream.closed or not stream.isatty():
            raise NoTerminal(reason=f"{name} is none")
    if env.get("TERM", "") in ("", "dumb", "unknown"):
        raise NoTerminal(reason=f"TERM={env.get('TERM', '')} can only print lines", hint="set TERM, e.g. TERM=vt100")


def _environment() -> Mapping[str, str]:
    """The environment as this process was given it: where the locale is C, Python puts another one into its own."""
    try:
        with open("/proc/self/environ", "rb") as file:
            given = file.read()
    except OSError:
        return os.environ
    pairs = (each.partition("=") for each in os.fsdecode(given).split("\0"))
    return {name: value for name, _, value in pairs}


def _find_again(typed: Namespace) -> DaemonSource:
    """A daemon that answers. The store is not opened here, even when it is free: its daemon would find it locked.

    Raises:
        BeetleError, OSError: none does.
    """
    from beetle_tui.source import DaemonSource

    target = typed_target(typed, os.environ, read_configuration(typed), os.getuid())
    client = find_daemon(typed, target)
    if client is None:
        raise DaemonUnavailable(reason=f"no daemon holds {target.store}")
    try:
        client.hello()
    except BaseException:
        client.close()
        raise
    return DaemonSource(client)


def _where(error: BaseException) -> str:
    """File and line of the console's own last step towards an error."""
    trace, place = error.__traceback__, "an unknown place"
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if any(part in file for part in ("/beetle_tui/", "/beetle/")):
            place = f"{os.path.basename(file)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


OWN = {"tui": (fill_tui, run_tui)}
