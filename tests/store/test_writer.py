"""The writer under failure: every caller gets an answer, and what is answered is what is on disk."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from beetle.contracts.errors import BeetleError, Conflict, DeadlineExceeded, Overloaded, StorageFull, StoreReadOnly
from beetle.store.engine.store import Store
from beetle.store.engine.write_queue import MOST_REST_S, PendingWrite, QueuedWrite, WriteQueue
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.engine.writer import ERASURE_RETRY_S, Writer
from beetle.store.event_log import Event, Logged
from tests.faults.fault_vfs import FaultVFS
from tests.store.conftest import (
    CONVERSATION,
    DISK_BACKENDS,
    assert_clean,
    commit,
    found,
    held_snapshot,
    lifecycle,
    open_runtime,
    store_of,
    turn,
    wait_for_erasures,
)
from tests.transports.serving import PATIENCE_S, until


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
        self.ask(name, lambda: self.store.write(run, **more))

    def ask(self, name: str, write: Callable[[], Any]) -> None:
        """Have something called that writes, and wait until its write is queued."""

        def call() -> None:
            try:
                self.answers[name] = write()
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

    def broken() -> None:
        raise RuntimeError("the loop itself is broken")

    store.writer._checkpoints.keep_small = broken  # type: ignore[method-assign]
    crowd.release()
    store.writer._thread.join(30)
    for _ in range(2):
        with pytest.raises((RuntimeError, BeetleError)):
            store.write(put("later"))
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
    # The store itself is closed: `memory.close` is a write too, and would wait behind the one that is held.
    closer = threading.Thread(target=store.close)
    closer.start()
    with store.writer._wake:
        assert store.writer._wake.wait_for(lambda: store.writer.closed, 30)
    with pytest.raises(StoreReadOnly, match="is being closed"):
        store.write(put("late"))
    assert store.writer.queued == 3 and closer.is_alive(), "it waits for what was taken on before"
    answers = crowd.release()
    closer.join(30)
    assert not closer.is_alive()
    # The holder's first, then one group of three, each numbered in its turn.
    assert [answers[name] - answers["a"] for name in "abc"] == [0, 1, 2]
    with pytest.raises(StoreReadOnly), store.read():
        pass
    memory.close()
    with open_runtime(path) as again:
        assert keys(store_of(again)) == set("abc")
        assert_clean(again)


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
        store.readers._idle.pop().connection.close()
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


def test_what_a_failed_write_had_logged_is_in_no_log_and_told_to_nobody(path: str) -> None:
    def fails(tx: WriteTransaction) -> None:
        put("gone")(tx)
        tx.expect_erasure()
        raise KeyError("ours")

    with open_runtime(path) as memory:
        store = store_of(memory)
        told: list[Logged] = []
        store.on_commit(told.extend)
        crowd = Crowd(store)
        for name, run in (("a", put("a")), ("b", fails), ("c", put("c"))):
            crowd.add(name, run)
        answers = crowd.release()
        assert isinstance(answers["b"], KeyError) and answers["c"] == answers["a"] + 1
        assert keys(store) == {"a", "c"}
        assert [each.event.subject for each in told if each.event.event == "noted"] == [{"key": "a"}, {"key": "c"}]
        assert [each.seq for each in told] == sorted({each.seq for each in told})
        assert store.writer.erasures == 0
        assert_clean(memory)


def test_no_more_writes_share_a_commit_than_the_settings_say(path: str) -> None:
    with open_runtime(path, write_group=2) as memory:
        store = store_of(memory)
        groups: list[int] = []
        store.on_commit(lambda logged: groups.append(len(logged)))
        crowd = Crowd(store)
        for name in "abcde":
            crowd.add(name, put(name))
        crowd.release()
        assert groups == [2, 2, 1]


def test_the_write_ahead_log_stays_near_its_budget_while_the_store_is_written(path: str) -> None:
    budget = 256 * 1024
    with open_runtime(path, wal_bytes=budget) as memory:
        largest = 0
        for number in range(40):
            commit(memory, turn(f"t{number}", f"word{number} " + "filler and more of it " * 1000))
            largest = max(largest, os.path.getsize(path + "-wal"))
        assert largest < 4 * budget


def test_nothing_fails_behind_the_back_of_who_opens_writes_and_closes(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="beetle"), open_runtime(path) as memory:
        commit(memory, turn("t1", "tea at five"))
        store_of(memory).write(lambda tx: tx.value("SELECT 1"))
    assert [record.message for record in caplog.records] == []


def test_a_store_that_was_closed_holds_no_file_open_and_leaves_no_log(path: str) -> None:
    def held() -> list[str]:
        found: list[str] = []
        for each in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                found.append(os.readlink(f"/proc/self/fd/{each}"))
        return [each for each in found if each.startswith(path)]

    with open_runtime(path) as memory:
        commit(memory, turn("t1", "tea at five"))
        assert held()
    assert held() == []
    assert not os.path.exists(path + "-wal")


def test_an_erasure_that_a_reader_holds_up_is_tried_again_in_its_time_and_not_at_once(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_runtime(path) as memory:
        commit(memory, turn("t1", "tea at five"))
        writer = store_of(memory).writer
        tries: list[float] = []
        truncate = writer._checkpoints.attempt

        def counted(mode: int) -> Any:
            tries.append(time.monotonic())
            return truncate(mode)

        monkeypatch.setattr(writer._checkpoints, "attempt", counted)
        monkeypatch.setattr("beetle.runtime.areas.evidence.lifecycle.ERASURE_WAIT_S", 0.1)
        with held_snapshot(memory):
            lifecycle(memory, "delete_raw", "t1")
            began = len(tries)
            time.sleep(2.5 * ERASURE_RETRY_S)
            assert 1 <= len(tries) - began <= 8
        wait_for_erasures(memory)
        assert writer.erasures == 0


def test_a_write_that_the_disk_refused_half_way_leaves_the_recall_index_right(tmp_path: Path) -> None:
    # In so small a cache a statement that reads the index may have to write first.
    vfs = FaultVFS()
    try:
        with open_runtime(tmp_path / "store.db", "file", vfs=vfs.name, page_cache_kib=48) as memory:
            commit(memory, turn("first", "one lamp"))
            refused = 0
            for point in range(1, 200):
                vfs.arm(f"full@{point}")
                try:
                    commit(memory, turn(f"u{point}", "two lamps"))
                    break
                except StorageFull:
                    refused += 1
                finally:
                    vfs.heal()
                commit(memory, turn(f"t{point}", "two lamps"))
            assert refused > 20
            # Each takes its words off what the index has counted.
            lifecycle(memory, "mask", "first", *(f"t{number}" for number in range(1, refused + 1)))
            assert_clean(memory)
    finally:
        vfs.close()


def test_a_commit_waits_for_as_many_writes_as_the_larger_of_the_last_two_had() -> None:
    queue = WriteQueue(most=64, group=8)
    assert queue.company == 1, "who writes alone waits for nobody"
    for size, expected in ((6, 6), (2, 6), (1, 2), (1, 1), (40, 8)):
        queue.committed(size)
        assert queue.company == expected


def test_who_wrote_slowly_rests_while_others_ask_and_theirs_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    now, asked = [100.0], [False]
    monkeypatch.setattr("beetle.store.engine.write_queue.time", SimpleNamespace(monotonic=lambda: now[0]))
    queue = WriteQueue(most=64, group=8)
    queue.others_ask = lambda by: asked[0] and by == "slow"
    first, again, quick = (QueuedWrite(lambda tx: None, None, grows=True, by=by) for by in ("slow", "slow", "quick"))
    queue.add(first)
    assert queue.first() is first
    queue.took(first, 60.0)
    queue.add(again)
    assert queue.rest_s() == 0, "nobody asks for anything"
    asked[0] = True
    assert queue.rest_s() == pytest.approx(MOST_REST_S)
    queue.add(quick)
    assert queue.rest_s() == 0 and queue.first() is quick
    queue.took(quick, 0.001)
    now[0] += MOST_REST_S / 2
    assert queue.rest_s() == pytest.approx(MOST_REST_S / 2)
    now[0] += MOST_REST_S / 2
    assert queue.rest_s() == 0 and queue.first() is again
    queue.took(again, 0.03)
    queue.add(first)
    assert queue.rest_s() == pytest.approx(0.03), "as long as its last write took"
    for own in (QueuedWrite(lambda tx: None, None, grows=False) for _ in range(2)):
        queue.add(own)
        assert queue.rest_s() == 0 and queue.first() is own, "the daemon's own writes have no name, and pass too"
    queue.took(first, 0.001)
    assert queue.rest_s() == 0


def test_a_log_that_a_reader_holds_is_not_cut_and_says_so(path: str) -> None:
    with open_runtime(path) as memory:
        store = store_of(memory)
        store.write(put("a"))
        with store.read() as tx:
            assert tx.value("SELECT count(*) FROM meta WHERE key = 'a'") == 1
            store.write(put("b"))
            assert store.cut_log(0.05) is False
            assert store.wal_bytes() > 0
        assert store.cut_log(30) is True
        assert store.wal_bytes() == 0


@contextmanager
def at_rest(writer: Writer) -> Iterator[None]:
    """The thread waits for work, behind a brief commit of one write, and takes none up while the block runs."""

    def taken() -> bool:
        writer._lock.acquire()
        if writer._idle:
            return True
        writer._lock.release()
        return False

    until(taken, "the thread, which waits for work")
    try:
        writer._group_s = 0.0
        writer._queue.committed(1)
        writer._queue.committed(1)
        yield
    finally:
        writer._lock.release()


def test_what_was_begun_is_committed_where_it_was_begun_unless_the_thread_has_more_to_do(path: str) -> None:
    whose: list[str] = []

    def note(_: Any) -> None:
        whose.append(threading.current_thread().name)

    with open_runtime(path) as memory:
        writer = store_of(memory).writer
        assert isinstance(writer, Writer)
        here = threading.current_thread().name
        for hinders, expected in (
            (None, here),
            (QueuedWrite(note, None, grows=True), "beetle-writer"),
            (QueuedWrite(note, None, grows=False, apart=True), "beetle-writer"),
            (1.0, "beetle-writer"),
            (None, here),
        ):
            ended = [threading.Event(), threading.Event()]
            with at_rest(writer):
                for each in ended:
                    writer.begin(PendingWrite(note), lambda _, each=each: each.set())
                if isinstance(hinders, QueuedWrite):
                    writer._add(hinders)
                elif hinders is not None:
                    writer._group_s = hinders
                writer.go_on()
            assert all(each.wait(PATIENCE_S) for each in ended)
            if isinstance(hinders, QueuedWrite):
                assert hinders.done.wait(PATIENCE_S)
            assert set(whose) == {expected}
            whose.clear()


@pytest.mark.parametrize("backend", ["file", "in-memory"])
def test_where_a_reader_holds_a_commit_up_the_thread_makes_it(path: str, backend: str) -> None:
    whose: list[str] = []
    ended = threading.Event()
    with open_runtime(path, backend=backend) as memory:
        writer = store_of(memory).writer
        assert isinstance(writer, Writer)
        with at_rest(writer):
            writer.begin(PendingWrite(lambda _: whose.append(threading.current_thread().name)), lambda _: ended.set())
            writer.go_on()
        assert ended.wait(PATIENCE_S)
    assert whose == ["beetle-writer"]


def test_no_write_is_left_waiting_behind_one_that_was_made_while_the_thread_waited_for_company(path: str) -> None:
    never, whose = threading.Event(), set[str]()

    def slow(_: Any) -> None:
        whose.add(threading.current_thread().name)
        never.wait(0.01)  # longer than company is waited for

    with open_runtime(path) as memory:
        writer = store_of(memory).writer
        assert isinstance(writer, Writer)
        for _ in range(20):
            writer._queue.committed(8)
            writer.write(slow)
            until(lambda: writer._gathering == 8, "the thread, which waits for company")
            ended = threading.Event()
            writer.begin(PendingWrite(slow), lambda _, ended=ended: ended.set())
            writer.go_on()
            writer._queue.committed(8)
            late = threading.Event()
            assert writer.post(lambda _: None, then=lambda _, late=late: late.set())
            is_made = late.wait(PATIENCE_S)
            writer._gathering = 1  # so that the end of the test finds a writer that is woken
            assert is_made and ended.is_set()
        assert threading.current_thread().name in whose


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_a_write_waits_for_another_program_until_its_deadline(path: str, backend: str) -> None:
    arguments = {"conversation": CONVERSATION, "turns": [turn("t1", "meanwhile")]}
    with open_runtime(path, backend) as memory:
        commit(memory, turn("t0", "before"))
        other = apsw.Connection(path)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DeadlineExceeded, match="100 ms passed before another program let go"):
            memory.call("transcript.commit", arguments, deadline_ms=100)
        other.execute("ROLLBACK")
        other.close()
        commit(memory, turn("t2", "after"))
        assert found(memory, "after") and not found(memory, "meanwhile")
        assert_clean(memory)


def test_a_store_that_another_program_holds_is_waited_for_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    begun: list[str] = []

    def follow(connection: apsw.Connection) -> None:
        connection.set_busy_timeout(50)
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: begun.append(event["sql"]))

    with open_runtime(tmp_path / "b.db") as memory:
        commit(memory, turn("t0", "before"))
        store_of(memory).writer.apart(follow)
        other = apsw.Connection(str(tmp_path / "b.db"))
        other.execute("BEGIN IMMEDIATE")
        begun.clear()
        with pytest.raises(Overloaded):
            commit(memory, turn("t1", "meanwhile"))
        assert begun.count("BEGIN IMMEDIATE") == 1 and "ROLLBACK" not in begun
        assert not [each for each in caplog.records if each.levelno >= logging.WARNING]
        other.execute("ROLLBACK")
        other.close()
        commit(memory, turn("t2", "after"))
        assert found(memory, "after") and not found(memory, "meanwhile")
        assert_clean(memory)
