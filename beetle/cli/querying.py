"""`query`: the table of contents, events and grips, with the short flags of the Agent Memory command line."""

from __future__ import annotations

from argparse import SUPPRESS, Namespace
from collections.abc import Mapping
from functools import partial
from typing import Any

from beetle.cli import data
from beetle.cli.flags import flags_of
from beetle.cli.parser import Parser, typed_option
from beetle.cli.session import open_session
from beetle.contracts.operations import Operation
from beetle.contracts.toc import BROWSE_LIMIT

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
    head = HEADS.get(row.name)
    if head is None or typed_option(typed, "json"):
        data.show(data.ask(typed, row, asked), typed)
        return 0
    headed = partial(_headed, head.format_map(asked))
    if row.name == "toc.browse":
        # One session for both: a store without a daemon is opened once.
        with open_session(typed, row.name) as session:
            report = data.ask_in(session, typed, row, asked)
            parent = session.call("toc.node", {"node_id": asked["parent_id"]})
        data.show_as(report, lambda text: _paged(headed(text), asked, report, parent))
    else:
        data.show_as(data.ask(typed, row, asked), headed)
    return 0


def _headed(head: str, text: str) -> str:
    """The text with another first line, where it has one that ends with a colon."""
    first, line, rest = text.partition("\n")
    return f"{head}{line}{rest}" if first.endswith(":") else text


def _paged(text: str, asked: Mapping[str, Any], report: Any, parent: Any) -> str:
    """The text with the number of its page, and of how many, in place of the number of children."""
    if parent.node is None or not report.children or parent.node.has_more_children:
        return text
    shown, total = len(report.children), len(parent.node.child_node_ids)
    limit = shown if report.has_more else max(shown, asked.get("limit", BROWSE_LIMIT))
    end = int(report.continuation_token) if report.has_more else total
    page = (end - shown) // limit + 1
    left = max(int(report.has_more), total - end)
    lines, _, last = text.rpartition("\n")
    return f"{lines}\nPage {page} of {page + -(-left // limit)} ({last.partition('(')[2]}"
