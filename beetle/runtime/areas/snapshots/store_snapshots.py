"""The snapshots of a store: making, finding and unpacking their files, and what they are said to hold."""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

from beetle.contracts.codec import format_us, pack_json, replace
from beetle.contracts.errors import (
    BeetleError,
    FolderRefused,
    NoDescriptor,
    NoRoom,
    NotFound,
    Overloaded,
    SchemaMismatch,
    StoreCorrupt,
)
from beetle.contracts.snapshots import SnapshotFault, SnapshotInfo
from beetle.domain.chain import chain_hash
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.snapshots.file_form import (
    MAGIC,
    MOST,
    PAYLOAD_AT,
    Header,
    SnapshotFile,
    encode,
    new_file,
    open_file,
    read_snapshot_file,
)
from beetle.runtime.host import signed_text
from beetle.runtime.host.identity import Keys
from beetle.runtime.host.signed_text import SNAPSHOT, Signer
from beetle.runtime.host.trusted_file import distrust_folder
from beetle.runtime.pipeline.invocation import Facilities, Invocation
from beetle.store import private, snapshot_file
from beetle.store.engine import exchange
from beetle.store.engine.progress import Progress
from beetle.store.engine.schema import SchemaAltered
from beetle.store.engine.store import Store, free_bytes
from beetle.store.snapshot_file import CheckContinue

CHUNK = 256 * 1024
LEVEL = 3
"""Of zlib: half the time of its default for a few percent more bytes."""
SPARE_BYTES = 16 * 2**20
"""What a copy leaves free on the disk."""
RESTARTS = 3
"""How often a snapshot begins again because something was erased meanwhile; the next is kept, and told of."""
ERASED_WAIT_S = 5.0
BUSY_MS = 1000
JOURNALS = (".copy-journal", ".copy-wal", ".copy-shm")
"""What SQLite leaves beside a copy that the disk had no room for."""

ID = re.compile(r"s-[0-9a-f]{16}")
FILE = re.compile(r"(s-[0-9a-f]{16})\.beetle-snapshot")


def folder_of(store: Store) -> str:
    """Where the snapshots of a store are."""
    return store.settings.snapshot_folder


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
        StorageFull, StoreReadOnly: the folder has no room, is not this user's alone, or takes no file.
        Overloaded: another store has one made in the same folder.
    """
    store = invocation.shared.store
    folder = folder_of(store)
    try:
        check_folder(store, make=True)
        with exchange.making_in(folder) as alone:
            if not alone:
                raise Overloaded(
                    what=f"another snapshot is made in {folder}", maximum="one at a time", retry_after_ms=BUSY_MS
                )
            _sweep(store)
            return _restarted(invocation, label, check_continue)
    except OSError as error:
        raise exchange.unwritable(folder, error) from error


def _restarted(invocation: Invocation, label: str | None, check_continue: CheckContinue) -> tuple[Header, int]:
    """As `create`, in a folder that nobody else uses now."""
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


def check_folder(store: Store, *, make: bool = False) -> bool:
    """Whether the folder of snapshots is there; it is this user's alone then. One that was configured always is: it may
    be on another disk, and what is written where that is to be mounted would be hidden by it.

    Args:
        make: make the usual one where it is not there.

    Raises:
        FolderRefused: others may read it or change it, or it is configured and not there.
        OSError: it cannot be made.
    """
    folder, configured = folder_of(store), bool(store.settings.snapshots)
    if make and not configured:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    try:
        wrong = distrust_folder(folder, os.geteuid(), strictly=configured)
    except FileNotFoundError:
        if configured:
            raise FolderRefused(path=folder, reason="it is not there") from None
        return False
    if wrong is not None:
        raise FolderRefused(path=folder, reason=wrong.reason, hint=wrong.hint)
    return True


def folder_findings(store: Store) -> list[str]:
    """What keeps a configured folder from being used, to be told when the store is opened."""
    if not store.settings.snapshots or store.settings.backend == "in-memory":
        return []
    try:
        check_folder(store)
    except FolderRefused as error:
        return [f"{error.message}: {error.hint}"]
    except OSError as error:
        return [f"the folder of snapshots {folder_of(store)} cannot be looked at ({error.strerror})"]
    return []


def _create(invocation: Invocation, label: str | None, check_continue: CheckContinue) -> tuple[Header, int]:
    shared, progress, snapshot_id = invocation.shared, invocation.progress, invocation.new_id("s")
    store, created_at = shared.store, shared.dependencies.clock()
    folder = folder_of(store)
    stem = os.path.join(folder, snapshot_id)
    try:
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
        with open(stem + ".copy", "rb") as source, new_file(stem + ".part") as target:
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
                event_log_head=facts.head.digest,
            )
            if (keys := shared.identity.keys()) is not None:
                header = signed(header, keys)
            target.seek(0)
            target.write(encode(header))
            target.flush()
            os.fsync(target.fileno())
            check_continue(header.store_bytes, header.store_bytes)
        os.rename(stem + ".part", path_of(store, snapshot_id))
        exchange.sync_folder(stem)
        if not store.settings.snapshots:
            exchange.sync_folder(folder)
    except OSError as error:
        raise exchange.unwritable(folder, error) from error
    finally:
        # Not before the snapshot has its name: `horizon` looks for these first.
        _remove(*(stem + end for end in (".copy", *JOURNALS, ".part")))
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
        known = signed_text.known_keys(invocation.shared.identity, tx)
    return signed_text.signer_of(header.signed, SNAPSHOT, known, digest=_digest(header))


def _digest(header: Header) -> str:
    return hashlib.sha256(MAGIC + pack_json(replace(header, signed=None), in_order=True)).hexdigest()


def snapshot_files(store: Store) -> list[SnapshotFile]:
    """Every snapshot file of a store, the last one made first; what is broken comes last."""
    if not check_folder(store):
        return []
    try:
        names = os.listdir(folder_of(store))
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
        with open_file(found.path) as source, new_file(target) as file:
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
        with open_file(found.path) as source:
            # From the disk, not from what the system still holds of it.
            os.posix_fadvise(source.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            source.seek(PAYLOAD_AT)
            while data := source.read(CHUNK):
                digest.update(data)
                read += len(data)
                check_continue(read, header.payload_bytes)
    except OSError as error:
        NoDescriptor.refuse(error)
        return "unreadable"
    return None if digest.hexdigest() == header.payload_sha256 else "payload_changed"


class Recorded(NamedTuple):
    """By what a store knows its device identity again, as of `private.recorded_check`, and the ones before."""

    own: str | None
    former: frozenset[str]


def recorded(shared: Facilities) -> Recorded:
    """What the open store has recorded of its identities."""
    with shared.store.read() as tx:
        return Recorded(
            shared.identity.check, frozenset(each.check for each in private.former_identities(tx) if each.check)
        )


def examine(
    store: Store, device: Recorded, header: Header, copy: str, stopped: Callable[[], bool], progress: Progress
) -> tuple[list[SnapshotFault], dict[str, int]]:
    """Whether what came out of a snapshot is the store that its header tells of, and one of this store and device: what
    is wrong, and how much was looked at.

    Args:
        device: of the open store.
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
    if (facts.head.seq, facts.head.digest) != (header.event_log_rows, header.event_log_head):
        faults.append("head_differs")
    if (facts.counts, facts.schema, facts.store_id) != (header.counts, header.schema, header.store_id):
        faults.append("counts_differ")
    if facts.store_id != store.store_id:
        faults.append("other_store")
    if facts.identity is not None and device.own and facts.identity != device.own:
        faults.append("former_device" if facts.identity in device.former else "other_device")
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
        times = [now] if exchange.unfinished(store.settings.path, folder_of(store)) else []
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
        raise NoRoom(path=folder, needed=size, free=free_bytes(folder))


def sweep(store: Store) -> int:
    """Take away what a crash has left half-made in the snapshots' folder, while no snapshot is made; how many files."""
    if store.settings.backend == "in-memory":
        return 0
    try:
        if not exchange.parts(folder_of(store)):
            return 0
        with exchange.making_in(folder_of(store)) as alone:
            return _sweep(store) if alone else 0
    except OSError as error:
        raise exchange.unwritable(folder_of(store), error) from error


def _sweep(store: Store) -> int:
    parts = exchange.parts(folder_of(store))
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
