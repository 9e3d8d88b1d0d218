"""`beetle import` and `beetle export` as they are typed, over a daemon; kill -9 in the middle; out and in again."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.__main__ import main
from beetle.client import Client
from tests.forked import Daemon
from tests.running import ROOT

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(profile="desktop", folder=str(tmp_path_factory.mktemp("d"))) as started:
        yield started


def beetle(daemon: Daemon, *words: str) -> int:
    return main(["--socket", daemon.socket, *words])


def test_a_person_reads_what_became_of_each_file(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    owner = ("--owner", "person")
    files = (str(SAMPLES / "mem0.json"), str(SAMPLES / "turns.jsonl"))
    assert beetle(daemon, *owner, "import", *files, "--dry-run") == 0
    assert "this was a dry run" in capsys.readouterr().out
    assert beetle(daemon, *owner, "import", *files) == 0
    shown = capsys.readouterr()
    assert "3 facts: 3 accepted, 0 waiting, 0 rejected" in shown.out and "3 turns: 3 new, 0 already stored" in shown.out
    assert "time where the file has none: the file's last change" in shown.out and shown.err == ""
    assert beetle(daemon, *owner, "import", *files, "--authority", "assistant_claimed") == 0
    shown = capsys.readouterr()
    assert "3 waiting, 0 rejected (3 needs assertion)" in shown.out and "beetle governance list" in shown.out


def test_lines_that_fail_are_told_and_change_the_exit_code(
    daemon: Daemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "turns.jsonl"
    file.write_bytes((SAMPLES / "turns.jsonl").read_bytes() + b'{"conversation": \x1b[2J}\n')
    assert beetle(daemon, "--owner", "broken", "import", str(file)) == 1
    shown = capsys.readouterr()
    assert f"beetle: {file}: line 4: " in shown.err and "\x1b" not in shown.err
    assert "3 turns: 3 new" in shown.out and "1 not taken in" in shown.out
    assert beetle(daemon, "--owner", "broken", "--json", "import", str(file)) == 1
    shown = capsys.readouterr()
    report = json.loads(shown.out)
    assert (report["unchanged"], report["failed"], shown.err) == (3, 1, "")
    assert report["problems"][0]["place"] == "line 4"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["import", "/dev/zero"], "device"),
        (["import", str(SAMPLES / "mem0.json"), "--format", "diary"], "--format"),
        (["import", str(SAMPLES / "mem0.json"), "--authority", "god"], "authority"),
        (["import", str(SAMPLES / "mem0.json"), "--time", "yesterday"], "time"),
        (["import", str(SAMPLES / "mem0.json"), "--conversation", "a/b/c"], "--conversation"),
        (["import", str(SAMPLES / "mem0.json"), "--visibility", "soul"], "visibility"),
        (["export", "--format", "diary"], "--format"),
        (["import", str(SAMPLES / "turns.jsonl"), "--speaker", "asistant=Ada"], "'asistant' is no role"),
        (["import", str(SAMPLES / "turns.jsonl"), "--speaker", "user="], "the name is empty"),
        (["import", str(SAMPLES.parents[1] / "bench")], "holds no file named *.md or *.markdown"),
        (["import", str(SAMPLES.parents[1] / "bench"), "--format", "mem0"], "holds no file named *.json or"),
        (["export", "--format", "markdown", "--json"], "exclude"),
    ],
)
def test_a_wrong_word_is_refused_by_its_name(
    daemon: Daemon, capsys: pytest.CaptureFixture[str], words: list[str], reason: str
) -> None:
    assert beetle(daemon, *words) == 2
    assert reason in capsys.readouterr().err


def test_what_a_file_does_not_say_is_typed(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--conversation", "web/tea%2F1", "--speaker", "Rita", "--speaker", "assistant=Ada"]
    words += ["--time", "2026-01-01T00:00:00+01:00", "--visibility", "private"]
    assert beetle(daemon, "--owner", "typed", "import", str(SAMPLES / "gemini_checkpoint.json"), *words) == 0
    from beetle.contracts.common import WireScope

    with Client(daemon.socket, scope=WireScope(owner_id="typed")) as client:
        where = {"channel_id": "web", "conversation_id": "tea/1"}
        turns = client.replay_transcript(conversation=where, view="host_ui").turns
    assert {turn.at for turn in turns} == {"2025-12-31T23:00:00Z"}
    assert {message.visibility for turn in turns for message in turn.messages} == {"private"}


def test_an_export_is_taken_in_again_unchanged(
    daemon: Daemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Into the same store nothing is new; out of another store comes the same file."""
    owner = ("--owner", "round")
    samples = sorted(str(each) for each in SAMPLES.glob("*.json*"))
    assert beetle(daemon, *owner, "import", *samples) == 0
    out = tmp_path / "out.jsonl"
    assert beetle(daemon, *owner, "export", "--out", str(out)) == 0
    assert beetle(daemon, *owner, "export", "--out", str(out)) == 2, "the file is there"
    capsys.readouterr()
    assert beetle(daemon, *owner, "--json", "import", str(out)) == 0
    report = json.loads(capsys.readouterr().out)
    lines = out.read_text().splitlines()
    assert (report["unchanged"], report["committed"]) == (len(lines), 0) and len(lines) > 40
    with MemoryRuntime.open(":memory:", profile="desktop") as other:
        assert other.import_(out).total("committed") == len(lines)
        assert sorted(line.rstrip("\n") for line in other.export_()) == sorted(lines)
    assert beetle(daemon, *owner, "export", "--conversation", "chatgpt/conv-tea", "--format", "markdown") == 0
    page = capsys.readouterr().out
    assert page.startswith("# chatgpt/conv-tea\n\n## user, 2026-03-02T08:00:01.25Z\n\n> Which tea is this?\n")


def test_an_export_shows_what_the_export_view_may_see() -> None:
    with MemoryRuntime.open(":memory:", profile="desktop") as memory:
        message: dict[str, Any] = {"message_id": "m1", "role": "user", "content": "open words"}
        hidden = {"message_id": "m2", "role": "user", "content": "hidden words", "visibility": "private"}
        turn = {"turn_id": "t", "at": "2026-01-01T00:00:00Z", "messages": [message, hidden]}
        memory.commit_transcript(conversation={"conversation_id": "c"}, turns=[turn])
        for form in ("jsonl", "markdown"):
            text = "".join(memory.export_(format=form))  # type: ignore[arg-type]
            assert "open words" in text and "hidden words" not in text
        assert "hidden words" in "".join(memory.export_(conversations=["c"], include_private=True))
        with MemoryRuntime.open(":memory:", profile="desktop") as other:
            assert list(other.export_(conversations=[])) == []


def test_an_import_that_was_killed_is_run_again(daemon: Daemon, tmp_path: Path) -> None:
    """It is killed when the first batches are in, while it waits for the rest of its file."""
    file = tmp_path / "turns.jsonl"
    turn = {"conversation": "killed", "turn_id": "%d", "at": "2026-01-01T00:00:00Z", "role": "user", "content": "word"}
    file.write_text("".join(json.dumps(turn).replace("%d", str(number)) + "\n" for number in range(2000)))
    command = [sys.executable, "-m", "beetle", "--socket", daemon.socket, "--json", "import", str(file)]
    with Client(daemon.socket) as client, client.subscribe(["transcript"]) as events:
        running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        next(events)
        running.send_signal(signal.SIGKILL)
        running.wait()
        report = client.import_(file)
        (listed,) = client.list_conversations(query="killed").conversations
    assert running.returncode == -signal.SIGKILL
    assert report.total("unchanged") > 0 and report.total("committed") > 0 and report.failed == 0
    assert listed.turns == 2000


def test_progress_is_shown_at_a_terminal_alone(tmp_path: Path) -> None:
    main_side, terminal = pty.openpty()
    command = [sys.executable, "-m", "beetle", "import", str(SAMPLES / "turns.jsonl"), "--dry-run"]
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=terminal, check=True, text=True)
        os.set_blocking(main_side, False)
        shown = os.read(main_side, 4096).decode()
    finally:
        os.close(terminal)
        os.close(main_side)
    assert "import: reading" in shown and "reading" not in done.stdout
