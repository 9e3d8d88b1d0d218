"""The JSON tree beside a store, kept in step with it.

The store is the truth. A chunk's file is written once its row is committed; `tree.json` beside the store says up to
which revision the files are written, so that whoever opens the store next writes what is missing, after a kill too.
What the folder does not take is logged, and fails no call: it is tried again with later calls and openings. The
index files are a cache of everything, and writing them costs the more the more chunks there are: they are written at
once while that takes at most a tenth of the time, and in any case when no call runs, or when the store is closed.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from beetle.chunk_tree.archive import Member
from beetle.chunk_tree.document import (
    DOUBLE,
    ENDING,
    ChunkDocument,
    Unreadable,
    is_chunk_id,
    place_of,
    read_chunk,
    written,
)
from beetle.chunk_tree.folder import ARCHIVE, CHUNKS, TreeFolder, hindered, read_tree
from beetle.chunk_tree.indexes import INDEXES
from beetle.chunks import asking
from beetle.chunks.lease import Lease
from beetle.chunks.mirror import Mirror
from beetle.chunks.records import document_of
from beetle.contracts.chunks import (
    Chunk,
    ChunkListRequest,
)
from beetle.contracts.errors import BeetleError
from beetle.named_tuple import NamedTuple

if TYPE_CHECKING:
    from beetle.open import Embedded

OWN_FOLDER: Final = ".beetle"
STATE_FILE: Final = f"{OWN_FOLDER}/tree.json"
NOT_TAKEN_IN: Final = -1
"""In place of a revision: a tree that was there before the store is being taken in."""
BATCH_BYTES: Final = 2**20
"""Bytes of files that are taken in at once."""
INDEX_SHARE: Final = 10
"""The index files are written when this many times as much time has gone by as writing them took."""
KEPT_IN_MEMORY: Final = 20_000
"""Chunks up to which the content of the index files stays in memory while another process has the store."""

_log = logging.getLogger("beetle.chunks")


class ImportedTree(NamedTuple):
    """What became of the files of a tree. `refused`: each one's path and why it is no chunk."""

    imported: int
    updated: int
    unchanged: int
    refused: tuple[tuple[str, str], ...]


class _State(NamedTuple):
    """Up to which revision of which store chunk files and index files are written; `cost` of the latter in seconds.

    `seen` is how the index files look from outside: others are not of that revision.
    """

    store_id: str
    files: int = 0
    indexes: int = 0
    cost: float = 0.0
    seen: str = ""


class SyncedTree:
    """The store and the tree of one folder. All `ChunkStore`s of the folder in this process share it."""

    def __init__(self, base: Path, open_store: Callable[[str], Embedded]) -> None:
        self.base = base
        self.lease = Lease(os.fspath(base / OWN_FOLDER), open_store, self)
        self._state = _State("")
        self._saved = self._state
        self._folder: TreeFolder | None = None
        self._touched: set[str] = set()
        self._late: dict[str, OSError] = {}
        """By chunk, why its file is not what the store says."""
        self._told: set[str] = set()
        self._mirror: Mirror | None = None
        self._mirrored = 0
        self._indexed_at = 0.0

    # What the lease calls.

    def moved_in(self, opened: Embedded) -> None:
        """Import a tree that existed before the store, and write what the last owner did not."""
        if self._folder is not None:
            self._folder.close()
        self._late.clear()
        try:
            self._folder = TreeFolder(os.fspath(self.base), make=True)
        except OSError as error:
            self._tell(error)
            self._folder = TreeFolder(os.fspath(self.base))
        store_id = opened.open_report.store_id
        found = self._read_state()
        if found is not None and found.store_id == store_id:
            self._state = self._saved = found
        else:
            self._mirror = None
            self._state = _State(store_id, files=NOT_TAKEN_IN if asking.revision(opened) == 0 else 0)
            self._save_state()
        if self._state.seen != self._look():
            self._state = self._state._replace(indexes=-1)
        self._indexed_at = time.monotonic()
        if self._state.files == NOT_TAKEN_IN:
            self.take_in(opened, self._folder)
            self._state = self._state._replace(files=0)
        self.catch_up(opened)

    def moving_out(self, opened: Embedded, *, wanted: bool) -> None:
        """Write the files whose links changed, and the indexes if there is time."""
        folder, self._folder = self._folder, None
        if folder is None:
            return
        with folder:
            self._write_late(opened, folder)
            self._write_touched(opened, folder)
            if self._state.indexes < self._state.files and (not wanted or self._is_time_for_indexes()):
                self._try_indexes(opened, folder, lambda: self.lease.rushed)
            self._save_state(folder)
        if self._mirror is not None and len(self._mirror) > KEPT_IN_MEMORY:
            self._mirror = None

    # What the store calls, while the lease is held.

    def catch_up(self, opened: Embedded, changed: Chunk | None = None) -> None:
        """Write the files of all chunks that changed since the last time. What hinders it is logged: the change stands.

        Args:
            changed: a chunk that was changed just now; if it is the only one, nothing is asked of the store.
        """
        try:
            self._catch_up(opened, changed)
        except BeetleError as error:
            _log.warning("The files of %s are behind the store: %s", self.base, error)

    def _catch_up(self, opened: Embedded, changed: Chunk | None = None) -> None:
        folder = self._open_folder()
        self._write_late(opened, folder)
        if changed is not None and changed.revision == self._state.files + 1:
            self._write_chunk(opened, folder, changed)
            self._state = self._state._replace(files=changed.revision)
        else:
            self._catch_up_all(opened, folder)
        if self._is_time_for_indexes():
            self._try_indexes(opened, folder, lambda: False)

    def take_in(self, opened: Embedded, folder: TreeFolder) -> ImportedTree:
        """Import the files of a folder, in batches, each as a whole; what is no chunk is logged and listed."""
        refused: list[tuple[str, str]] = []
        reports = [asking.imported(opened, batch) for batch in _batches(folder, refused)]
        for report in reports:
            refused += [(each.path or "", each.reason) for each in report.refused]
        for path, reason in refused:
            _log.error("Corrupted chunk file %s: %s", path, reason)
        return ImportedTree(
            sum(each.imported for each in reports),
            sum(each.updated for each in reports),
            sum(each.unchanged for each in reports),
            tuple(refused),
        )

    def settle(self, opened: Embedded) -> None:
        """Write everything that is due to the chunks' files, so that they say what the store says.

        Raises:
            BeetleError: one of them could not be written; it may say what its chunk was before.
        """
        folder = self._open_folder()
        self._catch_up(opened)
        self._write_touched(opened, folder)
        for chunk_id in list(self._late):
            self._write_again(opened, folder, chunk_id)
        for error in self._late.values():
            raise hindered(error, folder.path)

    def rebuild_indexes(self, opened: Embedded) -> None:
        """Write the index files anew from the store, whatever they hold.

        Raises:
            OSError: the folder does not take them.
        """
        self._mirror = None
        self._state = self._state._replace(indexes=-1)
        self._write_indexes(opened, self._open_folder(), lambda: False)

    def write_all(self, opened: Embedded, folder: TreeFolder) -> int:
        """Write the file of every chunk, and the indexes, into a folder; how many chunks.

        Raises:
            OSError: the folder does not take one; those before are written.
        """
        mirror, count = Mirror(), 0
        for chunk in asking.pages(opened, ChunkListRequest(state="all", limit=asking.PAGE)):
            document = document_of(chunk)
            place = place_of(document, archived=chunk.archived)
            _write_if_other(folder, place, written(document))
            folder.remove(place_of(document, archived=not chunk.archived), settle=False)
            if not chunk.archived:
                mirror.put(document)
            count += 1
        for path, pieces in mirror.files(_now()).items():
            folder.write(path, "".join(pieces).encode(), settle=False)
        folder.settle()
        return count

    def _open_folder(self) -> TreeFolder:
        assert self._folder is not None, "the lease is held"
        return self._folder

    def _catch_up_all(self, opened: Embedded, folder: TreeFolder) -> None:
        request = ChunkListRequest(state="all", changed_since=self._since(), limit=asking.PAGE)
        for report in asking.reports(opened, request):
            for chunk in report.chunks:
                self._write_chunk(opened, folder, chunk)
            for chunk_id in report.removed:
                self._remove_chunk(opened, folder, chunk_id)
            if report.revision < self._state.files:
                # An older copy of the store was put in its place: the files say what it does not.
                self._state, self._mirror = self._state._replace(files=0, indexes=-1), None
                self._catch_up_all(opened, folder)
                return
            if not report.has_more:
                self._state = self._state._replace(files=report.revision)

    def _since(self) -> int:
        """From which revision on this process has to see what changed."""
        return self._state.files if self._mirror is None else min(self._state.files, self._mirrored)

    def _write_chunk(self, opened: Embedded, folder: TreeFolder, chunk: Chunk) -> None:
        document = document_of(chunk)
        if chunk.revision > self._state.files:
            place = place_of(document, archived=chunk.archived)
            # What is no longer related comes first: after a kill in between, the difference is still there to be seen.
            self._write_each(opened, folder, _related(folder, place) - {*document.links["related_to"]})
            self._write_file(folder, document, archived=chunk.archived)
            self._touched.update(document.links["related_to"])
        if self._mirror is not None:
            if chunk.archived:
                self._mirror.drop(chunk.id)
            else:
                self._mirror.put(document)
            self._mirrored = max(self._mirrored, chunk.revision)

    def _remove_chunk(self, opened: Embedded, folder: TreeFolder, chunk_id: str) -> None:
        if not is_chunk_id(chunk_id):
            return
        name = f"{chunk_id}{ENDING}"
        for place in (f"{ARCHIVE}/{name}", *(f"{CHUNKS}/{month}/{name}" for month in folder.names(CHUNKS))):
            self._write_each(opened, folder, _related(folder, place))
            self._attempt(chunk_id, partial(folder.remove, place, settle=False))
        if self._mirror is not None:
            self._mirror.drop(chunk_id)

    def _write_touched(self, opened: Embedded, folder: TreeFolder) -> None:
        """Chunks that a later one relates to have it among their links, and did not change for that."""
        self._write_each(opened, folder, self._touched)
        self._touched.clear()

    def _write_each(self, opened: Embedded, folder: TreeFolder, ids: Iterable[str]) -> None:
        for chunk_id in ids:
            chunk = asking.get(opened, chunk_id)
            if chunk is not None:
                document = document_of(chunk)
                self._write_file(folder, document, archived=chunk.archived)
                if self._mirror is not None and not chunk.archived:
                    self._mirror.put(document)

    def _write_file(self, folder: TreeFolder, document: ChunkDocument, *, archived: bool) -> None:
        def write() -> None:
            _write_if_other(folder, place_of(document, archived=archived), written(document))
            folder.remove(place_of(document, archived=not archived), settle=False)

        self._attempt(document.id, write)

    def _attempt(self, chunk_id: str, write: Callable[[], object]) -> None:
        """Do what a chunk's file needs; where the folder refuses, note that it is late."""
        try:
            write()
        except OSError as error:
            self._tell(error)
            self._late.setdefault(chunk_id, error)

    def _write_late(self, opened: Embedded, folder: TreeFolder) -> None:
        """Try again what was refused, until something is again: of many files only one costs each call its time."""
        for chunk_id in list(self._late):
            if not self._write_again(opened, folder, chunk_id):
                return

    def _write_again(self, opened: Embedded, folder: TreeFolder, chunk_id: str) -> bool:
        # What is refused once more goes to the end, so that the others have their turn.
        del self._late[chunk_id]
        if asking.get(opened, chunk_id) is None:
            self._remove_chunk(opened, folder, chunk_id)
        else:
            self._write_each(opened, folder, (chunk_id,))
        return chunk_id not in self._late

    def _tell(self, error: OSError) -> None:
        """Log what the folder refuses, each once."""
        said = str(hindered(error, os.fspath(self.base)))
        if said not in self._told:
            self._told.add(said)
            _log.warning("The files are behind the store: %s", said)

    def _try_indexes(self, opened: Embedded, folder: TreeFolder, is_abandoned: Callable[[], bool]) -> None:
        try:
            self._write_indexes(opened, folder, is_abandoned)
        except OSError as error:
            self._tell(error)
            self._indexed_at = time.monotonic()

    def _is_time_for_indexes(self) -> bool:
        behind = self._state.indexes < self._state.files
        return behind and time.monotonic() - self._indexed_at >= INDEX_SHARE * self._state.cost

    def _write_indexes(self, opened: Embedded, folder: TreeFolder, is_abandoned: Callable[[], bool]) -> None:
        begun = time.monotonic()
        revision = self._state.files
        if self._mirror is None:
            mirror = self._loaded(opened, folder, is_abandoned)
            if mirror is None:
                return
            self._mirror, self._mirrored = mirror, revision
        for path, pieces in self._mirror.files(_now()).items():
            text: list[str] = []
            for piece in pieces:
                if is_abandoned():
                    return
                text.append(piece)
            folder.write(path, "".join(text).encode(), settle=False)
        self._indexed_at = time.monotonic()
        cost = self._indexed_at - begun
        self._state = self._state._replace(indexes=revision, cost=cost, seen=self._look())

    def _loaded(self, opened: Embedded, folder: TreeFolder, is_abandoned: Callable[[], bool]) -> Mirror | None:
        """What the index files are to hold: as they are, with what changed since; else all of the store."""
        mirror, since = None, self._state.indexes
        if since > 0:
            mirror = Mirror.read(folder)
        if mirror is None:
            mirror, since = Mirror(), 0
        for report in asking.reports(
            opened, ChunkListRequest(state="all", changed_since=since or None, limit=asking.PAGE)
        ):
            if is_abandoned():
                return None
            for chunk in report.chunks:
                if chunk.archived:
                    mirror.drop(chunk.id)
                else:
                    mirror.put(document_of(chunk))
            for chunk_id in report.removed:
                mirror.drop(chunk_id)
        return mirror

    def _look(self) -> str:
        """What tells an index file from one that somebody else wrote, without reading it."""
        found: list[str] = []
        for each in INDEXES:
            with suppress(OSError):
                status = os.stat(self.base / each)
                found.append(f"{status.st_ino}.{status.st_size}.{status.st_mtime_ns}")
        return " ".join(found)

    def _read_state(self) -> _State | None:
        try:
            found = json.loads((self.base / STATE_FILE).read_bytes())
            return _State(
                str(found["store"]),
                int(found["files"]),
                int(found["indexes"]),
                float(found["cost"]),
                str(found["seen"]),
            )
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            _log.warning("%s is not readable, and made anew: %s", self.base / STATE_FILE, error)
            return None

    def _save_state(self, folder: TreeFolder | None = None) -> None:
        """Say how far the files are written; they are on disk by then. While one is late, what was said holds."""
        folder = folder or self._open_folder()
        try:
            folder.settle()
            self._say_state(folder)
        except OSError as error:
            self._tell(error)

    def _say_state(self, folder: TreeFolder) -> None:
        if self._state != self._saved and not self._late:
            state = self._state
            said = {
                "store": state.store_id, "files": state.files, "indexes": state.indexes, "cost": state.cost,
                "seen": state.seen,
            }  # fmt: skip
            folder.write(STATE_FILE, json.dumps(said).encode())
            self._saved = state


def _batches(folder: TreeFolder, refused: list[tuple[str, str]]) -> Iterator[list[Member]]:
    """The files of a tree in batches; those that cannot be read, or have the id of an earlier one, are appended to
    `refused`."""
    batch: list[Member] = []
    size = 0
    named = Counter(map(_name, folder.chunk_files()))
    taken: set[str] = set()
    for each in read_tree(folder):
        if isinstance(each, Unreadable):
            refused.append((each.path, each.reason))
            continue
        name = _name(each.path)
        if name in taken:
            refused.append((each.path, DOUBLE))
            continue
        if named[name] > 1 and isinstance(read_chunk(each.data, each.path), ChunkDocument):
            taken.add(name)
        if batch and size + len(each.data) > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += len(each.data)
    if batch:
        yield batch


def _name(path: str) -> str:
    """The last part of a path, which is a chunk's id with an ending."""
    return path.rpartition("/")[2]


def _write_if_other(folder: TreeFolder, place: str, text: str) -> None:
    """Write a file that does not hold this text yet."""
    before, data = folder.read(place), text.encode()
    if isinstance(before, Unreadable) or before.data != data:
        folder.write(place, data, settle=False)


def _related(folder: TreeFolder, place: str) -> set[str]:
    """What the chunk of a file is related to, as the file says."""
    before = folder.read(place)
    found = before if isinstance(before, Unreadable) else read_chunk(before.data, place)
    return {*found.links["related_to"]} if isinstance(found, ChunkDocument) else set()


def _now() -> int:
    return time.time_ns() // 1000
