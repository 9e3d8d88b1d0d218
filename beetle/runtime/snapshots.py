"""Snapshot files: a header that says what is inside, and the whole store, compressed.

A file is `MAGIC`, the header as JSON with spaces up to `HEADER_BYTES`, the SHA-256 of both in hex on a line, and the
store's database as one zlib stream. It is written under another name, synced, and only then given its own.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Annotated, BinaryIO, NamedTuple

import msgspec
from msgspec import Meta, Struct

from beetle.contracts.codec import format_us, pack_json
from beetle.contracts.errors import BeetleError, NotFound, SchemaMismatch, StorageFull, StoreCorrupt
from beetle.contracts.snapshots import SnapshotFault, SnapshotInfo
from beetle.memory.chain import chain_hash
from beetle.store import exchange, snapshot
from beetle.store.progress import Progress
from beetle.store.snapshot import GoOn
from beetle.store.store import Store, free_bytes

MAGIC = b"beetle-snapshot 1\n"
ANY_MAGIC = b"beetle-snapshot "
HEADER_BYTES = 8192
DIGEST_LINE = 65
PAYLOAD_AT = HEADER_BYTES + DIGEST_LINE
CHUNK = 256 * 1024
LEVEL = 3
"""Of zlib: half the time of its default for a few percent more bytes."""
SPARE_BYTES = 16 * 2**20
"""What a copy leaves free on the disk."""
ID = re.compile(r"s-[0-9a-f]{16}")
FILE = re.compile(r"(s-[0-9a-f]{16})\.beetle-snapshot")
PART = re.compile(r"s-[0-9a-f]{16}\.(part|copy)(-journal|-wal|-shm)?")
Text = Annotated[str, Meta(max_length=512)]
Number = Annotated[int, Meta(ge=0, le=2**62)]


class Header(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a snapshot says of itself. Times in microseconds, sizes in bytes."""

    snapshot_id: Annotated[str, Meta(pattern=r"^s-[0-9a-f]{16}\Z")]
    created_at: Annotated[int, Meta(ge=0, le=253_402_300_799_999_999)]
    label: Text | None
    version: Text
    profile: Text
    backend: Text
    schema: Number
    store_id: Text
    store_bytes: Number
    payload_bytes: Number
    payload_sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    counts: dict[Text, Number]
    event_log_rows: Number
    event_log_head: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


class Kept(NamedTuple):
    """A file of the snapshots' folder: its header, or what is wrong with it."""

    snapshot_id: str
    path: str
    bytes: int
    header: Header | None
    fault: SnapshotFault | None = None


class Making(NamedTuple):
    """What a new snapshot is called and says of where it was made."""

    snapshot_id: str
    now: int
    label: str | None
    version: str
    profile: str


def folder_of(store: Store) -> str:
    """Where the snapshots of a store are."""
    return store.settings.path + ".snapshots"


def path_of(store: Store, snapshot_id: str) -> str:
    """Where a snapshot is. The id must be one of ours: nothing else is made a path of."""
    return os.path.join(folder_of(store), f"{snapshot_id}.beetle-snapshot")


def create(store: Store, making: Making, go_on: GoOn, progress: Progress) -> tuple[Header, int]:
    """Make a snapshot of a store that is in use; its header, and how often the copy began again.

    Args:
        go_on: what it raises ends the work and leaves nothing behind.
        progress: is told the steps `copy` and `compress`.

    Raises:
        StorageFull, StoreReadOnly: the folder has no room, or takes no file.
    """
    folder = folder_of(store)
    stem = os.path.join(folder, making.snapshot_id)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        sweep(store)
        _need(folder, 2 * _store_bytes(store) + SPARE_BYTES)
        progress.step("copy")
        copied = snapshot.back_up(store.settings, store.gate, stem + ".copy", go_on)
        facts = snapshot.examine(stem + ".copy")
        if facts is None:
            raise StoreCorrupt(path=folder, reason="the copy is no whole store")
        with open(stem + ".copy", "rb") as source, _new_file(stem + ".part") as target:
            target.write(bytes(PAYLOAD_AT))
            progress.step("compress")
            size, digest = _compress(source, target, go_on)
            header = Header(
                snapshot_id=making.snapshot_id,
                created_at=making.now,
                label=making.label,
                version=making.version,
                profile=making.profile,
                backend=store.settings.backend,
                schema=facts.schema,
                store_id=facts.store_id,
                store_bytes=os.fstat(source.fileno()).st_size,
                payload_bytes=size,
                payload_sha256=digest,
                counts=facts.counts,
                event_log_rows=facts.head.seq,
                event_log_head=facts.head.hash.hex(),
            )
            target.seek(0)
            target.write(_encode(header))
            target.flush()
            os.fsync(target.fileno())
        os.rename(stem + ".part", path_of(store, making.snapshot_id))
        exchange.sync_folder(stem)
        exchange.sync_folder(folder)
    except OSError as error:
        raise exchange.unwritable(folder, error) from error
    finally:
        _remove(stem + ".copy", stem + ".part")
    return header, copied.restarts


def kept(store: Store) -> list[Kept]:
    """Every snapshot file of a store, the newest first; what is broken comes last."""
    try:
        names = os.listdir(folder_of(store))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise exchange.unwritable(folder_of(store), error) from error
    found = [look(os.path.join(folder_of(store), name), match[1]) for name in names if (match := FILE.fullmatch(name))]
    return sorted(found, key=_newest_first)


def _newest_first(each: Kept) -> tuple[int, str]:
    return (0 if each.header is None else -each.header.created_at, each.snapshot_id)


def find(store: Store, snapshot_id: str) -> Kept:
    """One snapshot file.

    Raises:
        NotFound: there is none of that id.
    """
    path = path_of(store, snapshot_id) if ID.fullmatch(snapshot_id) else ""
    if not path or not os.path.lexists(path):
        raise NotFound(kind="snapshot", name=snapshot_id, listing="`beetle snapshot list` lists what is there")
    return look(path, snapshot_id)


def look(path: str, snapshot_id: str) -> Kept:
    """What a snapshot file's header says; the payload is not read."""
    try:
        with _open(path) as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(PAYLOAD_AT)
    except OSError:
        return Kept(snapshot_id, path, 0, None, "unreadable")
    header, fault = _decode(head, size)
    if header is not None and header.snapshot_id != snapshot_id:
        header, fault = None, "header_broken"
    return Kept(snapshot_id, path, size, header, fault)


def unpack(found: Kept, target: str, go_on: GoOn) -> SnapshotFault | None:
    """Write the store inside a snapshot to a new file, and put it on disk; what is wrong with the payload, or None.

    Raises:
        StorageFull, StoreReadOnly: the folder has no room, or takes no file.
    """
    header = found.header
    if header is None:
        return found.fault
    digest = hashlib.sha256()
    written = 0
    try:
        _need(os.path.dirname(target), header.store_bytes + SPARE_BYTES)
        with _open(found.path) as source, _new_file(target) as file:
            source.seek(PAYLOAD_AT)
            inflate = zlib.decompressobj()
            while data := source.read(CHUNK):
                digest.update(data)
                while data:
                    out = inflate.decompress(data, CHUNK)
                    written += len(out)
                    if written > header.store_bytes:
                        return "too_large"
                    file.write(out)
                    data = inflate.unconsumed_tail
                    go_on(written, header.store_bytes)
            whole = inflate.eof and not inflate.unused_data and written == header.store_bytes
            file.flush()
            os.fsync(file.fileno())
    except zlib.error:
        return "payload_changed"
    except OSError as error:
        raise exchange.unwritable(target, error) from error
    return None if whole and digest.hexdigest() == header.payload_sha256 else "payload_changed"


class Looked(NamedTuple):
    """What checking an unpacked snapshot found."""

    faults: list[SnapshotFault]
    checked: dict[str, int]


def examine(
    store: Store, device: str | None, header: Header, copy: str, stopped: Callable[[], bool], progress: Progress
) -> Looked:
    """Whether what came out of a snapshot is the store that its header tells of, and one of this store and device.

    Args:
        device: by what this store knows its device identity again.
        progress: is told the steps `pages` and `event_log`.
    """
    faults: list[SnapshotFault] = []
    checked = {"bytes": header.store_bytes}
    try:
        facts = snapshot.examine(copy)
        if facts is None:
            return Looked(["not_a_store"], checked)
        looked = snapshot.check(copy, chain_hash, stopped, progress)
    except SchemaMismatch:
        return Looked(["newer_schema"], checked)
    except StoreCorrupt:
        return Looked(["pages_damaged"], checked)
    checked |= {"pages": looked.pages, "event_log": looked.rows}
    if not looked.pages_sound:
        faults.append("pages_damaged")
    if not looked.chain_sound:
        faults.append("chain_broken")
    if (facts.head.seq, facts.head.hash.hex()) != (header.event_log_rows, header.event_log_head):
        faults.append("head_differs")
    if (facts.counts, facts.schema, facts.store_id) != (header.counts, header.schema, header.store_id):
        faults.append("counts_differ")
    if facts.store_id != store.store_id:
        faults.append("other_store")
    if None not in (facts.identity, device) and facts.identity != device:
        faults.append("other_device")
    return Looked(faults, checked)


def info(store: Store, header: Header, size: int) -> SnapshotInfo:
    """A header as reports have it."""
    return SnapshotInfo(
        snapshot_id=header.snapshot_id,
        created_at=format_us(header.created_at),
        own=header.store_id == store.store_id,
        label=header.label,
        profile=header.profile,
        backend=header.backend,
        version=header.version,
        schema=header.schema,
        store_id=header.store_id,
        bytes=size,
        store_bytes=header.store_bytes,
        counts=header.counts,
        event_log_rows=header.event_log_rows,
        event_log_head=header.event_log_head,
    )


def replaced(store: Store) -> list[exchange.Beside]:
    """The stores that a restore has set aside."""
    if store.settings.backend == "in-memory":
        return []
    return [each for each in exchange.beside(store.settings.path) if each.kind == exchange.BEFORE]


def horizon(store: Store, now: int) -> str | None:
    """The time of the newest copy of the store that stands beside it, or None: what is erased now may be in every copy
    up to then, and is gone when they are pruned.

    Args:
        now: microseconds; what a copy counts as that cannot be read.
    """
    if store.settings.backend == "in-memory":
        return None
    try:
        times = [now if each.header is None else each.header.created_at for each in kept(store)]
        times += [_set_aside_at(each.path) for each in replaced(store)]
    except (OSError, BeetleError):
        times = [now]
    return format_us(max(times)) if times else None


def _set_aside_at(path: str) -> int:
    """When a store was given this name: its inode changed then."""
    return os.stat(path).st_ctime_ns // 1000


def remove(store: Store, path: str) -> None:
    """Remove a copy.

    Raises:
        StoreReadOnly: the folder does not allow it.
    """
    try:
        _remove(path)
    except OSError as error:
        raise exchange.unwritable(store.settings.path, error) from error


def _store_bytes(store: Store) -> int:
    with store.read() as tx:
        return tx.value("PRAGMA page_count") * tx.value("PRAGMA page_size")


def _need(folder: str, size: int) -> None:
    if free_bytes(folder) < size:
        raise StorageFull(path=folder)


def sweep(store: Store) -> int:
    """Take away what a crash has left half-made in the snapshots' folder, while no snapshot is made; how many files."""
    if store.settings.backend == "in-memory":
        return 0
    folder = folder_of(store)
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return 0
    parts = [os.path.join(folder, name) for name in names if PART.fullmatch(name)]
    for part in parts:
        remove(store, part)
    return len(parts)


def _remove(*paths: str) -> None:
    for path in paths:
        with suppress(FileNotFoundError):
            os.unlink(path)


def _compress(source: BinaryIO, target: BinaryIO, go_on: GoOn) -> tuple[int, str]:
    """Bytes and SHA-256 of what was written."""
    deflate, digest, size = zlib.compressobj(LEVEL), hashlib.sha256(), 0
    read, whole = 0, os.fstat(source.fileno()).st_size
    while data := source.read(CHUNK):
        out = deflate.compress(data)
        digest.update(out)
        size += target.write(out)
        read += len(data)
        go_on(read, whole)
    out = deflate.flush()
    digest.update(out)
    return size + target.write(out), digest.hexdigest()


def _encode(header: Header) -> bytes:
    text = MAGIC + pack_json(header, in_order=True)
    assert len(text) < HEADER_BYTES, "its texts are bounded"
    padded = text.ljust(HEADER_BYTES - 1) + b"\n"
    return padded + hashlib.sha256(padded).hexdigest().encode() + b"\n"


def _decode(head: bytes, size: int) -> tuple[Header | None, SnapshotFault | None]:
    if not head.startswith(MAGIC):
        return None, "other_version" if head.startswith(ANY_MAGIC) else "header_broken"
    padded, line = head[:HEADER_BYTES], head[HEADER_BYTES:]
    if line != hashlib.sha256(padded).hexdigest().encode() + b"\n":
        return None, "cut_short" if size < PAYLOAD_AT else "header_broken"
    try:
        header = msgspec.json.decode(padded[len(MAGIC) :], type=Header)
    except msgspec.DecodeError:
        return None, "header_broken"
    if size != PAYLOAD_AT + header.payload_bytes:
        return None, "cut_short" if size < PAYLOAD_AT + header.payload_bytes else "payload_changed"
    return header, None


@contextmanager
def _open(path: str) -> Generator[BinaryIO]:
    """A regular file, no link, to be read.

    Raises:
        OSError: it is none, or cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        yield file


@contextmanager
def _new_file(path: str) -> Generator[BinaryIO]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        yield file
