"""The commands of devices and of the event log, and where a key may stand: in one answer or one file, nowhere else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from beetle.client import Client
from beetle.contracts.envelope import DeviceAuth
from tests import forked, running
from tests.forked import Daemon
from tests.running import ROOT

PROFILE = "profile-linux-device-standalone-memory"
Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with tempfile.TemporaryDirectory(prefix="bd-") as folder, Daemon(profile=PROFILE, folder=folder) as started:
        yield started


def command(daemon: Daemon, *words: str) -> list[str]:
    return [sys.executable, "-m", "beetle", "--socket", daemon.socket, *words]


def beetle(daemon: Daemon, *words: str) -> Done:
    return forked.run_text(["--socket", daemon.socket, *words])


def said(daemon: Daemon, *words: str) -> str:
    done = beetle(daemon, *words)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def add(daemon: Daemon, file: Path, *more: str) -> str:
    """A device whose credentials are in the file; its id."""
    said(daemon, "device", "add", "Panel", "--capabilities", "recall,transcript", "--write-auth", str(file), *more)
    return json.loads(file.read_text())["device_id"]


def test_credentials_go_into_a_file_that_a_command_reads(daemon: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "panel.json"
    shown = said(daemon, "device", "add", "Panel", "--capabilities", "recall,console", "--write-auth", str(file))
    held = json.loads(file.read_text())
    assert set(held) == {"device_id", "app_key"} and file.stat().st_mode & 0o777 == 0o600
    assert held["app_key"] not in shown and held["device_id"] in shown and str(file) in shown
    told = json.loads(said(daemon, "--auth-file", str(file), "--json", "console", "session"))
    assert told["principal"] == f"device:{held['device_id']}"
    as_toml = tmp_path / "panel.toml"
    as_toml.touch(mode=0o600)
    as_toml.write_text(f'# the panel\ndevice_id = "{held["device_id"]}"\napp_key = "{held["app_key"]}"\n')
    told = json.loads(said(daemon, "--auth-file", str(as_toml), "--json", "console", "session"))
    assert told["principal"] == f"device:{held['device_id']}"


def test_a_key_is_shown_once_where_no_file_is_named(daemon: Daemon) -> None:
    text = said(daemon, "device", "add", "--label", "Panel", "--capabilities", "recall", "--idempotency-key", "cli-1")
    assert "shown once" in text and "Key: " in text
    again = said(daemon, "device", "add", "--label", "Panel", "--capabilities", "recall", "--idempotency-key", "cli-1")
    assert "Key: " not in again and "beetle device rotate-key" in again


def test_nobody_is_told_to_act_on_a_device_that_was_removed(daemon: Daemon, tmp_path: Path) -> None:
    adding = ("device", "add", "Panel", "--device-id", "gone", "--capabilities", "recall", "--idempotency-key", "cli-2")
    said(daemon, *adding)
    said(daemon, "device", "remove", "gone")
    again = said(daemon, *adding)
    assert "revoked or removed" in again and "active" not in again and "rotate-key" not in again
    done = beetle(daemon, *adding, "--write-auth", str(tmp_path / "gone.json"))
    assert done.returncode == 4 and "removed" in done.stderr and "rotate-key" not in done.stderr


def test_a_key_that_has_nowhere_to_go_is_not_made(daemon: Daemon, tmp_path: Path) -> None:
    before = json.loads(said(daemon, "--json", "device", "list"))["total"]
    there = tmp_path / "there"
    there.write_text("mine")
    for place in (there, tmp_path / "no" / "folder"):
        done = beetle(daemon, "device", "add", "x", "--capabilities", "recall", "--write-auth", str(place))
        assert done.returncode == 2 and "--write-auth" in done.stderr
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    assert beetle(daemon, "device", "add", "x", "--capabilities", "recall", "--write-auth", str(link)).returncode == 2
    assert there.read_text() == "mine"
    assert json.loads(said(daemon, "--json", "device", "list"))["total"] == before


def test_a_refused_request_leaves_no_file(daemon: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "panel.json"
    done = beetle(daemon, "device", "add", "x", "--capabilities", "admin", "--write-auth", str(file))
    assert (done.returncode, done.stderr.startswith("beetle: forbidden:")) == (5, True)
    assert not file.exists()


@pytest.mark.parametrize("text", ["", "{}", '{"device_id": "d"}', "device_id = 3", "= = =", "[" * 5000, '{"a": ' * 900])
def test_a_file_that_holds_no_credentials_is_refused_without_telling_what_it_holds(
    daemon: Daemon, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "auth"
    file.touch(mode=0o600)
    file.write_text(text)
    done = beetle(daemon, "--auth-file", str(file), "hello")
    assert done.returncode == 2 and "does not hold" in done.stderr
    assert not text or text[:200] not in done.stderr.replace('{"device_id": "…", "app_key": "…"}', "")


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o644, 0o660])
def test_a_file_that_others_may_read_is_refused(daemon: Daemon, tmp_path: Path, mode: int) -> None:
    file = tmp_path / "auth.json"
    device_id = add(daemon, file)
    file.chmod(mode)
    done = beetle(daemon, "--auth-file", str(file), "hello")
    assert done.returncode == 2 and "chmod 600" in done.stderr
    assert device_id not in done.stderr


def test_a_rotated_key_is_refused_and_the_new_one_goes_into_a_new_file(daemon: Daemon, tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    device_id = add(daemon, old)
    said(daemon, "device", "rotate-key", device_id, "--write-auth", str(new))
    done = beetle(daemon, "--auth-file", str(old), "hello")
    assert (done.returncode, done.stderr.startswith("beetle: unauthorized:")) == (5, True)
    said(daemon, "--auth-file", str(new), "hello")
    assert "suspended" in said(daemon, "device", "update", device_id, "--state", "suspended")
    assert beetle(daemon, "--auth-file", str(new), "hello").returncode == 5
    assert device_id in said(daemon, "device", "list", "--state", "suspended")
    said(daemon, "device", "remove", device_id)
    assert device_id not in said(daemon, "device", "list", "--limit", "100")


def test_ways_in_overview_and_session_are_text_for_people(daemon: Daemon) -> None:
    assert "closed to all but operators" in said(daemon, "transport", "update", "unix_socket", "--no-enabled")
    assert "open" in said(daemon, "transport", "update", "unix_socket", "--enabled")
    assert "not in this profile" in said(daemon, "transport", "list")
    overview = said(daemon, "console", "overview")
    for word in ("System:", "Profile:", "Store:", "Connected:", "Devices:", "OPERATION", "transport.update"):
        assert word in overview
    assert "operator (operator, over unix_socket)" in said(daemon, "console", "session")


# The event log


def test_the_log_shows_its_last_rows_the_newest_at_the_end(daemon: Daemon, tmp_path: Path) -> None:
    device_id = add(daemon, tmp_path / "a.json")
    said(daemon, "device", "update", device_id, "--label", "Hall")
    lines = said(daemon, "log", "--topics", "device,lifecycle", "--limit", "2").splitlines()
    assert f"device added                  operator  device.add  agent_id=agent-main device_id={device_id}" in lines[0]
    assert "device updated" in lines[1] and 'changed=["label"]' in lines[1]
    assert "More: --cursor" in lines[2]
    report = json.loads(said(daemon, "--json", "log", "--newest-first", "--limit", "1"))
    assert report["rows"][0]["seq"] == report["head"] and report["verified"]
    assert "No such rows." in said(daemon, "log", "--principal", "nobody")
    links = json.loads(said(daemon, "--json", "log", "--chain", "--limit", "2"))["chain"]
    shown = said(daemon, "log", "--chain", "--limit", "2").splitlines()
    assert [line.split() for line in shown[:2]] == [[str(each["seq"]), each["hash"]] for each in links]


def test_log_follow_shows_what_is_logged_as_it_happens(daemon: Daemon) -> None:
    following = subprocess.Popen(
        command(daemon, "--json", "log", "--follow", "--limit", "1"), cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert following.stdout is not None
    try:
        first = json.loads(following.stdout.readline())
        with daemon.client() as client:
            # A topic that can be subscribed to, and one that is told of under another name.
            made = client.write(kind="procedural", source="manual", writes=[
                {"name": "tea", "topic": "t", "title": "t", "summary": "s", "content": "c"}])  # fmt: skip
            client.long_term_policy(action="suppress", topic="tea")
        rows = [json.loads(following.stdout.readline()) for _ in range(2)]
        assert rows[0]["seq"] == made.lifecycle.event_id == first["seq"] + 1  # type: ignore[union-attr]
        assert [(row["topic"], row["event"]) for row in rows] == [("skill", "created"), ("memory", "policy_suppress")]
    finally:
        following.send_signal(signal.SIGINT)
        following.stdout.close()
        assert following.wait(60) == 130


def test_log_follow_goes_back_for_nothing_and_needs_a_daemon(daemon: Daemon, tmp_path: Path) -> None:
    for option in ("--newest-first", "--before=3", "--until=2026-01-01T00:00:00Z"):
        done = beetle(daemon, "log", "--follow", option)
        assert done.returncode == 2 and option.partition("=")[0] in done.stderr
    store = tmp_path / "b.db"
    words = ["--store", str(store), "--profile", "standalone"]
    assert forked.run([*words, "device", "add", "x", "--capabilities", "recall"]).returncode == 3
    said_first = [*words, "transcript", "commit", "--conversation", "c", "--text", "x"]
    assert forked.run(said_first).returncode == 0
    assert forked.run([*words, "device", "add", "x", "--capabilities", "recall"]).returncode == 0
    done = forked.run_text([*words, "log", "--follow"])
    assert done.returncode == 7 and f"`beetle --store {store} start`" in done.stderr
    done = forked.run_text([*words, "log"])
    assert done.returncode == 0 and "device added" in done.stdout


# Key material


def processes() -> str:
    """Every process's command line and environment that this user may read."""
    found: list[bytes] = []
    for place in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                found.append((place / name).read_bytes())
            except OSError:
                continue
    return b"\n".join(found).decode("latin-1")


def test_no_key_is_left_anywhere_after_a_storm_of_them(tmp_path: Path) -> None:
    keys: list[str] = []
    place = tmp_path / "d"
    place.mkdir()
    # By its command: what it was started with is looked at too.
    with running.Daemon(profile=PROFILE, folder=str(place)) as daemon:
        file = tmp_path / "auth.json"
        device_id = add(daemon, file)
        keys.append(json.loads(file.read_text())["app_key"])
        listing = subprocess.Popen(
            command(daemon, "--auth-file", str(file), "log", "--follow"), cwd=ROOT, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        with daemon.client() as operator:
            for number in range(40):
                made = operator.add_device(label=f"d{number}", capabilities=("recall", "console"))
                keys.append(made.appKeyOnce or "")
                auth = DeviceAuth(device_id=made.device.device_id, app_key=keys[-1])
                with Client(daemon.socket, auth=auth, retry=False) as device:
                    device.console_session()
                    rotated = operator.rotate_device_key(device_id=auth.device_id)
                    keys.append(rotated.appKeyOnce or "")
                    for ask in (device.hello, device.list_devices):
                        with pytest.raises(Exception, match="unauthorized") as caught:
                            ask()
                        assert keys[-2] not in f"{caught.value}{caught.value.__dict__}"
            again = [operator.call("device.add", {"label": "k", "capabilities": ["recall"]}, idempotency_key="same")
                     for _ in range(2)]  # fmt: skip
            keys.append(again[0].appKeyOnce)  # type: ignore[attr-defined]
            assert again[1].appKeyOnce is None  # type: ignore[attr-defined]
            operator.console_overview()
            operator.verify_store()
        listing.communicate(timeout=60)
        assert listing.returncode == 5, "this device may not read the log"
        assert all(keys) and len(set(keys)) == len(keys)
        look_for(keys, processes(), "a process")
        look_for(keys, dump(daemon.store), "a table")
        copy(daemon.store, str(place / "copy.db"))
        said(daemon, "device", "remove", device_id)
    left = [each for each in place.rglob("*") if each.is_file()]
    assert {"b.db", "copy.db", "log"} <= {each.name for each in left}
    for each in left:
        look_for(keys, each.read_bytes().decode("latin-1"), each.name)


def test_no_key_stands_in_a_file_of_the_daemon_while_it_runs_or_after_it_was_killed(tmp_path: Path) -> None:
    with Daemon(profile=PROFILE, folder=str(tmp_path)) as daemon:
        with daemon.client() as operator:
            keys = [operator.add_device(label="d", capabilities=("recall",)).appKeyOnce or "" for _ in range(20)]
        files = [each for each in tmp_path.iterdir() if each.is_file()]
        assert {"b.db", "b.db-wal", "log"} <= {each.name for each in files}
        for each in files:
            look_for(keys, each.read_bytes().decode("latin-1"), each.name)
        daemon.kill()
        for each in tmp_path.iterdir():
            if each.is_file():
                look_for(keys, each.read_bytes().decode("latin-1"), each.name)
        os.unlink(daemon.socket)


def look_for(keys: list[str], text: str, where: str) -> None:
    """No key stands there, whole or in half."""
    found = [key[:4] for key in keys for part in (key, key[:22], key[21:]) if part in text]
    assert not found, where


def dump(store: str) -> str:
    """Every value of every table."""
    connection = apsw.Connection(store, flags=apsw.SQLITE_OPEN_READONLY)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    found: list[str] = []
    for table in tables:
        for row in connection.execute(f'SELECT * FROM "{table}"'):
            found += [each.decode("latin-1") if isinstance(each, bytes) else str(each) for each in row]
    connection.close()
    return "\n".join(found)


def copy(store: str, place: str) -> None:
    source, target = apsw.Connection(store, flags=apsw.SQLITE_OPEN_READONLY), apsw.Connection(place)
    with target.backup("main", source, "main") as backup:
        backup.step(-1)
    source.close()
    target.close()
