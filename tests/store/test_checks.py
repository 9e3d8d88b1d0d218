"""The one list of checks, and the docs' table of it."""

from __future__ import annotations

from pathlib import Path

from beetle.runtime.areas.checks import BY_NAME, CHECKS

DOCS = Path(__file__).parents[2] / "docs" / "store.md"


def test_the_docs_have_every_check_as_it_is() -> None:
    rows = [line for line in DOCS.read_text().splitlines() if line.startswith("| `")]
    for each in CHECKS:
        assert f"| `{each.name}` | {each.looks_at} | {each.mends} |" in rows
    assert len(BY_NAME) == len(CHECKS)
