"""`memory export`, `import`, `export-space` and `import-space`: bytes from and to files, a passphrase that is never an
argument.
"""

from __future__ import annotations

import os
import stat
import sys
from argparse import SUPPRESS, Namespace
from typing import Any

from beetle.cli import data
from beetle.cli.flags import Flag, add_flag, collect, flags_of, read_bytes, refuse_missing, unreadable
from beetle.cli.new_file import new_file, write_all
from beetle.cli.parser import Parser, typed_option
from beetle.contracts.codec import replace
from beetle.contracts.common import Report
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.operations import Operation

APART = ("snapshot", "archive", "transfer_id", "in_pieces", "passphrase", "view")
"""Fields that are no flags: bytes come from a file, a passphrase from a file or the terminal."""
MOST_BYTES = 512 * 2**20
"""Over every profile's import_bytes, so that a mistyped path cannot fill the memory."""
MOST_WORDS = 4096


def _flags(row: Operation) -> tuple[Flag, ...]:
    return tuple(each for each in flags_of(row.kinds[0]) if each.field not in APART)


def fill_operation(row: Operation, parser: Parser) -> None:
    """A file for the bytes, the other fields of the request, and a file for the passphrase."""
    if not row.takes_out:
        parser.add_argument("file", metavar="FILE", help="the export, or - for stdin")
    group = parser.add_argument_group("request")
    for flag in _flags(row):
        add_flag(group, flag)
    if row.takes_out:
        group.add_argument(
            "--out", metavar="FILE", default=SUPPRESS, help="a new file for the export, or - for stdout (required)"
        )
    group.add_argument(
        "--passphrase-file", metavar="FILE", default=SUPPRESS,
        help="a file of this user alone with the passphrase in its first line; the terminal asks for it otherwise",
    )  # fmt: skip
    data.add_call_options(parser)


def run_operation(row: Operation, typed: Namespace) -> int:
    """Export to a file, or import from one."""
    return _run_export(row, typed) if row.takes_out else _run_import(row, typed)


def _run_export(row: Operation, typed: Namespace) -> int:
    arguments = _arguments(row, typed)
    place = typed_option(typed, "out")
    if place is None:
        raise InvalidRequest(reason=f"{' '.join(row.cli)}: --out is missing", hint="give --out FILE, or --out -")
    if place == "-" and sys.stdout.isatty():
        raise InvalidRequest(reason="--out: binary data cannot be printed on a terminal", hint="give a file, or a pipe")
    words = _given_words(typed)
    if words is None and arguments.get("include_private"):
        words = _asked_words(twice=True)
    if words is not None:
        arguments["passphrase"] = words
    field = row.carries
    if place == "-":
        report = data.ask(typed, row, arguments)
        sys.stdout.buffer.write(_bytes_of(report, field))
        sys.stdout.buffer.flush()
        return 0
    with new_file("--out", place) as descriptor:
        report = data.ask(typed, row, arguments)
        write_all(descriptor, _bytes_of(report, field))
    data.show(replace(report, **{field: None}), typed)
    return 0


def _run_import(row: Operation, typed: Namespace) -> int:
    arguments = {**_arguments(row, typed), row.carries: read_bytes(typed.file, "", typed.file, MOST_BYTES)}
    words = _given_words(typed)
    if words is not None:
        arguments["passphrase"] = words
    try:
        report = data.ask(typed, row, arguments)
    except InvalidRequest as error:
        if words is not None or error.details.get("path") != "$.args.passphrase" or not sys.stdin.isatty():
            raise
        report = data.ask(typed, row, {**arguments, "passphrase": _asked_words(twice=False)})
    data.show(report, typed)
    return 0


def _arguments(row: Operation, typed: Namespace) -> dict[str, Any]:
    flags = _flags(row)
    found = collect(flags, typed)
    refuse_missing(flags, found, " ".join(row.cli))
    return found


def _bytes_of(report: Report, field: str) -> bytes:
    found: bytes | None = getattr(report, field)
    if found is None:
        raise InvalidRequest(reason="this caller's view shows no content to export", hint="ask as an operator")
    return found


def _given_words(typed: Namespace) -> str | None:
    """The passphrase of `--passphrase-file`: its first line."""
    place = typed_option(typed, "passphrase_file")
    if place is None:
        return None
    try:
        with open(place, "rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            line = stream.readline(MOST_WORDS)
    except OSError as error:
        raise unreadable(f"--passphrase-file: {place}", error) from None
    if stat.S_ISREG(mode) and mode & 0o077:
        raise InvalidRequest(reason=f"--passphrase-file: {place} can be read by others", hint=f"chmod 600 {place}")
    try:
        return line.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise InvalidRequest(reason="--passphrase-file: not UTF-8", hint="convert it to UTF-8") from None


def _asked_words(*, twice: bool) -> str:
    """The passphrase, typed at the terminal without being shown."""
    if not sys.stdin.isatty():
        raise InvalidRequest(
            reason="a passphrase is needed, and stdin is not a terminal",
            hint="give --passphrase-file FILE",
        )
    from getpass import getpass

    words = getpass("Passphrase: ", sys.stderr)
    if twice and getpass("The same again: ", sys.stderr) != words:
        raise InvalidRequest(reason="the two passphrases are not the same", hint="nothing was exported; try again")
    return words
