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


@pytest.mark.parametrize("words", [*READS, ("start",)], ids=" ".join)
def test_the_hint_of_a_store_that_does_not_open_is_a_page_and_no_command_that_would_say_the_same(
    beetle: CommandLine, words: tuple[str, ...]
) -> None:
    Path(beetle.store).write_bytes(b"this is no database" * 400)
    key, _, hint = served(beetle, *words).error
    assert key == "store_corrupt"
    assert "`beetle help troubleshooting`" in hint
    assert "verify" not in hint
    page = beetle.run("help", "troubleshooting").out
    assert "The store is damaged" in hint and "The store is damaged" in page


def test_a_snapshot_comes_back_into_a_store_that_does_not_open_as_the_manual_says(beetle: CommandLine) -> None:
    served(beetle, "start")
    try:
        say(beetle, "hall", "The spare key is in the blue box.")
        say(beetle, "porch", "The number is 5512.")
        served(beetle, "device", "add", "Kitchen", "--device-id", "kitchen", "--capabilities", "recall",
               "--write-auth", str(beetle.folder / "kitchen.json"))  # fmt: skip
        taken = served(beetle, "--json", "snapshot", "create").json["snapshot"]["snapshot_id"]
        served(beetle, "forget", "--conversation", "local/porch", "--yes")
        served(beetle, "stop")
        identity = Path(beetle.store + ".identity").read_bytes()
        os.truncate(beetle.store, 3000)
        assert served(beetle, "start").error[0] == "store_corrupt"
        (beetle.folder / "damaged").mkdir()
        Path(beetle.store).rename(beetle.folder / "damaged" / "b.db")

        assert served(beetle, "start").code == 0
        assert served(beetle, "snapshot", "restore", taken).error[0] == "conflict"
        assert served(beetle, "snapshot", "restore", taken, "--other-store").code == 0
        assert "blue box" in served(beetle, "recall", "key").out
        assert served(beetle, "verify").code == 0
        assert Path(beetle.store + ".identity").read_bytes() == identity

        assert "5512" in served(beetle, "recall", "number").out, "what was forgotten since is back"
        assert served(beetle, "forget", "--conversation", "local/porch", "--yes").code == 0
        assert "5512" not in served(beetle, "recall", "number").out
        assert "suspended" in served(beetle, "device", "list").out
        rotated = str(beetle.folder / "again.json")
        assert served(beetle, "device", "rotate-key", "kitchen", "--write-auth", rotated).code == 0
        assert served(beetle, "device", "update", "kitchen", "--state", "active").code == 0
        assert served(beetle, "snapshot", "prune", "--keep", "7", "--replaced").code == 0
        assert list(beetle.folder.glob("b.db.before-*")) == []
    finally:
        served(beetle, "stop")
