"""From the typed words to a command, and from an error to its message and exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from beetle import __version__
from beetle.cli.parser import MCP, Command, Parser, Words, first_word, split_arguments
from beetle.contracts.errors import BeetleError, InvalidRequest, StorageFull, StoreReadOnly
from beetle.contracts.loading import import_msgspec

USAGE = 2
INTERRUPTED = 130
NO_READER = 141


def run(tokens: list[str]) -> int:
    """Run one command line; the process's exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets its escape, not a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = run_words(tokens)
        sys.stdout.flush()
    except BeetleError as error:
        print_error(error, as_json="--json" in tokens)
        return error.exit_code
    except KeyboardInterrupt as called_off:
        if told := str(called_off):
            print(f"beetle: called off; {told}", file=sys.stderr)
        from beetle.cli.calling_off import Ended

        return called_off.exit_code if isinstance(called_off, Ended) else INTERRUPTED
    except BrokenPipeError:
        _drop_output()  # whoever read has enough
        return NO_READER
    except OSError as error:
        told = _told(error)
        print_error(told, as_json="--json" in tokens)
        return told.exit_code
    return code


class _Refused(BeetleError):
    """The system refused something that no one foresaw: the output, a file, a process."""

    template = "the system reports: {reason}"


class _Full(StorageFull):
    """The output, or a file."""

    template = "the system reports: {reason}"
    hint_template = "free space where the output or the file goes, or send it elsewhere"


class _NotAllowed(StoreReadOnly):
    """A file or folder of somebody else, or on read-only media."""

    template = "the system reports: {reason}"
    hint_template = "give this user the right to it, or name another file or folder"


def _drop_output() -> None:
    """The interpreter's last flush must not fail again: it would complain, and end with a code of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told(error: OSError) -> BeetleError:
    import errno

    reason = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _Full(reason=reason)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return _NotAllowed(reason=reason)
    return _Refused(reason=reason)


def run_words(tokens: list[str]) -> int:
    """As `run`, with errors left to the caller.

    Raises:
        BeetleError: what the command answered, or that there is no such command.
    """
    commands = _commands(tokens)
    typed = split_arguments(tokens, commands)
    if typed.version:
        print(f"beetle {__version__}")
        return 0
    if typed.command is None:
        from beetle.cli.commands import group_help, root_help

        if typed.help:
            print(group_help(typed.words) if typed.words else root_help())
            return 0
        if not typed.words and "--json" not in tokens:
            print(root_help(), file=sys.stderr)
            return USAGE
        words = " ".join(("beetle", *typed.words))
        if not typed.words:
            raise InvalidRequest(reason="beetle needs a command", hint="see `beetle --help`")
        known = [each[len(typed.words)] for each in commands if each[: len(typed.words)] == typed.words]
        raise InvalidRequest(reason=f"{words} needs a command: {', '.join(known)}", hint=f"see `{words} --help`")
    parser = Parser(typed.command)
    if typed.help:
        parser.print_help()
        return 0
    try:
        values = parser.read(typed.options)
    except SystemExit as asked_for_help:
        return asked_for_help.code if isinstance(asked_for_help.code, int) else 0
    return parser.run(values)


def _commands(tokens: list[str]) -> Mapping[Words, Command]:
    """Every command; of the one whose caller waits for it to speak that one alone, since the others' table is large."""
    if first_word(tokens) == "mcp":
        return {MCP.words: MCP}
    import_msgspec()
    from beetle.cli.commands import COMMANDS

    return COMMANDS


def print_error(error: BeetleError, *, as_json: bool = False) -> None:
    """An error on stderr: its key and message, and on the next line its hint; or the wire's, on one line of JSON."""
    from beetle.cli.text import neutral

    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()
    if as_json:
        from beetle.cli import render

        fields = ("key", "message", "hint", "retryable", "details")
        print(render.as_json({"error": {name: getattr(error, name) for name in fields}}), file=sys.stderr)
        return
    print(f"beetle: {error.key}: {neutral(error.message)}", file=sys.stderr)
    if error.hint:
        print(neutral(error.hint), file=sys.stderr)
