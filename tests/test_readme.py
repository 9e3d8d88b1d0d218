"""What README.md says in blocks that no test can run: its figures, and the parts that a stranger looks for."""

from __future__ import annotations

import re
import tomllib

import pytest

from beetle.contracts.operations import OPERATIONS
from tests.built import ROOT

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_number_of_operations_is_that_of_the_table() -> None:
    assert re.findall(r"(\d+) operations", TEXT) == [str(len(OPERATIONS))]


def test_the_size_of_the_one_file_is_the_most_that_a_release_may_have() -> None:
    (said,) = re.findall(r"one file of (\d+) MB", TEXT)
    budgets = tomllib.loads((ROOT / "packaging/budgets.toml").read_text())
    assert budgets["one_file"] == budgets["artefacts"]["one_file"] == int(said) * 1_000_000


@pytest.mark.parametrize(
    "page", ["chains", "skill-registry", "capture", "toc", "scheduler", "grpc", "mcp-host", "import"]
)
def test_each_part_stands_before_the_first_session_with_its_page(page: str) -> None:
    assert f"](docs/{page}.md)" in TEXT.partition("\n## ")[0]
