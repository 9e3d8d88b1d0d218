"""start, stop, reload and status, with a real daemon."""

from __future__ import annotations

import json
import os
import re
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.transports.serving import until
from tests.transports.standin import Far, Scripted

from .conftest import CommandLine


@pytest.fixture
def running(beetle: CommandLine) -> Iterator[CommandLine]:
    words = ("--store", beetle.store, "--socket", beetle.socket, "--profile", "standalone")
    said = beetle.run(*words, "start")
    assert said.code == 0, said.err
    yield beetle
    # With a configuration that a test has spoiled nothing would be stopped.
    (beetle.folder / "beetle.toml").write_text("")
    assert beetle.run("--store", beetle.store, "stop").code == 0


def test_a_started_daemon_answers_and_a_stopped_one_is_gone(running: CommandLine) -> None:
    status = running.run("--store", running.store, "--json", "status")
    assert status.json["running"] is True
    assert status.json["socket"] == running.socket
    assert status.json["store"] == running.store
    assert status.json["profile"] == "profile-linux-device-standalone-memory"
    pid = status.json["pid"]
    text = running.run("--store", running.store, "status").out
    assert text.startswith(f"Daemon Status: Running\n  PID:           {pid}\n")
    for name in ("Socket:", "Uptime:", "Profile:", "Store:", "Turns:", "Database size:"):
        assert f"  {name}" in text
    said = running.run("--store", running.store, "stop")
    assert (said.code, said.out) == (0, "Daemon stopped\n")
    # It is this process's child here: what it left behind is its exit status alone.
    assert os.waitpid(pid, os.WNOHANG) == (pid, 0)
    assert running.run("--store", running.store, "status").code == 3
    assert running.run("--store", running.store, "stop").out == "Daemon is not running\n"


def test_the_store_alone_leads_to_its_daemon_and_the_socket_alone_too(
    running: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEETLE_SOCKET", str(running.folder / "another.sock"))
    commit = ("transcript", "commit", "--conversation", "c", "--text", "a spare key")
    assert running.run("--store", running.store, *commit).code == 0
    assert running.run("--socket", running.socket, "--json", "memory", "recall", "key").json["hits"]
    assert running.run("--socket", running.socket, "--store", running.store, "skill", "list").code == 0


def test_a_socket_and_a_store_that_do_not_belong_together_are_refused(running: CommandLine) -> None:
    other = CommandLine(running.folder / "other", running._capsys)
    other.folder.mkdir()
    assert other.here("transcript", "commit", "--conversation", "c", "--text", "x").code == 0
    said = running.run("--socket", running.socket, "--store", other.store, "skill", "list")
    assert said.error[:2] == (
        "invalid_request", f"the daemon at {running.socket} does not hold the store {other.store}",
    )  # fmt: skip


def test_starting_twice_says_that_it_runs_already(running: CommandLine) -> None:
    pid = running.run("--store", running.store, "--json", "status").json["pid"]
    said = running.run("--store", running.store, "--socket", running.socket, "start")
    assert (said.code, said.out) == (0, f"Daemon already running (pid {pid})\n")
    said = running.run("--store", running.store, "--socket", str(running.folder / "c.sock"), "start")
    assert (said.code, said.error[0]) == (8, "store_locked")


def test_a_daemon_that_was_killed_leaves_nothing_in_the_way(running: CommandLine) -> None:
    pid = running.run("--store", running.store, "--json", "status").json["pid"]
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert running.run("--store", running.store, "status").code == 3
    said = running.run("--store", running.store, "--socket", running.socket, "--profile", "standalone", "start")
    assert said.code == 0, said.err


def test_the_log_stands_beside_the_store_and_is_the_owners_alone(running: CommandLine) -> None:
    log = Path(running.store).with_suffix(".log")
    assert log.stat().st_mode & 0o777 == 0o600
    assert "profile profile-linux-device-standalone-memory" in log.read_text()


def test_what_the_child_could_not_do_is_told_as_its_own_error(beetle: CommandLine) -> None:
    Path(beetle.store).write_bytes(b"this is no database" * 400)
    said = beetle.run("--store", beetle.store, "--socket", beetle.socket, "--profile", "standalone", "start")
    assert (said.code, said.error[0]) == (9, "store_corrupt")
    assert beetle.store in said.error[1]
    assert said.error[2]


def test_start_tells_which_profile_was_chosen_and_why(beetle: CommandLine) -> None:
    said = beetle.run("--store", beetle.store, "--socket", beetle.socket, "start")
    try:
        assert said.code == 0, said.err
        assert "  Profile: profile-" in said.out
        assert "  Why:     " in said.out
    finally:
        beetle.run("--store", beetle.store, "stop")


def test_doctor_looks_at_a_running_daemon(running: CommandLine) -> None:
    said = running.run("--store", running.store, "--json", "doctor")
    levels = {each["check"]: each["level"] for each in said.json["findings"]}
    assert (levels["daemon"], levels["store"], levels["build"], levels["jobs"]) == ("ok", "ok", "ok", "ok")
    assert said.json["exit_code"] == said.code


def reload(running: CommandLine, text: str) -> None:
    """Change the configuration, and wait until the daemon has taken it."""
    (running.folder / "beetle.toml").write_text(text)
    log = running.folder / "b.log"
    taken = log.read_text().count("configuration read again")
    said = running.run("--store", running.store, "reload")
    assert said.code == 0, said.err
    until(lambda: log.read_text().count("configuration read again") > taken, "the configuration was not read")


@pytest.mark.parametrize("by", ["the hint", "the page"])
def test_the_owner_s_lines_open_the_private_plane_and_the_raw_view(running: CommandLine, by: str) -> None:
    words = ("--store", running.store)
    assert running.run(*words, "transcript", "commit", "--conversation", "c", "--text", "x").code == 0
    hint = running.run(*words, "private", "list").error[2]
    raw = (*words, "transcript", "replay", "--conversation", "c", "--view", "raw_owner")
    assert hint in running.run(*raw).error[2]
    lines = re.findall(r"(?:capabilities|views) = \[[^]]*\]", hint)
    if by == "the page":
        page = running.run("help", "configuration").out.partition("### Raw access for the owner")[2]
        lines = re.findall(r"^(?:capabilities|views) = \[[^]]*\]", page, re.MULTILINE)
    assert len(lines) == 2
    reload(running, "\n".join(["[principals.me]", f"uid = {os.getuid()}", *lines, ""]))
    assert running.run(*words, "private", "list").code == 0
    assert "raw_owner" in running.run("--json", *raw).out


def test_a_principal_that_lacks_one_grant_of_the_owner_is_told_all_of_them(running: CommandLine) -> None:
    words = ("--store", running.store)
    every = ["inspect", "transcript", "transcript.raw", "private.read"]
    for missing in ("admin", "private.read"):
        granted = [each for each in ("admin", *every) if each != missing]
        reload(
            running, f"[principals.me]\nuid = {os.getuid()}\ncapabilities = {granted}\nviews = ['host_ui', 'raw_owner']"
        )
        said = running.run(*words, "private", "list")
        assert said.error[0] == "forbidden" and missing in said.error[2] and "raw_owner" in said.error[2]
    reload(running, f"[principals.me]\nuid = {os.getuid()}\ncapabilities = {every}\nviews = ['host_ui', 'raw_owner']")
    said = running.run(*words, "transcript", "replay", "--conversation", "c", "--view", "raw_owner")
    assert said.error[0] == "privacy_denied" and said.error[2].startswith("views of this caller: host_ui; ")
    assert '"admin"' in said.error[2]


def test_a_configuration_with_an_error_is_refused_before_the_daemon_is_asked(running: CommandLine) -> None:
    (running.folder / "beetle.toml").write_text("[principals.me]\nuid = 1\n")
    assert running.run("--store", running.store, "reload").error[0] == "invalid_request"
    assert "not taken" not in (running.folder / "b.log").read_text()


BAD_SCHEDULES = (
    ('optimize = "0 0 25 * * *"', "$.scheduler.jobs.optimize"),
    ('optimise = "0 0 4 * * *"', "$.scheduler.jobs"),
    ('retention = "0 30 3 * *"', "$.scheduler.jobs.retention"),
)


def test_a_schedule_that_cannot_be_read_is_refused_and_the_old_ones_stay(running: CommandLine) -> None:
    words = ("--store", running.store)
    before = running.run("--json", *words, "scheduler", "status").json["jobs"]
    pid = running.run(*words, "--json", "status").json["pid"]
    for line, path in BAD_SCHEDULES:
        (running.folder / "beetle.toml").write_text(f"[scheduler.jobs]\n{line}\n")
        said = running.run(*words, "reload")
        assert (said.code, said.error[0]) == (2, "invalid_request")
        assert path in said.error[1] and said.error[2]
    # Whoever sends the signal past `beetle reload` finds it in the log.
    os.kill(pid, signal.SIGHUP)
    log = running.folder / "b.log"
    until(lambda: "the configuration was not taken" in log.read_text(), "the signal was not heard")
    assert "$.scheduler.jobs.retention" in log.read_text()
    after = running.run("--json", *words, "scheduler", "status").json["jobs"]
    assert [each["cron_expr"] for each in after] == [each["cron_expr"] for each in before]


def test_status_tells_of_what_hooks_have_spooled(
    running: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    words = ("--store", running.store)
    assert running.run("--json", *words, "status").json["spool"] == {"events": 0, "oldest_at": None, "refused": 0}
    assert "Hook spool" not in running.run(*words, "status").out
    folder = tmp_path / "state/beetle/spool"
    (folder / "refused").mkdir(parents=True)
    for place in (1_767_225_600_000_000_000, 1_767_225_601_000_000_000):
        (folder / f"{place:020}-7-ab.json").write_text("{}")
    (folder / "refused/1.json").write_text("{}")
    spool = running.run("--json", *words, "status").json["spool"]
    assert spool == {"events": 2, "oldest_at": "2026-01-01T00:00:00Z", "refused": 1}
    line = "2 events wait for a daemon, the oldest since 2026-01-01T00:00:00Z; 1 refused"
    assert f"  Hook spool:    {line}\n" in running.run(*words, "status").out
    assert running.run(*words, "stop").code == 0
    assert line in running.run(*words, "status").out


@pytest.mark.parametrize("words", ["status", "health", "metrics", "doctor"])
def test_a_daemon_that_ends_during_the_call_is_none(beetle: CommandLine, words: str) -> None:
    def ending(far: Far) -> None:
        far.request()
        os.unlink(beetle.socket)

    with Scripted(beetle.socket, ending):
        said = beetle.run("--socket", beetle.socket, "--json", words)
    told = f"the daemon at {beetle.socket} went away"
    if words == "status":
        assert (said.code, said.json["running"], said.err) == (3, False, "")
    elif words == "doctor":
        assert said.code == 7 and told in said.out
    else:
        key, message, hint = said.error
        assert (said.code, key) == (7, "daemon_unavailable") and message.startswith(told) and hint


def test_a_reload_without_a_daemon_says_so(beetle: CommandLine) -> None:
    said = beetle.run("--store", beetle.store, "reload")
    assert (said.code, said.error[0]) == (7, "daemon_unavailable")


def test_a_probe_a_scrape_and_the_log_of_a_daemon(beetle: CommandLine) -> None:
    words = ("--store", beetle.store, "--socket", beetle.socket)
    assert (beetle.run(*words, "health").code, beetle.run(*words, "metrics").error[0]) == (7, "daemon_unavailable")
    token = beetle.folder / "token"
    token.write_text("a-token\n")
    token.chmod(0o600)
    configuration = beetle.folder / "beetle.toml"
    configuration.write_text(f'[metrics]\nlisten = "127.0.0.1:0"\ntoken_file = "{token}"\n')
    assert beetle.run(*words, "--config", str(configuration), "--profile", "standalone", "start").code == 0
    try:
        health = beetle.run(*words, "--json", "health")
        assert (health.code, health.json["state"]) == (0, "ok")
        assert "beetle_health{" in beetle.run(*words, "metrics").out
        lines = [json.loads(each) for each in (beetle.folder / "b.log").read_text().splitlines()]
        told = {each["event"]: each for each in lines}
        assert {"profile", "store_opened", "metrics_listening", "listening"} <= told.keys()
        url = re.findall(r"http://\S+", told["metrics_listening"]["message"])[0]
        asked = urllib.request.Request(url, headers={"Authorization": "Bearer a-token"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert b"beetle_uptime_seconds" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(url, timeout=30)
    finally:
        assert beetle.run(*words, "stop").code == 0


def test_a_port_without_its_token_keeps_the_daemon_from_starting(beetle: CommandLine) -> None:
    token = beetle.folder / "token"
    token.write_text("a-token")
    token.chmod(0o644)
    configuration = beetle.folder / "beetle.toml"
    configuration.write_text(f'[metrics]\nlisten = "127.0.0.1:0"\ntoken_file = "{token}"\n')
    words = ("--store", beetle.store, "--socket", beetle.socket, "--config", str(configuration))
    said = beetle.run(*words, "--profile", "standalone", "start")
    assert (said.code, said.error[0]) == (2, "invalid_request")
    assert str(token) in said.error[1] and "0600" in said.error[2]
