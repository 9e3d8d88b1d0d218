"""The daemon: how it starts and refuses to, how it ends with nothing lost, and what it tells systemd."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import msgpack
import pytest

from beetle.client import Client, NoDaemon
from beetle.contracts.errors import BeetleError
from beetle.store.engine.lock import holder_of
from tests.running import ROOT, Daemon
from tests.transports.conftest import Peer, commit
from tests.transports.serving import PATIENCE_S, needs_root, until

STANDALONE = "profile-linux-device-standalone-memory"
TEAM = 50_001


@pytest.fixture
def daemon(folder: Path) -> Iterator[Daemon]:
    with Daemon(profile=STANDALONE, folder=str(folder)) as running:
        yield running


def log_of(daemon: Daemon) -> str:
    return (daemon.folder / "log").read_text()


def events_of(daemon: Daemon) -> list[str]:
    """The events of a daemon's log, once it has ended."""
    with contextlib.closing(apsw.Connection(daemon.store, flags=apsw.SQLITE_OPEN_READONLY)) as store:
        return [row[0] for row in store.execute("SELECT event FROM event_log ORDER BY seq")]


def terminate(daemon: Daemon) -> int:
    """Send SIGTERM and wait for the end; the exit code."""
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGTERM)
    return daemon.process.wait(PATIENCE_S)


IMPATIENT = "import beetle.daemon as d; d.EVERY_S = 0.05; from beetle.__main__ import main; main()"
"""A daemon that looks around twenty times a second, not every five seconds."""


def test_a_daemon_that_was_stopped_for_longer_than_it_waits_goes_on(folder: Path) -> None:
    """As a debugger or a shell's Ctrl-Z stops it: the wait for signals is then over without one."""
    command = f"{sys.executable} -c '{IMPATIENT}'"
    with Daemon(profile=STANDALONE, folder=str(folder), command=command) as daemon:
        for _ in range(3):
            os.kill(daemon.pid, signal.SIGSTOP)
            until(lambda: Path(f"/proc/{daemon.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T", "a stop")
            time.sleep(0.1)  # nothing but the clock ends its wait
            os.kill(daemon.pid, signal.SIGCONT)
            with daemon.client() as client:
                assert client.hello().pid == daemon.pid
        assert terminate(daemon) == 0


def second(daemon: Daemon, **other: str) -> subprocess.CompletedProcess[str]:
    """Run a second daemon with the first one's socket and store but for what is named; it must end by itself."""
    where = {"socket": daemon.socket, "store": daemon.store, "profile": daemon.profile, **other}
    options = [word for name, value in where.items() for word in (f"--{name}", value)]
    return subprocess.run(
        [*daemon.command, *options, "serve"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


# Starting


def test_a_daemon_makes_a_private_socket_and_says_so_in_the_lock(daemon: Daemon) -> None:
    assert os.stat(daemon.socket).st_mode & 0o777 == 0o600
    assert holder_of(daemon.store) == (daemon.pid, daemon.socket)


def test_a_daemon_makes_a_private_store(daemon: Daemon) -> None:
    for name in (daemon.store, daemon.store + "-wal", daemon.store + ".lock"):
        assert os.stat(name).st_mode & 0o777 == 0o600


@needs_root
def test_a_configured_group_may_use_the_socket(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import grp

    name = next(each.gr_name for each in grp.getgrall() if each.gr_gid != 0)
    (folder / "beetle.toml").write_text(f'[daemon]\ngroup = "{name}"\n')
    monkeypatch.setenv("BEETLE_CONFIG", str(folder / "beetle.toml"))
    with Daemon(profile=STANDALONE, folder=str(folder)) as daemon:
        found = os.stat(daemon.socket)
        assert (found.st_mode & 0o777, found.st_gid) == (0o660, grp.getgrnam(name).gr_gid)


@pytest.mark.parametrize("setting", ['group = "no-such-group"', 'log = "/no/such/folder/log"', 'log = "/"'])
def test_a_setting_that_cannot_be_met_ends_the_start_with_a_typed_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    (folder / "beetle.toml").write_text(f"[daemon]\n{setting}\n")
    monkeypatch.setenv("BEETLE_CONFIG", str(folder / "beetle.toml"))
    ended = second(Daemon(profile=STANDALONE, folder=str(folder)))
    assert ended.returncode == 2
    assert "invalid_request" in ended.stderr and "Traceback" not in ended.stderr
    assert not (folder / "b.sock").exists()
    assert holder_of(str(folder / "b.db")) is None


def test_a_second_daemon_on_the_same_store_is_told_who_holds_it(daemon: Daemon) -> None:
    ended = second(daemon, socket=str(daemon.folder / "other.sock"))
    assert ended.returncode == 8
    assert "store_locked" in ended.stderr and "Traceback" not in ended.stderr
    assert str(daemon.pid) in ended.stderr and daemon.socket in ended.stderr
    assert not (daemon.folder / "other.sock").exists()
    with daemon.client() as client:
        assert client.hello().pid == daemon.pid


def test_a_second_daemon_on_the_same_socket_leaves_it_alone_and_its_own_store_unlocked(daemon: Daemon) -> None:
    other = str(daemon.folder / "other.db")
    inode = os.stat(daemon.socket).st_ino
    ended = second(daemon, store=other)
    assert ended.returncode == 8
    assert "store_locked" in ended.stderr and daemon.socket in ended.stderr
    assert os.stat(daemon.socket).st_ino == inode
    assert holder_of(other) is None
    with daemon.client() as client:
        assert client.hello().pid == daemon.pid


def test_a_daemon_does_not_start_over_a_file_that_is_no_socket(folder: Path) -> None:
    (folder / "b.sock").write_text("mine")
    ended = second(Daemon(profile=STANDALONE, folder=str(folder)))
    assert ended.returncode == 8
    assert "store_read_only" in ended.stderr
    assert (folder / "b.sock").read_text() == "mine"
    assert holder_of(str(folder / "b.db")) is None


def test_a_daemon_that_was_killed_leaves_a_socket_that_the_next_one_replaces(folder: Path) -> None:
    daemon = Daemon(profile=STANDALONE, folder=str(folder))
    daemon.start()
    daemon.kill()
    assert os.path.exists(daemon.socket)
    with pytest.raises(NoDaemon):
        daemon.client()
    with daemon, daemon.client() as client:
        assert client.hello().pid == daemon.pid


# Ending


def test_sigterm_with_idle_connections_and_subscriptions_ends_and_leaves_nothing(daemon: Daemon) -> None:
    peers = [Peer(daemon.socket) for _ in range(20)]
    for peer in peers[5:]:
        assert peer.ask("hello")["ok"]
    for peer in peers[10:]:
        assert peer.ask("subscribe", {"topics": ["lifecycle", "transcript"]})["ok"]
    assert terminate(daemon) == 0
    for peer in peers:
        assert peer.closed()
        peer.close()
    assert not os.path.exists(daemon.socket)
    assert holder_of(daemon.store) is None
    assert "Traceback" not in log_of(daemon)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_writers_run_loses_no_acknowledged_write(daemon: Daemon, number: signal.Signals) -> None:
    writers, enough = 6, threading.Event()
    acknowledged: list[tuple[str, int]] = []
    unheard: list[tuple[str, int]] = []

    def write(name: str) -> None:
        ticket = 0
        try:
            with Client(daemon.socket, retry=False) as client:
                while True:
                    client.commit_transcript(**commit(ticket, name))
                    acknowledged.append((name, ticket))
                    ticket += 1
                    if len(acknowledged) >= 60:
                        enough.set()
        except ConnectionError:
            unheard.append((name, ticket))

    threads = [threading.Thread(target=write, args=(f"w{n}",)) for n in range(writers)]
    for each in threads:
        each.start()
    assert enough.wait(PATIENCE_S)
    assert daemon.process is not None
    daemon.process.send_signal(number)
    assert daemon.process.wait(PATIENCE_S) == 0
    for each in threads:
        each.join()
    assert len(unheard) == writers, "each writer ended because the daemon did"
    assert not os.path.exists(daemon.socket)
    assert holder_of(daemon.store) is None
    daemon.start()
    with daemon.client() as client:
        assert client.verify_store().clean
        for name in {name for name, _ in acknowledged}:
            told = [ticket for each, ticket in acknowledged if each == name]
            stored = _tickets(client, name)
            assert stored == list(range(len(stored)))
            assert len(stored) == len(told), "what was begun was answered: nothing was written unheard"


def _tickets(client: Client, name: str) -> list[int]:
    found: list[int] = []
    cursor = None
    while True:
        page = client.replay_transcript(
            conversation={"conversation_id": name}, view="host_ui", limit=100, cursor=cursor
        )
        found += [int(turn.turn_id[1:]) for turn in page.turns]
        if not page.has_more:
            return found
        cursor = page.next_cursor


def test_requests_that_were_sent_before_sigterm_are_answered(daemon: Daemon) -> None:
    count = 100
    with Peer(daemon.socket) as peer:
        assert peer.ask("hello")["ok"]
        frames = [{"v": 1, "id": n, "op": "transcript.commit", "args": commit(n)} for n in range(count)]
        peer.send(b"".join(msgpack.packb(frame) for frame in frames))
        assert peer.answer()["id"] == 0
        assert terminate(daemon) == 0
        answers = [peer.answer() for _ in range(count - 1)]
        assert [(each["id"], each["ok"]) for each in answers] == [(n, True) for n in range(1, count)]
        assert peer.closed()


def test_a_daemon_ends_with_clients_that_vanished_or_stopped_in_the_middle_of_a_frame(daemon: Daemon) -> None:
    frame = msgpack.packb({"v": 1, "id": 1, "op": "transcript.commit", "args": commit(1)})
    for cut in (1, 10, len(frame) - 1):
        with Peer(daemon.socket) as gone:
            gone.send(frame[:cut])
    with Peer(daemon.socket) as stuck, daemon.client() as client:
        stuck.send(frame[:-1])
        assert client.list_conversations().conversations == ()
        assert terminate(daemon) == 0
        assert stuck.closed()


def test_a_restart_is_in_the_event_log_and_leaves_a_clean_store(folder: Path) -> None:
    for _ in range(2):
        with Daemon(profile=STANDALONE, folder=str(folder)) as daemon, daemon.client() as client:
            assert client.verify_store().clean
    assert events_of(daemon) == ["daemon_started", "daemon_stopped"] * 2


def test_the_last_row_of_a_daemon_says_that_it_stopped(folder: Path) -> None:
    with Daemon(profile="compact", folder=str(folder)) as daemon, daemon.client() as client:
        for _ in range(3):
            with pytest.raises(BeetleError):
                client.call("harness.run", {"folder": "/nowhere"})
    told = events_of(daemon)
    # The second and the third are one row, with the first or behind it.
    assert told[0] == "daemon_started" and set(told[1:-1]) == {"refused"} and told[-1] == "daemon_stopped"


def test_descriptors_and_threads_of_a_daemon_return_to_the_start(daemon: Daemon) -> None:
    def held() -> tuple[int, int]:
        return len(os.listdir(f"/proc/{daemon.pid}/fd")), len(os.listdir(f"/proc/{daemon.pid}/task"))

    with daemon.client() as client:
        client.recall(query="warm")
        before = held()
        for number in range(200):
            peer = Peer(daemon.socket)
            if number % 3 == 0:
                assert peer.ask("subscribe", {"topics": ["transcript"]})["ok"]
            elif number % 3 == 1:
                peer.send(msgpack.packb({"v": 1, "id": 1, "op": "transcript.commit", "args": commit(number)})[:-3])
            peer.close()
        until(lambda: held() == before, f"{before}")


def test_a_daemon_that_ran_out_of_descriptors_serves_again_when_there_are_some(daemon: Daemon) -> None:
    _, hard = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    with daemon.client() as client:
        client.recall(query="warm")
        held = len(os.listdir(f"/proc/{daemon.pid}/fd"))
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (held + 3, hard))
        peers = [Peer(daemon.socket) for _ in range(8)]
        until(lambda: "accept failed" in log_of(daemon), "an accept that failed")
        assert client.hello().pid == daemon.pid, "who is connected is served"
        for peer in peers[:5]:
            peer.close()
        for peer in peers[5:]:
            assert peer.ask("hello")["ok"]
            peer.close()
        assert log_of(daemon).count("accept failed") < 20, "one line for a spell of failures"
        assert terminate(daemon) == 0


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("memory.recall", {"q": 1}),
    ("transcript.commit", {"turns": 1}),
    ("nothing", {}),
]


def test_without_a_descriptor_who_is_connected_may_ask_again(daemon: Daemon) -> None:
    """What took one more was answered with an internal error, or as if the store could not be written."""
    soft, hard = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    with daemon.client() as client:
        client.commit_transcript(**commit(1))
        client.recall(query="kettle")
    with contextlib.ExitStack() as open_peers, ThreadPoolExecutor(8) as pool:
        peers = [open_peers.enter_context(Peer(daemon.socket)) for _ in range(8)]
        assert all(peer.ask("hello")["ok"] for peer in peers)
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (3, hard))

        def recall(peer: Peer) -> list[dict[str, Any]]:
            return [peer.ask("memory.recall", {"query": "kettle"}) for _ in range(10)]

        assert all(answer["ok"] for answers in pool.map(recall, peers) for answer in answers)
        more: list[tuple[str, dict[str, Any]]] = [
            ("store.verify", {}),
            ("snapshot.list", {}),
            ("transfer.begin", {"total_bytes": 100_000}),
        ]
        for op, args in (*more, *WRONG):
            error = peers[0].ask(op, args)["error"]
            assert (error["key"], error["retryable"]) == ("overloaded", True), op
            assert "no file descriptor is left" in error["message"] and "RLIMIT_NOFILE" in error["hint"], op
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (soft, hard))
        assert all(peers[0].ask(op, args)["ok"] for op, args in more)
        told = [peers[0].ask(op, args)["error"]["key"] for op, args in WRONG]
        assert told == ["invalid_request", "invalid_request", "unknown_operation"]
    assert terminate(daemon) == 0
    assert "internal" not in log_of(daemon)


def test_a_daemon_that_has_no_descriptor_left_still_ends_cleanly(daemon: Daemon) -> None:
    """To tell systemd that it stops it wanted a socket, and without one it ended with an error."""
    with daemon.client() as client:
        client.commit_transcript(**commit(1))
        _, hard = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (3, hard))
        assert terminate(daemon) == 0
    assert "Traceback" not in log_of(daemon)
    assert holder_of(daemon.store) is None


# systemd


class Supervisor:
    """systemd's end: $NOTIFY_SOCKET and what arrives at it."""

    def __init__(self, folder: Path) -> None:
        self.address = str(folder / "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(PATIENCE_S)
        self._socket.bind(self.address)

    def next(self) -> str:
        return self._socket.recv(4096).decode()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def supervisor(folder: Path) -> Iterator[Supervisor]:
    made = Supervisor(folder)
    yield made
    made.close()


def launch(folder: Path, **env: str) -> subprocess.Popen[bytes]:
    described = Daemon(profile=STANDALONE, folder=str(folder))
    options = ["--socket", described.socket, "--store", described.store, "--profile", STANDALONE]
    return subprocess.Popen(
        [*described.command, *options, "serve"], cwd=ROOT, env={**os.environ, **env}, stderr=subprocess.DEVNULL
    )


def test_systemd_is_told_when_the_daemon_is_ready_and_when_it_stops(folder: Path, supervisor: Supervisor) -> None:
    process = launch(folder, NOTIFY_SOCKET=supervisor.address)
    assert supervisor.next() == "READY=1"
    with Client(str(folder / "b.sock")) as client:
        assert client.hello().pid == process.pid
    process.send_signal(signal.SIGHUP)
    process.terminate()
    assert supervisor.next() == "STOPPING=1"
    assert process.wait(PATIENCE_S) == 0


def test_systemd_is_pinged_while_the_daemon_lives(folder: Path, supervisor: Supervisor) -> None:
    process = launch(folder, NOTIFY_SOCKET=supervisor.address, WATCHDOG_USEC="20000")
    assert [supervisor.next() for _ in range(4)] == ["READY=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"]
    process.terminate()
    told = supervisor.next()
    while told == "WATCHDOG=1":
        told = supervisor.next()
    assert told == "STOPPING=1"
    assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize(
    "env", [{"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}]
)
def test_a_watchdog_that_is_not_meant_for_the_daemon_is_left_alone(
    folder: Path, supervisor: Supervisor, env: dict[str, str]
) -> None:
    process = launch(folder, NOTIFY_SOCKET=supervisor.address, **env)
    assert supervisor.next() == "READY=1"
    with Client(str(folder / "b.sock")) as client:
        client.hello()
    process.terminate()
    assert supervisor.next() == "STOPPING=1"
    assert process.wait(PATIENCE_S) == 0


def test_an_abstract_notify_socket_is_told_too(folder: Path) -> None:
    name = f"beetle-test-{os.getpid()}-{folder.name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.settimeout(PATIENCE_S)
        listener.bind("\0" + name)
        process = launch(folder, NOTIFY_SOCKET="@" + name)
        assert listener.recv(100) == b"READY=1"
        process.terminate()
        assert listener.recv(100) == b"STOPPING=1"
        assert process.wait(PATIENCE_S) == 0


def test_a_supervisor_that_is_gone_or_does_not_read_holds_nothing_up(folder: Path, supervisor: Supervisor) -> None:
    process = launch(folder, NOTIFY_SOCKET=supervisor.address)
    assert supervisor.next() == "READY=1"
    supervisor.close()
    process.terminate()
    assert process.wait(PATIENCE_S) == 0


def test_the_lock_file_is_empty_when_nobody_holds_the_store(daemon: Daemon) -> None:
    lock = Path(daemon.store + ".lock")
    told: dict[str, Any] = json.loads(lock.read_text())
    assert told == {"pid": daemon.pid, "socket": daemon.socket}
    assert terminate(daemon) == 0
    assert lock.read_text() == ""
