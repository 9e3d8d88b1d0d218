"""Writes beetle/contracts/rows.py: the table of operations, gathered from the areas. See gen_reference.py."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from beetle.contracts import operation
from beetle.contracts.operation import AREAS, Group, Operation

FILE = Path(__file__).resolve().parents[1] / "beetle/contracts/rows.py"
HEAD = '''\
"""The table of operations, in the order in which hello, help and docs show them.

Written by packaging/gen_reference.py from the rows of the areas. Change a row there, then run it again.
"""
# ruff: noqa: E501 - texts are indented further here than in the areas

from __future__ import annotations

from beetle.contracts.operation import {names}

OPERATIONS: tuple[Operation, ...] = (
{rows}
)
'''
CONSTANTS = {
    value: name for name, value in vars(operation).items() if name.isupper() and isinstance(value, Group | frozenset)
}
"""Groups and sets of transports, by what they are."""
BY_PLACE = Operation._fields.index("help") + 1
"""So many fields of a row are given without their names."""


def rows_module() -> str:
    """The file's text."""
    areas = [import_module(f"beetle.contracts.{name}") for name in AREAS]
    rows = "\n".join(f"    {_row(area, row)}," for area in areas for row in area.OPERATIONS)
    names = [*CONSTANTS.values(), "Named", "Operation", "Tool"]
    text = HEAD.format(names=", ".join(names), rows=rows)
    for words in (["check", "--select", "F401,I", "--fix-only"], ["format"]):
        command = [sys.executable, "-m", "ruff", *words, "--quiet", "--stdin-filename", str(FILE), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return text


def _row(area: ModuleType, row: Operation) -> str:
    """A row as it is written: its structs by their names, and of the rest what differs from the usual."""
    named = row._replace(asks=_named(area, row.asks), answers=_named(area, row.answers))
    words = [_text(each) for each in named[:BY_PLACE]]
    for name, value in zip(Operation._fields[BY_PLACE:], named[BY_PLACE:], strict=True):
        if value != Operation._field_defaults[name]:
            words.append(f"{name}={_text(value)}")
    return f"Operation({', '.join(words)})"


def _named(area: ModuleType, kind: Any) -> operation.Named:
    name = next(name for name, value in vars(area).items() if value == kind)
    return operation.Named(area.__name__.rpartition(".")[2], name)


def _text(value: Any) -> str:
    if isinstance(value, operation.Tool):
        given = {name: each for name, each in value._asdict().items() if each != operation.Tool._field_defaults[name]}
        return f"Tool({', '.join(f'{name}={each!r}' for name, each in given.items())})"
    if isinstance(value, operation.Named):
        return f"Named({value.area!r}, {value.name!r})"
    if isinstance(value, Group | frozenset):
        return CONSTANTS[value]
    return repr(value)
