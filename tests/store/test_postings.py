"""What is remembered of the recall index answers as the index itself does, at every moment of the store."""

from __future__ import annotations

import gc
import random
import tracemalloc
from array import array
from contextlib import ExitStack
from pathlib import Path
from typing import Literal
from unittest.mock import patch

import pytest

from beetle import MemoryRuntime
from beetle.contracts.names import INDEX_CODES
from beetle.domain.lexical import SearchTerm, parse_query, search_terms
from beetle.runtime.host.domain_functions import DOMAIN_FUNCTIONS
from beetle.runtime.planes import table
from beetle.store import (
    common_words,
    index_tail,
    postings,
    recall_index,
    recover,
    row_sets,
    transcripts,
    word_bitmaps,
    word_lists,
)
from beetle.store.engine.transaction import Reading
from beetle.store.index_tail import IndexTail
from beetle.store.postings import CHANGES, ENTRY_BYTES, FEW_PART, FEW_ROWS, PostingCache
from beetle.store.search_scope import PAST, SearchScope
from tests.store.conftest import commit, lifecycle, open_runtime, store_of, turn

WORDS = ("anchor", "bridge", "candle", "dagger", "ember")
SPEAKERS = ("Ann", "Bo Lee", "Cy", "Di", "Ed")
NEVER = float("inf")
VISIBLE = (("shared",), ("shared", "private"), ("soul",))
TERMS = tuple(SearchTerm(f'{{text names time}} : "{word}"', 1.0, word=word) for word in WORDS)
TABLES = tuple(each for plane in table.PLANES if plane.recall is not None for each in plane.recall.tables)
HOUR = 3_600_000_000
MIDDLE = 1_767_322_800_000_000
"""Microseconds: 2026-01-02T03:00:00Z, between the times at which something is said."""
LIVE_SQL = "SELECT count(*) FROM message WHERE state = 'live' AND visibility <> 'soul'"


@pytest.fixture(
    params=[(1, 16, 128, 3), (3, 0, 0, 4), (64, 16, 0, 3), (64, 0, 128, 15)],
    ids="{0[0]} wait, {0[1]} beside, {0[2]} dense, {0[3]} bits".format,
)
def waits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """So many messages wait for the index. With 0 beside, lists are read with the rows beside their scope, however
    many. With 0 dense, they are kept as arrays; else nearly all as bitmaps. Of blocks of so many bits there are bitmaps
    on disk."""
    wait, beside, dense, bits = request.param
    monkeypatch.setattr(word_bitmaps, "BLOCK_KEY_BITS", bits)
    monkeypatch.setattr(common_words, "COMMON", 1_000_000)
    monkeypatch.setattr(row_sets, "DENSE", dense)
    monkeypatch.setattr(index_tail, "ROWS", wait)
    monkeypatch.setattr(word_lists, "BESIDE", beside)
    return wait


def found(tx: Reading, private: bool = False) -> list[recall_index.IndexMatch]:
    (space,) = next(tx.rows("SELECT min(space) FROM space"))
    return recall_index.search(tx, TERMS, SearchScope(space or 1, TABLES, private=private), 20).matches


def key_of(tx: Reading) -> bytes:
    return tx.value("SELECT value FROM meta WHERE key = 'store_key'")


def fresh_tail(tx: Reading) -> IndexTail:
    return IndexTail(DOMAIN_FUNCTIONS.message_fields(key_of(tx)))


def fresh(tx: Reading) -> Reading:
    """The same transaction, which remembers nothing."""
    return Reading(tx.connection, None, PostingCache(0, fresh_tail(tx)))


def assert_true(tx: Reading) -> None:
    """It answers as a search that remembers nothing does, as one that SQLite does by itself, and by every message; and
    knows who spoke."""
    (space,) = next(tx.rows("SELECT min(space) FROM space"))
    for kinds in VISIBLE:
        assert transcripts.speakers(tx, space, None, kinds) == transcripts.speakers(fresh(tx), space, None, kinds)
    now, past = postings.snapshot(tx), INDEX_CODES[PAST]
    for left_out in (-1, past):
        every = len(postings.read_rows(tx, '{scope} : ("vshared" OR "vprivate")', left_out))
        assert word_lists.rows_of_index(tx, now, left_out) == every
    waiting = len(fresh_tail(tx).lists(tx, [""])[0])
    assert waiting + tx.value("SELECT count(*) FROM recall_index_docsize WHERE id & 15 = 0") == tx.value(LIVE_SQL)
    for private in (False, True):
        assert_within(tx, space or 1, private)
        told = found(tx, private)
        assert told == found(fresh(tx), private)
        with patch.object(word_bitmaps, "listed", lambda *_: None):
            assert told == found(fresh(tx), private), "bitmaps say what the index has"
        scope = SearchScope(space or 1, TABLES, private=private)
        assert_same(told, by_sqlite(tx, scope._replace(since=-(2**62))))
        for since, until in ((-(2**62), MIDDLE), (MIDDLE + 1, None), (MIDDLE - HOUR, MIDDLE + HOUR)):
            timed = scope._replace(since=since, until=until)
            inside = recall_index.search(tx, TERMS, timed, 20).matches
            assert_same(inside, by_sqlite(tx, timed))
            for most in (20, 3):
                within = recall_index.Within(since, 2**62 if until is None else until, most)
                both = recall_index.search(tx, TERMS, scope, 20, within)
                assert (both.matches, list(both.within)) == (told, inside[:most]), "of all times and of one, at once"


def assert_within(tx: Reading, space: int, private: bool) -> None:
    """Scores are the same where FTS5 narrows each list to its scope, and where what is beside that is left out."""
    for planes in ({"evidence"}, {"thoughts", "procedural"}, {each.name for each in TABLES}):
        scope = SearchScope(space, tuple(each for each in TABLES if each.name in planes), private=private)
        told = recall_index.search(tx, TERMS, scope, 20)
        for most in (NEVER, 0):
            with patch.object(word_lists, "BESIDE", most):
                assert recall_index.search(fresh(tx), TERMS, scope, 20) == told


def by_sqlite(tx: Reading, scope: SearchScope) -> list[recall_index.IndexMatch]:
    """A search in a time that looks at none of the best rows first."""
    with patch.object(recall_index, "LOOKED_AT", 0):
        return recall_index.search(tx, TERMS, scope, 20).matches


def assert_same(told: list[recall_index.IndexMatch], plain: list[recall_index.IndexMatch]) -> None:
    assert [(each.plane, each.key) for each in told] == [(each.plane, each.key) for each in plain]
    assert [each.score for each in told] == pytest.approx([each.score for each in plain])


class Acts:
    """Changes of a store that touch its index, drawn by one seed."""

    def __init__(self, memory: MemoryRuntime, seed: int) -> None:
        self.memory, self.rolls, self.number = memory, random.Random(seed), 0
        self.live: list[str] = []

    def text(self) -> str:
        return " ".join(self.rolls.choices(WORDS, k=3))

    def say(self) -> None:
        self.number += 1
        visibility = self.rolls.choice(("shared", "shared", "private", "soul"))
        said = turn(f"t{self.number}", self.text())
        said["messages"][0] |= {"visibility": visibility, "actor": {"speaker": self.rolls.choice(SPEAKERS)}}
        said["at"] = f"2026-01-02T{self.rolls.randrange(6):02}:30:00Z"
        commit(self.memory, said)
        self.live.append(f"t{self.number}")

    def step(self, action: Literal["mask", "delete_raw"]) -> None:
        if self.live:
            name = self.live.pop(self.rolls.randrange(len(self.live)))
            self.memory.request_transcript_lifecycle(
                conversation={"conversation_id": "c1"}, action=action, turn_ids=[name], reason="r"
            )

    def think(self) -> None:
        self.memory.append_thought(chain_key="plan", agent_id="a", thought_type="Idea", content=self.text())

    def night(self) -> None:
        """Bitmaps are written, as the job `optimize` does it."""
        store = store_of(self.memory)
        with store.read() as tx:
            blocks, words = common_words.unlisted(tx)
        for block in blocks:
            store.write(lambda tx, block=block: common_words.begin(tx, block, b"token"))
            with store.read() as tx:
                rows = common_words.made(tx, block, words)
            assert store.write(lambda tx, block=block, rows=rows: common_words.end(tx, block, b"token", rows))

    def any(self) -> None:
        acts = (
            self.say, self.say, self.say, self.say, self.think, self.night, self.night,
            lambda: self.step("mask"), lambda: self.step("delete_raw"),
        )  # fmt: skip
        self.rolls.choice(acts)()


@pytest.mark.usefixtures("waits")
@pytest.mark.parametrize("seed", range(2))
def test_readers_that_began_before_and_after_each_change_find_what_the_index_held_then(
    path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The reader that stays open holds each erasure up.
    monkeypatch.setattr("beetle.runtime.areas.evidence.lifecycle.ERASURE_WAIT_S", 0.0)
    with open_runtime(path) as memory, ExitStack() as open_reads:
        acts, store = Acts(memory, seed), store_of(memory)
        for _ in range(12):
            acts.say()
        acts.night()
        earlier: list[Reading] = []
        for number in range(30):
            acts.any()
            if number == 15:
                earlier.append(open_reads.enter_context(store.read()))
                assert_true(earlier[0])
            with store.read() as tx:
                assert_true(tx)
            for each in earlier:
                assert_true(each)
        with store.read() as tx:
            assert not list(common_words.wrong(tx, lambda: None))


@pytest.mark.usefixtures("waits")
def test_many_changes_at_once_and_an_index_that_is_made_anew_are_followed(path: Path) -> None:
    with open_runtime(path) as memory:
        acts, store = Acts(memory, 9), store_of(memory)
        for _ in range(CHANGES + 10):
            acts.say()
        with store.read() as tx:
            assert_true(tx)
        memory.request_transcript_lifecycle(
            conversation={"conversation_id": "c1"}, action="delete_raw", turn_ids=acts.live[: CHANGES + 5], reason="r"
        )
        with store.read() as tx:
            assert_true(tx)
        store.write(recover.empty_index)
        with store.read() as tx:
            assert found(tx) == []
        memory.recover(trigger="after_restore")
        with store.read() as tx:
            assert_true(tx)
            assert found(tx)


@pytest.mark.usefixtures("waits")
def test_messages_that_take_the_place_of_cleared_ones_are_found(path: Path) -> None:
    with open_runtime(path) as memory:
        acts, store = Acts(memory, 13), store_of(memory)
        for _ in range(8):
            acts.say()
        archive = memory.export_space(include_private=True, passphrase="a long passphrase").archive
        for _ in range(8):
            acts.say()
        with store.read() as tx:
            assert_true(tx)
        memory.import_space(archive=archive, mode="full_restore", passphrase="a long passphrase", discard_withheld=True)
        with store.read() as tx:
            assert_true(tx)
        acts.say()
        with store.read() as tx:
            assert_true(tx)


def test_a_phrase_of_common_words_is_left_to_whoever_reads_the_texts(path: Path) -> None:
    with open_runtime(path) as memory:
        for number, text in enumerate(("anchor bridge", "bridge anchor", "anchor", "candle", "dagger", "ember")):
            commit(memory, turn(f"t{number}", text))
        terms = search_terms(parse_query("anchor bridge"))
        with store_of(memory).read() as tx:
            scope = SearchScope(next(tx.rows("SELECT min(space) FROM space"))[0], TABLES)
            asked = recall_index.search(tx, terms, scope, 9)
            with patch.object(recall_index, "PHRASE_ROWS", 4):
                unasked = recall_index.search(tx, terms, scope, 9)
        both = [each.score for each in unasked.matches[:2]]
        assert asked.phrases == {}
        assert unasked.phrases == pytest.approx({"anchor bridge": both[0]})
        assert both[0] == both[1]
        assert asked.matches[0].score > asked.matches[1].score == pytest.approx(both[0])


@pytest.mark.usefixtures("waits")
def test_a_write_that_is_undone_changes_nothing(path: Path) -> None:
    with open_runtime(path) as memory:
        acts, store = Acts(memory, 3), store_of(memory)
        for _ in range(5):
            acts.say()
        with store.read() as tx:
            before = found(tx)
        entry = recall_index.Entry("thoughts", 77, 1, None, "shared")

        def fails(tx: object) -> None:
            recall_index.add(tx, entry, ("anchor bridge candle dagger ember", "", ""))  # type: ignore[arg-type]
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            store.write(fails)
        with store.read() as tx:
            assert_true(tx)
            assert found(tx) == before


def test_what_is_not_used_goes_first_and_what_is_too_large_is_not_kept(path: Path) -> None:
    with open_runtime(path) as memory:
        acts = Acts(memory, 5)
        for _ in range(30):
            acts.say()
        with store_of(memory).read() as tx:
            now, cache = postings.snapshot(tx), PostingCache(1000, tx.postings.tail)
            expressions = [each.expression for each in TERMS]
            for expression in expressions:
                assert list(cache.rows(tx, now, expression, -1)) == list(postings.read_rows(tx, expression, -1))
            assert cache.bytes <= 1000
            assert PostingCache(0, tx.postings.tail).rows(tx, now, expressions[0], -1) == cache.rows(
                tx, now, expressions[0], -1
            )


def test_rare_words_do_not_drive_out_a_list_of_many_rows(path: Path) -> None:
    most = 64 * 1024
    with open_runtime(path) as memory:
        acts = Acts(memory, 7)
        for _ in range(FEW_ROWS * 4):
            acts.say()
        with store_of(memory).read() as tx:
            now, cache = postings.snapshot(tx), PostingCache(most, tx.postings.tail)
            rows = cache.rows(tx, now, '"anchor"', -1)
            assert len(rows) >= FEW_ROWS
            for number in range(200):
                cache.rows(tx, now, f'"rare{number}"', -1)
            assert cache.bytes <= len(rows) * 4 + most // FEW_PART + ENTRY_BYTES * 2
            again = cache.rows(tx, now, '"anchor"', -1, lambda: pytest.fail("it was read again"))
            assert again == rows
            read: list[str] = []
            cache.rows(tx, now, '"rare0"', -1, lambda: read.append("rare0") or array("I"))
            assert read == ["rare0"]


def test_a_long_expression_counts_with_all_its_bytes(path: Path) -> None:
    """One word may be as long as a query: lists of such words are no way around the bound."""
    most = 64 * 1024
    with open_runtime(path) as memory:
        Acts(memory, 6).say()
        with store_of(memory).read() as tx:
            now, cache = postings.snapshot(tx), PostingCache(most, tx.postings.tail)
            cache.rows(tx, now, '"anchor"', -1)
            gc.collect()
            tracemalloc.start()
            for number in range(50):
                cache.rows(tx, now, f'"{number}{chr(0x1F40C) * 8_000}"', -1)  # four bytes each
            held, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
    assert held < 2 * most


def test_who_spoke_is_read_again_where_that_was_changed_and_not_else(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_runtime(path) as memory:
        store = store_of(memory)
        read = transcripts.SPACE_SPEAKERS_SQL

        def names() -> set[str]:
            with store.read() as tx:
                return set(transcripts.speakers(tx, 1, None, ("shared", "private", "soul")))

        def say(number: int, speaker: str) -> None:
            said = turn(f"t{number}", "anchor")
            said["messages"][0]["actor"] = {"speaker": speaker}
            commit(memory, said)

        say(1, "Ann")
        assert names() == {"Ann"}
        monkeypatch.setattr(transcripts, "SPACE_SPEAKERS_SQL", "SELECT nothing")
        say(2, "Ann")
        assert names() == {"Ann"}
        monkeypatch.setattr(transcripts, "SPACE_SPEAKERS_SQL", read)
        say(3, "Bo Lee")
        assert names() == {"Ann", "Bo Lee"}
        lifecycle(memory, "delete_raw", "t3")
        assert names() == {"Ann"}
        lifecycle(memory, "mask", "t1", "t2")
        assert names() == set()
        lifecycle(memory, "unmask", "t1", "t2")
        assert names() == {"Ann"}


@pytest.mark.parametrize("hits", [0, 1, 56, 80, 100, 111])
def test_few_statements_find_that_a_time_has_no_more_of_the_best_rows(hits: int) -> None:
    asked: list[int] = []

    def between(_: Reading, rows: list[int], time: object) -> set[int]:
        asked.append(len(rows))
        return {row for row in rows if row < hits}

    with patch.object(recall_index, "_between", between):
        rows = iter([(row, 1.0) for row in range(100_000)])
        assert recall_index._best_between(None, rows, ("", 0, 1, None), 112) is None  # type: ignore[arg-type]
    assert sum(asked) <= recall_index.LOOKED_AT and len(asked) <= 10
