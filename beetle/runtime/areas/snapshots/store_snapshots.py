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

from beetle.contracts.codec import format_us, pack_json, replace
from beetle.contracts.errors import BeetleError, NotFound, SchemaMismatch, StorageFull, StoreCorrupt
from beetle.contracts.snapshots import SnapshotFault, SnapshotInfo
from beetle.domain.chain import chain_hash
from beetle.runtime.host import signed_text
from beetle.runtime.host.identity import Keys
from beetle.runtime.host.signed_text import SNAPSHOT, Signer
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import snapshot_file
from beetle.store.engine import exchange
from beetle.store.engine.progress import Progress
from beetle.store.engine.schema import SchemaAltered
from beetle.store.engine.store import Store, free_bytes
from beetle.store.snapshot_file import CheckContinue

MAGIC = b"beetle-snapshot 2\n"
UNSIGNED_MAGIC = b"beetle-snapshot 1\n"
"""Of the same form, made before snapshots were signed."""
ANY_MAGIC = b"beetle-snapshot "
HEADER_BYTES = 8192
DIGEST_LINE = 65
PAYLOAD_AT = HEADER_BYTES + DIGEST_LINE
CHUNK = 256 * 1024
LEVEL = 3
"""Of zlib: half the time of its default for a few percent more bytes."""
SPARE_BYTES = 16 * 2**20
"""What a copy leaves free on the disk."""
RESTARTS = 3
"""How often a snapshot begins again because something was erased meanwhile; the next is kept, and told of."""
ERASED_WAIT_S = 5.0
MOST = 2**62
ID = re.compile(r"s-[0-9a-f]{16}")
FILE = re.compile(r"(s-[0-9a-f]{16})\.beetle-snapshot")
Text = Annotated[str, Meta(max_length=512)]
Number = Annotated[int, Meta(ge=0, le=MOST)]


class Header(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a snapshot says of itself. Times in microseconds, sizes in bytes. `sequence` is higher than that of every
    other one that stood beside it: clocks may go back.
    """

    snapshot_id: Annotated[str, Meta(pattern=r"^s-[0-9a-f]{16}\Z")]
    created_at: Annotated[int, Meta(ge=-62_135_596_800_000_000, le=253_402_300_799_999_999)]
    sequence: Number = 0
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
    signed: Annotated[str, Meta(max_length=signed_text.MOST_CHARS)] | None = None
    """The device's statement over the rest of the header; None where its identity could not be used."""


class SnapshotFile(NamedTuple):
    """A file of the snapshots' folder: its header, or what is wrong with it."""

    snapshot_id: str
    path: str
    bytes: int
    header: Header | None
    fault: SnapshotFault | None = None


def folder_of(store: Store) -> str:
    """Where the snapshots of a store are."""
    return store.settings.path + exchange.SNAPSHOTS


def path_of(store: Store, snapshot_id: str) -> str:
    """Where a snapshot is. The id must be one of ours: nothing else is made a path of."""
    return os.path.join(folder_of(store), f"{snapshot_id}.beetle-snapshot")


class _Erased(Exception):
    """Something was erased since the copy began, which holds it."""


def create(invocation: Invocation, label: str | None, check_continue: CheckContinue) -> tuple[Header, int]:
    """Make a snapshot of a store that is in use; its header, and how often the copy began again.

    What was erased while it was made is not in it, unless that happened again and again; the erasure's horizon says so.

    Args:
        invocation: its progress is told the steps `copy` and `compress`.
        check_continue: what it raises ends the work and leaves nothing behind.

    Raises:
        StorageFull, StoreReadOnly: the folder has no room, or takes no file.
    """
    writer = invocation.shared.store.writer
    for again in range(RESTARTS):
        before = writer.erased

        def look(done: int, of: int, before: int = before) -> None:
            check_continue(done, of)
            if writer.erased != before:
                raise _Erased

        try:
            header, restarts = _create(invocation, label, look)
        except _Erased:
            # Else the next copy would hold the log, and with it the erasure.
            writer.finish_erasures(ERASED_WAIT_S)
        else:
            return header, again + restarts
    header, restarts = _create(invocation, label, check_continue)
    return header, RESTARTS + restarts


def _create(invocation: Invocation, label: str | None, check_continue: CheckContinue) -> tuple[Header, int]:
    shared, progress, snapshot_id = invocation.shared, invocation.progress, invocation.new_id("s")
    store, created_at = shared.store, shared.dependencies.clock()
    folder = folder_of(store)
    stem = os.path.join(folder, snapshot_id)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        sweep(store)
        with store.read() as tx:
            size = tx.value("PRAGMA page_count") * tx.value("PRAGMA page_size")
        _need(folder, 2 * size + SPARE_BYTES)
        progress.step("copy")
        shared.heads.sign()
        copied = snapshot_file.back_up(store.settings, store.gate, stem + ".copy", check_continue)
        # It was read by the store's name, which may be another's by now.
        store.files.check()
        facts = snapshot_file.examine(stem + ".copy")
        if facts is None:
            raise StoreCorrupt(path=folder, reason="the copy is not a complete store")
        with open(stem + ".copy", "rb") as source, _new_file(stem + ".part") as target:
            target.write(bytes(PAYLOAD_AT))
            progress.step("compress")
            size, digest = _compress(source, target, check_continue)
            header = Header(
                snapshot_id=snapshot_id,
                created_at=created_at,
                sequence=_next_sequence(store),
                label=label,
                version=shared.version,
                profile=shared.profile.name,
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
            if (keys := shared.identity.keys()) is not None:
                header = signed(header, keys)
            target.seek(0)
            target.write(_encode(header))
            target.flush()
            os.fsync(target.fileno())
            check_continue(header.store_bytes, header.store_bytes)
        os.rename(stem + ".part", path_of(store, snapshot_id))
        exchange.sync_folder(stem)
        exchange.sync_folder(folder)
    except OSError as error:
        raise exchange.unwritable(folder, error) from error
    finally:
        # Not before the snapshot has its name: `horizon` looks for these first.
        _remove(stem + ".copy", stem + ".part")
    return header, copied.restarts


def _next_sequence(store: Store) -> int:
    highest = max((each.header.sequence for each in snapshot_files(store) if each.header is not None), default=0)
    return min(highest + 1, MOST)


def signed(header: Header, keys: Keys) -> Header:
    """The header with the device's statement over it."""
    said = signed_text.sign(keys, SNAPSHOT, digest=_digest(header), store=header.store_id, rows=header.event_log_rows)
    return replace(header, signed=said)


def signer_of(invocation: Invocation, header: Header) -> Signer:
    """Whose signature the header bears. It covers the payload too, whose digest is in the header."""
    with invocation.shared.store.read() as tx:
        known = signed_text.known_key(invocation.shared.identity, tx)
    return signed_text.signer_of(header.signed, SNAPSHOT, known, digest=_digest(header))


def _digest(header: Header) -> str:
    return hashlib.sha256(MAGIC + pack_json(replace(header, signed=None), in_order=True)).hexdigest()


def snapshot_files(store: Store) -> list[SnapshotFile]:
    """Every snapshot file of a store, the last one made first; what is broken comes last."""
    try:
        names = os.listdir(folder_of(store))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise exchange.unwritable(folder_of(store), error) from error
    found = [
        read_snapshot_file(os.path.join(folder_of(store), name), match[1])
        for name in names
        if (match := FILE.fullmatch(name))
    ]
    return sorted(found, key=place)


def place(each: SnapshotFile) -> tuple[int, int, int, str]:
    """Where a snapshot stands among the others; by its time only where an older build has made it."""
    header = each.header
    return (
        (1, 0, 0, each.snapshot_id) if header is None else (0, -header.sequence, -header.created_at, each.snapshot_id)
    )


def find(store: Store, snapshot_id: str) -> SnapshotFile:
    """One snapshot file.

    Raises:
        NotFound: there is none of that id.
    """
    path = path_of(store, snapshot_id) if ID.fullmatch(snapshot_id) else ""
    if not path or not os.path.lexists(path):
        raise NotFound(kind="snapshot", name=snapshot_id, listing="`beetle snapshot list` lists the snapshots")
    return read_snapshot_file(path, snapshot_id)


def read_snapshot_file(path: str, snapshot_id: str) -> SnapshotFile:
    """What a snapshot file's header says; the payload is not read."""
    try:
        with _open(path) as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(PAYLOAD_AT)
    except OSError:
        return SnapshotFile(snapshot_id, path, 0, None, "unreadable")
    header, fault = _decode(head, size)
    if header is not None and header.snapshot_id != snapshot_id:
        header, fault = None, "header_broken"
    return SnapshotFile(snapshot_id, path, size, header, fault)


def unpack(found: SnapshotFile, target: str, check_continue: CheckContinue) -> SnapshotFault | None:
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
                    check_continue(written, header.store_bytes)
            whole = inflate.eof and not inflate.unused_data and written == header.store_bytes
            file.flush()
            os.fsync(file.fileno())
    except zlib.error:
        return "payload_changed"
    except OSError as error:
        raise exchange.unwritable(target, error) from error
    return None if whole and digest.hexdigest() == header.payload_sha256 else "payload_changed"


def read_back(found: SnapshotFile, check_continue: CheckContinue) -> SnapshotFault | None:
    """Read a snapshot from the disk, and say whether it is what was written."""
    header = found.header
    if header is None:
        return found.fault
    digest, read = hashlib.sha256(), 0
    try:
        with _open(found.path) as source:
            # From the disk, not from what the system still holds of it.
            os.posix_fadvise(source.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            source.seek(PAYLOAD_AT)
            while data := source.read(CHUNK):
                digest.update(data)
                read += len(data)
                check_continue(read, header.payload_bytes)
    except OSError:
        return "unreadable"
    return None if digest.hexdigest() == header.payload_sha256 else "payload_changed"


def examine(
    store: Store, device: str | None, header: Header, copy: str, stopped: Callable[[], bool], progress: Progress
) -> tuple[list[SnapshotFault], dict[str, int]]:
    """Whether what came out of a snapshot is the store that its header tells of, and one of this store and device: what
    is wrong, and how much was looked at.

    Args:
        device: by what this store knows its device identity again.
        progress: is told the steps `pages` and `event_log`.
    """
    faults: list[SnapshotFault] = []
    checked = {"bytes": header.store_bytes}
    try:
        facts = snapshot_file.examine(copy)
        if facts is None:
            return ["not_a_store"], checked
        looked = snapshot_file.check(copy, chain_hash, stopped, progress)
    except SchemaAltered:
        return ["schema_altered"], checked
    except SchemaMismatch:
        return ["newer_schema"], checked
    except StoreCorrupt:
        return ["pages_damaged"], checked
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
    return faults, checked


def info(store: Store, header: Header, size: int) -> SnapshotInfo:
    """A header as reports have it."""
    return SnapshotInfo(
        snapshot_id=header.snapshot_id,
        created_at=format_us(header.created_at),
        own=header.store_id == store.store_id,
        device=None if header.signed is None else signed_text.named_signer(header.signed, SNAPSHOT),
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
        # In this order: what is being made has a file of these until after it has its own name.
        times = [now] if exchange.unfinished(store.settings.path) else []
        times += [now if each.header is None else each.header.created_at for each in snapshot_files(store)]
        # A store's inode changed when it was given this name.
        times += [os.stat(each.path).st_ctime_ns // 1000 for each in replaced(store)]
    except (OSError, BeetleError):
        times = [now]
    return format_us(max(times)) if times else None


def remove(store: Store, path: str) -> None:
    """Remove a copy.

    Raises:
        StoreReadOnly: the folder does not allow it.
    """
    try:
        _remove(path)
    except OSError as error:
        raise exchange.unwritable(store.settings.path, error) from error


def _need(folder: str, size: int) -> None:
    if free_bytes(folder) < size:
        raise StorageFull(path=folder)


def sweep(store: Store) -> int:
    """Take away what a crash has left half-made in the snapshots' folder, while no snapshot is made; how many files."""
    if store.settings.backend == "in-memory":
        return 0
    parts = exchange.parts(store.settings.path)
    for part in parts:
        remove(store, part)
    return len(parts)


def _remove(*paths: str) -> None:
    for path in paths:
        with suppress(FileNotFoundError):
            os.unlink(path)


def _compress(source: BinaryIO, target: BinaryIO, check_continue: CheckContinue) -> tuple[int, str]:
    """Bytes and SHA-256 of what was written."""
    deflate, digest, size = zlib.compressobj(LEVEL), hashlib.sha256(), 0
    read, whole = 0, os.fstat(source.fileno()).st_size
    while data := source.read(CHUNK):
        out = deflate.compress(data)
        digest.update(out)
        size += target.write(out)
        read += len(data)
        check_continue(read, whole)
    out = deflate.flush()
    digest.update(out)
    return size + target.write(out), digest.hexdigest()


def _encode(header: Header) -> bytes:
    text = MAGIC + pack_json(header, in_order=True)
    assert len(text) < HEADER_BYTES, "its texts are bounded"
    padded = text.ljust(HEADER_BYTES - 1) + b"\n"
    return padded + hashlib.sha256(padded).hexdigest().encode() + b"\n"


def _decode(head: bytes, size: int) -> tuple[Header | None, SnapshotFault | None]:
    if not head.startswith((MAGIC, UNSIGNED_MAGIC)):
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
