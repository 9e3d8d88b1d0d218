"""Of idempotency keys as many are kept as the profile says, the newest ones."""

from __future__ import annotations

import pytest

from beetle.calls import key_of
from beetle.store import idempotency
from beetle.store.engine.write_transaction import WriteTransaction
from tests.store.conftest import assert_clean, open_runtime, store_of

FIRST = idempotency.FirstReport(b"request", b"report")


@pytest.mark.parametrize("most", [1, 7, 80, 1000])
def test_at_most_so_many_are_kept_and_at_least_seven_eighths_of_them(path: str, most: int) -> None:
    def keep(tx: WriteTransaction) -> None:
        for number in range(1, 3 * most + 2):
            idempotency.keep(tx, "p", "s", str(number), FIRST, 0, most)
            held = tx.value("SELECT count(*) FROM idempotency")
            assert min(number, most * 7 // 8) <= held <= most
            assert idempotency.find(tx, "p", "s", str(number)) == FIRST
            assert idempotency.find(tx, "p", "s", str(number - most)) is None

    with open_runtime(path) as memory:
        store_of(memory).write(keep)
        assert_clean(memory)


def test_a_client_makes_keys_that_follow_each_other_and_none_twice() -> None:
    keys = [key_of("transcript.commit", None) or "" for _ in range(20_000)]
    assert len(set(keys)) == len(keys) and {len(each) for each in keys} == {32}
    times = [each[:12] for each in keys]
    assert times == sorted(times) and times[0] < times[-1]
    assert key_of("memory.recall", None) is None and key_of("memory.recall", "mine") == "mine"
