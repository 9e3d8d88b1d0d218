"""Erasing so many turns that the recall index is made anew behind them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.store import index_merge, recall_index
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.recall_index import TOUCH_INDEX_SQL, Entry
from tests.store.conftest import assert_clean, commit, open_runtime, store_of, turn, wait_for_erasures
from tests.store.test_erasure import Words, assert_gone, remnants

ERASED, KEPT, BESIDE = 120, 240, 6
OPTION_SQL = "INSERT INTO recall_index (recall_index, rank) VALUES (?, ?)"
OPTIONS_SQL = "SELECT v FROM recall_index_config WHERE k = 'secure-delete'"
FOUND_SQL = "SELECT count(*) FROM recall_index WHERE recall_index MATCH ?"
SEGMENTS_SQL = "SELECT count(DISTINCT segid) FROM recall_index_idx"


def fill(memory: MemoryRuntime, conversation: str, count: int, words: Words) -> list[str]:
    """So many turns with a word of their own each, in commits that become segments of the index."""
    found = [words.canary() for _ in range(count)]
    turns = [turn(f"{conversation}{n}", f"{word} {words.sentence()[:200]}") for n, word in enumerate(found)]
    for start in range(0, count, 10):
        memory.commit_transcript(conversation={"conversation_id": conversation}, turns=turns[start : start + 10])
    return found


def hits(memory: MemoryRuntime, words: list[str]) -> int:
    return sum(bool(memory.recall(query=word, planes=["evidence"], limit=1).hits) for word in words)


@pytest.mark.parametrize(
    "options", [{}, {"pgsz": 64, "crisismerge": 3, "automerge": 2}], ids=["default", "small_pages"]
)
def test_nothing_of_the_erased_is_left_and_all_else_is_found(path: str, options: dict[str, int]) -> None:
    words, rolls, written = Words(21), random.Random(4), list[str]()
    with open_runtime(path) as memory:
        for name, value in options.items():
            store_of(memory).write(lambda tx, name=name, value=value: tx.run(OPTION_SQL, name, value))
        kept = fill(memory, "kept", KEPT // 2, words)
        gone = fill(memory, "old", ERASED, words)
        kept += fill(memory, "later", KEPT // 2, words)

        def beside(_: Any) -> None:
            """Another writes between two slices, and one turn of its own is erased the short way."""
            if len(written) < BESIDE:
                written.extend(fill(memory, f"beside{len(written)}", 1, words))
                memory.request_transcript_lifecycle(
                    conversation={"conversation_id": "kept"}, action="delete_raw", turn_ids=[f"kept{len(written)}"],
                    reason="r",
                )  # fmt: skip

        done = memory.call(
            "transcript.lifecycle",
            {"conversation": {"conversation_id": "old"}, "action": "delete_raw", "before": "2099-01-01T00:00:00Z",
             "reason": "r"},
            on_progress=beside,
        )  # fmt: skip
        assert (done.erasure, done.affected_turns) == ("done", ERASED)
        wait_for_erasures(memory)
        alone = kept[1 : 1 + len(written)]
        alive = [word for word in [*kept, *written] if word not in alone]
        assert_gone(path, [*gone, *alone], alive)
        assert hits(memory, rolls.sample(alive, 60)) == 60
        assert hits(memory, rolls.sample(gone, 20)) == 0
        assert_clean(memory)
        with store_of(memory).read() as tx:
            assert tx.value(OPTIONS_SQL) == 1, "a single row is taken off each page, before and after"


def test_what_would_be_merged_into_a_level_before_the_last_is_dropped_too(path: str) -> None:
    """Small segments take those behind them back to the first level, and leave empty levels: see `index_merge`."""
    words = Words(23)
    rows = [
        (Entry("evidence", number, 7, 7, "shared"), (f"{words.canary()} {words.canary()}", "", ""))
        for number in range(1, 13)
    ]
    with open_runtime(path) as memory:
        store = store_of(memory)

        def merge(tx: WriteTransaction) -> None:
            level = index_merge.begin(tx)
            while not index_merge.go_on(tx, level, 4):
                pass

        # Small pages, so that what was merged is larger than one row and stays on its level.
        store.write(lambda tx: tx.run(OPTION_SQL, "pgsz", 64))
        for number, (entry, fields) in enumerate(rows):
            store.write(lambda tx, entry=entry, fields=fields: recall_index.add(tx, entry, fields))
            if number in (3, 4, 5):
                store.write(merge)
        store.write(lambda tx: recall_index.hide_all(tx, rows[:9]))
        with store.read() as tx:
            levels = index_merge.levels_of(tx)
        assert levels[0].segments > 1 and not any(each.segments for each in levels[1:]) and len(levels) > 2
        store.write(merge)
        with store.read() as tx:
            data = b"".join(row[0] for row in tx.rows("SELECT block FROM recall_index_data"))
            marks = b"".join(bytes(row[0]) for row in tx.rows("SELECT term FROM recall_index_idx"))
            found = [tx.value(FOUND_SQL, fields[0].split()[0]) for _, fields in rows]
        assert remnants(data + marks, [word for _, fields in rows[:9] for word in fields[0].split()], []) == set()
        assert found == [0] * 9 + [1] * 3


def test_an_index_that_is_erased_whole_is_empty_and_takes_new_rows(path: str) -> None:
    words = Words(22)
    with open_runtime(path) as memory:
        gone = fill(memory, "old", ERASED, words)
        token = memory.forget(whole_space=True, dry_run=True).token
        assert memory.forget(whole_space=True, token=token).counts["turns"] == ERASED
        wait_for_erasures(memory)
        assert_gone(path, gone)
        with store_of(memory).read() as tx:
            assert tx.value(SEGMENTS_SQL) == 0 and tx.value(TOUCH_INDEX_SQL) is None
        commit(memory, turn("n1", "something new"))
        assert memory.recall(query="something").hits
        assert_clean(memory)
