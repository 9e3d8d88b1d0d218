"""One flipped bit of a record's header makes a value one of another type, or moves all that are behind it: what reads
it says that it is damaged, or leaves it out, and never meets it as a defect.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from beetle.contracts.errors import BeetleError
from beetle.open import open_store
from beetle.store.engine.connection import PAGE_SIZE
from beetle.store.indexed import varint
from tests.adversary.test_damaged_text import call
from tests.building import Plain, message, talk, turn
from tests.conformance.doors import PROFILE

TABLES = ("message", "turn", "body", "conversation")
TABLE_LEAF = 0x0D
CONVERSATION = {"channel_id": "local", "conversation_id": "talk"}
READS: list[tuple[str, Plain]] = [
    ("store.verify", {}), ("memory.recall", {"query": "kettle number"}), ("memory.project", {"user_query": "kettle"}),
    ("transcript.replay", {"conversation": CONVERSATION, "view": "model_context"}), ("transcript.conversations", {}),
    ("transcript.repair", {}),
]  # fmt: skip


def headers(store: Path, records: int) -> Iterator[int]:
    """The places of all bytes of the first records' headers that tell of types, in a page of each table."""
    data = store.read_bytes()
    connection = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)
    pages = list(connection.execute("SELECT name, min(pageno) FROM dbstat WHERE pagetype = 'leaf' GROUP BY name"))
    connection.close()
    for start in (PAGE_SIZE * (page - 1) for name, page in pages if name in TABLES):
        assert data[start] == TABLE_LEAF
        for record in range(min(records, int.from_bytes(data[start + 3 : start + 5], "big"))):
            pointer = start + 8 + 2 * record
            _, at = varint(data, start + int.from_bytes(data[pointer : pointer + 2], "big"))
            _, header = varint(data, at)
            size, first = varint(data, header)
            yield from range(first, header + size)


def failures(path: Path) -> dict[str, str]:
    """The error of each operation that fails."""
    opened = open_store(str(path), PROFILE)
    failed: dict[str, str] = {}
    try:
        for op, args in READS:
            try:
                call(opened, op, args)
            except BeetleError as error:
                failed[op] = error.key
    finally:
        opened.store.close()
    return failed


@pytest.mark.parametrize("flips", [24, pytest.param(None, marks=pytest.mark.slow)])
def test_no_read_takes_a_damaged_record_for_a_defect(tmp_path: Path, flips: int | None) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    opened = open_store(str(kept / "store.db"), PROFILE)
    for number in range(6):
        said = (message(f"{number}-{place}", f"the kettle number {number} is {place}") for place in range(2))
        call(opened, "transcript.commit", talk(turn(f"t{number}", *said)))
    opened.store.write(lambda tx: tx.write_index())
    opened.store.close()
    whole = (kept / "store.db").read_bytes()
    bits = [(place, bit) for place in headers(kept / "store.db", 2) for bit in range(8)]
    assert failures(kept / "store.db") == {}
    for place, bit in bits if flips is None else random.Random(7).sample(bits, flips):
        folder = tmp_path / "flipped"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(kept, folder)
        damaged = bytearray(whole)
        damaged[place] ^= 1 << bit
        (folder / "store.db").write_bytes(damaged)
        failed = failures(folder / "store.db")
        assert set(failed.values()) <= {"store_corrupt", "integrity_violation"}, (place, bit, failed)
        assert "store.verify" not in failed, (place, bit)
