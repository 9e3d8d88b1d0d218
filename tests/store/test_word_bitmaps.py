"""Bitmaps of common words: written at night, dropped by whatever changes what they tell of, and never believed where
they are damaged. That searches find by them what the index holds is tested in test_postings.py."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import apsw
import pytest

from beetle import MemoryRuntime, __version__
from beetle.store import common_words, postings, salvage, word_bitmaps, word_lists
from tests.store.conftest import assert_clean, commit, files_of, lifecycle, open_runtime, store_of, turn

BITS = 3
BLOCK = 1 << BITS
EVERY_SQL = "SELECT place >> 32, word FROM word_bitmap WHERE word <> ''"
WHERE = "UPDATE word_bitmap SET rows = ? WHERE word = 'kettl' AND place >> 32 = 1"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight messages are a block, and all of their words are common."""
    monkeypatch.setattr(word_bitmaps, "BLOCK_KEY_BITS", BITS)
    monkeypatch.setattr(common_words, "COMMON", 1_000)


@pytest.fixture
def memory(path: Path, small_blocks: None) -> Iterator[MemoryRuntime]:
    """Three full blocks of messages and a part of one, each of which has "kettle", a number of its own, and one of
    three words."""
    with open_runtime(path) as memory:
        for first in range(0, 3 * BLOCK + 2, 5):
            commit(memory, *(turn(f"t{each}", text(each)) for each in range(first, first + 5)))
        yield memory


def text(number: int) -> str:
    return f"the kettle number{number} is {('red', 'green', 'blue')[number % 3]}"


def night(memory: MemoryRuntime) -> None:
    memory.call("scheduler.run", {"job_name": "optimize", "wait": True})


def bitmaps(memory: MemoryRuntime) -> set[tuple[int, str]]:
    with store_of(memory).read() as tx:
        return set(tx.rows(EVERY_SQL))


def recalled(memory: MemoryRuntime, query: str) -> list[tuple[str, float]]:
    """All hits, as a daemon finds them that has just begun."""
    with patch.object(postings._Kept, "get", lambda *_: None):
        return [(hit.ref, hit.score) for hit in memory.recall(query=query, limit=50).hits]


def plainly(memory: MemoryRuntime, query: str) -> list[tuple[str, float]]:
    """The hits without bitmaps."""
    with patch.object(word_bitmaps, "listed", lambda *_: None):
        return recalled(memory, query)


def write_by_hand(path: Path, sql: str, *values: object) -> None:
    """What another program does to the file."""
    connection = apsw.Connection(str(path))
    connection.execute(sql, values)
    connection.close()


def test_full_blocks_have_bitmaps_after_a_night_and_recall_is_the_same(memory: MemoryRuntime) -> None:
    before = recalled(memory, "red kettle")
    assert before and not bitmaps(memory)
    night(memory)
    made = bitmaps(memory)
    assert {block for block, _ in made} == {0, 1, 2}
    assert {"kettl", "red", "green", "blue", "number3"} <= {word for _, word in made}
    looked: list[str] = []
    with patch.object(word_bitmaps, "listed", noting(word_bitmaps.listed, looked)):
        assert recalled(memory, "red kettle") == before
    assert {"red", "kettl"} <= set(looked)
    night(memory)
    assert bitmaps(memory) == made
    assert_clean(memory)


def test_a_term_that_is_looked_for_as_another_one_has_none(path: Path) -> None:
    """Of "focused" the index has "focus", which it would look for as "focu": that is what it has of "focus"."""
    with open_runtime(path) as memory:
        for each in range(2 * BLOCK):
            commit(memory, turn(f"t{each}", f"{('focused', 'focus', 'lamp')[each % 3]} {each}"))
        night(memory)
        assert {word for _, word in bitmaps(memory)} >= {"focu", "lamp"}
        for query in ("focused", "focus", "lamp"):
            assert recalled(memory, query) == plainly(memory, query) != []
        place = word_bitmaps.place_of(0, "focus")
        forged = word_bitmaps.packed(place, "focus", b"\xff")
        write_by_hand(path, "INSERT OR REPLACE INTO word_bitmap VALUES (?, 'focus', ?)", place, forged)
        assert f"word_bitmap {place}" in {each.subject for each in memory.verify_store().findings}


def test_a_store_at_its_ceiling_goes_without(path: Path) -> None:
    with open_runtime(path) as memory:
        for each in range(3 * BLOCK):
            commit(memory, turn(f"t{each}", text(each)))
        memory.call("admin.compact", {})
        night(memory)
        assert bitmaps(memory)
        lifecycle(memory, "mask", "t1", "t9", "t17")
    with open_runtime(path, store_bytes=100 * 4096) as memory:
        report = memory.call("admin.compact", {})
        assert {each.outcome for each in report.steps} <= {"done", "nothing_to_do"}
        assert not bitmaps(memory)
        assert recalled(memory, "red kettle") == plainly(memory, "red kettle") != []


def noting(listed: Callable[..., Any], looked: list[str]) -> Callable[..., Any]:
    def noted(tx: Any, word: str) -> Any:
        found = listed(tx, word)
        if found is not None:
            looked.append(word)
        return found

    return noted


@pytest.mark.parametrize("action", ["mask", "delete_raw"])
def test_what_a_block_loses_takes_all_of_its_bitmaps_along(memory: MemoryRuntime, action: str, path: Path) -> None:
    night(memory)
    lifecycle(memory, action, "t10")
    assert {block for block, _ in bitmaps(memory)} == {0, 2}
    assert recalled(memory, "number10") == plainly(memory, "number10") == []
    assert recalled(memory, "green kettle") == plainly(memory, "green kettle")
    if action == "delete_raw":
        assert not [each for each in files_of(path) if b"number10" in each.read_bytes()]
    night(memory)
    assert {block for block, _ in bitmaps(memory)} == {0, 1, 2}
    assert recalled(memory, "green kettle") == plainly(memory, "green kettle")
    if action == "mask":
        lifecycle(memory, "unmask", "t10")
        assert {block for block, _ in bitmaps(memory)} == {0, 2}
        assert "t10" in recalled(memory, "number10")[0][0]
    assert_clean(memory)


def test_a_block_that_changes_while_its_bitmaps_are_made_gets_none(memory: MemoryRuntime) -> None:
    night(memory)
    lifecycle(memory, "mask", "t10")
    made = common_words.made

    def meanwhile(tx: Any, block: int, words: Any) -> Any:
        rows = made(tx, block, words)
        lifecycle(memory, "mask", "t11")
        return rows

    with patch.object(common_words, "made", meanwhile):
        night(memory)
    assert {block for block, _ in bitmaps(memory)} == {0, 2}
    night(memory)
    assert {block for block, _ in bitmaps(memory)} == {0, 1, 2}
    assert recalled(memory, "blue kettle") == plainly(memory, "blue kettle")
    assert_clean(memory)


def test_every_flipped_bit_of_a_bitmap_is_told_and_changes_no_answer(memory: MemoryRuntime, path: Path) -> None:
    night(memory)
    right = recalled(memory, "kettle")
    with store_of(memory).read() as tx:
        ((place, whole),) = tx.rows("SELECT place, rows FROM word_bitmap WHERE word = 'kettl' AND place >> 32 = 1")
        every = word_bitmaps.unpacked(place, "kettl", whole)
    assert every == b"\xff"
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit >> 3] ^= 1 << (bit & 7)
        read = word_bitmaps.unpacked(place, "kettl", bytes(flipped))
        assert read in (None, every), "deflate has a bit or two that nothing reads"
    for other in (place + 1, place + (1 << 32)):
        assert word_bitmaps.unpacked(other, "kettl", whole) is None, "of another block, or another word's place"
    assert word_bitmaps.unpacked(place, "kettle", whole) is None
    write_by_hand(path, WHERE, bytes([whole[0] ^ 1]) + whole[1:])
    assert recalled(memory, "kettle") == right
    assert [(each.check, each.subject) for each in memory.verify_store().findings] == [
        ("recall_index", f"word_bitmap {place}")
    ]
    memory.recover(trigger="operator_requested")
    assert {block for block, _ in bitmaps(memory)} == {0, 1, 2}, "dropped, and written anew"
    assert_clean(memory)


FAR = [-(2**63), -5, 2**44, 2**50, 2**60, 2**62, 2**63 - 1]
ODD: list[Any] = [7, 1.5, "text", b"", b"\0" * 4, bytes(4) + zlib.compress(bytes(1 << 26), wbits=-15)]


def test_rows_that_are_no_bitmaps_say_nothing_are_told_and_taken_away(memory: MemoryRuntime, path: Path) -> None:
    """Places beyond all messages, values of other types, a word with NUL, and one that packs 64 MiB of zeros."""
    night(memory)
    right = recalled(memory, "kettle")
    place = word_bitmaps.place_of(1, "kettl")
    forged: list[tuple[int, Any, Any]] = [(far, "kettl", word_bitmaps.packed(far, "kettl", b"\xff")) for far in FAR]
    for number, word in enumerate(["a\0b", "long" * 100, 7, None]):
        far = word_bitmaps.place_of(2, f"other{number}")
        forged.append((far, word, word_bitmaps.packed(far, str(word), b"\xff")))
    forged += [(place + 1 + number, "kettl", rows) for number, rows in enumerate(ODD)]
    write_loosely(path, forged)
    assert recalled(memory, "kettle") == right
    found = memory.verify_store().findings
    assert {each.check for each in found} == {"recall_index", "pages"}
    assert {f"word_bitmap {each[0]}" for each in forged} <= {each.subject for each in found}
    assert memory.recover(trigger="operator_requested").recovered
    assert recalled(memory, "kettle") == right
    assert_clean(memory)


def write_loosely(path: Path, rows: list[Any]) -> None:
    """Write rows of any type, as a program may that writes the file's bytes."""
    connection = apsw.Connection(str(path))
    made = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'word_bitmap'").get
    connection.pragma("writable_schema", 1)
    told = "UPDATE sqlite_schema SET sql = ? WHERE name = 'word_bitmap'"
    connection.execute(told, ("CREATE TABLE word_bitmap (place INTEGER PRIMARY KEY, word, rows)",))
    connection.close()
    connection = apsw.Connection(str(path))
    connection.executemany("INSERT INTO word_bitmap VALUES (?, ?, ?)", rows)
    connection.pragma("writable_schema", 1)
    connection.execute(told, (made,))
    connection.close()


def test_a_forged_bitmap_of_more_rows_than_there_are_is_no_defect(memory: MemoryRuntime, path: Path) -> None:
    lifecycle(memory, "mask", *(f"t{each}" for each in range(3, 3 * BLOCK)))
    night(memory)
    right = {ref for ref, _ in recalled(memory, "kettle")}
    forged = [(word_bitmaps.place_of(block, "kettl"), "kettl") for block in range(3)]
    for place, word in forged:
        rows = word_bitmaps.packed(place, word, b"\xff")
        write_by_hand(path, "INSERT OR REPLACE INTO word_bitmap VALUES (?, ?, ?)", place, word, rows)
    assert {ref for ref, _ in recalled(memory, "kettle")} == right


def test_a_forged_bitmap_shows_nobody_what_the_index_does_not_hold(memory: MemoryRuntime, path: Path) -> None:
    secret = turn("soul", "only the soul knows")
    secret["messages"][0]["visibility"] = "soul"
    commit(memory, secret, *(turn(f"u{each}", "more") for each in range(BLOCK)))
    lifecycle(memory, "mask", "t3")
    night(memory)
    with store_of(memory).read() as tx:
        places = list(tx.rows("SELECT place, word FROM word_bitmap WHERE word = 'kettl'"))
    for place, word in places:
        write_by_hand(
            path, "UPDATE word_bitmap SET rows = ? WHERE place = ?", word_bitmaps.packed(place, word, b"\xff"), place
        )
    refs = {ref for ref, _ in recalled(memory, "kettle")}
    assert refs and not [ref for ref in refs if "soul" in ref or "/t3/" in ref]
    assert "recall_index" in {finding.check for finding in memory.verify_store().findings}
    memory.recover(trigger="operator_requested")
    assert_clean(memory)


def test_spaces_side_by_side_share_the_words_and_not_the_answers(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_lists, "FEW", 2)
    for owner, start in (("owner-a", 0), ("owner-b", 1)):
        with open_runtime(path, owner=owner) as memory:
            for each in range(start, 3 * BLOCK, 2):
                commit(memory, turn(f"t{each}", text(each)))
    for owner, odd in (("owner-a", 0), ("owner-b", 1)):
        with open_runtime(path, owner=owner) as memory:
            before = recalled(memory, "kettle")
            night(memory)
            assert {word for _, word in bitmaps(memory)} >= {"kettl", " s1", " s2"}
            assert recalled(memory, "kettle") == plainly(memory, "kettle") == before
            assert {int(ref.split("/t")[1].split("/")[0]) % 2 for ref, _ in before} == {odd}


def test_a_forged_bitmap_of_a_space_shows_nothing_of_another(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_lists, "FEW", 2)
    for owner, word in (("owner-a", "lamp"), ("owner-b", "kettle")):
        with open_runtime(path, owner=owner) as memory:
            for each in range(2 * BLOCK):
                commit(memory, turn(f"t{each}", word))
    with open_runtime(path, owner="owner-a") as memory:
        night(memory)
        with store_of(memory).read() as tx:
            places = [place for (place,) in tx.rows("SELECT place FROM word_bitmap WHERE word = ' s1'")]
        places += [word_bitmaps.place_of(block, " s1") for block in range(4)]
        for place in places:
            forged = word_bitmaps.packed(place, " s1", b"\xff")
            write_by_hand(path, "INSERT OR REPLACE INTO word_bitmap VALUES (?, ' s1', ?)", place, forged)
        assert [hit.ref for hit in memory.recall(query="kettle", limit=50, planes=["evidence"]).hits] == []
        assert recalled(memory, "kettle") == []
        assert len(recalled(memory, "lamp")) == 2 * BLOCK


def test_a_salvaged_store_has_none_until_the_next_night(memory: MemoryRuntime, path: Path, tmp_path: Path) -> None:
    night(memory)
    target = tmp_path / "saved.db"
    salvage.salvage(str(path), str(target), 0, __version__)
    with apsw.Connection(str(target)) as saved:
        assert saved.execute("SELECT count(*) FROM word_bitmap").get == 0
        assert saved.execute("SELECT count(*) FROM message").get == 30
