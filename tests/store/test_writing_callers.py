"""A write that nobody else's is beside is committed by its caller's thread; all else by the writer's own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.errors import Conflict, StoreReadOnly
from beetle.store.engine.store import Store
from beetle.store.engine.write_transaction import WriteTransaction
from tests.store.conftest import assert_clean, commit, lifecycle, open_runtime, store_of, turn, wait_for_erasures
from tests.transports.serving import until

WAIT_S = 30.0


def put(key: str, then: Callable[[], Any] = lambda: None) -> Callable[[WriteTransaction], str]:
    """A write that notes a key, and tells the thread that runs it."""

    def run(tx: WriteTransaction) -> str:
        tx.run("INSERT INTO meta VALUES (?, 'x')", key)
        then()
        return threading.current_thread().name

    return run


def keys(store: Store) -> set[str]:
    with store.read() as tx:
        return {row[0] for row in tx.rows("SELECT key FROM meta WHERE value = 'x'")}


class Caller:
    """A thread of a client."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="caller")

    def begin(self, call: Callable[..., Any], *args: Any, **more: Any) -> Any:
        return self._pool.submit(call, *args, **more)

    def ask(self, call: Callable[..., Any], *args: Any, **more: Any) -> Any:
        return self.begin(call, *args, **more).result(WAIT_S)


@pytest.fixture
def caller() -> Caller:
    return Caller()


def test_who_writes_alone_commits_by_itself_but_not_the_main_thread(path: str, caller: Caller) -> None:
    with open_runtime(path) as memory:
        store = store_of(memory)
        assert caller.ask(store.write, put("a")) == "caller_0"
        assert store.write(put("b")) == "beetle-writer", "a signal's handler may raise on the main thread"
        assert caller.ask(store.write, put("c")) == "caller_0"
        assert keys(store) == {"a", "b", "c"} and store.still_s() == 0
        assert_clean(memory)


def test_what_comes_meanwhile_waits_and_is_committed_by_the_writers_thread(path: str, caller: Caller) -> None:
    begun, go = threading.Event(), threading.Event()
    with open_runtime(path) as memory:
        store = store_of(memory)
        first = caller.begin(store.write, put("a", lambda: begun.set() or go.wait(WAIT_S)))
        assert begun.wait(WAIT_S)
        others = [Caller() for _ in range(3)]
        waiting = [each.begin(store.write, put(f"b{place}")) for place, each in enumerate(others)]
        posted = threading.Event()
        until(lambda: store.writer.queued == len(others), "writes that wait")
        assert store.post(put("c"), then=lambda _: posted.set())
        assert not any(each.done() for each in waiting)
        go.set()
        assert first.result(WAIT_S) == "caller_0"
        assert {each.result(WAIT_S) for each in waiting} == {"beetle-writer"}
        assert posted.wait(WAIT_S)
        assert keys(store) == {"a", "b0", "b1", "b2", "c"}


def test_closing_waits_for_a_caller_that_writes(path: str, caller: Caller) -> None:
    begun, go = threading.Event(), threading.Event()
    memory = open_runtime(path)
    store = store_of(memory)
    writes = caller.begin(store.write, put("a", lambda: begun.set() or go.wait(WAIT_S)))
    assert begun.wait(WAIT_S)
    closer = threading.Thread(target=store.close)
    closer.start()
    until(lambda: store.writer.closed, "a store that is being closed")
    with pytest.raises(StoreReadOnly, match="is being closed"):
        Caller().ask(store.write, put("late"))
    assert closer.is_alive()
    go.set()
    closer.join(WAIT_S)
    assert not closer.is_alive() and writes.result(WAIT_S) == "caller_0"
    memory.close()
    with open_runtime(path) as again:
        assert keys(store_of(again)) == {"a"}
        assert_clean(again)


class Stopped(BaseException):
    """As SystemExit: no error of a write."""


@pytest.mark.parametrize("error", [Conflict(reason="it is taken"), ZeroDivisionError(), Stopped()])
def test_a_write_that_fails_leaves_nothing_and_the_next_one_is_as_before(
    path: str, caller: Caller, error: BaseException
) -> None:
    def fails() -> None:
        raise error

    with open_runtime(path) as memory:
        store = store_of(memory)
        with pytest.raises(type(error)):
            caller.ask(store.write, put("a", fails))
        assert caller.ask(store.write, put("b")) == "caller_0"
        assert store.write(put("c")) == "beetle-writer"
        assert keys(store) == {"b", "c"}
        assert_clean(memory)


def test_the_log_that_callers_write_is_folded(path: str, caller: Caller) -> None:
    budget = 256 * 1024
    with open_runtime(path, wal_bytes=budget) as memory:
        largest = 0
        for number in range(40):
            caller.ask(commit, memory, turn(f"t{number}", f"word{number} " + "filler and more of it " * 1000))
            largest = max(largest, os.path.getsize(path + "-wal"))
        assert budget // 2 < largest < 4 * budget
        assert_clean(memory)


def test_what_a_caller_erases_leaves_the_log(path: str, caller: Caller) -> None:
    with open_runtime(path) as memory:
        caller.ask(commit, memory, turn("t1", "the canary sings"))
        caller.ask(lifecycle, memory, "delete_raw", "t1")
        wait_for_erasures(memory)
        assert not any(b"canary" in Path(path + each).read_bytes() for each in ("", "-wal"))
        assert caller.ask(store_of(memory).write, put("a")) == "caller_0"


def test_a_store_that_was_moved_acknowledges_nothing(path: str, caller: Caller) -> None:
    with open_runtime(path) as memory:
        store = store_of(memory)
        caller.ask(commit, memory, turn("t1", "tea at five"))
        os.rename(path, path + ".moved")
        for key in "ab":
            with pytest.raises(StoreReadOnly, match="removed or renamed"):
                caller.ask(store.write, put(key))
        os.rename(path + ".moved", path)
        with pytest.raises(StoreReadOnly, match="removed or renamed"):
            caller.ask(store.write, put("c"))
