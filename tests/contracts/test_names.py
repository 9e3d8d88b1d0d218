"""A set of names that several parts share stands once, and who explains each of them leaves none out."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from beetle.contracts import names
from beetle.contracts.control import TOPIC_CAPABILITIES
from beetle_tui.bench.shown import MEANS

ROOT = Path(__file__).parents[2]
SETS = {name: set(value) for name, value in vars(names).items() if name.endswith("_NAMES")}


def test_what_explains_names_explains_every_one() -> None:
    assert set(MEANS) == SETS["SIGNAL_NAMES"]
    assert set(TOPIC_CAPABILITIES) == SETS["TOPIC_NAMES"]
    page = (ROOT / "docs/recall.md").read_text(encoding="utf-8")
    assert [name for name in names.SIGNAL_NAMES if f"`{name}`" not in page] == []


def literals(path: Path) -> list[set[object]]:
    """The elements of every tuple, list, set and Literal of constants in a file."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    groups = [node.elts for node in nodes if isinstance(node, ast.Tuple | ast.List | ast.Set)]
    return [
        {each.value for each in group if isinstance(each, ast.Constant)}
        for group in groups
        if all(isinstance(each, ast.Constant) for each in group)
    ]


@pytest.mark.parametrize("folder", ["beetle", "tui/beetle_tui"])
def test_no_other_file_writes_such_a_set_out(folder: str) -> None:
    again = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path != Path(names.__file__)
        for group in literals(path)
        for name, whole in SETS.items()
        if group == whole
    ]
    assert again == []
