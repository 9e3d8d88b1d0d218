"""What was typed, taken apart: the command's words, the options that every command takes, the command's own."""

from __future__ import annotations

import argparse
import os
import re
import sys
from argparse import SUPPRESS, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from beetle.contracts.errors import InvalidRequest
from beetle.contracts.operation import DAEMON, Group
from beetle.named_tuple import NamedTuple

Words = tuple[str, ...]


ENDPOINT = "--endpoint"


class GlobalOption(NamedTuple):
    """An option of every command, before or after it. Without `metavar` it takes no value. `other` are names that it
    has too; one letter only before the command, which may have that letter for a flag of its own."""

    option: str
    metavar: str | None
    help: str
    other: tuple[str, ...] = ()

    @property
    def dest(self) -> str:
        """Its name among the parsed values."""
        return self.option.removeprefix("--").replace("-", "_")


GLOBALS: tuple[GlobalOption, ...] = (
    GlobalOption("--socket", "PATH", "use only the daemon at this socket"),
    GlobalOption("--store", "PATH", "use this store: through its daemon, or directly if none runs", ("--db-path",)),
    GlobalOption(
        "--profile", "NAME", "budgets and permissions: compact, standalone, desktop, gateway, dev-full or auto"
    ),
    GlobalOption("--config", "FILE", "configuration file", ("-c",)),
    GlobalOption("--endpoint", "URL", "ask over gRPC: http://HOST:PORT or unix:PATH (query, scheduler)", ("-e",)),
    GlobalOption(
        "--log-level", "LEVEL", "what a daemon started by this logs: trace, debug, info, warn, error", ("-l",)
    ),
    GlobalOption("--auth-file", "FILE", "a device's credentials, JSON or TOML: device_id, app_key"),
    GlobalOption("--as", "NAME", "act as this configured principal with lesser rights (operators only)"),
    GlobalOption("--owner", "ID", "owner of the memory (default owner-default)"),
    GlobalOption("--agent", "ID", "agent that makes the request (default agent-main)"),
    GlobalOption("--channel", "ID", "channel of the scope, and of conversations named without one (default local)"),
    GlobalOption("--chat", "ID", "chat of the scope (default chat-1)"),
    GlobalOption("--json", None, "print the report as JSON on one line"),
)
BY_OPTION: Mapping[str, GlobalOption] = {name: each for each in GLOBALS for name in (each.option, *each.other)}


Code = tuple[Callable[["Parser"], None], Callable[[Namespace], int]]
"""What adds a command's options, and what runs it."""


class Command(NamedTuple):
    """One command: its words, its group, one line of help, and what loads its code.

    `arguments` is how its usage line goes on after the words.
    """

    words: Words
    group: Group
    help: str
    load: Callable[[], Code]
    arguments: str = "[OPTION]…"
    examples: tuple[str, ...] = ()
    description: str = ""

    @property
    def name(self) -> str:
        """The words as one text."""
        return " ".join(self.words)


class Typed(NamedTuple):
    """A command line taken apart: how far its words led, and what is left for the command's own parser."""

    words: Words
    command: Command | None
    options: tuple[str, ...]
    help: bool
    version: bool


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal, without the module that argparse loads for that: it brings every compression along."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    named = os.environ.get("COLUMNS", "")
    if named.isdecimal() and int(named):
        return int(named)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 80


class Parser(argparse.ArgumentParser):
    """Of one command. What is wrong is raised, not printed."""

    def __init__(self, command: Command) -> None:
        self.command = command
        examples = "".join(f"\n  {each}" for each in command.examples)
        super().__init__(
            prog=f"beetle {command.name}",
            usage=f"beetle {command.name} {command.arguments}".rstrip(),
            description=command.description or command.help[:1].upper() + command.help[1:] + ".",
            epilog=(f"examples:{examples}\n\n" if examples else "")
            + "Global options (--json, --socket, --store, …) are accepted here too: see `beetle --help`.",
            formatter_class=_Formatter,
            allow_abbrev=False,
        )
        fill, self.run = command.load()
        fill(self)
        for each in GLOBALS:
            if each.metavar is None:
                self.add_argument(each.option, action="store_true", default=SUPPRESS, help=SUPPRESS)
                continue
            names = (each.option, *(name for name in each.other if name.startswith("--")))
            # The field of that name is meant where the operation has one.
            if names != (ENDPOINT,) or ENDPOINT not in options_of(self):
                self.add_argument(*names, default=SUPPRESS, help=SUPPRESS)

    def error(self, message: str) -> NoReturn:
        message = re.sub(r"^argument (--\S+): expected one argument$", r"\1 needs a value", message)
        message = message.removeprefix("argument ").replace("the following arguments are required: ", "missing: ")
        raise InvalidRequest(reason=f"{self.command.name}: {message}", hint=f"see `beetle {self.command.name} --help`")

    def read(self, tokens: Sequence[str]) -> Namespace:
        """The typed values.

        Raises:
            InvalidRequest: an unknown option, one too many words, an option without its value.
        """
        typed, left = self.parse_known_args(self._joined(tokens))
        if left:
            self._refuse(left[0])
        return typed

    def _joined(self, tokens: Sequence[str]) -> list[str]:
        """`--text -5` as `--text=-5`: argparse would take the value for an option."""
        known = options_of(self)
        joined: list[str] = []
        waiting = False
        for index, token in enumerate(tokens):
            if waiting and token.partition("=")[0] not in known:
                joined[-1] += f"={token}"
                waiting = False
                continue
            if token == "--":
                return [*joined, *tokens[index:]]
            action = known.get(token)
            waiting = action is not None and token.startswith("--") and action.nargs is None
            joined.append(token)
        return joined

    def _refuse(self, word: str) -> NoReturn:
        if not word.startswith("-"):
            self.error(f"{word!r} is one word too many; quote a text that has several")
        name = word.partition("=")[0]
        close = close_matches(name, options_of(self), n=1)
        hint = f"did you mean {close[0]}?" if close else f"see `beetle {self.command.name} --help`"
        raise InvalidRequest(reason=f"{self.command.name}: unknown option {name}", hint=hint)


def split_arguments(tokens: Sequence[str], commands: Mapping[Words, Command]) -> Typed:
    """Find the command's words, with global options before and between them.

    Raises:
        InvalidRequest: no such command or option, with the nearest in the hint.
    """
    words: Words = ()
    options: list[str] = []
    wants_help = wants_version = False
    left = list(tokens)
    while left:
        token = left.pop(0)
        if token in ("-h", "--help"):
            wants_help = True
        elif token == "--version":
            wants_version = True
        elif token.startswith("-"):
            options.append(_long(token))
            if _takes_next(token):
                if not left:
                    raise InvalidRequest(reason=f"{token} needs a value", hint="see `beetle --help`")
                options[-1] += f"={left.pop(0)}"
        else:
            words = _further(words, token, commands)
            if words in commands:
                return Typed(words, commands[words], (*options, *left), wants_help, wants_version)
    return Typed(words, None, tuple(options), wants_help, wants_version)


def first_word(tokens: Sequence[str]) -> str:
    """The first word that is no global option nor its value; empty where there is none, or an option is not known."""
    left = iter(tokens)
    for token in left:
        if not token.startswith("-"):
            return token
        name, equals, _ = token.partition("=")
        option = BY_OPTION.get(name)
        if option is None:
            return ""
        if option.metavar is not None and not equals:
            next(left, None)
    return ""


def _long(token: str) -> str:
    """A global option by its own name, whichever of its names was typed."""
    name, equals, value = token.partition("=")
    option = BY_OPTION.get(name)
    return token if option is None else f"{option.option}{equals}{value}"


def _takes_next(token: str) -> bool:
    name, equals, _ = token.partition("=")
    option = BY_OPTION.get(name)
    if option is None:
        close = close_matches(name, BY_OPTION, n=1)
        hint = f"did you mean {close[0]}?" if close else "options of a command stand after it; see `beetle --help`"
        raise InvalidRequest(reason=f"unknown global option {name}", hint=hint)
    return option.metavar is not None and not equals


def _further(words: Words, token: str, commands: Mapping[Words, Command]) -> Words:
    known = {each[len(words)] for each in commands if each[: len(words)] == words and len(each) > len(words)}
    if token in known:
        return (*words, token)
    where = " ".join(("beetle", *words))
    # Who leaves the group out finds it: `beetle recall` is `beetle memory recall`.
    whole = sorted(f"`beetle {' '.join(each)}`" for each in commands if len(each) > 1 and each[-1] == token)
    close = (whole if not words else [])[:3] or close_matches(token, known, n=2)
    hint = f"did you mean {' or '.join(close)}?" if close else f"see `{where} --help`"
    raise InvalidRequest(reason=f"{where} has no command {token!r}", hint=hint)


def close_matches(word: str, known: Iterable[str], n: int) -> list[str]:
    """At most `n` of the known words that look like `word`, the closest first."""
    from difflib import get_close_matches

    return get_close_matches(word, tuple(known), n=n)


def options_of(parser: argparse.ArgumentParser) -> Mapping[str, Any]:
    """Every option string of a parser with its action."""
    return parser._option_string_actions  # argparse has no public way to ask


def fill_nothing(parser: Parser) -> None:
    """For a command without options of its own."""
    del parser


def typed_option(typed: Namespace, name: str) -> Any:
    """A value that was typed, or None."""
    return getattr(typed, name, None)


def _mcp() -> Code:
    from beetle.cli import mcp

    return mcp.OWN["mcp"]


MCP = Command(
    ("mcp",),
    DAEMON,
    "serve a model's host over MCP, on stdin and stdout",
    _mcp,
    examples=("beetle mcp", "beetle --store notes.db mcp --autostart", "beetle mcp --install claude-code --write"),
    description="Serve the host of a model (Claude, Cursor, VS Code, …) over the Model Context Protocol, on stdin\n"
    "and stdout. It connects to the daemon; without one it opens the store itself, while something is asked.",
)
"""It stands here since it is read without the table of the others: whoever starts it waits for it to speak."""
