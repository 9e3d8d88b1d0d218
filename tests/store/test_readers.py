"""Reads that are stopped: by their deadline, or since nobody waits for them any more."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle.contracts.errors import DeadlineExceeded
from beetle.runtime.host.dependencies import clock
from beetle.runtime.host.domain_functions import DOMAIN_FUNCTIONS
from beetle.store.engine.connection import StoreSettings
from beetle.store.engine.store import Store

ENDLESS_SQL = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture(params=["sqlite", "file", "in-memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    settings = StoreSettings(str(tmp_path / "b.db"), request.param, readers=2)
    found = Store(settings, clock=clock, domain=DOMAIN_FUNCTIONS, version="test")
    yield found
    found.close()


def test_a_read_is_stopped_at_its_deadline_and_the_next_one_is_not(store: Store) -> None:
    with pytest.raises(DeadlineExceeded), store.read(time.monotonic() + 0.05) as tx:
        tx.value(ENDLESS_SQL)
    with store.read() as tx:
        assert tx.value("SELECT 7") == 7


def test_a_read_that_nobody_waits_for_is_stopped_on_its_own_thread(store: Store) -> None:
    asked: list[int] = []

    def gone() -> bool:
        asked.append(threading.get_ident())
        return len(asked) > 3

    with pytest.raises(DeadlineExceeded), store.read(None, gone) as tx:
        tx.value(ENDLESS_SQL)
    assert set(asked) == {threading.get_ident()}
    assert len(asked) == 4
    with store.read() as tx:
        assert tx.value("SELECT 7") == 7


def test_a_read_that_nobody_waits_for_is_not_begun(store: Store) -> None:
    with pytest.raises(DeadlineExceeded), store.read(None, lambda: True):
        raise AssertionError("it was begun")


def test_a_write_beside_it_is_not_stopped(store: Store) -> None:
    if not store.settings.walled:
        pytest.skip("without a write-ahead log nobody writes while somebody reads")
    leave = threading.Event()
    begun = threading.Event()
    stopped: list[bool] = []

    def gone() -> bool:
        begun.set()
        return leave.is_set()

    def read() -> None:
        try:
            with store.read(None, gone) as tx:
                tx.value(ENDLESS_SQL)
        except DeadlineExceeded:
            stopped.append(True)

    reader = threading.Thread(target=read)
    reader.start()
    assert begun.wait(60)
    leave.set()
    found = store.write(lambda tx: tx.value(ENDLESS_SQL.replace("FROM n)", "FROM n WHERE i < 1000000)")))
    reader.join(60)
    assert (found, stopped) == (1_000_000, [True])
