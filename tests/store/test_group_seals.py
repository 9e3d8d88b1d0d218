"""The writes of one group are sealed together, and whoever reads seals among them sees what is true then."""

from __future__ import annotations

import os
from functools import partial
from typing import Any
from unittest.mock import patch

import apsw
import pytest

from beetle.contracts.errors import IntegrityViolation, InvalidRequest
from beetle.store import seals
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.seals import Sealer
from tests.bench.writes import turn
from tests.store.conftest import assert_clean, open_runtime, store_of
from tests.store.test_writer import Crowd

WHERE: Any = {"channel_id": "local", "conversation_id": "c"}
NEW_SQL = "INSERT INTO meta VALUES (?, 1)"
SUM_SQL = "SELECT rows, sum, seal FROM table_seal WHERE of = 'meta'"
PUT_SQL = "INSERT INTO meta VALUES ('shared', ?) ON CONFLICT DO UPDATE SET value = excluded.value"


def put(value: int, tx: WriteTransaction) -> None:
    tx.run(PUT_SQL, value)


def is_sealed(tx: WriteTransaction) -> Any:
    """Whether the row's seal fits it."""
    shape = seals.shape_of(tx, "meta")
    (row,) = tx.rows("SELECT key, value FROM meta WHERE key = 'shared'")
    assert tx.sealer is not None
    seal = tx.value(seals.SEAL_SQL, "meta", shape.row(tx.sealer, row))
    return tx.sealer.fits(seal, "meta", row)


def test_a_row_that_several_writes_of_a_group_change_is_sealed_once(path: str) -> None:
    with open_runtime(path) as memory:
        store = store_of(memory)
        store.write(partial(put, 0))
        with patch.object(seals, "put_sum", wraps=seals.put_sum) as written:
            crowd = Crowd(store)
            for number in range(1, 9):
                crowd.add(f"w{number}", partial(put, number))
            crowd.release()
            assert written.call_count == 1
        assert store.write(is_sealed) is True
        assert_clean(memory)


def test_a_write_sees_the_seals_of_those_before_it_in_its_group(path: str) -> None:
    with open_runtime(path) as memory:
        store = store_of(memory)
        crowd = Crowd(store)
        crowd.add("first", partial(put, 1))
        crowd.add("look", is_sealed)
        crowd.add("second", partial(put, 2))
        crowd.add("look again", is_sealed)
        answers = crowd.release()
        assert answers["look"] is answers["look again"] is True
        assert_clean(memory)


def test_a_sum_that_is_changed_by_hand_while_the_daemon_runs_stays_as_it_was_made(path: str) -> None:
    with open_runtime(path) as memory:
        store = store_of(memory)
        for number in range(3):
            store.write(lambda tx, key=f"k{number}": tx.run(NEW_SQL, key))
        other = apsw.Connection(path)
        other.execute("UPDATE table_seal SET rows = rows + 1 WHERE of = 'meta'")
        (by_hand,) = other.execute(SUM_SQL)
        for number in range(3, 6):
            store.write(lambda tx, key=f"k{number}": tx.run(NEW_SQL, key))
        assert list(other.execute(SUM_SQL)) == [by_hand]
        other.close()


def test_sums_follow_a_write_that_was_undone_and_rows_sealed_in_other_ways(path: str) -> None:
    def fails(tx: WriteTransaction) -> None:
        tx.run(NEW_SQL, "undone")
        tx.settle()
        raise InvalidRequest(reason="not this one")

    def beside(tx: WriteTransaction) -> None:
        tx.run(NEW_SQL, "noted")
        seals.put_sum(tx.unnoted(), tx.sealer or Sealer(None, b""), "meta", 7, 0)
        raise InvalidRequest(reason="nor this")

    with open_runtime(path) as memory:
        store = store_of(memory)
        store.write(lambda tx: tx.run(NEW_SQL, "first"))
        for each in (fails, beside):
            with pytest.raises(InvalidRequest):
                store.write(each)
            store.write(lambda tx, key=each.__name__: tx.run(NEW_SQL, key))
            assert_clean(memory)
        for key in ("one", "two"):
            request = {"conversation": {"conversation_id": "c"}, "turns": [turn(0, int(key == "two"))]}
            memory.call("transcript.commit", request, idempotency_key=key)
        assert_clean(memory)


def test_when_one_of_a_group_fails_the_others_are_sealed(path: str) -> None:
    with open_runtime(path) as memory:
        store = store_of(memory)
        crowd = Crowd(store)
        crowd.add("first", partial(put, 1))
        crowd.add("fails", lambda tx: (put(2, tx), 1 / 0))
        crowd.add("third", lambda tx: tx.run("INSERT INTO meta VALUES ('other', 3)"))
        answers = crowd.release()
        assert isinstance(answers["fails"], ZeroDivisionError)
        assert store.write(is_sealed) is True
        assert store.write(lambda tx: tx.value("SELECT value FROM meta WHERE key = 'shared'")) == 1
        assert_clean(memory)


def test_a_damaged_sum_fails_its_own_write_of_a_group_alone(path: str) -> None:
    """Without its identity the store cannot tell whether the sum was sealed so."""
    with open_runtime(path) as memory:
        memory.create_chunk(content="first", conversation_id="c", link=False)
    connection = apsw.Connection(path)
    connection.execute("UPDATE table_seal SET rows = 9223372036854775807 WHERE of = 'chunk'")
    connection.close()
    os.unlink(f"{path}.identity")
    with open_runtime(path) as memory:
        crowd = Crowd(store_of(memory))
        crowd.ask("before", lambda: memory.commit_transcript(conversation=WHERE, turns=[turn(0, 0)]))
        crowd.ask("chunk", lambda: memory.create_chunk(content="new", conversation_id="c", link=False))
        crowd.ask("behind", lambda: memory.commit_transcript(conversation=WHERE, turns=[turn(1, 0)]))
        answers = crowd.release()
        assert isinstance(answers["chunk"], IntegrityViolation)
        assert [answers[each].committed for each in ("before", "behind")] == [1, 1]
