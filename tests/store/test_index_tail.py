"""New messages wait for the recall index, many at a time: found at once, none is lost, and none is in it twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest

from beetle import MemoryRuntime
from beetle.store import index_tail
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.index_tail import INDEXED_TO, TailRow
from tests.store.conftest import (
    assert_clean,
    commit,
    copy_at_rest,
    found,
    lifecycle,
    open_runtime,
    store_of,
    turn,
    write_skill,
)
from tests.store.test_writer import Crowd

INDEXED_SQL = "SELECT count(*) FROM recall_index_docsize WHERE id & 15 = 0"


def said(memory: MemoryRuntime, first: int, last: int) -> None:
    for number in range(first, last):
        commit(memory, turn(f"t{number}", f"word{number} kettle"))


def indexed(memory: MemoryRuntime) -> int:
    """Messages that the index has taken in."""
    with store_of(memory).read() as tx:
        return tx.value(INDEXED_SQL)


def test_messages_wait_and_are_found_at_once(path: str) -> None:
    with open_runtime(path) as memory:
        said(memory, 0, index_tail.ROWS - 1)
        assert indexed(memory) == 0
        assert all(found(memory, f"word{number}") for number in range(index_tail.ROWS - 1))
        said(memory, index_tail.ROWS - 1, index_tail.ROWS)
        assert indexed(memory) == index_tail.ROWS
        said(memory, index_tail.ROWS, index_tail.ROWS + 2)
        assert all(found(memory, f"word{number}") for number in range(index_tail.ROWS + 2))
        assert_clean(memory)


def test_long_messages_do_not_wait_for_many(path: str) -> None:
    with open_runtime(path) as memory:
        long = "kettle " * (index_tail.CHARACTERS // 28 + 1)
        for number in range(3):
            commit(memory, turn(f"t{number}", long))
        assert indexed(memory) == 0
        commit(memory, turn("t3", long))
        assert indexed(memory) == 4


@pytest.mark.parametrize("backend", ["sqlite", "embedded"])
def test_what_waits_at_a_crash_is_found_and_taken_in_once(path: str, backend: str) -> None:
    crashed = Path(path).parent / "crashed" / "store.db"
    with open_runtime(path, backend) as memory:
        said(memory, 0, 5)
        copy_at_rest(store_of(memory), path, crashed)
    with open_runtime(crashed, backend) as memory:
        assert all(found(memory, f"word{number}") for number in range(5))
        said(memory, 5, 7)
        assert all(found(memory, f"word{number}") for number in range(7))
        assert indexed(memory) == 0
        write_skill(memory, "kettle", "Fill the kettle.")
        assert indexed(memory) == 7
        assert_clean(memory)


def test_a_store_that_cannot_be_written_is_searched_with_what_waits(path: str) -> None:
    with open_runtime(path) as memory:
        said(memory, 0, 5)
    with open_runtime(path, immutable=True) as memory:
        assert all(found(memory, f"word{number}") for number in range(5))
        assert_clean(memory)


def test_a_write_that_fails_leaves_what_waits(path: str) -> None:
    with open_runtime(path) as memory:
        said(memory, 0, 3)

        def fails(tx: WriteTransaction) -> None:
            tx.write_index()
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            store_of(memory).write(fails)
        assert indexed(memory) == 0
        said(memory, 3, 5)
        assert all(found(memory, f"word{number}") for number in range(5))
        store_of(memory).write(lambda tx: tx.write_index())
        assert indexed(memory) == 5
        assert_clean(memory)


@pytest.mark.parametrize("action", ["mask", "delete_raw"])
def test_what_waits_is_taken_in_before_it_changes(path: str, action: str) -> None:
    with open_runtime(path) as memory:
        said(memory, 0, 4)
        assert found(memory, "word2")
        lifecycle(memory, action, "t2")
        assert not found(memory, "word2")
        assert all(found(memory, f"word{number}") for number in (0, 1, 3))
        said(memory, 4, 6)
        assert all(found(memory, f"word{number}") for number in (0, 1, 3, 4, 5))
        assert_clean(memory)


def test_messages_that_the_index_is_not_to_hold_do_not_wait_for_ever(path: str) -> None:
    with open_runtime(path) as memory:
        for number in range(index_tail.ROWS):
            hidden: dict[str, Any] = turn(f"t{number}", f"word{number}")
            hidden["messages"][0]["visibility"] = "soul"
            commit(memory, hidden)
        with store_of(memory).read() as tx:
            assert tx.value(f"SELECT {INDEXED_TO}") == index_tail.ROWS
        assert indexed(memory) == 0
        said(memory, index_tail.ROWS, index_tail.ROWS + 2)
        assert found(memory, f"word{index_tail.ROWS}")
        assert_clean(memory)


def test_scores_do_not_tell_how_many_wait(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same messages, one in the index and the other half of them waiting or all of them in it."""
    answers: list[Any] = []
    for rows in (1, 5, 64):
        monkeypatch.setattr(index_tail, "ROWS", rows)
        with open_runtime(f"{path}-{rows}") as memory:
            for number in range(23):
                commit(memory, turn(f"t{number}", f"kettle word{number % 7} cup{number % 3}", f"answer {number % 5}"))
            asked = [memory.recall(query=query, limit=20) for query in ("kettle word3", "cup1 answer 2", "word3 cup1")]
            answers.append([[(hit.ref, hit.score, hit.why) for hit in each.hits] for each in asked])
            timed = memory.recall(query="kettle cup", since="2024-03-09T00:00:00Z", until="2024-03-10T00:00:00Z")
            answers[-1].append([(hit.ref, hit.score) for hit in timed.hits])
            there = memory.recall(query="kettle cup", conversation={"channel_id": "local", "conversation_id": "c1"})
            answers[-1].append([(hit.ref, hit.score) for hit in there.hits])
    assert answers[0] == answers[1] == answers[2]
    assert all(answers[0])


def test_a_store_whose_mark_was_changed_by_hand_is_told(path: str) -> None:
    def scores(memory: MemoryRuntime) -> Any:
        return [(hit.ref, hit.score) for hit in memory.recall(query="kettle word1").hits]

    with open_runtime(path) as memory:
        said(memory, 0, 3)
        store_of(memory).write(lambda tx: tx.write_index())
        said(memory, 3, 5)
        before = scores(memory)
    changes = (
        ("UPDATE index_tail SET indexed_to = 5", "is missing from the index"),
        ("UPDATE index_tail SET indexed_to = 1", "is indexed and should not be"),
        ("DELETE FROM index_tail", "does not say how far the index is"),
    )
    for change, problem in changes:
        connection = apsw.Connection(path)
        connection.execute(change)
        connection.close()
        with open_runtime(path) as memory:
            assert {each.problem for each in memory.verify_store().findings} == {problem}
            if "= 5" not in change:
                assert scores(memory) == before, "each message counts once"
            assert memory.recover().recovered
            assert_clean(memory)
            assert scores(memory) == before
    with open_runtime(path) as memory:
        assert indexed(memory) == 5


def test_readers_side_by_side_find_all_that_each_of_them_sees(path: str) -> None:
    with open_runtime(path) as memory, ThreadPoolExecutor(4) as pool:
        store = store_of(memory)

        def look(_: int) -> bool:
            with store.read() as tx:
                assert tx.postings is not None
                (found,) = tx.postings.tail.lists(tx, [""])
                first, last = next(tx.rows(index_tail.PLACES_SQL))
                return found == [key << 4 for key in range(first + 1, last + 1)]

        looked = [pool.submit(look, number) for number in range(8)]
        for number in range(3 * index_tail.ROWS):
            commit(memory, turn(f"t{number}", f"word{number} kettle"))
            looked += [pool.submit(look, number) for _ in range(2)]
        assert all(each.result() for each in looked)


def test_in_a_group_what_a_failed_write_said_does_not_wait(path: str) -> None:
    with open_runtime(path) as memory:
        said(memory, 0, 2)
        crowd = Crowd(store_of(memory))

        def fails(tx: WriteTransaction) -> None:
            tx.index_later(TailRow(999, (999 << 4, "ghost", "", "", "s1 c1 p0 vshared")))
            raise ZeroDivisionError

        crowd.add("first", lambda tx: tx.run("INSERT INTO meta VALUES ('first', 1)"))
        crowd.add("fails", fails)
        crowd.add("last", lambda tx: tx.run("INSERT INTO meta VALUES ('last', 1)"))
        assert isinstance(crowd.release()["fails"], ZeroDivisionError)
        said(memory, 2, 4)
        store_of(memory).write(lambda tx: tx.write_index())
        assert indexed(memory) == 4
        assert_clean(memory)
