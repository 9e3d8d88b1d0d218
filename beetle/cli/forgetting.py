"""`memory forget`, and `forget` for short: the dry run first, then the question, then the erasure."""

from __future__ import annotations

import sys
from argparse import SUPPRESS, Namespace
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

from beetle.cli import data
from beetle.cli.parser import Parser, typed_option
from beetle.cli.text import neutral
from beetle.contracts.forgetting import MemoryForgetReport
from beetle.contracts.operations import BY_NAME, Operation

ROW = BY_NAME["memory.forget"]
ABANDONED = 1
NO_TOKEN = "none"


def fill_operation(row: Operation, parser: Parser) -> None:
    """The fields of the request, and `--yes`."""
    data.fill_operation(row, parser)
    parser.add_argument(
        "--yes", action="store_true", default=SUPPRESS, help="forget what the dry run shows without asking"
    )


def run_operation(row: Operation, typed: Namespace) -> int:
    """With `--dry-run` or `--token` the one call; else the dry run, and at a terminal or with `--yes` the erasure."""
    asked = data.gather(row, typed)
    if asked.get("dry_run") or "token" in asked:
        data.show(data.ask(typed, row, asked), typed)
        if asked.get("dry_run"):
            _print_what_stays(asked, typed)
        return 0
    shown = cast(MemoryForgetReport, data.ask(typed, row, {**asked, "dry_run": True}))
    sure = bool(typed_option(typed, "yes"))
    if not sure or not typed_option(typed, "json"):
        data.show(shown, typed)
        _print_what_stays(asked, typed)
    if not shown.counts and not shown.hidden:
        return 0
    if shown.token is None:
        if sure:
            # What this caller may not see would go too: that is refused with its reason.
            data.ask(typed, ROW, {**asked, "token": NO_TOKEN})
        return 0
    if not sure:
        if not sys.stdin.isatty():
            print("Nothing was changed; give --yes.", file=sys.stderr)
            return ABANDONED
        print("Forget all of it, for good? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            print("Nothing was changed.", file=sys.stderr)
            return ABANDONED
    data.show(data.ask(typed, row, {**asked, "token": shown.token}), typed)
    return 0


def _print_what_stays(asked: Mapping[str, Any], typed: Namespace) -> None:
    """A person's own turns are found by the speaker; a user who asks to forget someone may expect more."""
    if "subject" in asked and not typed_option(typed, "json"):
        name = neutral(str(asked["subject"]))
        print(f"What others said about {name} stays: find it by words, with `beetle forget QUERY --dry-run`.")


OWN: Mapping[str, Any] = {"forget": (partial(fill_operation, ROW), partial(run_operation, ROW))}
