"""The one list of checks, and the docs' table of it."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from beetle.contracts.names import CheckName
from beetle.runtime.areas.checks import BY_NAME, CHECKS

DOCS = Path(__file__).parents[2] / "docs" / "store.md"


def test_the_docs_have_every_check_as_it_is() -> None:
    rows = [line for line in DOCS.read_text().splitlines() if line.startswith("| `")]
    for each in CHECKS:
        assert f"| `{each.name}` | {each.looks_at} | {each.mends} |" in rows
    assert len(BY_NAME) == len(CHECKS)


def test_every_name_that_a_finding_may_have_is_in_the_list() -> None:
    """The types check each finding's name against these."""
    assert [each.name for each in CHECKS] == list(get_args(CheckName))
