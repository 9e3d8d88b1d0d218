"""`identity renew`: the dry run first, then the question, then the renewal."""

from __future__ import annotations

import sys
from argparse import SUPPRESS, Namespace
from typing import cast

from beetle.cli import data
from beetle.cli.parser import Parser, typed_option
from beetle.contracts.errors import STATUS
from beetle.contracts.operations import Operation
from beetle.contracts.repairing import IdentityRenewReport

ABANDONED = 1
NO_TOKEN = "none"


def fill_operation(row: Operation, parser: Parser) -> None:
    """The fields of the request, and `--yes`."""
    data.fill_operation(row, parser)
    parser.add_argument(
        "--yes", action="store_true", default=SUPPRESS, help="renew it as the dry run shows, without asking"
    )


def run_operation(row: Operation, typed: Namespace) -> int:
    """With `--dry-run` or `--token` the one call; else the dry run, and at a terminal or with `--yes` the renewal.

    Raises:
        Conflict: `--yes`, and the identity cannot be renewed in its state.
    """
    asked = data.gather(row, typed)
    if asked.get("dry_run") or "token" in asked:
        data.show(data.ask(typed, row, asked), typed)
        return 0
    shown = cast(IdentityRenewReport, data.ask(typed, row, {**asked, "dry_run": True}))
    sure = bool(typed_option(typed, "yes"))
    if not sure or not typed_option(typed, "json"):
        data.show(shown, typed)
    if shown.token is None:
        if sure:
            # What cannot be renewed is refused with its reason.
            data.ask(typed, row, {**asked, "token": NO_TOKEN})
        return 0
    if (shown.found or shown.broken) and not asked.get("despite_findings"):
        return STATUS["integrity_violation"].exit_code
    if not sure:
        if not sys.stdin.isatty():
            print("Nothing was changed; give --yes.", file=sys.stderr)
            return ABANDONED
        print("Give up the lost identity, for good? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            print("Nothing was changed.", file=sys.stderr)
            return ABANDONED
    data.show(data.ask(typed, row, {**asked, "token": shown.token}), typed)
    return 0
