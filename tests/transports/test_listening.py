"""The socket's file and folder: WIRE.md §1."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from beetle.contracts.errors import BeetleError, StoreLocked, StoreReadOnly
from beetle.transports import unix_socket
from beetle.transports.listening import BACKLOG, listen
from tests.transports.serving import Served, connect_as, needs_root, until

TEAM = 50_001
STRANGER = 54_321


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def serve_at(path: str | Path, group: int | None = None) -> socket.socket:
    return listen(str(path), group).socket


def refusal(path: str | Path) -> BeetleError:
    with pytest.raises((StoreLocked, StoreReadOnly)) as caught:
        serve_at(path)
    assert caught.value.hint
    return caught.value


def test_folders_that_are_made_are_0700_and_the_socket_0600_whatever_the_mask(folder: Path) -> None:
    for mask in (0o000, 0o022, 0o077):
        path = folder / f"{mask:o}" / "run" / "beetle" / "b.sock"
        before = os.umask(mask)
        try:
            listener = serve_at(path)
        finally:
            assert os.umask(before) == mask, "the mask is as it was"
        with listener:
            assert mode(path) == 0o600
            for made in (path.parent, path.parent.parent, path.parent.parent.parent):
                assert mode(made) == 0o700


@needs_root
def test_with_a_group_the_folder_is_0750_and_the_socket_0660_and_both_are_the_groups(folder: Path) -> None:
    path = folder / "run" / "b.sock"
    with serve_at(path, TEAM):
        assert (mode(path.parent), mode(path)) == (0o750, 0o660)
        assert (path.parent.stat().st_gid, path.stat().st_gid) == (TEAM, TEAM)
        connect_as(str(path), STRANGER, TEAM).close()
        connect_as(str(path), STRANGER, STRANGER, (TEAM,)).close()
        with pytest.raises(PermissionError):
            connect_as(str(path), STRANGER, STRANGER)


@needs_root
def test_without_a_group_another_user_cannot_even_connect(folder: Path) -> None:
    with serve_at(folder / "b.sock"), pytest.raises(PermissionError):
        connect_as(str(folder / "b.sock"), STRANGER, STRANGER)


@pytest.mark.parametrize("group", [None, os.getgid()])
def test_a_folder_that_was_there_is_left_as_it_is(folder: Path, group: int | None) -> None:
    there = folder / "there"
    there.mkdir()
    for wanted in (0o755, 0o711, 0o500 if os.getuid() == 0 else 0o700, 0o1777):
        there.chmod(wanted)
        with serve_at(there / f"{wanted:o}.sock", group):
            assert mode(there) == wanted


def test_a_stale_socket_is_replaced(folder: Path) -> None:
    path = folder / "b.sock"
    serve_at(path).close()
    stale = path.stat().st_ino
    with socket.socket(socket.AF_UNIX) as keeper:
        keeper.bind(str(folder / "keep"))  # so that the file system gives another inode
        with serve_at(path):
            assert path.stat().st_ino != stale or mode(path) == 0o600
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(str(path))


def test_what_is_no_socket_is_left_alone(folder: Path) -> None:
    file, empty, link = folder / "file", folder / "folder", folder / "link"
    file.write_text("mine")
    empty.mkdir()
    link.symlink_to(file)
    for path in (file, empty, link):
        assert refusal(path).key == "store_read_only"
    assert file.read_text() == "mine"
    assert empty.is_dir() and link.is_symlink()


def test_a_live_socket_is_left_alone_also_when_its_backlog_is_full(folder: Path) -> None:
    path = folder / "b.sock"
    with socket.socket(socket.AF_UNIX) as busy, socket.socket(socket.AF_UNIX) as waiting:
        busy.bind(str(path))
        busy.listen(0)
        was = path.stat().st_ino
        error = refusal(path)
        assert (error.key, error.details["socket"]) == ("store_locked", str(path))
        waiting.setblocking(False)
        with pytest.raises(BlockingIOError):  # the probe still stands in the backlog's one place
            waiting.connect(str(path))
        assert refusal(path).key == "store_locked"
        assert path.stat().st_ino == was


def test_a_live_datagram_socket_is_left_alone(folder: Path) -> None:
    path = folder / "b.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(str(path))
        assert refusal(path).key == "store_locked"
        assert path.is_socket()


@pytest.mark.parametrize("place", ["file/b.sock", "n" * 200, "loop/b.sock"])
def test_a_path_that_no_socket_can_have_is_a_typed_error(folder: Path, place: str) -> None:
    (folder / "file").write_text("")
    (folder / "loop").symlink_to(folder / "loop")
    assert refusal(folder / place).key == "store_read_only"


def test_of_many_that_start_at_once_on_a_stale_socket_one_wins(folder: Path) -> None:
    path = folder / "b.sock"
    serve_at(path).close()
    start = threading.Barrier(8)
    won: list[socket.socket] = []
    lost: list[str] = []

    def run() -> None:
        start.wait()
        try:
            won.append(serve_at(path))
        except BeetleError as error:
            lost.append(error.key)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (len(won), lost) == (1, ["store_locked"] * 7)
    with won[0], socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(path))
        won[0].accept()[0].close()


def test_a_server_that_stops_does_not_remove_another_ones_socket(folder: Path) -> None:
    with Served(folder) as first:
        os.rename(first.path, folder / "moved")
        with serve_at(first.path) as other:
            first.stop()
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(first.path)
            other.close()


def test_a_socket_whose_file_is_taken_away_is_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unix_socket, "LOOK_MS", 10)
    with Served(folder) as running, running.peer() as before:
        made = os.lstat(running.path).st_ino
        os.unlink(running.path)
        until(lambda: os.path.lexists(running.path) and os.lstat(running.path).st_ino != made, "another socket")
        with running.peer() as after:
            assert after.ask("memory.inspect")["ok"]
        assert before.ask("memory.inspect")["ok"], "who was connected stays"
    assert not os.path.lexists(running.path)


def test_a_socket_that_another_has_made_in_its_place_is_left_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(unix_socket, "LOOK_MS", 10)
    with Served(folder) as running, running.peer() as before:
        os.unlink(running.path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
            other.bind(running.path)
            other.listen()
            until(lambda: "cannot be made again" in caplog.text, "the warning")
            assert before.ask("memory.inspect")["ok"]
            running.stop()
            assert os.path.lexists(running.path)


def test_the_backlog_takes_a_burst() -> None:
    assert BACKLOG >= 1024
