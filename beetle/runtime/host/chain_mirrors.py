"""Readable copies of jsonl chains beside the store: one file a chain, one thought a line. Nothing reads them back.

A thread of its own writes them behind the commits, and ends when they have caught up. A mirror that may show what is
to be hidden is removed before that is committed, and once more behind the commit: what the thread read in between is
no more written. Then it is written anew. So a crash at any moment leaves none that shows too much.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from beetle.contracts.errors import BeetleError, NoDescriptor, StoreReadOnly
from beetle.runtime.host.modes import RESTORED
from beetle.store import chains
from beetle.store.chains import JSONL
from beetle.store.engine.store import Store
from beetle.store.event_log import Logged

if TYPE_CHECKING:
    from beetle.runtime.host.mirrored_lines import Written

log = logging.getLogger("beetle.chains")

NAME_CHARS = 64
GROWING = frozenset({"appended", "branched", "imported"})
CLOSE_S = 2.0
OWN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""How a mirror is opened: what somebody put in its place is neither followed nor waited for."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")

Name = tuple[str, str]
"""memory_space_id and chain_key."""


def file_name(name: Name) -> str:
    """The file of a chain's mirror."""
    return f"{_UNSAFE.sub('_', name[1])[:NAME_CHARS]}-{digest_of(name)}.jsonl"


def digest_of(name: Name) -> str:
    """16 hex digits: the last part of the file's name, by which a mirror is found."""
    return hashlib.sha256("\x00".join(name).encode()).hexdigest()[:16]


class ChainMirrors:
    """The mirrors of one store. `failed` says by file name why one could not be written the last time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.folder = f"{store.settings.path}.chains"
        self.is_kept = store.settings.backend != "in-memory" and not store.settings.immutable
        self.failed: dict[str, str] = {}
        self._guard = threading.Condition()
        self._due: dict[Name, None] = {}
        self._hiding: set[Name] = set()
        self._all_due = False
        self._changes: dict[Name, int] = {}
        self._written: dict[Name, Written] = {}
        self._thread: threading.Thread | None = None
        self._closed = False

    def path(self, name: Name) -> str:
        """Where a chain's mirror is."""
        return os.path.join(self.folder, file_name(name))

    def begin(self) -> None:
        """Catch up with what was committed before this process."""
        if not self.is_kept:
            return
        self._look_for_all()
        if self._due:
            self._want(())

    def _look_for_all(self) -> None:
        try:
            with self._store.read() as tx:
                known = chains.mirrored(tx, JSONL)
        except BeetleError as error:
            log.warning("mirrors of chains are not looked at: %s", error.key, extra={"event": "mirrors_not_read"})
            return
        with self._guard:
            self._due.update(dict.fromkeys(known))

    def committed(self, logged: Iterable[Logged]) -> None:
        """On the writer's thread, behind a commit and before whoever wrote hears of it."""
        if not self.is_kept:
            return
        wanted: dict[Name, None] = {}
        if self._hiding:
            with self._guard:
                hiding, self._hiding = self._hiding, set()
            wanted = dict.fromkeys(hiding)
            self._withdraw_quietly(hiding)
        for each in logged:
            event = each.event
            if event.event == RESTORED and event.topic == "lifecycle":
                self._withdraw_every()
                self._all_due = True
            elif event.topic == "chain" and event.space is not None and event.event in GROWING:
                wanted[event.space, str(event.subject.get("chain_key"))] = None
        if wanted or self._all_due:
            self._want(wanted)

    # Taking away.

    def withdraw(self, names: Iterable[Name]) -> None:
        """Remove mirrors before what they show is hidden; they are written anew behind the commit.

        Raises:
            StoreReadOnly: one cannot be removed.
        """
        if not self.is_kept:
            return
        for name in names:
            with self._guard:
                self._hiding.add(name)
            try:
                self._remove(name)
            except OSError as error:
                NoDescriptor.refuse(error)
                raise StoreReadOnly(path=self.path(name), reason=error.strerror or "it cannot be removed") from error

    def withdraw_every(self) -> None:
        """Remove all mirrors, before another store takes this one's place.

        Raises:
            StoreReadOnly: one cannot be removed.
        """
        if not self.is_kept:
            return
        try:
            with self._guard:
                self._forget_every()
                for name in os.listdir(self.folder):
                    _unlink(os.path.join(self.folder, name))
        except FileNotFoundError:
            return
        except OSError as error:
            NoDescriptor.refuse(error)
            raise StoreReadOnly(path=self.folder, reason=error.strerror or "it cannot be emptied") from error

    def _forget_every(self) -> None:
        for name in {*self._written, *self._due, *self._changes}:
            self._changes[name] = self._changes.get(name, 0) + 1
        self._written.clear()

    def _withdraw_every(self) -> None:
        try:
            self.withdraw_every()
        except (StoreReadOnly, NoDescriptor) as error:
            log.warning("mirrors of chains are not removed: %s", error.key, extra={"event": "mirrors_not_withdrawn"})

    def _withdraw_quietly(self, names: Iterable[Name]) -> None:
        for name in names:
            try:
                self._remove(name)
            except OSError as error:
                self._fail(name, error)

    def _remove(self, name: Name) -> None:
        with self._guard:
            self._changes[name] = self._changes.get(name, 0) + 1
            self._written.pop(name, None)
            _unlink(self.path(name))

    # Writing.

    def _want(self, names: Iterable[Name]) -> None:
        with self._guard:
            self._due.update(dict.fromkeys(names))
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._work, name="beetle-mirrors", daemon=True)
                self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait until every mirror has caught up, or could not; whether that came in time."""
        with self._guard:
            return self._guard.wait_for(lambda: self._thread is None, seconds)

    def close(self) -> None:
        """Let the thread end; what it does not write in two seconds is written at the next opening."""
        if not self.wait(CLOSE_S):
            log.info("mirrors of chains are behind: the next opening goes on", extra={"event": "mirrors_behind"})
        with self._guard:
            self._closed = True
        self.wait(CLOSE_S)

    def _work(self) -> None:
        while True:
            if self._all_due:
                self._all_due = False
                self._look_for_all()
            with self._guard:
                name = next(iter(self._due), None)
                if self._all_due and not self._closed:
                    continue
                if name is None or self._closed:
                    self._thread = None
                    self._guard.notify_all()
                    return
                del self._due[name]
            try:
                while self._go_on(name):
                    pass
                self.failed.pop(file_name(name), None)
            except (OSError, BeetleError) as error:
                self._fail(name, error)

    def _fail(self, name: Name, error: OSError | BeetleError) -> None:
        told = str(error)
        if self.failed.get(file_name(name)) != told:
            # The chain's name is what a caller wrote, and stands in the file's: the digest behind it tells as much.
            why = error.strerror if isinstance(error, OSError) else error.key
            log.warning(
                "the mirror %s of a chain is not written: %s",
                digest_of(name),
                why,
                extra={"event": "mirror_not_written"},
            )
        self.failed[file_name(name)] = told

    def _go_on(self, name: Name) -> bool:
        """Write the next thoughts of a chain; whether there are more."""
        from beetle.runtime.host import mirrored_lines

        with self._guard:
            if self._closed:
                return False
            change, written = self._changes.get(name, 0), self._written.get(name)
        with self._store.read() as tx:
            found = mirrored_lines.next_lines(tx, name, self.path(name), written)
        if found is None:
            return False
        written, data = found.written, found.data
        with self._guard:
            if self._changes.get(name, 0) != change:
                # What was read may have been hidden since.
                return True
            if data or not written.length:
                self._append(name, data, whole=not written.length)
            length = written.length + found.added
            self._written[name] = mirrored_lines.Written(written.size + len(data), length)
        return length < found.length

    def _append(self, name: Name, data: bytes, *, whole: bool) -> None:
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | OWN | (os.O_TRUNC if whole else os.O_APPEND)
        file = os.open(self.path(name), flags, 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(file, view) :]
        except OSError:
            # Half a line is none: the next time it is seen that the size does not fit.
            self._written.pop(name, None)
            raise
        finally:
            os.close(file)


def _unlink(path: str) -> None:
    """Remove a file to its last byte, so that a power cut does not bring it back."""
    try:
        file = os.open(path, os.O_WRONLY | OWN)
    except FileNotFoundError:
        return
    except OSError:
        # A link, or nothing that can be written: to take it away needs the folder alone.
        os.unlink(path)
    else:
        try:
            os.ftruncate(file, 0)
            os.fsync(file)
        finally:
            os.close(file)
        os.unlink(path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
