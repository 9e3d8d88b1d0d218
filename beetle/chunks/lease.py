"""Who of several processes has the store open: each in turn, without a daemon.

One process at a time may open a store (`beetle.store.engine.lock`), and opening it takes longer than a call. So a
process keeps it open over many calls, and gives it up when another one waits: after a call when it has had it for
`SLICE_S`, and between calls once it has been idle. Who waits holds a lock on a file of its own (the queue), which the
owner looks at. The kernel frees both locks when a process dies, so nothing is ever left to be cleaned up.

Threads of one process share one lease, and all `ChunkStore`s of one path in it.
"""

from __future__ import annotations

import atexit
import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakSet

from beetle.contracts.errors import BeetleError, StoreLocked, StoreReadOnly
from beetle.store.engine.lock import holder_of

if TYPE_CHECKING:
    from beetle.open import Embedded

SLICE_S: Final = 0.25
"""How long an owner keeps the store at least while it goes on calling and another process waits."""
WANTED_S: Final = 0.02
"""How long an owner keeps it between two calls while another process waits."""
IDLE_S: Final = 0.5
"""How long an owner keeps it between two calls."""
WAIT_S: Final = 60.0
"""How long a process waits for its turn."""
_FIRST_POLL_S: Final = 0.001
_LONGEST_POLL_S: Final = 0.01

_log = logging.getLogger("beetle.chunks")


class Tenant(Protocol):
    """What works on the store while it is open."""

    def moved_in(self, opened: Embedded) -> None:
        """The store was opened: other processes may have written since."""
        ...

    def moving_out(self, opened: Embedded, *, wanted: bool) -> None:
        """The store is about to be given up; `wanted` says that another process waits for it."""
        ...


class Lease:
    """The turns of this process at one store. `tenant` is told when one begins and ends."""

    def __init__(self, folder: str, open_store: Callable[[str], Embedded], tenant: Tenant) -> None:
        self.store = os.path.join(folder, "store.db")
        self._queue = os.path.join(folder, "queue")
        self._open_store = open_store
        self._tenant = tenant
        self._mutex = threading.RLock()
        self._changed = threading.Condition(self._mutex)
        self._opened: Embedded | None = None
        self._file: tuple[int, int] | None = None
        self._since = self._last = 0.0
        self._calling = 0
        self._rush = threading.Event()
        _LEASES.add(self)

    @property
    def rushed(self) -> bool:
        """Whether another thread of this process waits for the store."""
        return self._rush.is_set()

    @contextmanager
    def held(self) -> Iterator[Embedded]:
        """The open store, for the length of the block, in which no other thread has it.

        Raises:
            StoreLocked: a daemon has it, or another process did not give it up in time.
            BeetleError: it could not be opened.
        """
        if not self._mutex.acquire(blocking=False):
            self._rush.set()
            self._mutex.acquire()
        try:
            self._rush.clear()
            opened = self._acquire()
            self._calling += 1
            try:
                yield opened
            finally:
                self._calling -= 1
                self._last = time.monotonic()
            if not self._calling and self._last - self._since >= SLICE_S and self._is_wanted():
                self.give_up_quietly(wanted=True)
        finally:
            self._mutex.release()

    def give_up(self, *, wanted: bool = False) -> None:
        """Close the store; a second call does nothing.

        Raises:
            BeetleError, OSError: closing met an error; the store is free all the same.
        """
        with self._mutex:
            opened, self._opened = self._opened, None
            if opened is None:
                return
            try:
                if self._is_same_file():
                    self._tenant.moving_out(opened, wanted=wanted)
            finally:
                opened.release()
                self._changed.notify_all()

    def give_up_quietly(self, *, wanted: bool = False) -> None:
        """Close the store where nobody can be told of an error but the log."""
        try:
            self.give_up(wanted=wanted)
        except (BeetleError, OSError) as error:
            _log.warning("The store %s was closed with an error: %s", self.store, error)

    def _acquire(self) -> Embedded:
        if self._opened is not None:
            if self._is_same_file():
                return self._opened
            # Somebody has removed the folder, or put another in its place.
            self._opened.release()
            self._opened = None
        opened = self._opened = self._wait_for_turn()
        self._since = self._last = time.monotonic()
        try:
            self._file = self._look()
            self._tenant.moved_in(opened)
        except BaseException:
            self._opened = None
            opened.release()
            raise
        threading.Thread(target=self._watch, args=(opened,), name="beetle-chunks-lease", daemon=True).start()
        return opened

    def _is_same_file(self) -> bool:
        return self._file is not None and self._look() == self._file

    def _look(self) -> tuple[int, int] | None:
        """What tells the store's file from another one of its name; None where there is none."""
        try:
            found = os.stat(self.store)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _wait_for_turn(self) -> Embedded:
        """Stand in the queue, wait until the owner has given the store up, and open it."""
        until = time.monotonic() + WAIT_S
        try:
            os.makedirs(os.path.dirname(self.store), mode=0o700, exist_ok=True)
            queue = os.open(self._queue, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            reason = f"its folder cannot be made or written ({error.strerror})"
            raise StoreReadOnly(path=self.store, reason=reason) from error
        try:
            for _ in _turns(until):
                if _locks(queue):
                    break
            for _ in _turns(until):
                holder = holder_of(self.store)
                if holder is None or holder.socket:
                    try:
                        return self._open_store(self.store)
                    except StoreLocked as error:
                        if error.details.get("socket"):
                            raise
            return self._open_store(self.store)
        finally:
            os.close(queue)

    def _is_wanted(self) -> bool:
        """Whether another process stands in the queue."""
        try:
            queue = os.open(self._queue, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return not _locks(queue)
        finally:
            os.close(queue)

    def _watch(self, opened: Embedded) -> None:
        """Give the store up when nobody has called for a while; runs on a thread of its own as long as it is open."""
        with self._mutex:
            while self._opened is opened:
                idle = time.monotonic() - self._last
                if idle >= IDLE_S:
                    self.give_up_quietly()
                elif idle >= WANTED_S and self._is_wanted():
                    self.give_up_quietly(wanted=True)
                else:
                    self._changed.wait(WANTED_S)


def _turns(until: float) -> Iterator[None]:
    """Once more and once more, at growing distances, until a time."""
    pause = _FIRST_POLL_S
    while True:
        yield
        if time.monotonic() >= until:
            return
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_POLL_S)


def _locks(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_LEASES: WeakSet[Lease] = WeakSet()


def _give_all_up() -> None:
    for lease in list(_LEASES):
        lease.give_up_quietly()


def _before_fork() -> None:
    """A child must not inherit an open store: its locks would outlive the parent's turn."""
    global _forking
    _forking = list(_LEASES)
    for lease in _forking:
        lease._mutex.acquire()
        lease.give_up_quietly()


def _after_fork() -> None:
    for lease in _forking:
        lease._mutex.release()
    _forking.clear()


_forking: list[Lease] = []
atexit.register(_give_all_up)
os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
