"""A socket server inside the test's own process, and peers of other users."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgpack
import pytest

from beetle import __version__
from beetle.contracts.codec import replace
from beetle.open import store_settings
from beetle.runtime.areas.erasure import slices
from beetle.runtime.areas.scheduled import JOBS
from beetle.runtime.areas.table import HANDLERS
from beetle.runtime.host.config import Principal
from beetle.runtime.host.dependencies import Dependencies, clock
from beetle.runtime.host.domain_functions import DOMAIN_FUNCTIONS
from beetle.runtime.host.identity import open_identity
from beetle.runtime.host.principals import Principals
from beetle.runtime.host.profile import load_profile
from beetle.runtime.pipeline.dispatcher import Dispatcher
from beetle.store.engine import progress
from beetle.store.engine.store import Store
from beetle.transports.unix_socket import SocketServer
from tests.transports.conftest import Peer

PATIENCE_S = 30.0
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can connect as another user")

CONNECT_AS = """
import os, socket, sys
uid, gid, path, channel = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
os.setgroups([int(each) for each in sys.argv[5:]])
os.setgid(gid)
os.setuid(uid)
peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
try:
    peer.connect(path)
except OSError as error:
    sys.exit(error.errno)
socket.send_fds(socket.socket(fileno=channel), [b"x"], [peer.fileno()])
"""


class Served:
    """A store, its dispatcher and a socket server, with budgets of one's own (the compact profile's otherwise)."""

    def __init__(
        self,
        folder: Path,
        *,
        principals: Mapping[str, Principal] | None = None,
        own_uid: int | None = None,
        group: int | None = None,
        **budgets: int,
    ) -> None:
        profile = load_profile("compact")
        profile = replace(profile, budgets=replace(profile.budgets, **budgets))
        self.path = str(folder / "b.sock")
        self.store = Store(
            store_settings(str(folder / "b.db"), profile, "sqlite"),
            clock=clock,
            domain=DOMAIN_FUNCTIONS,
            version=__version__,
        )
        identity = open_identity(self.store, None)
        self.dispatcher = Dispatcher(self.store, profile, identity, Dependencies(), HANDLERS, JOBS, version=__version__)
        self.principals = Principals(os.getuid() if own_uid is None else own_uid, principals or {})
        self.server = SocketServer(self.dispatcher, self.principals, self.path, group)
        self._stopped = False
        self.server.start()

    def peer(self) -> Peer:
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            peer.connect(self.path)
        except BaseException:
            peer.close()
            raise
        return _peer_of(peer)

    def refusals(self) -> list[tuple[str, str, str]]:
        """(principal, operation, subject) of the refusals that were logged."""
        assert self.dispatcher.refusals.flush(PATIENCE_S)
        with self.store.read() as tx:
            return list(tx.rows("SELECT principal, operation, subject FROM event_log WHERE event = 'refused'"))

    @contextlib.contextmanager
    def held_writer(self) -> Iterator[None]:
        """The writer is busy with one write until the block ends."""
        begun, go = threading.Event(), threading.Event()

        def hold(_tx: Any) -> None:
            begun.set()
            go.wait(PATIENCE_S)

        holder = threading.Thread(target=self.store.write, args=(hold,), kwargs={"grows": False})
        holder.start()
        try:
            assert begun.wait(PATIENCE_S)
            yield
        finally:
            go.set()
            holder.join()

    def stop(self) -> None:
        """Stop the server alone; a second call does nothing."""
        if not self._stopped:
            self._stopped = True
            self.server.stop()

    def close(self) -> None:
        self.stop()
        self.store.close()

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter; its short name keeps a socket's path short too."""
    folder = tempfile.mkdtemp(prefix="beetle-")
    try:
        os.chmod(folder, 0o755)
        yield Path(folder)
    finally:
        shutil.rmtree(folder)


def connect_as(path: str, uid: int, gid: int, groups: tuple[int, ...] = ()) -> socket.socket:
    """A connection that was made by another user. The kernel notes who connects, not who uses the descriptor later.

    Raises:
        OSError: that user could not connect.
    """
    mine, theirs = socket.socketpair()
    with mine, theirs:
        child = subprocess.run(
            [sys.executable, "-ISc", CONNECT_AS, *map(str, (uid, gid, path, theirs.fileno(), *groups))],
            pass_fds=[theirs.fileno()],
            check=False,
        )
        if child.returncode:
            raise OSError(child.returncode, os.strerror(child.returncode))
        _, descriptors, _, _ = socket.recv_fds(mine, 1, 1)
    return socket.socket(fileno=descriptors[0])


@contextlib.contextmanager
def writer_held(store: Store) -> Generator[threading.Event]:
    """The store's writer is busy until the event is set, or the block ends."""
    begun, free = threading.Event(), threading.Event()

    def hold(_: Any) -> None:
        begun.set()
        free.wait()

    holding = threading.Thread(target=store.write, args=(hold,))
    holding.start()
    begun.wait()
    try:
        yield free
    finally:
        free.set()
        holding.join()


class HeldErasure:
    """An erasure in small slices, which stands still in its second one until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.free = threading.Event(), threading.Event()
        self._slices = 0
        self._slice = slices._slice
        monkeypatch.setattr(progress, "BETWEEN_S", 0.0)
        monkeypatch.setattr(slices, "SLICE_S", PATIENCE_S)
        monkeypatch.setattr(slices, "FIRST_TURNS", 2)
        monkeypatch.setattr(slices, "MOST_TURNS", 2)
        monkeypatch.setattr(slices, "_slice", self._held)

    def _held(self, *args: Any) -> Any:
        self._slices += 1
        if self._slices == 2:
            self.begun.set()
            assert self.free.wait(PATIENCE_S)
        return self._slice(*args)


def peer_as(path: str, uid: int, gid: int, groups: tuple[int, ...] = ()) -> Peer:
    """A raw peer of another user."""
    return _peer_of(connect_as(path, uid, gid, groups))


def _peer_of(connected: socket.socket) -> Peer:
    peer = Peer.__new__(Peer)
    peer.socket = connected
    peer.socket.settimeout(PATIENCE_S)
    peer._unpacker = msgpack.Unpacker(max_buffer_size=0)
    return peer


def until(condition: Callable[[], Any], what: str) -> Any:
    """Look again and again for what nobody announces; its first truthy value."""
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < end, f"never came: {what}"
        time.sleep(0.002)
    return found
