"""kill -9 of the built tree's daemon under eight writers: nothing acknowledged is lost, nothing is there twice."""

from __future__ import annotations

import shlex
from pathlib import Path

from tests.built import TREE, need_build
from tests.faults.kill_storm import storm


def test_twenty_kills_lose_no_acknowledged_write(tmp_path: Path) -> None:
    need_build()
    found = storm(tmp_path, kills=20, command=shlex.quote(str(TREE / "beetle")))
    assert found.clean and not found.lost and not found.twice and found.acknowledged >= 20, found
