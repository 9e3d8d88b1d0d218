"""`registry upload` and `registry read`: a skill from a file, and its very bytes into a pipe."""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS, Namespace
from typing import Any, cast

from beetle.cli import data
from beetle.cli.flags import Flag, add_flag, collect, flags_of, read_bytes, read_text, refuse_missing
from beetle.cli.parser import Parser, typed_option
from beetle.contracts.common import DEFAULT_AGENT
from beetle.contracts.operations import Operation
from beetle.contracts.skill_registry import SIGNATURE_BYTES, SkillRegistryReadReport

APART = ("content", "skill_signature")
"""Fields that come from files."""
UPLOAD, READ = "skill_registry.upload", "skill_registry.read"


def _flags(row: Operation) -> tuple[Flag, ...]:
    found: list[Flag] = []
    for flag in flags_of(row.kinds[0]):
        if flag.field == "agent_id":
            flag = flag._replace(required=False, default=DEFAULT_AGENT)
        elif flag.field == "format":
            flag = flag._replace(help=f"{flag.help}; json for a FILE that ends with .json")
        if flag.field not in APART:
            found.append(flag)
    return tuple(found)


def fill_operation(row: Operation, parser: Parser) -> None:
    """A file with the skill, one with its signature, and the other fields of the request."""
    if row.name == READ:
        data.fill_operation(row, parser)
        return
    parser.add_argument("file", metavar="FILE", help="the skill, as Markdown or JSON; - for stdin")
    group = parser.add_argument_group("request")
    for flag in _flags(row):
        add_flag(group, flag)
    group.add_argument(
        "--signature-file", metavar="FILE", default=SUPPRESS, help="the 64 bytes of the signature over FILE"
    )
    data.add_call_options(parser)


def run_operation(row: Operation, typed: Namespace) -> int:
    """Upload a file; or show a version, and write it byte for byte where stdout is no terminal."""
    if row.name == READ:
        return _run_read(row, typed)
    flags = _flags(row)
    arguments: dict[str, Any] = {"agent_id": DEFAULT_AGENT}
    if os.path.splitext(typed.file)[1].lower() == ".json":
        arguments["format"] = "json"
    arguments |= collect(flags, typed)
    arguments["content"] = read_text(typed.file, "FILE")
    place = typed_option(typed, "signature_file")
    if place is not None:
        data_read = read_bytes(place, "--signature-file: ", "--signature-file", SIGNATURE_BYTES)
        arguments["skill_signature"] = tuple(data_read)
    refuse_missing(flags, arguments, " ".join(row.cli))
    data.show(data.ask(typed, row, arguments), typed)
    return 0


def _run_read(row: Operation, typed: Namespace) -> int:
    report = cast(SkillRegistryReadReport, data.ask(typed, row, data.gather(row, typed)))
    if typed_option(typed, "json") or report.content is None or sys.stdout.isatty():
        data.show(report, typed)
        return 0
    from beetle.cli.text import neutral

    for each in report.safety_warnings or ():
        print(f"beetle: {neutral(' '.join(each.split()))}", file=sys.stderr)
    sys.stdout.flush()
    sys.stdout.buffer.write(report.content.encode())
    sys.stdout.buffer.flush()
    return 0
