"""The writer under failure: every caller gets an answer, and what is answered is what is on disk."""

from __future__ import annotations

import threading
from typing import Any

import apsw
import pytest

from beetle.contracts.errors import BeetleError, Conflict, DeadlineExceeded, Overloaded, StorageFull, StoreReadOnly
from beetle.store.event_log import Event
from beetle.store.store import Store
from beetle.store.writer import WriteTransaction
from tests.faults.fault_vfs import FaultVFS
from tests.store.conftest import (
    DISK_BACKENDS,
    assert_clean,
    commit,
    found,
    held_snapshot,
    open_runtime,
    store_of,
    turn,
)


def put(key: str) -> Any:
    def run(tx: WriteTransaction) -> int:
        tx.run("INSERT INTO meta VALUES (?, 'x')", key)
        return tx.log(Event("lifecycle", "noted", "test", "test", None, {"key": key}))

    return run


def keys(store: Store) -> set[str]:
    with store.read() as tx:
        return {row[0] for row in tx.rows("SELECT key FROM meta WHERE value = 'x'")}


class Crowd:
    """Writes from many threads that are queued while the writer is held, so that they make one group."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.answers: dict[str, Any] = {}
        self.threads: list[threading.Thread] = []
        self.held, self.go = threading.Event(), threading.Event()
        self.add("holder", self._hold)
        assert self.held.wait(30)

    def _hold(self, tx: WriteTransaction) -> None:
        self.held.set()
        assert self.go.wait(30)

    def add(self, name: str, run: Any, **more: Any) -> None:
        def call() -> None:
            try:
                self.answers[name] = self.store.write(run, **more)
            except Exception as error:  # noqa: BLE001 - kept to be looked at
                self.answers[name] = error

        before = self.store.writer.queued
        thread = threading.Thread(target=call)
        thread.start()
        self.threads.append(thread)
        while name != "holder" and self.store.writer.queued == before and thread.is_alive():
            thread.join(0.001)

    def release(self) -> dict[str, Any]:
        self.go.set()
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive(), "a caller was left waiting"
        return self.answers


def test_in_a_group_one_that_fails_takes_no_other_with_it(path: str) -> None:
    with open_runtime(path) as memory:
        store = store_of(memory)
        crowd = Crowd(store)
        crowd.add("a", put("a"))
        crowd.add("b", put("store_key"))  # is there already
        crowd.add("c", lambda tx: 1 / 0)
        crowd.add("d", put("d"))
        answers = crowd.release()
        assert isinstance(answers["b"], apsw.ConstraintError) and isinstance(answers["c"], ZeroDivisionError)
        assert answers["d"] == answers["a"] + 1
        assert keys(store) == {"a", "d"}
        assert_clean(memory)


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_a_group_that_the_disk_refuses_is_tried_again_one_by_one(path: str, backend: str) -> None:
    vfs = FaultVFS()
    try:
        with open_runtime(path, backend, vfs=vfs.name) as memory:
            store = store_of(memory)
            crowd = Crowd(store)
            for name in "abcdef":
                crowd.add(name, put(name))
            vfs.arm("full@1")
            answers = crowd.release()
            refused = {name for name in "abcdef" if isinstance(answers[name], StorageFull)}
            assert len(refused) <= 1 and keys(store) == set("abcdef") - refused
            assert_clean(memory)
    finally:
        vfs.close()


@pytest.mark.parametrize("group", [1, 4])
def test_a_commit_that_stands_although_it_answered_an_error_breaks_nothing(path: str, group: int) -> None:
    # In rollback mode a commit stands once its journal is gone; the sync of the folder after that can still fail.
    vfs = FaultVFS()
    try:
        with open_runtime(path, "file", vfs=vfs.name) as memory:
            store = store_of(memory)
            commit(memory, turn("t1", "before"))
            crowd = Crowd(store)
            names = "abcd"[:group]
            for name in names:
                crowd.add(name, put(name))
            vfs.only = path + "-journal"
            vfs.deletions = True
            # The holder's own group changes nothing and deletes no journal: the first deletion is that of this group.
            vfs.arm("late@1")
            answers = crowd.release()
            assert vfs.hits == 1 and any(isinstance(answers[name], BeetleError) for name in names)
            vfs.heal()
            # Each is there once or not at all, and what follows goes on from the row that is really the last one.
            assert keys(store) <= set(names)
            store.write(put("later"))
            assert "later" in keys(store)
            assert_clean(memory)
        with open_runtime(path, "file") as again:
            assert_clean(again)
    finally:
        vfs.close()


def test_a_writer_thread_that_dies_leaves_no_caller_waiting(path: str) -> None:
    memory = open_runtime(path)
    store = store_of(memory)
    crowd = Crowd(store)
    crowd.add("queued", put("queued"))

    class Broken:
        def __bool__(self) -> bool:
            raise RuntimeError("the loop itself is broken")

    store.writer._erasures = Broken()  # type: ignore[assignment]
    crowd.release()
    store.writer._thread.join(30)
    for _ in range(2):
        with pytest.raises((RuntimeError, BeetleError)):
            store.write(put("later"))
    store.writer._erasures = 0
    memory.close()
    with open_runtime(path) as again:
        assert_clean(again)


def test_a_follower_of_events_that_fails_does_not_undo_the_write(path: str) -> None:
    with open_runtime(path) as memory:
        store = store_of(memory)
        store.on_commit(lambda logged: 1 / 0)
        store.write(put("a"))
        store.write(put("b"))
        assert keys(store) == {"a", "b"}
        assert_clean(memory)


def test_closing_commits_what_is_queued_and_refuses_what_comes_later(path: str) -> None:
    memory = open_runtime(path)
    store = store_of(memory)
    crowd = Crowd(store)
    for name in "abc":
        crowd.add(name, put(name))
    closer = threading.Thread(target=memory.close)
    closer.start()
    while not store.writer._closing:
        closer.join(0.001)
    with pytest.raises(StoreReadOnly):
        store.write(put("late"))
    answers = crowd.release()
    closer.join(30)
    assert all(isinstance(answers[name], int) for name in "abc")
    with pytest.raises(StoreReadOnly), store.read():
        pass
    with open_runtime(path) as again:
        assert keys(store_of(again)) == set("abc")


def test_a_full_queue_and_a_passed_deadline_are_told(path: str) -> None:
    with open_runtime(path, write_queue=2) as memory:
        crowd = Crowd(store_of(memory))
        crowd.add("late", put("late"), deadline=0.0)
        crowd.threads[-1].join(30)
        assert isinstance(crowd.answers["late"], DeadlineExceeded), "it is told before the writer is free"
        for name in ("a", "b", "c"):
            crowd.add(name, put(name))
        answers = crowd.release()
        assert isinstance(answers["c"], Overloaded)
        assert keys(store_of(memory)) == {"a", "b"}


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_a_reader_that_cannot_be_opened_is_a_typed_error_and_gives_its_slot_back(path: str, backend: str) -> None:
    with open_runtime(path, backend, readers=2) as memory:
        store = store_of(memory)
        settings = store.readers._settings
        store.readers._settings = settings._replace(path=path + "-not-there")
        for _ in range(5):
            with pytest.raises(BeetleError) as error, store.read(None):
                pass
            assert error.value.key in ("store_read_only", "storage_full", "store_corrupt")
        store.readers._settings = settings
        commit(memory, turn("t1", "readable"))
        assert found(memory, "readable")


def test_every_reader_busy_is_told_and_one_that_fails_goes_back(path: str) -> None:
    with open_runtime(path, readers=1) as memory:
        store = store_of(memory)
        with held_snapshot(memory), pytest.raises(Overloaded), store.read(0.0):
            pass
        with pytest.raises(ZeroDivisionError), store.read():
            _ = 1 / 0
        with pytest.raises(apsw.SQLError), store.read() as tx:
            tx.value("SELECT 1")
            raise apsw.SQLError("ours")
        commit(memory, turn("t1", "readable"))
        assert found(memory, "readable")


def test_a_conflict_inside_a_batch_writes_nothing_of_it(path: str) -> None:
    with open_runtime(path) as memory:
        commit(memory, turn("t1", "as it was"))
        arguments = [{"conversation": {"conversation_id": "c1"}, "turns": [turn(name, text)]}
                     for name, text in (("t2", "new"), ("t1", "changed"))]  # fmt: skip
        with pytest.raises(Conflict):
            memory.call("batch", {"requests": [{"op": "transcript.commit", "args": each} for each in arguments]})
        assert not found(memory, "new")
        assert_clean(memory)
