from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.here import System, make_tree


@pytest.fixture
def system(tmp_path: Path) -> System:
    return System(tmp_path / "system")


@pytest.fixture
def trees(tmp_path: Path) -> list[Path]:
    """Trees of three versions."""
    found = [tmp_path / f"tree-{number}" for number in range(3)]
    for number, tree in enumerate(found):
        make_tree(tree, f"0.{number}.0")
    return found
