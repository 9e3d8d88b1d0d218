"""Closing: what is refused meanwhile, what is finished first, what it leaves, and that a second close says so."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from beetle.client import Client
from beetle.contracts.common import ModeInput
from beetle.contracts.errors import BeetleError, Forbidden, InvalidRequest, ServicesUnavailable, StoreReadOnly
from beetle.contracts.lifecycle import MemoryCloseReport
from beetle.contracts.operations import OPERATIONS
from beetle.runtime.host.modes import STATUS_OPERATIONS, RuntimeLifecycle
from beetle.store.engine.lock import holder_of
from tests.cases import CASES, Prepared
from tests.conformance.doors import InProcess
from tests.forked import Daemon
from tests.store.conftest import DISK_BACKENDS, commit, open_runtime, replay, store_of, turn
from tests.transports.conftest import commit as ticket
from tests.transports.serving import until

STANDALONE = "profile-linux-device-standalone-memory"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "b.db"


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with Daemon(profile=STANDALONE) as running:
        yield running


def events(path: str | Path) -> list[str]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return [row[0] for row in connection.execute("SELECT event FROM event_log ORDER BY seq")]
    finally:
        connection.close()


# In process


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_closing_reports_empties_the_log_and_frees_the_store(path: Path, backend: str) -> None:
    memory = open_runtime(path, backend)
    commit(memory, turn("t1", "kept"))
    report = memory.close(reason="the day is over")
    assert isinstance(report, MemoryCloseReport)
    assert (report.reason, report.already, report.checkpointed, report.wal_bytes) == ("the day is over", False, True, 0)
    assert (report.pending_erasures, report.event_log_rows) == (0, 2)
    assert holder_of(str(path)) is None
    assert events(path) == ["committed", "closed"]
    with open_runtime(path, backend) as again:
        assert len(replay(again)) == 1


def test_a_second_close_says_so_and_changes_nothing(path: Path) -> None:
    memory = open_runtime(path)
    first, second = memory.close(reason="once"), memory.close(reason="twice")
    assert first is not None and second is not None
    assert (second.already, second.reason, second.lifecycle) == (True, "once", None)
    assert second.event_log_rows == first.event_log_rows
    assert memory.close_runtime(reason="thrice").already
    assert events(path) == ["closed"]


def test_the_operation_frees_the_store_too(path: Path) -> None:
    memory = open_runtime(path)
    assert not memory.close_runtime(reason="by the operation").already
    assert holder_of(str(path)) is None
    with pytest.raises(StoreReadOnly):
        commit(memory, turn("t1", "too late"))
    closed = memory.close()
    assert closed is not None and closed.already


def test_leaving_the_block_closes_with_a_reason_of_its_own(path: Path) -> None:
    with open_runtime(path) as memory:
        commit(memory, turn("t1", "kept"))
    assert events(path) == ["committed", "closed"]
    second = memory.close()
    assert second is not None and second.already


@pytest.mark.parametrize("reason", ["", "a\nb", "x" * 257])
def test_a_reason_that_is_no_line_closes_nothing(path: Path, reason: str) -> None:
    with open_runtime(path) as memory:
        with pytest.raises(InvalidRequest):
            memory.close(reason=reason)
        commit(memory, turn("t1", "still open"))


def test_writes_that_wait_are_finished_first(path: Path) -> None:
    memory = open_runtime(path)
    store = store_of(memory)
    holding, let_go = threading.Event(), threading.Event()
    done: list[str] = []

    def hold(_: object) -> None:
        holding.set()
        assert let_go.wait(60)

    def write(number: int) -> None:
        commit(memory, turn(f"t{number}", f"waiting {number}"))
        done.append(f"t{number}")

    holder = threading.Thread(target=store.write, args=(hold,))
    holder.start()
    assert holding.wait(60)
    writers = [threading.Thread(target=write, args=(number,)) for number in range(5)]
    for each in writers:
        each.start()
    until(lambda: store.writer.queued == 5, "five writes that wait")
    closer_report: list[MemoryCloseReport | None] = []
    closer = threading.Thread(target=lambda: closer_report.append(memory.close(reason="now")))
    closer.start()
    running = memory._opened.dispatcher.lifecycle
    until(lambda: running.mode == "closing", "the mode closing")
    with pytest.raises(ServicesUnavailable):
        commit(memory, turn("new", "refused"))
    assert memory.inspect().runtime.mode == "closing", "its status can be read"
    let_go.set()
    for each in (holder, closer, *writers):
        each.join()
    (report,) = closer_report
    assert report is not None and report.drained == 5 and sorted(done) == [f"t{number}" for number in range(5)]
    with open_runtime(path) as again:
        assert sorted(each.turn_id for each in replay(again)) == sorted(done)


# Modes


def test_a_runtime_that_closes_answers_reads_of_its_status_alone() -> None:
    running = RuntimeLifecycle()
    assert running.begin_close() and not running.begin_close()
    for row in OPERATIONS:
        if row.name in STATUS_OPERATIONS:
            running.admit(row, None)
        else:
            with pytest.raises(ServicesUnavailable):
                running.admit(row, None)
    assert all(row.effect == "read" for row in OPERATIONS if row.name in STATUS_OPERATIONS - {"memory.close"})


@pytest.mark.parametrize("mode", ["read_only", "safe"])
def test_a_mode_that_only_reads_refuses_every_write_of_the_table(mode: str) -> None:
    running = RuntimeLifecycle()
    running.enter(mode)  # type: ignore[arg-type] - a name of the table
    for row in OPERATIONS:
        if row.effect in ("write", "admin") and not row.takes_out and row.name not in ("batch", "memory.close"):
            with pytest.raises(Forbidden) as refused:
                running.admit(row, None)
            assert refused.value.details["mode"] == mode
        else:
            running.admit(row, None)


@pytest.mark.parametrize("mode", ["read_only", "safe"])
def test_a_mode_that_only_reads_refuses_every_case_that_writes_and_answers_the_others(mode: str, path: Path) -> None:
    door = InProcess("nobody", path, "profile-server-linux-dev-full")
    running = door.opened.dispatcher.lifecycle
    for number, case in enumerate(case for case in CASES if case.row.effect != "stream" and case.op != "memory.close"):
        door.owner = f"owner-{number}"
        args = case.request(Prepared(door.prepare))
        running.enter(mode)  # type: ignore[arg-type] - a name of the table
        reads = case.row.effect == "read" or case.row.takes_out
        if case.key and reads:
            door.refused(case.key, case.op, args)
        elif reads:
            door.call(case.op, args)
        else:
            assert door.refused("forbidden", case.op, args).details["mode"] == mode, case.op
        running.enter("normal")
    door.close()


def test_the_stricter_of_two_modes_holds(path: Path) -> None:
    with open_runtime(path) as memory:
        running = memory._opened.dispatcher.lifecycle
        running.enter("read_only")
        report = memory.inspect(mode_input=ModeInput(mode="normal"))
        assert report.runtime.mode == "read_only"
        assert memory.inspect(mode_input=ModeInput(mode="safe")).runtime.mode == "safe"
        with pytest.raises(Forbidden):
            memory.recover(mode_input=ModeInput(mode="maintenance"))
        with pytest.raises(Forbidden):
            memory.batch(requests=[{"op": "skill.delete", "args": {"name": "x"}}])
        assert memory.batch(requests=[{"op": "skill.list", "args": {}}]).reports
        running.enter("normal")
        memory.recover(mode_input=ModeInput(mode="maintenance"))


# The daemon


def test_a_daemon_that_is_closed_ends_with_0_and_leaves_a_log_of_it(daemon: Daemon) -> None:
    with daemon.client() as client:
        client.commit_transcript(**ticket(1))
        report = client.close_runtime(reason="maintenance of the box")
    assert not report.already and report.checkpointed
    assert daemon.process is not None and daemon.process.wait(60) == 0
    assert events(daemon.store) == ["daemon_started", "committed", "closed", "daemon_stopped"]
    assert holder_of(daemon.store) is None and "Traceback" not in (daemon.folder / "log").read_text()


def test_two_who_close_a_daemon_at_once_are_both_answered(daemon: Daemon) -> None:
    answers: list[bool] = []
    both = threading.Barrier(2)

    def close() -> None:
        with Client(daemon.socket, retry=False) as client:
            client.hello()
            both.wait(60)
            try:
                answers.append(client.close_runtime(reason="both").already)
            except ConnectionError:
                answers.append(True)  # it had gone before it read this one

    threads = [threading.Thread(target=close) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(answers) == [False, True]
    assert daemon.process is not None and daemon.process.wait(60) == 0


def test_a_close_under_load_loses_no_acknowledged_write(daemon: Daemon) -> None:
    told, ended = [0] * 6, threading.Barrier(7)
    enough = threading.Event()

    def write(place: int) -> None:
        try:
            with Client(daemon.socket, retry=False) as client:
                while True:
                    client.commit_transcript(**ticket(told[place], f"w{place}"))
                    told[place] += 1
                    if sum(told) > 60:
                        enough.set()
        except (BeetleError, ConnectionError) as error:
            assert not isinstance(error, BeetleError) or error.key == "services_unavailable", error
        ended.wait(60)

    threads = [threading.Thread(target=write, args=(place,)) for place in range(6)]
    for each in threads:
        each.start()
    assert enough.wait(60)
    with daemon.client() as client:
        assert not client.close_runtime(reason="now").already
    ended.wait(60)
    for each in threads:
        each.join()
    assert daemon.process is not None and daemon.process.wait(60) == 0
    daemon.start()
    with daemon.client() as client:
        assert client.verify_store().clean
        held = {each.conversation_id: each.turns for each in client.list_conversations().conversations}
    assert [held[f"w{place}"] for place in range(6)] == told
