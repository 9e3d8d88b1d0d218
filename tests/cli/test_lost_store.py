"""A store that is lost or does not open: what commands say of it, and the way back that the manual tells."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .conftest import CommandLine, Said

READS = [("recall", "key"), ("snapshot", "list"), ("verify",), ("repair", "--dry-run")]


def served(beetle: CommandLine, *words: str) -> Said:
    return beetle.run("--store", beetle.store, "--socket", beetle.socket, "--profile", "standalone", *words)


def say(beetle: CommandLine, conversation: str, text: str) -> None:
    assert served(beetle, "transcript", "commit", "--conversation", conversation, "--text", text).code == 0


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_a_command_that_only_reads_makes_no_store_of_an_empty_file(beetle: CommandLine, words: tuple[str, ...]) -> None:
    Path(beetle.store).touch()
    assert beetle.here(*words).error[0] == "not_found"
    assert Path(beetle.store).stat().st_size == 0


@pytest.mark.parametrize("words", [*READS, ("start",), ("remember", "x")], ids=" ".join)
def test_a_store_that_was_emptied_is_lost_and_no_new_one(beetle: CommandLine, words: tuple[str, ...]) -> None:
    say(beetle, "hall", "The spare key is in the blue box.")
    os.truncate(beetle.store, 0)
    assert served(beetle, *words).error[0] == "store_corrupt"
    assert Path(beetle.store).stat().st_size == 0
