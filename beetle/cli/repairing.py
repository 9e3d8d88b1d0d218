"""`repair`: by the daemon or in this process; a store that cannot even be opened is read without opening it."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import TYPE_CHECKING, Any, cast

from beetle.cli import data
from beetle.cli.serve import read_configuration
from beetle.cli.session import open_store_here, typed_target
from beetle.contracts.errors import STATUS, BeetleError, SchemaMismatch, StoreCorrupt
from beetle.contracts.operations import Operation
from beetle.contracts.repairing import StoreRepairReport

if TYPE_CHECKING:
    from beetle.cli.parser import Parser

NEWER = "known_schema"
"""What the error tells of a store that a newer beetle wrote: nothing is wrong with it."""


def fill_operation(row: Operation, parser: Parser) -> None:
    """What the operation takes."""
    data.fill_operation(row, parser)


def run_operation(row: Operation, typed: Namespace) -> int:
    """`repair`; exit code 9 if something is gone, as of `verify`."""
    arguments = data.gather(row, typed)
    try:
        report = cast(StoreRepairReport, data.ask(typed, row, arguments))
    except (StoreCorrupt, SchemaMismatch) as refused:
        report = _unopened(typed, arguments, refused)
    data.show(report, typed)
    return 0 if report.whole and report.clean is not False else STATUS["integrity_violation"].exit_code


def _unopened(typed: Namespace, arguments: dict[str, Any], refused: BeetleError) -> StoreRepairReport:
    from beetle.repairing import repair_closed
    from beetle.store.engine.lock import holder_of

    config = read_configuration(typed)
    target = typed_target(typed, os.environ, config, os.getuid())
    if target.store is None or NEWER in refused.details or holder_of(target.store) is not None:
        raise refused
    dry_run = bool(arguments.get("dry_run"))
    return repair_closed(target.store, lambda: open_store_here(typed, target, config), dry_run=dry_run)
