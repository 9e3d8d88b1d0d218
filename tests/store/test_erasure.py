"""Erased content is in no byte of the store's files, whatever its neighbours and readers do."""

from __future__ import annotations

import os
import random
import re
import shutil
import string
import tempfile
import time
from pathlib import Path
from typing import Any

import apsw
import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import Conflict
from beetle.store.engine.connection import PAGE_SIZE
from beetle.store.engine.scrub import scrubbed
from tests.faults.fault_vfs import FaultVFS
from tests.store.conftest import (
    CONVERSATION,
    DISK_BACKENDS,
    assert_clean,
    bytes_of,
    commit,
    delete_skill,
    files_of,
    found,
    held_snapshot,
    lifecycle,
    open_runtime,
    store_of,
    turn,
    wait_for_erasures,
    write_skill,
)

RARE = "qxz"
COMMON = "".join(sorted(set(string.ascii_lowercase) - set(RARE)))
WINDOW = 6
DIGEST = 32
"""Bytes of one."""
RUN = re.compile(rb"[a-z]{%d,}" % WINDOW)


class Words:
    """Random words. Every third letter of a canary is one that no other word has, so six letters of one betray it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.common = ["".join(self.rng.choices(COMMON, k=self.rng.randint(3, 9))) for _ in range(2000)]

    def canary(self, prefix: str = "") -> str:
        letters = (self.rng.choice(COMMON + COMMON + RARE if place % 3 else RARE) for place in range(18))
        return prefix + "".join(letters)

    def sentence(self) -> str:
        """Mostly short, now and then longer than a page."""
        most = self.rng.choice((10, 10, 30, 30, 30, 1000))
        return " ".join(self.rng.choices(self.common, k=self.rng.randint(2, most)))


def windows(word: str) -> set[bytes]:
    """Every stretch of six letters, which every longer piece, stem and prefix of the word has one of."""
    folded = word.lower().encode()
    return {folded[start : start + WINDOW] for start in range(len(folded) - WINDOW + 1)}


def remnants(data: bytes, erased: list[str], alive: list[str] = []) -> set[bytes]:  # noqa: B006 - read only
    """Six letters and more of erased words, case-folded, that no living word accounts for."""
    sought = set().union(*(windows(word) for word in erased)) - set().union(*(windows(word) for word in alive), set())
    return pieces(data, sought)


def pieces(data: bytes, sought: set[bytes]) -> set[bytes]:
    """Those of the stretches of six letters that stand in the data, case-folded."""
    left: set[bytes] = set()
    for run in set(RUN.findall(data.lower())):
        left |= {run[at : at + WINDOW] for at in range(len(run) - WINDOW + 1)} & sought
    return left


def digests(path: str) -> list[bytes]:
    """The digests and seals of records, the hashes of the event log and its signed head, as a copy of the store's files
    has them."""
    with tempfile.TemporaryDirectory() as folder:
        for file in files_of(path):
            if file.name.endswith((".db", "-wal", "-journal")):
                shutil.copy(file, folder)
        copy = apsw.Connection(str(Path(folder, Path(path).name)))
        try:
            tables = "SELECT digest FROM turn UNION SELECT digest FROM message UNION SELECT hash FROM event_log"
            known = [row[0] for row in copy.execute(tables)]
            seals = "SELECT seal FROM turn WHERE seal IS NOT NULL UNION SELECT seal FROM row_seal"
            sealed = [
                row[0]
                for row in copy.execute(f"{seals} UNION SELECT sum FROM table_seal UNION SELECT seal FROM table_seal")
            ]
            signed = [row[0].encode() for row in copy.execute("SELECT signed FROM log_head WHERE signed IS NOT NULL")]
        finally:
            copy.close()
    assert all(len(each) == DIGEST for each in known), "what is no digest must be searched"
    assert all(len(each) <= DIGEST for each in sealed)
    return known + sealed + signed


def without_chance(path: str, data: bytes, left: set[bytes]) -> bytes:
    """The data less the digests that hold one of these pieces. Any other place of the same piece stays in it.

    A digest is random bytes: six of them are a given piece of a word in one case of 128**6. But ten thousand turns have
    600 kB of digests and five thousand pieces are sought in them, so in one store of a thousand one is found. Nothing
    else in a store is random by the kilobyte: without the digests, not even four letters of a word are found by chance.
    """
    for each in digests(path):
        if pieces(each, left):
            data = data.replace(each, bytes(len(each)))
    return data


def assert_gone(path: str, erased: list[str], alive: list[str] = []) -> None:  # noqa: B006 - read only
    # The identity is random letters, in which six of a word stand by chance now and then; nothing said is ever in it.
    data = bytes_of(path).replace(Path(f"{path}.identity").read_bytes(), b"")
    left = remnants(data, erased, alive)
    if left:
        data = without_chance(path, data, left)
        left = pieces(data, left)
    folded = data.lower()
    # What stands around a piece tells where it was left.
    around = [folded[max(0, folded.find(each) - 24) : folded.find(each) + 30] for each in sorted(left)[:5]]
    assert not left, f"{len(left)} pieces left of {len(erased)} erased words: {around}"


def gaps(path: str) -> list[int]:
    """Pages of the database file with something between their cell pointers and their cells."""
    data, dirty = Path(path).read_bytes(), []
    for offset in range(0, len(data), PAGE_SIZE):
        page = data[offset : offset + PAGE_SIZE]
        if scrubbed(page, offset) != page:
            dirty.append(offset // PAGE_SIZE + 1)
    return dirty


def canary_turn(turn_id: str, canaries: list[str], neighbour: str = "") -> dict[str, Any]:
    """A turn with canaries in the content, in a label, and in an attr's key and value."""
    content, label, key, value = canaries
    return turn(
        turn_id,
        f"{neighbour} {content} {content.upper()}ing, said once more: {content.title()}s.",
        host_refs=[{"kind": "task", "ref_id": "r1", "label": f"about {label}"}],
        # A row's columns stand side by side: figures keep one word from running into the next.
        attrs=[{"key": f"7{key}7", "value": f"7{value} and more"}],
    )


@pytest.mark.parametrize("backend", DISK_BACKENDS)
@pytest.mark.parametrize("prefix", ["", "zebraqpre"])
def test_an_erased_turn_is_in_no_byte_of_a_small_store(path: str, backend: str, prefix: str) -> None:
    words = Words(1)
    canaries = [words.canary(prefix) for _ in range(4)]
    kept = words.canary(prefix)
    with open_runtime(path, backend) as memory:
        commit(memory, turn("t0", f"before {kept}"), canary_turn("t1", canaries), turn("t2", "after it"))
        assert remnants(bytes_of(path), canaries, [kept]) and found(memory, canaries[0])
        assert lifecycle(memory, "delete_raw", "t1").erasure == "done"
        assert_gone(path, canaries, [kept])
        assert not found(memory, canaries[0]) and found(memory, kept)
        assert_clean(memory)
    assert_gone(path, canaries, [kept])


def fill(memory: MemoryRuntime, words: Words, turns: int, canaries: dict[str, list[str]]) -> None:
    batch: list[dict[str, Any]] = []
    for number in range(turns):
        name = f"t{number}"
        if name in canaries:
            batch.append(canary_turn(name, canaries[name], words.sentence()))
        elif words.rng.random() < 0.2:
            batch.append(canary_turn(name, [words.sentence()[:200] for _ in range(4)]))
        else:
            batch.append(turn(name, words.sentence()))
        if len(batch) == 100 or number == turns - 1:
            commit(memory, *batch)
            batch = []


def erase_in_rounds(path: str, backend: str, prefix: str, turns: int, count: int, rounds: int, seed: int) -> None:
    words = Words(seed)
    places = words.rng.sample(range(turns), count)
    canaries = {f"t{place}": [words.canary(prefix) for _ in range(4)] for place in places}
    with open_runtime(path, backend, wal_bytes=256 * 1024) as memory:
        fill(memory, words, turns, canaries)
        everything = [word for four in canaries.values() for word in four]
        assert len(remnants(bytes_of(path), everything)) > 10 * len(canaries)
        order = list(canaries)
        words.rng.shuffle(order)
        neighbours = [f"t{number}" for number in range(turns) if f"t{number}" not in canaries]
        words.rng.shuffle(neighbours)
        for step in range(rounds):
            # Most neighbours go with time, so that pages of tables and index run empty, merge and are filled anew.
            many = neighbours[step::rounds][: int(turns * 0.85 / rounds)]
            for start in range(0, len(many), 500):
                assert lifecycle(memory, "delete_raw", *many[start : start + 500]).erasure == "done"
            commit(memory, *(turn(f"n{step}-{number}", words.sentence()) for number in range(50)))
            for name in order[step::rounds]:
                assert lifecycle(memory, "delete_raw", name).erasure == "done"
            gone = [
                word
                for name in order
                if any(name in order[s::rounds] for s in range(step + 1))
                for word in canaries[name]
            ]
            alive = [word for word in everything if word not in set(gone)]
            assert_gone(path, gone, alive)
            assert not gaps(path), "cells that moved to other pages were left where they had stood"
        assert_clean(memory)
    assert_gone(path, everything)


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_canaries_among_neighbours_leave_nothing_while_pages_merge(path: str, backend: str) -> None:
    erase_in_rounds(path, backend, "zebraqpre", turns=700, count=20, rounds=2, seed=7)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("prefix", ["", "zebraqpre"])
@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_a_hundred_canaries_among_ten_thousand_neighbours_leave_nothing(
    path: str, backend: str, prefix: str, seed: int
) -> None:
    erase_in_rounds(path, backend, prefix, turns=10_000, count=100, rounds=5, seed=seed)


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_letters_in_a_digest_are_no_remnant_and_the_same_letters_elsewhere_are(path: str, backend: str) -> None:
    with open_runtime(path, backend) as memory:
        # One digest of five hundred has six letters in a row, whichever they are.
        for start in range(0, 3000, 500):
            commit(memory, *(turn(f"t{number}", f"{number}") for number in range(start, start + 500)))
        words = [each.decode() for known in digests(path) for each in RUN.findall(known.lower())]
        assert words and remnants(bytes_of(path), words)
        assert_gone(path, words)
        commit(memory, turn("said", f"about {words[0]}"))
        with pytest.raises(AssertionError, match="pieces left"):
            assert_gone(path, words)


def deletion_of(turn_id: str) -> dict[str, object]:
    return {"conversation": CONVERSATION, "action": "delete_raw", "turn_ids": [turn_id], "reason": "r"}


@pytest.mark.parametrize("backend", ["sqlite", "embedded"])
def test_an_erasure_waits_for_a_reader_that_holds_an_old_snapshot(path: str, backend: str) -> None:
    canaries = [Words(2).canary() for _ in range(4)]
    ahead = [0]
    with open_runtime(path, backend, now=lambda: time.time_ns() // 1000 + ahead[0]) as memory:
        commit(memory, canary_turn("t1", canaries), turn("t2", "stays"))
        with held_snapshot(memory):
            # Its deadline is short so that the report comes while the reader is still there.
            report = memory.call("transcript.lifecycle", deletion_of("t1"), deadline_ms=300)
            assert report.erasure == "pending" and memory.inspect().store.pending_erasures == 1
            assert not found(memory, canaries[0])
            # Nobody waits for the reader: others write meanwhile.
            commit(memory, turn("t3", "written meanwhile"))
            ahead[0] = 10 * 365 * 86_400_000_000
            assert memory.verify_store().clean, "nothing has waited for as long as the clock was put forward"
            ahead[0] = -time.time_ns() // 1000
            assert memory.call("transcript.lifecycle", deletion_of("t2"), deadline_ms=300).erasure == "pending"
            ahead[0] = 0
            assert memory.verify_store().clean, "what was erased in 1970 has not waited since then"
        wait_for_erasures(memory)
        assert memory.inspect().store.pending_erasures == 0
        assert_gone(path, canaries)


@pytest.mark.parametrize("backend", ["sqlite", "embedded"])
def test_an_erasure_that_was_pending_at_a_crash_is_finished_by_the_next_opening(path: str, backend: str) -> None:
    canaries = [Words(3).canary() for _ in range(4)]
    crashed = Path(path).parent / "crashed" / "store.db"
    crashed.parent.mkdir()
    with open_runtime(path, backend) as memory:
        commit(memory, canary_turn("t1", canaries))
        with held_snapshot(memory):
            assert memory.call("transcript.lifecycle", deletion_of("t1"), deadline_ms=300).erasure == "pending"
            for file in files_of(path):
                if not file.name.endswith((".lock", "-shm")):
                    shutil.copy(file, crashed.parent / file.name)
    assert remnants(bytes_of(crashed), canaries)
    with open_runtime(crashed, backend) as memory:
        assert memory.open_report.pending_erasures == 1
        wait_for_erasures(memory)
        assert_gone(os.fspath(crashed), canaries)
        assert_clean(memory)


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_a_deleted_skill_is_in_no_byte_with_all_its_revisions(path: str, backend: str) -> None:
    words = Words(4)
    first, second, title, reason = (words.canary() for _ in range(4))
    with open_runtime(path, backend) as memory:
        for number in range(40):
            write_skill(memory, f"other{number}", words.sentence())
        write_skill(memory, "secret", f"do {first} twice", title=f"On {title}")
        memory.edit_runtime_skill(name="secret", procedure=f"no, do {second}", edit_reason=f"since {reason}")
        memory.set_runtime_skill_enabled(name="secret", enabled=False)
        memory.set_runtime_skill_enabled(name="secret", enabled=True)
        assert delete_skill(memory, "secret").outcome == "deleted"
        wait_for_erasures(memory)
        assert_gone(path, [first, second, title, reason])
        assert_clean(memory)


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_masked_content_leaves_the_index_and_then_the_store(path: str, backend: str) -> None:
    canaries = [Words(5).canary() for _ in range(4)]
    with open_runtime(path, backend) as memory:
        commit(memory, canary_turn("t1", canaries), turn("t2", "a neighbour"))
        lifecycle(memory, "mask", "t1")
        assert not found(memory, canaries[0])
        with store_of(memory).read() as tx:
            blocks = b"\x00".join(row[0] for row in tx.rows("SELECT block FROM recall_index_data"))
        assert not remnants(blocks, canaries[:1]), "the term stays in the index"
        assert lifecycle(memory, "delete_raw", "t1").erasure == "done"
        assert_gone(path, canaries)


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_what_was_never_committed_leaves_nothing(path: str, backend: str) -> None:
    words = Words(6)
    refused, conflicting, kept = words.canary(), words.canary(), words.canary()
    with open_runtime(path, backend, page_cache_kib=32) as memory:
        commit(memory, turn("t1", "as it was"), turn("t2", kept))
        with pytest.raises(Conflict):
            commit(memory, turn("t9", f"{refused} " * 5000), turn("t1", f"otherwise {conflicting}"))
        lifecycle(memory, "delete_raw", "t2")
        assert_gone(path, [refused, conflicting, kept])


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_idempotency_rows_and_the_event_log_hold_no_content(path: str, backend: str) -> None:
    words = Words(7)
    canaries = [words.canary() for _ in range(4)]
    with open_runtime(path, backend) as memory:
        arguments = {"conversation": CONVERSATION, "turns": [canary_turn("t1", canaries)]}
        for _ in range(2):
            assert memory.call("transcript.commit", arguments, idempotency_key="k1").committed == 1
        skill = {"name": "s", "topic": "w", "title": "t", "summary": "s", "content": words.canary()}
        canaries.append(skill["content"])
        memory.call("memory.write", {"kind": "procedural", "source": "manual", "writes": [skill]}, idempotency_key="k2")
        reads = [{"op": "transcript.replay", "args": {"conversation": CONVERSATION, "view": "raw_owner"}},
                 {"op": "skill.detail", "args": {"name": "s"}}]  # fmt: skip
        again = {"op": "transcript.commit", "args": arguments}
        memory.call("batch", {"requests": [again, *reads]}, idempotency_key="k3")
        with store_of(memory).read() as tx:
            rows = [*tx.rows("SELECT * FROM idempotency"), *tx.rows("SELECT * FROM event_log")]
        assert rows and not remnants(repr(rows).encode() + b"".join(row[5] for row in rows[:3]), canaries)
        delete_skill(memory, "s")
        lifecycle(memory, "delete_raw", "t1")
        wait_for_erasures(memory)
        assert_gone(path, canaries)


def test_no_temp_file_is_written_for_savepoints_or_sorts(path: str) -> None:
    vfs = FaultVFS()
    try:
        with open_runtime(path, "sqlite", vfs=vfs.name, page_cache_kib=32) as memory:
            with pytest.raises(Conflict):
                commit(memory, turn("t0", "x"), turn("t1", "many words " * 20_000), turn("t0", "y"))
            commit(memory, *(turn(f"t{number}", f"many words {number} " * 2000) for number in range(40)))
            memory.verify_store()
        assert {Path(name).suffix for name in vfs.disks} <= {".db", ".db-wal", ".db-journal"}
        assert vfs.temporary == 0
    finally:
        vfs.close()


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_turns_committed_one_by_one_leave_nothing_in_the_index(path: str, backend: str) -> None:
    words = Words(8)
    canaries = {f"t{place}": [words.canary() for _ in range(4)] for place in range(0, 300, 10)}
    with open_runtime(path, backend, wal_bytes=64 * 1024) as memory:
        for number in range(300):
            name = f"t{number}"
            one = canary_turn(name, canaries[name], "x") if name in canaries else turn(name, words.sentence()[:300])
            commit(memory, one)
        for number in range(300):
            if number % 3 or f"t{number}" in canaries:
                lifecycle(memory, "delete_raw", f"t{number}")
        assert_gone(path, [word for four in canaries.values() for word in four])
        assert_clean(memory)


def marks(memory: MemoryRuntime) -> set[str]:
    """The beginnings of terms by which FTS5 finds the pages of the index."""
    with store_of(memory).read() as tx:
        return {
            bytes(row[0])[1:].decode() for row in tx.rows("SELECT term FROM recall_index_idx WHERE length(term) > 5")
        }


@pytest.mark.parametrize("backend", DISK_BACKENDS)
@pytest.mark.parametrize("masked_first", [False, True])
def test_an_erased_word_does_not_stay_as_the_mark_of_an_index_page(path: str, backend: str, masked_first: bool) -> None:
    words = Words(9)
    canaries = {f"t{number}": words.canary("zebraqpre") for number in range(600)}
    with open_runtime(path, backend) as memory:
        commit(memory, *(turn(name, f"{word} {word}y {word[:-2]}") for name, word in canaries.items()))
        marked = {name for name, word in canaries.items() if any(mark.startswith(word[:13]) for mark in marks(memory))}
        assert len(marked) >= 3, "no mark is long enough to betray a word"
        if masked_first:
            lifecycle(memory, "mask", *marked)
        lifecycle(memory, "delete_raw", *marked)
        left = {mark for mark in marks(memory) for name in marked if mark.startswith(canaries[name][:13])}
        assert not left
        assert_gone(path, [canaries[name] for name in marked], [w for n, w in canaries.items() if n not in marked])
        assert_clean(memory)
        for name, word in canaries.items():
            assert bool(found(memory, word)) == (name not in marked), (name, word)
