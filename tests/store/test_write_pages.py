"""What a commit writes to the disk: pages of the write-ahead log, which depend on no clock and on no other program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from beetle.store import recall_index
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.index_tail import ROWS
from beetle.store.recall_index import Entry
from tests.store.conftest import CONVERSATION, commit, open_runtime, store_of, ticking, turn
from tests.store.test_writer import Crowd
from tests.wal import Written, written

TEXT = "note {}: " + "the kettle is on and the cups are on the second shelf beside the window. " * 2
WARM = 300
"""Turns before, after which the trees have more than one page."""
COMMITS = ROWS
"""As many as the recall index takes in together."""
NEVER_FOLDED = 2**30


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Written]]:
    path = tmp_path_factory.mktemp("pages") / "store.db"
    with open_runtime(path, now=ticking(), wal_bytes=NEVER_FOLDED) as memory:
        taken = iter(range(10**6))
        commit(memory, *(turn(f"t{n}", TEXT.format(n)) for n, _ in zip(taken, range(WARM), strict=False)))

        def one(_: int, size: int, *, keyed: bool = False) -> None:
            turns = [turn(f"t{n}", TEXT.format(n)) for n in [next(taken) for _ in range(size)]]
            request = {"conversation": CONVERSATION, "turns": turns}
            memory.call("transcript.commit", request, idempotency_key=turns[0]["turn_id"].zfill(32) if keyed else None)

        yield lambda size, keyed=False: written(path, partial(one, keyed=keyed), COMMITS, size)


def test_a_commit_of_one_turn_writes_few_pages(measured: Callable[..., Written]) -> None:
    found = measured(1)
    assert found.pages <= 13.5, found.trees


def test_an_idempotency_key_adds_its_row_and_its_place_in_the_index(measured: Callable[..., Written]) -> None:
    found = measured(1, keyed=True)
    keys = {name: count for name, count in found.trees.items() if "idempotency" in name or "seal" in name}
    assert set(keys) == {"idempotency", "sqlite_autoindex_idempotency_1"}
    assert sum(keys.values()) <= 2.2 * found.commits, keys


def test_a_turn_of_a_commit_of_twenty_writes_few_bytes(measured: Callable[..., Written]) -> None:
    found = measured(20)
    assert found.bytes_a_turn <= 6_200, found.trees


def test_writes_of_one_group_share_a_segment_of_the_recall_index(path: str) -> None:
    with open_runtime(path) as memory:
        commit(memory, turn("first", "one lamp"))
        store = store_of(memory)
        store.write(lambda tx: tx.run("INSERT INTO recall_index (recall_index, rank) VALUES ('automerge', 0)"))

        def segments() -> int:
            with store.read() as tx:
                return tx.value("SELECT count(DISTINCT segid) FROM recall_index_idx")

        before = segments()
        crowd = Crowd(store)
        for number in range(8):
            entry = Entry("evidence", 1000 + number, 1, 1, "shared")
            crowd.add(f"w{number}", partial(_indexed, entry, f"w{number}"))
        crowd.release()
        assert segments() == before + 1


def _indexed(entry: Entry, name: str, tx: WriteTransaction) -> None:
    recall_index.add(tx, entry, (f"lamp {name}", "", ""))
    tx.run("INSERT INTO meta VALUES (?, 1) ON CONFLICT DO UPDATE SET value = excluded.value", name)
