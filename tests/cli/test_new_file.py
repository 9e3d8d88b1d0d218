"""`--out FILE`: whole under its name, or not there, however the command ends."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.forked import Daemon
from tests.running import ROOT, ended
from tests.transports.serving import until

SAID = ("transcript", "commit", "--conversation", "c", "--text", "the spare key")


@pytest.fixture
def daemon(folder: Path) -> Iterator[Daemon]:
    with Daemon(profile="standalone", folder=str(folder)) as started:
        with started.client() as client:
            message = {"message_id": "m", "role": "user", "content": "the spare key"}
            turn = {"turn_id": "t", "at": "2026-01-02T03:04:05Z", "messages": [message]}
            client.commit_transcript(conversation={"conversation_id": "c"}, turns=[turn])
        yield started


def names(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir() if each.name.startswith("out.jsonl")]


@contextmanager
def waiting_export(daemon: Daemon, usual: signal.Handlers = signal.SIG_DFL) -> Iterator[subprocess.Popen[bytes]]:
    """An export that has begun its file, and waits for a daemon that does not go on before the block ends."""
    before = signal.signal(signal.SIGHUP, usual)
    os.kill(daemon.pid, signal.SIGSTOP)
    words = ["--socket", daemon.socket, "export", "--out", str(daemon.folder / "out.jsonl")]
    try:
        with open(daemon.folder / "errors", "wb") as errors:
            process = subprocess.Popen([sys.executable, "-m", "beetle", *words], cwd=ROOT, stderr=errors)
        until(lambda: names(daemon.folder), "the beginning of the file")
        yield process
    finally:
        signal.signal(signal.SIGHUP, before)
        os.kill(daemon.pid, signal.SIGCONT)


@pytest.mark.parametrize(
    ("number", "code", "left"),
    [(signal.SIGTERM, 143, 0), (signal.SIGHUP, 129, 0), (signal.SIGKILL, -signal.SIGKILL, 1)],
)
def test_an_export_that_is_ended_leaves_no_file_of_that_name(
    beetle: CommandLine, daemon: Daemon, number: int, code: int, left: int
) -> None:
    with waiting_export(daemon) as process:
        process.send_signal(number)
        assert ended(process, 60) == code
        assert (daemon.folder / "errors").read_bytes() == b""
    parts = names(daemon.folder)
    assert len(parts) == left and all(each.endswith(".part") for each in parts)
    out = daemon.folder / "out.jsonl"
    assert beetle.run("--socket", daemon.socket, "export", "--out", str(out)).code == 0
    assert b"the spare key" in out.read_bytes() and out.stat().st_mode & 0o777 == 0o600


def test_an_export_goes_on_where_a_hangup_is_ignored(daemon: Daemon) -> None:
    with waiting_export(daemon, signal.SIG_IGN) as process:
        process.send_signal(signal.SIGHUP)
    assert ended(process, 60) == 0
    assert names(daemon.folder) == ["out.jsonl"]


def test_what_is_made_under_the_name_meanwhile_stays(daemon: Daemon) -> None:
    out = daemon.folder / "out.jsonl"
    with waiting_export(daemon) as process:
        out.write_text("mine")
    assert ended(process, 60) == 2
    assert b"File exists" in (daemon.folder / "errors").read_bytes()
    assert (out.read_text(), names(daemon.folder)) == ("mine", ["out.jsonl"])


def no_links(*_: object, **__: object) -> None:
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def test_a_file_system_without_links_gets_the_same_file(beetle: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert beetle.here(*SAID).code == 0
    monkeypatch.setattr(os, "link", no_links)  # as FAT does
    out = beetle.folder / "out.jsonl"
    assert beetle.here("export", "--out", str(out)).code == 0
    whole = out.read_bytes()
    assert b"the spare key" in whole and names(beetle.folder) == ["out.jsonl"]
    said = beetle.here("export", "--out", str(out))
    assert said.error[:2] == ("invalid_request", f"--out: {out}: File exists")
    assert (out.read_bytes(), names(beetle.folder)) == (whole, ["out.jsonl"])


def test_a_name_that_cannot_be_made_is_refused_before_anything_is_asked(beetle: CommandLine) -> None:
    """There is no store: that is what would be told otherwise."""
    (beetle.folder / "link").symlink_to(beetle.folder / "nowhere")
    for place in ("link", "nowhere/out", "."):
        said = beetle.here("memory", "export", "--chat-id", "c", "--out", str(beetle.folder / place))
        assert (said.code, said.error[0]) == (2, "invalid_request") and "--out: " in said.error[1]
    assert not (beetle.folder / "b.db").exists() and not (beetle.folder / "nowhere").exists()
