"""Commands of a caller who has closed standard streams."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from tests.cli.conftest import REPOSITORY, CommandLine
from tests.transports.serving import until

ALL = "<&- >&- 2>&-"


def closed(redirection: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = shlex.join([sys.executable, "-m", "beetle", *words])
    return subprocess.run(
        ["sh", "-c", f"exec {command} {redirection}"],
        input="", capture_output=True, text=True, cwd=REPOSITORY, env={**os.environ, **env}, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("redirection", [">&-", "2>&-", "<&-", ALL])
def test_what_is_noted_is_stored_and_that_is_no_error(beetle: CommandLine, redirection: str) -> None:
    here = ("--store", beetle.store, "--profile", "standalone")
    done = closed(redirection, *here, "note", "the spare key")
    assert (done.returncode, done.stderr) == (0, "")
    assert "spare key" in beetle.here("recall", "spare key").out


@pytest.mark.parametrize("words", [("--version",), ("capture", "--hook", '{"prompt": "x"}'), ("--help",), ("mcp",)])
@pytest.mark.parametrize("redirection", [">&-", ALL])
def test_commands_that_only_speak_end_well(beetle: CommandLine, redirection: str, words: tuple[str, ...]) -> None:
    state = str(beetle.folder / "state")
    done = closed(redirection, *words, BEETLE_STORE=beetle.store, BEETLE_SOCKET=beetle.socket, XDG_STATE_HOME=state)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_hook_that_cannot_answer_is_captured_and_no_error(beetle: CommandLine) -> None:
    state = str(beetle.folder / "state")
    words = ("capture", "--hook", '{"prompt": "the spare key"}')
    done = closed(">/dev/full", *words, BEETLE_SOCKET=beetle.socket, XDG_STATE_HOME=state)
    assert done.returncode == 0
    assert done.stderr.startswith("beetle: the answer to the hook was not written: ")
    assert done.stderr.count("\n") == 1
    assert len(list((beetle.folder / "state/beetle/spool").iterdir())) == 1


def test_a_daemon_is_started_and_ended(beetle: CommandLine) -> None:
    place = ("--store", beetle.store, "--socket", beetle.socket, "--profile", "standalone")
    try:
        assert closed(ALL, *place, "start").returncode == 0
    finally:
        assert closed(ALL, *place, "stop").returncode == 0


def test_no_socket_or_store_of_a_daemon_is_one_of_its_streams(beetle: CommandLine) -> None:
    place = ("--store", beetle.store, "--socket", beetle.socket, "--profile", "standalone")
    command = shlex.join([sys.executable, "-m", "beetle", *place, "serve"])
    process = subprocess.Popen(["sh", "-c", f"exec {command} {ALL}"], cwd=REPOSITORY)

    def answers() -> bool:
        return process.poll() is not None or beetle.run("--socket", beetle.socket, "status").code == 0

    try:
        until(answers, "a daemon")
        assert [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in range(3)] == [os.devnull] * 3
    finally:
        process.terminate()
        assert process.wait(60) == 0
