"""What finds something wrong, or leaves something, has another exit code than what is clean."""

from __future__ import annotations

import sqlite3

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
