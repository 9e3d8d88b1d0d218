"""Every row of the table of operations has a case: this reads the cases and fails for a row without one."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from beetle.contracts.operations import OPERATIONS

ASKING = {"call", "ask", "refused"}


@cache
def asked() -> frozenset[str]:
    """The operations that a case asks a door for, by the name that stands in the case."""
    names: set[str] = set()
    for path in Path(__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                named = {arg.value for arg in node.args[:2] if isinstance(arg, ast.Constant)}
                names |= {each for each in named if node.func.attr in ASKING and isinstance(each, str)}
    return frozenset(names)


@pytest.mark.parametrize("operation", [row.name for row in OPERATIONS])
def test_an_operation_has_a_conformance_case(operation: str) -> None:
    assert operation in asked()
