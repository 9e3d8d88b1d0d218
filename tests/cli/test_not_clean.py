"""What finds something wrong, or leaves something, has another exit code than what is clean."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine

CHECKS = (("verify",), ("transcript", "repair"), ("transcript", "repair-safe"), ("memory", "recover"))


@pytest.mark.parametrize("words", CHECKS, ids=" ".join)
def test_a_check_tells_clean_from_not_clean_by_its_exit_code(beetle: CommandLine, words: tuple[str, ...]) -> None:
    said = ("transcript", "commit", "--conversation", "c1", "--text", "The key is under the pot.")
    assert beetle.here(*said).code == 0
    assert beetle.here(*words).code == 0
    with sqlite3.connect(beetle.store) as connection:
        connection.execute("UPDATE body SET content = 'The key is elsewhere.'")
    assert beetle.here(*words).code == 9


def test_a_snapshot_that_is_not_valid_has_another_exit_code_than_a_valid_one(beetle: CommandLine) -> None:
    assert beetle.here("transcript", "commit", "--conversation", "c1", "--text", "The key is under the pot.").code == 0
    made = beetle.here("snapshot", "create", "--json").json["snapshot"]["snapshot_id"]
    assert beetle.here("snapshot", "verify", made).code == 0
    (kept,) = (each for each in Path(f"{beetle.store}.snapshots").iterdir() if each.stat().st_size > 4096)
    content = bytearray(kept.read_bytes())
    content[len(content) // 2] ^= 1
    kept.write_bytes(content)
    assert beetle.here("snapshot", "verify", made).code == 9
