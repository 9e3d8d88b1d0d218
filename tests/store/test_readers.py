"""Reads that are stopped: by their deadline, or since nobody waits for them; and reads without a descriptor."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from beetle.contracts.errors import DeadlineExceeded, NoDescriptor
from beetle.runtime.host.dependencies import clock
from beetle.runtime.host.domain_functions import DOMAIN_FUNCTIONS
from beetle.store.engine.connection import StoreSettings
from beetle.store.engine.store import Store
from tests.descriptors import descriptors_left

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


class Second:
    """A read beside another one that has the only open connection; `waits` is set once it waits for that."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looks = 0
        self.waits = threading.Event()
        self.has_gone = False

    def is_abandoned(self) -> bool:
        """The first look is before it begins."""
        self._looks += 1
        if self._looks > 1:
            self.waits.set()
        return self.has_gone

    def read(self, deadline: float | None = None) -> int:
        with self._store.read(deadline, self.is_abandoned) as tx:
            return tx.value("SELECT 7")


@pytest.fixture
def walled(tmp_path: Path) -> Iterator[Store]:
    settings = StoreSettings(str(tmp_path / "b.db"), readers=2)
    found = Store(settings, clock=clock, domain=DOMAIN_FUNCTIONS, version="test")
    yield found
    found.close()


@pytest.mark.parametrize("left", [0, 1])
def test_without_a_descriptor_a_read_waits_for_a_connection_that_is_open(walled: Store, left: int) -> None:
    second = Second(walled)
    with ThreadPoolExecutor() as pool:
        with descriptors_left(left):
            with walled.read() as tx:
                asked = pool.submit(second.read)
                assert second.waits.wait(60)
                assert tx.value("SELECT 1") == 1
            assert asked.result(60) == 7
        with walled.read(), walled.read() as tx:
            assert tx.value("SELECT 8") == 8, "one more is opened now"


def test_without_a_descriptor_a_read_waits_until_its_deadline(walled: Store) -> None:
    second = Second(walled)
    with descriptors_left(0):
        with walled.read(), pytest.raises(NoDescriptor) as caught:
            second.read(time.monotonic() + 0.01)
        assert (caught.value.key, caught.value.retryable) == ("overloaded", True)
        assert second.read() == 7, "what it waited for comes to the next one"


def test_without_a_descriptor_who_has_gone_waits_no_longer(walled: Store) -> None:
    second = Second(walled)
    with ThreadPoolExecutor() as pool, descriptors_left(0):
        with walled.read():
            asked = pool.submit(second.read)
            assert second.waits.wait(60)
            second.has_gone = True
            assert isinstance(asked.exception(60), DeadlineExceeded)
        second.has_gone = False
        assert second.read() == 7


@pytest.mark.parametrize("left", [0, 1])
def test_a_heavy_read_without_a_descriptor_may_be_tried_again(walled: Store, left: int) -> None:
    with descriptors_left(left), pytest.raises(NoDescriptor), walled.read(heavy=True):
        raise AssertionError("it was begun")
    with walled.read(heavy=True) as tx:
        assert tx.value("SELECT 7") == 7


def test_a_write_without_a_descriptor_for_its_journal_may_be_tried_again(tmp_path: Path) -> None:
    settings = StoreSettings(str(tmp_path / "b.db"), "file")
    store = Store(settings, clock=clock, domain=DOMAIN_FUNCTIONS, version="test")

    def keep() -> None:
        store.write(lambda tx: tx.run("INSERT INTO meta (key, value) VALUES ('it', 'kept')"))

    with descriptors_left(0), pytest.raises(NoDescriptor):
        keep()
    keep()
    with descriptors_left(0), store.read() as tx:
        assert tx.value("SELECT value FROM meta WHERE key = 'it'") == "kept"
    store.close()
