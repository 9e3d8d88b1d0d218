"""`beetle remember` and `beetle note`: one line says what became of it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from tests.cli.conftest import REPOSITORY, CommandLine


def at_a_terminal(beetle: CommandLine, *words: str) -> str:
    """What a command prints whose stdin is a terminal."""
    main, side = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "beetle", "--store", beetle.store, "--profile", "standalone", *words],
            stdin=side, capture_output=True, text=True, cwd=REPOSITORY, timeout=60, check=True,
        )  # fmt: skip
    finally:
        os.close(main)
        os.close(side)
    return done.stdout


def test_what_a_person_types_at_a_terminal_is_the_persons_word(beetle: CommandLine) -> None:
    out = at_a_terminal(beetle, "remember", "The spare key hangs by the door.")
    assert out.startswith("Remembered: long_term:f-") and out.count("\n") == 1
    (hit,) = beetle.here("recall", "spare key", "--planes", "evidence", "--json").json["hits"]
    assert hit["excerpt"] == "The spare key hangs by the door."
    assert at_a_terminal(beetle, "remember", "The spare key hangs by the door.").startswith("Known already: long_term:")


def test_from_a_script_it_is_the_assistants_unless_the_users_words_are_given(
    beetle: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = beetle.here("remember", "Mara prefers tea.").out
    assert line.startswith("Waiting as w-") and "(needs_assertion)" in line and line.count("\n") == 1
    said = ("--said", "I prefer tea.", "--speaker", "Mara", "--topic", "drink")
    first = beetle.here("remember", "Mara prefers tea.", *said).out
    assert first.startswith("Remembered: long_term:")
    later = beetle.here("memory", "remember", "Mara prefers coffee.", "--said", "I prefer coffee.", *said[2:]).out
    assert later.rstrip().endswith("in place of " + first.removeprefix("Remembered: ").rstrip())
    beetle.here("long-term", "policy", "--action", "suppress", "--topic", "drink")
    refused = beetle.here("remember", "Mara prefers milk.", "--said", "I prefer milk.", *said[2:]).out
    assert refused.startswith("Not remembered: a policy forbids") and "(policy_suppressed)" in refused


def test_a_dash_reads_stdin_and_a_missing_text_is_told(beetle: CommandLine) -> None:
    where = ("--store", beetle.store, "--profile", "standalone")
    piped = beetle.process(*where, "remember", "-", "--json", input="Mara prefers tea.\n").json
    assert (piped["outcome"], piped["reason"]) == ("waiting", "needs_assertion")
    (hit,) = beetle.here("recall", "tea", "--json").json["hits"]
    assert hit["excerpt"] == "Mara prefers tea."
    for word in ("remember", "note"):
        key, _, hint = beetle.here(word).error
        assert (key, word in hint) == ("invalid_request", True)


def test_a_note_is_stored_in_its_conversation(beetle: CommandLine) -> None:
    noted = beetle.here("note", "The pump is loud.", "--conversation", "workshop", "--speaker", "Mara", "--json").json
    assert noted["committed"] == 1
    (turn,) = beetle.here("transcript", "replay", "--conversation", "workshop", "--json").json["turns"]
    assert (turn["messages"][0]["content"], turn["messages"][0]["actor"]["speaker"]) == ("The pump is loud.", "Mara")
    assert beetle.here("--channel", "wall", "note", "It rains.").code == 0
    listed = beetle.here("transcript", "conversations", "--json").json["conversations"]
    assert {(each["channel_id"], each["conversation_id"][:6]) for each in listed} == {
        ("local", "worksh"), ("wall", "notes-"),
    }  # fmt: skip
