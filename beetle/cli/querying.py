"""`query`: the table of contents, events and grips, with the short flags of the Agent Memory command line."""

from __future__ import annotations

from argparse import SUPPRESS, Namespace
from collections.abc import Mapping
from functools import partial

from beetle.cli import data
from beetle.cli.flags import flags_of
from beetle.cli.parser import Parser, typed_option
from beetle.contracts.operations import Operation

SHORT: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "event.range": {"from_timestamp_ms": ("--from",), "to_timestamp_ms": ("--to",), "limit": ("-l",)},
    "toc.browse": {"limit": ("-l",), "continuation_token": ("--token", "-t")},
    "toc.root": {"limit": ("-l",)},
    "toc.search_node": {"limit": ("-l",)},
    "toc.search_children": {"limit": ("-l",)},
    "grip.expand": {"events_before": ("--before",), "events_after": ("--after",)},
}
"""By operation and field: what may be typed in place of the field's own flag."""
HEADS: Mapping[str, str] = {
    "toc.browse": "Children of {parent_id}:",
    "event.range": "Events ({from_timestamp_ms} - {to_timestamp_ms}):",
}
"""First lines that name what was asked for, which a report does not hold."""


def fill_operation(row: Operation, parser: Parser) -> None:
    """The fields of the request, and their shorter names."""
    data.fill_operation(row, parser)
    group = parser.add_argument_group("short forms")
    flags = {each.field: each for each in flags_of(data.typed_request(row))}
    for field, names in SHORT.get(row.name, {}).items():
        flag = flags[field]
        metavar = "N" if flag.kind == "integer" else "TEXT"
        group.add_argument(*names, dest=flag.dest, metavar=metavar, default=SUPPRESS, help=f"the same as {flag.option}")


def run_operation(row: Operation, typed: Namespace) -> int:
    """Run it, and show what it found."""
    asked = data.gather(row, typed)
    report = data.ask(typed, row, asked)
    head = HEADS.get(row.name)
    if head is None or typed_option(typed, "json"):
        data.show(report, typed)
        return 0
    data.show_as(report, partial(_headed, head.format_map(asked)))
    return 0


def _headed(head: str, text: str) -> str:
    """The text with another first line, where it has one that ends with a colon."""
    first, line, rest = text.partition("\n")
    return f"{head}{line}{rest}" if first.endswith(":") else text
