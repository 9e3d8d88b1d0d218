"""Replicas at real servers, a network that is cut, a target that is full, and writes without a pause.

Each needs a server's program, or the right to mount, and some need half a minute:

    pytest -m slow tests/runtime/test_replica_targets.py

Debian has sshd (openssh-server), nats-server and gocryptfs; `pip install 'moto[server]'` has moto_server.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from beetle.replication.program import find_program
from tests.building import talk, turn
from tests.replicas import Kept, Status

from .replica_servers import BUCKET, Wire, nats_server, program, s3_server, sftp_server

pytestmark = pytest.mark.slow


@contextmanager
def target(kind: str, folder: Path, *, through: list[Wire] | None = None) -> Generator[str]:
    """`[replica]` for a server of that kind, which runs; with a list, through a wire that is put into it."""
    server = {"sftp": sftp_server, "s3": s3_server, "nats": nats_server}[kind]
    place = folder / "server"
    place.mkdir(mode=0o700)
    with server(place) as (port, more):
        if through is not None:
            through.append(Wire(port))
            port = through[0].port
        urls = {
            "sftp": f'url = "sftp://{os.environ.get("USER", "root")}@127.0.0.1:{port}{place}/kept"',
            "s3": f'url = "s3://{BUCKET}/device"\nendpoint = "http://127.0.0.1:{port}"',
            "nats": f'url = "nats://127.0.0.1:{port}/{BUCKET}"',
        }
        yield f"{urls[kind]}\n{more}"


def say(daemon: Kept, turn_id: str, count: int = 1) -> None:
    with daemon.client() as client:
        turns = [turn(f"{turn_id}-{number}", f"{turn_id} {number} " * 20) for number in range(count)]
        client.call("transcript.commit", talk(*turns, conversation={"channel_id": "local", "conversation_id": turn_id}))


@pytest.mark.parametrize("kind", ["sftp", "s3", "nats"])
def test_a_server_gets_every_commit_and_gives_the_store_back(kind: str, tmp_path: Path) -> None:
    with target(kind, tmp_path) as text, Kept(text, folder=str(tmp_path)) as daemon:
        say(daemon, "one", 20)
        found = daemon.synced()
        assert found.target_kind == kind
        daemon.assert_restored(tmp_path / "first.db")
        assert found.pid is not None
        os.kill(found.pid, signal.SIGKILL)
        say(daemon, "two", 20)
        daemon.until(lambda found: found.restarts == 1)
        daemon.synced()
        daemon.assert_restored(tmp_path / "second.db")


@pytest.mark.parametrize("kind", ["sftp", "s3", "nats"])
def test_a_network_that_is_cut_and_mended_loses_nothing(kind: str, tmp_path: Path) -> None:
    wires: list[Wire] = []
    with target(kind, tmp_path, through=wires) as text, Kept(text, folder=str(tmp_path)) as daemon:
        say(daemon, "before")
        daemon.synced()
        wires[0].cut()
        say(daemon, "during", 20)
        found = daemon.until(lambda found: found.state in ("behind", "stalled", "waiting"))
        assert found.problem is not None and (found.lag_s or 0) > 0
        began = time.monotonic()
        say(daemon, "still")
        assert time.monotonic() - began < 5, "a write does not wait for a network"
        wires[0].mend()
        daemon.patience_s = 150
        daemon.synced()
        daemon.assert_restored(tmp_path / "again.db")
        wires[0].close()


def test_an_sftp_server_with_another_key_gets_nothing(tmp_path: Path) -> None:
    with target("sftp", tmp_path) as text:
        lines = [each for each in text.splitlines() if not each.startswith("host_key")]
        other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGR1bW15a2V5ZHVtbXlrZXlkdW1teWtleWR1bW15a2V5"
        with Kept("\n".join([*lines, f'host_key = "{other}"']), folder=str(tmp_path)) as daemon:
            say(daemon, "one")
            found = daemon.until(lambda found: found.problem == "target")
            assert found.state == "waiting" and found.replicated_txid is None
        assert not (tmp_path / "server" / "kept").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A filesystem of 3 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_target_is_told_of_and_goes_on_once_it_has_room(tmp_path: Path, small_disk: Path) -> None:
    with Kept(f'url = "file://{small_disk}/kept"', folder=str(tmp_path)) as daemon:
        daemon.synced()
        ballast = small_disk / "ballast"
        with ballast.open("wb") as file, pytest.raises(OSError):
            while True:
                file.write(os.urandom(65_536))
                file.flush()
        say(daemon, "full", 50)
        found = daemon.until(lambda found: found.state == "behind")
        assert found.problem == "target"
        say(daemon, "more", 50)
        ballast.unlink()
        daemon.synced()
        daemon.assert_restored(tmp_path / "again.db")


def found_in(folder: Path, needles: tuple[bytes, ...]) -> set[bytes]:
    """Which of these any file below the folder holds in its content or its name."""
    found: set[bytes] = set()
    for each in folder.rglob("*"):
        held = each.name.encode() + (each.read_bytes() if each.is_file() else b"")
        found |= {needle for needle in needles if needle in held}
    return found


@pytest.fixture
def encrypted(tmp_path: Path) -> Generator[tuple[Path, Path]]:
    """A folder whose files an encrypting filesystem keeps in another one; and that other one."""
    command = program("gocryptfs", "gocryptfs")
    plain, kept, phrase = tmp_path / "plain", tmp_path / "encrypted", tmp_path / "phrase"
    plain.mkdir()
    kept.mkdir()
    phrase.write_text("a phrase of the test's own\n")
    # What scrypt costs is what a guess at the phrase costs, and nobody guesses here.
    begun = [command, "-quiet", "-passfile", str(phrase)]
    # Into a file: what serves the mount keeps it open.
    with (tmp_path / "gocryptfs.log").open("w+", encoding="utf-8") as said:
        for words in ([*begun, "-init", "-scryptn", "10", str(kept)], [*begun, "-nosyslog", str(kept), str(plain)]):
            if subprocess.run(words, stdout=said, stderr=said, check=False).returncode:
                said.seek(0)
                pytest.skip(f"gocryptfs cannot be used here: {said.read().strip()}")
    yield plain, kept
    subprocess.run(["umount", "-l", str(plain)], check=True)


def test_a_folder_of_an_encrypting_filesystem_holds_nothing_that_can_be_read(
    tmp_path: Path, encrypted: tuple[Path, Path]
) -> None:
    plain, kept = encrypted
    word = "wrzqxyvkbnm"
    with Kept(f'url = "file://{plain}/kept"', folder=str(tmp_path)) as daemon:
        say(daemon, word, 20)
        daemon.synced()
        needles = (b"LTX1", word.encode())
        assert found_in(plain, needles) == set(needles), "what is looked for is what a reader would see"
        assert found_in(kept, needles) == set()
        found = daemon.synced()
        assert found.pid is not None
        os.kill(found.pid, signal.SIGKILL)
        say(daemon, "two", 20)
        daemon.until(lambda found: found.restarts == 1)
        daemon.assert_restored(tmp_path / "again.db")
        with daemon.client() as client:
            client.call("replication.forget", {})
        daemon.assert_restored(tmp_path / "after.db")


def test_a_dead_target_fills_its_share_of_this_disk_and_no_more(tmp_path: Path) -> None:
    text = f'url = "file://{tmp_path}/target"\nlocal_bytes = {16 * 2**20}'
    with Kept(text, folder=str(tmp_path)) as daemon:
        daemon.patience_s = 150
        daemon.synced()
        daemon.target.rename(tmp_path / "away")
        daemon.target.write_text("no folder")
        ended = threading.Event()

        def write() -> None:
            number = 0
            while not ended.is_set():
                number += 1
                noise = [turn(f"t{n}", os.urandom(60_000).hex()) for n in range(4)]
                with daemon.client() as client:
                    where = {"channel_id": "local", "conversation_id": f"noise{number}"}
                    client.call("transcript.commit", talk(*noise, conversation=where))

        writer = threading.Thread(target=write)
        writer.start()
        try:
            found = daemon.until(lambda found: found.state == "suspended")
        finally:
            ended.set()
            writer.join()
        assert found.problem == "staging_full" and found.pid is None
        staging = Path(daemon.store).parent / ".b.db-litestream"
        assert not staging.exists()
        say(daemon, "after")
        assert os.path.getsize(daemon.store + "-wal") < 128 * 2**20


def test_writes_without_a_pause_leave_the_log_bounded_and_nothing_behind(tmp_path: Path) -> None:
    with Kept(f'url = "file://{tmp_path}/target"', folder=str(tmp_path)) as daemon:
        daemon.synced()
        largest, end = 0, time.monotonic() + 20
        ended = threading.Event()

        def write(name: str) -> None:
            number = 0
            while not ended.is_set():
                number += 1
                say(daemon, f"{name}{number}", 100)

        writers = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
        for each in writers:
            each.start()
        while time.monotonic() < end:
            largest = max(largest, os.path.getsize(daemon.store + "-wal"))
            time.sleep(0.05)
        ended.set()
        for each in writers:
            each.join()
        assert largest < 5 * 16 * 2**20, "four times the profile's wal_bytes, and a commit"
        daemon.patience_s = 150
        daemon.synced()
        daemon.assert_restored(tmp_path / "again.db")


def test_a_frozen_sidecar_does_not_make_the_log_grow_without_bound(tmp_path: Path) -> None:
    with Kept(f'url = "file://{tmp_path}/target"', folder=str(tmp_path)) as daemon:
        found: Status = daemon.synced()
        assert found.pid is not None
        os.kill(found.pid, signal.SIGSTOP)
        largest = 0
        for number in range(150):
            say(daemon, f"frozen{number}", 100)
            largest = max(largest, os.path.getsize(daemon.store + "-wal"))
        assert largest < 5 * 16 * 2**20
        daemon.until(lambda found: found.restarts >= 1)
        daemon.patience_s = 150
        daemon.synced()
        daemon.assert_restored(tmp_path / "again.db")


def test_a_sidecar_whose_start_takes_longer_than_the_first_is_given_reaches_its_target_all_the_same(
    tmp_path: Path,
) -> None:
    slow = tmp_path / "slow"
    slow.write_text(f'#!/bin/sh\n[ "$1" != replicate ] || sleep 7\nexec {find_program(None).path} "$@"\n')
    slow.chmod(0o700)
    text = f'url = "file://{tmp_path}/target"\ncommand = "{slow}"'
    with Kept(text, folder=str(tmp_path)) as daemon:
        say(daemon, "one", 20)
        found = daemon.synced()
        assert (found.restarts or 0) >= 1, "the first one was given too little"
        daemon.assert_restored(tmp_path / "again.db")
