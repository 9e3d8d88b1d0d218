"""Whom a command speaks to: flags before the environment, and that before the defaults, always as a pair."""

from __future__ import annotations

import grp
import os
import pwd
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle.client import Client
from beetle.contracts.errors import DaemonUnavailable, Forbidden, InvalidRequest, StoreLocked
from beetle.find import Target, find_target
from beetle.runtime.host.config import Config, Daemon
from beetle.store.engine.lock import StoreLock
from tests import running

from .conftest import CommandLine

HOME = {"HOME": "/home/ana", "XDG_RUNTIME_DIR": "/run/user/1000"}
BOTH = {"BEETLE_SOCKET": "/e/b.sock", "BEETLE_STORE": "/e/b.db"}
USERS = "/run/user/1000/beetle/beetle.sock"
SYSTEMS = "/run/beetle/beetle.sock"
STORE = "/home/ana/.local/share/beetle/beetle.db"


@pytest.mark.parametrize(
    ("flags", "env", "expected"),
    [
        ({}, {}, Target((USERS, SYSTEMS), STORE, False)),
        ({"store": "/f/b.db"}, {}, Target((), "/f/b.db", False)),
        ({"store": "/f/b.db"}, BOTH, Target((), "/f/b.db", False)),
        ({"socket": "/f/b.sock"}, {}, Target(("/f/b.sock",), None, True)),
        ({"socket": "/f/b.sock"}, BOTH, Target(("/f/b.sock",), None, True)),
        ({"socket": "/f/b.sock", "store": "/f/b.db"}, {}, Target(("/f/b.sock",), "/f/b.db", True)),
        ({}, {"BEETLE_SOCKET": "/e/b.sock"}, Target(("/e/b.sock",), None, True)),
        ({}, {"BEETLE_STORE": "/e/b.db"}, Target((), "/e/b.db", False)),
        ({}, BOTH, Target(("/e/b.sock",), "/e/b.db", True)),
    ],
)  # fmt: skip
def test_socket_and_store_come_from_one_level(flags: dict[str, str], env: dict[str, str], expected: Target) -> None:
    assert find_target(flags.get("socket"), flags.get("store"), {**HOME, **env}, Config(), 1000) == expected


def test_the_configuration_names_one_socket_and_its_store() -> None:
    config = Config(daemon=Daemon(socket="/c/b.sock", store="/c/b.db"))
    assert find_target(None, None, HOME, config, 1000) == Target(("/c/b.sock",), "/c/b.db", False)


def test_root_looks_at_the_systems_places() -> None:
    expected = Target((SYSTEMS,), "/var/lib/beetle/beetle.db", False)
    assert find_target(None, None, HOME, Config(), 0) == expected


def test_a_relative_path_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_target(None, "b.db", HOME, Config(), 1000).store == str(tmp_path / "b.db")


def test_a_relative_socket_is_judged_by_its_whole_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 110)
    deep.mkdir()
    monkeypatch.chdir(deep)
    with pytest.raises(InvalidRequest, match="the system allows 107"):
        find_target("b.sock", None, HOME, Config(), 1000)


def test_a_socket_alone_with_nobody_there_opens_no_store(beetle: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEETLE_STORE", beetle.store)
    said = beetle.run("--socket", beetle.socket, "transcript", "commit", "--conversation", "c", "--text", "x")
    key, message, hint = said.error
    assert (said.code, key) == (7, "daemon_unavailable")
    assert message == f"no daemon answers at {beetle.socket} (No such file or directory)"
    assert hint == f"start one with `beetle --socket {beetle.socket} start`"
    assert not Path(beetle.store).exists()


def test_without_a_daemon_the_store_is_opened_here(beetle: CommandLine) -> None:
    assert beetle.here("transcript", "commit", "--conversation", "c", "--text", "a spare key").code == 0
    assert beetle.here("--json", "memory", "recall", "key").json["hits"][0]["excerpt"] == "a spare key"


def test_both_named_and_nobody_at_the_socket_opens_the_store(beetle: CommandLine) -> None:
    words = ("--socket", beetle.socket, "--store", beetle.store, "--profile", "standalone")
    assert beetle.run(*words, "transcript", "commit", "--conversation", "c", "--text", "x").code == 0


def test_a_store_that_another_process_holds_is_told_with_its_pid(beetle: CommandLine) -> None:
    beetle.here("transcript", "commit", "--conversation", "c", "--text", "x")
    lock = StoreLock.acquire(beetle.store)
    try:
        said = beetle.here("skill", "list")
        stopped = beetle.here("stop")
        status = beetle.here("status")
    finally:
        lock.release()
    assert (said.code, said.error[0]) == (8, StoreLocked.key)
    assert f"process {os.getpid()}" in said.error[1]
    assert (stopped.code, stopped.error[2]) == (8, "it is not a daemon; it ends by itself")
    assert status.code == 3
    assert f"process {os.getpid()} holds {beetle.store}, and it is not a daemon" in status.out


def test_a_daemon_of_the_lock_file_that_does_not_answer_is_told(beetle: CommandLine) -> None:
    beetle.here("transcript", "commit", "--conversation", "c", "--text", "x")
    lock = StoreLock.acquire(beetle.store)
    lock.announce(beetle.socket)
    try:
        said = beetle.here("skill", "list")
    finally:
        lock.release()
    assert (said.code, said.error[0]) == (7, "daemon_unavailable")
    assert f"process {os.getpid()} holds {beetle.store}" in said.error[1]


@pytest.fixture
def closed(beetle: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The socket of a daemon in the configuration, which this user may not use."""
    if os.getuid() != 0:
        pytest.skip("only root can be another user")
    config = Path(os.environ["BEETLE_CONFIG"])
    config.write_text(f'[daemon]\nsocket = "{beetle.socket}"\nstore = "{beetle.folder}/open/mine.db"\n')
    beetle.run("doctor")  # so that what it loads is loaded, which another user may not read
    beetle.folder.chmod(0o755)
    (beetle.folder / "open").mkdir()
    (beetle.folder / "open").chmod(0o777)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(beetle.socket)
        os.chmod(beetle.socket, 0o600)
        listener.listen()
        os.seteuid(65534)
        try:
            yield beetle.socket
        finally:
            os.seteuid(0)


def test_a_usual_socket_that_may_not_be_used_makes_no_second_store(beetle: CommandLine, closed: str) -> None:
    for words in (("transcript", "commit", "--conversation", "c", "--text", "x"), ("skill", "list"), ("status",)):
        said = beetle.run(*words)
        assert (said.code, said.error[:2]) == (5, ("forbidden", f"this user may not use the socket {closed}"))
        assert said.error[2]
    assert not list((beetle.folder / "open").iterdir())
    found = {each["check"]: each for each in beetle.run("--json", "doctor").json["findings"]}
    assert "daemon" not in found
    socket_found = found["socket"]
    assert (socket_found["level"], socket_found["key"], socket_found["exit_code"]) == ("problem", "forbidden", 5)
    assert "mode 0600" in socket_found["text"] and "[daemon] group" in socket_found["advice"]
    with pytest.raises(Forbidden):
        Client()


def test_doctor_says_which_group_the_user_of_a_closed_socket_is_not_in(beetle: CommandLine, closed: str) -> None:
    group = next(each for each in grp.getgrall() if each.gr_gid not in (*os.getgroups(), os.getegid()))
    user, shut = pwd.getpwuid(65534).pw_name, beetle.folder / "shut"
    os.seteuid(0)
    shut.mkdir()
    for path, mode in ((Path(closed), 0o660), (shut, 0o750)):
        os.chown(path, 0, group.gr_gid)
        path.chmod(mode)
    os.seteuid(65534)
    for path, barrier, mode in ((closed, closed, "0660"), (f"{shut}/b.sock", shut, "0750")):
        said = beetle.run("--json", "--socket", path, "--store", beetle.store, "doctor").json
        found = {each["check"]: each for each in said["findings"]}["socket"]
        assert (found["level"], found["key"]) == ("problem", "forbidden")
        assert found["text"].endswith(f"({barrier}: {pwd.getpwuid(0).pw_name}:{group.gr_name}, mode {mode})")
        assert f"usermod -aG {group.gr_name} {user}" in found["advice"]


def test_a_client_finds_the_daemon_as_a_command_does(beetle: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DaemonUnavailable):
        Client()
    with running.Daemon(profile="compact", folder=str(beetle.folder)) as daemon:
        for name, value in (("BEETLE_SOCKET", daemon.socket), ("BEETLE_STORE", daemon.store)):
            monkeypatch.setenv(name, value)
            with Client() as client:
                assert client.hello().pid == daemon.pid
                assert client.path == daemon.socket
            monkeypatch.delenv(name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may use every socket and see every lock")
def test_what_a_user_may_not_see_is_no_answer(beetle: CommandLine) -> None:
    beetle.here("transcript", "commit", "--conversation", "c", "--text", "x")
    Path(f"{beetle.store}.lock").chmod(0)
    for words in (("status",), ("stop",), ("skill", "list")):
        assert beetle.here(*words).error[0] == "forbidden"


def test_an_owner_sees_only_what_is_the_owners(beetle: CommandLine) -> None:
    beetle.here("transcript", "commit", "--conversation", "c", "--text", "x", "--owner", "ana")
    assert beetle.here("--json", "--owner", "ana", "transcript", "conversations").json["conversations"]
    assert not beetle.here("--json", "--owner", "bo", "transcript", "conversations").json["conversations"]
