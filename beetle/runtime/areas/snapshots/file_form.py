"""The form of snapshot files: a header that says what is inside, and the whole store, compressed.

A file is `MAGIC`, the header as JSON with spaces up to `HEADER_BYTES`, the SHA-256 of both in hex on a line, and the
store's database as one zlib stream. It is written under another name, synced, and only then given its own.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, BinaryIO

import msgspec
from msgspec import Meta, Struct

from beetle.contracts.codec import pack_json
from beetle.contracts.errors import NoDescriptor
from beetle.contracts.snapshots import SnapshotFault
from beetle.named_tuple import NamedTuple
from beetle.runtime.host import signed_text

MAGIC = b"beetle-snapshot 2\n"
UNSIGNED_MAGIC = b"beetle-snapshot 1\n"
"""Of the same form, made before snapshots were signed."""
ANY_MAGIC = b"beetle-snapshot "
HEADER_BYTES = 8192
DIGEST_LINE = 65
PAYLOAD_AT = HEADER_BYTES + DIGEST_LINE
MOST = 2**62
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


def read_snapshot_file(path: str, snapshot_id: str) -> SnapshotFile:
    """What a snapshot file's header says; the payload is not read.

    Raises:
        NoDescriptor: none is left. What cannot be read for another reason is broken, and pruned.
    """
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(PAYLOAD_AT)
    except OSError as error:
        NoDescriptor.refuse(error)
        return SnapshotFile(snapshot_id, path, 0, None, "unreadable")
    header, fault = _decode(head, size)
    if header is not None and header.snapshot_id != snapshot_id:
        header, fault = None, "header_broken"
    return SnapshotFile(snapshot_id, path, size, header, fault)


def encode(header: Header) -> bytes:
    """The head of a file."""
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
def open_file(path: str) -> Generator[BinaryIO]:
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
def new_file(path: str) -> Generator[BinaryIO]:
    """A file of its owner alone, which must not be there."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        yield file
