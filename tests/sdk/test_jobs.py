"""Deferred jobs: leases, retries, ends, and the loop that does them."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.maintain import OpenJob
from beetle.open import Embedded, Opened, _Jobs, open_embedded, start_jobs, stop_jobs
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.jobs import (
    EMBEDDED,
    FIRST_PAUSE_S,
    MOST_ATTEMPTS,
    MOST_PAUSE_S,
    DeferredJobs,
    JobLimits,
    drop,
    exactly,
)
from beetle.store import jobs as job_store
from beetle.store.jobs import JobRow, NewJob
from tests.sdk.answering import (
    CONVERSATION,
    OWNER,
    Answer,
    Asked,
    ModelServer,
    item,
    noted,
    openai,
    opened,
    runtime,
    turn,
)
from tests.sdk.recorded import Recorded

SECOND = 1_000_000
PORTO = item("The user lives in Porto.", "t1.0")


@pytest.fixture
def time_() -> Recorded:
    return Recorded("jobs")


@pytest.fixture
def store(server: ModelServer, time_: Recorded) -> Iterator[Opened]:
    running = opened(server.model(), clock=time_.clock, ids=time_.ids)
    yield running
    running.store.close()


def loop(store: Opened, caller_of: Callable[[str], Caller | None] | None = None, **more: Any) -> DeferredJobs:
    """What does the jobs of a store, which no thread asks; its model never rests, so that a test waits for nothing."""
    terms = JobLimits(
        caller_of=caller_of or {OWNER.name: OWNER}.get,
        whose="*",
        not_whose="",
        timeout_s=20,
        rest_s=lambda: 0.0,
        clock=store.dependencies.clock,
        ids=store.dependencies.ids,
    )
    return DeferredJobs(store.store, _Jobs(store.dispatcher), terms._replace(**more))


def defer(store: Opened, *, caller: Caller = OWNER, conversation: str = "c1", turn_id: str = "t1") -> str:
    """Finalise a turn through a dispatcher that has no model; the id of the job that was left.

    The store's own dispatcher keeps its model: the loop on it may begin the job before this returns.
    """
    away = copy.copy(store.dispatcher)
    away.shared = away.shared._replace(model=None)
    report = runtime(store._replace(dispatcher=away), caller).finalize_turn_and_maintain(
        conversation={"conversation_id": conversation}, turn=turn(turn_id, "I live in Porto.")
    )
    assert report.deferred_job_id is not None
    return report.deferred_job_id


def row(store: Opened, job_id: str) -> JobRow:
    with store.store.read() as tx:
        found = job_store.find(tx, job_id)
    assert found is not None
    return found


def open_jobs(store: Opened) -> tuple[OpenJob, ...]:
    return runtime(store).governance_report().deferred.open_jobs


def events(store: Opened) -> list[str]:
    """The events about jobs, in their order."""
    with store.store.read() as tx:
        return [each[0] for each in tx.rows("SELECT event FROM event_log WHERE topic = 'job' ORDER BY seq")]


def test_a_job_is_done_as_the_principal_and_in_the_scope_that_left_it(store: Opened, server: ModelServer) -> None:
    server.answer = noted(PORTO)
    agent = OWNER._replace(name="agent", kind="principal", owner_id="ana")
    job_id = defer(store, caller=agent)
    assert loop(store, {"agent": agent}.get).run_next() is True
    assert row(store, job_id).state == "done"
    (fact,) = runtime(store).list_long_term().records
    detail = runtime(store).get_long_term(ref=fact.ref)
    assert (detail.revisions[0].by, detail.revisions[0].source_chat_id) == ("agent", "c1")
    assert events(store) == ["job_left", "job_done"]
    assert loop(store, {"agent": agent}.get).run_next() is False


def test_a_lease_of_a_clock_that_went_back_holds_nobody_up(store: Opened, server: ModelServer, time_: Recorded) -> None:
    server.answer = noted(PORTO)
    left = row(store, defer(store))
    store.store.write(lambda tx: job_store.lease(tx, left, tx.now, tx.now + 120 * SECOND))
    time_.go_on(-86_400 * SECOND)
    report = runtime(store).finalize_turn_and_maintain(
        conversation={"conversation_id": "c1"}, turn=turn("t2", "I like milk.")
    )
    assert (report.maintained, open_jobs(store)) == ("done", ())


def test_a_job_goes_on_until_nothing_is_left(store: Opened, server: ModelServer) -> None:
    defer(store)
    for number in range(2, 110):
        runtime(store).commit_transcript(conversation=CONVERSATION, turns=[turn(f"t{number}", "I like tea.")])
    running = loop(store)
    assert [running.run_next() for _ in range(4)] == [True, True, True, False]
    assert [len(each.shown) for each in server.asked] == [50, 50, 9]
    assert events(store) == ["job_left", "job_goes_on", "job_goes_on", "job_done"]


def test_a_turn_that_is_committed_while_its_job_runs_is_not_forgotten(store: Opened, server: ModelServer) -> None:
    job_id = defer(store)

    def answer(asked: Asked) -> Answer:
        if "t2.0" not in asked.shown:
            assert defer(store, turn_id="t2") == job_id
        return noted()

    server.answer = answer
    running = loop(store)
    assert [running.run_next() for _ in range(3)] == [True, True, False]
    assert [each.shown for each in server.asked] == [["t1.0"], ["t2.0"]]
    assert row(store, job_id).state == "done"


def test_a_wrong_answer_puts_a_job_off_for_longer_each_time_and_ends_it_at_last(
    store: Opened, server: ModelServer, time_: Recorded
) -> None:
    server.answer = openai("garbage")
    job_id = defer(store)
    running = loop(store)
    for attempt in range(1, MOST_ATTEMPTS):
        assert running.run_next() is True
        now = row(store, job_id)
        assert (now.state, now.reason, now.attempts, now.lease_until) == ("waiting", "wrong_answer", attempt, None)
        pause = min(FIRST_PAUSE_S * 2 ** (attempt - 1), MOST_PAUSE_S) * SECOND
        assert pause * 0.75 <= now.not_before - time_.now <= pause * 1.25
        assert running.run_next() is False
        time_.now = now.not_before
    assert running.run_next() is True
    ended = row(store, job_id)
    assert (ended.state, ended.reason) == ("failed", "wrong_answer")
    time_.go_on(10**12)
    assert running.run_next() is False
    assert events(store) == ["job_left", *["job_put_off"] * (MOST_ATTEMPTS - 1), "job_failed"]
    assert runtime(store).list_long_term().records == ()


def test_a_model_that_is_away_costs_a_job_no_attempt_however_long_it_is_away(
    store: Opened, server: ModelServer, time_: Recorded
) -> None:
    server.answer = Answer(503, b"{}")
    job_id = defer(store)
    running = loop(store)
    for _ in range(MOST_ATTEMPTS * 3):
        assert running.run_next() is True
        time_.now = row(store, job_id).not_before
    assert (row(store, job_id).attempts, row(store, job_id).reason) == (0, "busy")
    server.answer = noted(PORTO)
    assert running.run_next() is True
    assert row(store, job_id).state == "done"


def test_jobs_that_failed_together_do_not_come_back_together(store: Opened, server: ModelServer) -> None:
    server.answer = openai("garbage")
    ids = [defer(store, conversation=f"c{n}") for n in range(8)]
    running = loop(store)
    while running.run_next():
        pass
    assert len({row(store, each).not_before for each in ids}) == 8


def test_a_lease_ends_by_itself_and_the_job_is_taken_up_again(
    store: Opened, server: ModelServer, time_: Recorded
) -> None:
    job_id = defer(store)
    taken = store.store.write(loop(store)._take)
    assert taken is not None and taken.state == "leased"
    assert loop(store).run_next() is False
    time_.now = taken.lease_until or 0
    assert loop(store).run_next() is True
    assert row(store, job_id).state == "done" and len(server.asked) == 1


def test_who_has_lost_its_lease_settles_nothing(store: Opened, time_: Recorded) -> None:
    job_id = defer(store)
    first = store.store.write(loop(store)._take)
    time_.now = first.lease_until
    second = store.store.write(loop(store)._take)
    loop(store)._settle(first, lambda tx: drop(tx, first, "principal_gone"))
    now = row(store, job_id)
    assert (now.state, now.lease_until) == ("leased", second.lease_until)
    loop(store)._settle(second, lambda tx: drop(tx, second, "principal_gone"))
    assert row(store, job_id).state == "dropped"


def test_expired_leases_can_be_given_back_at_once(store: Opened, time_: Recorded) -> None:
    job_id = defer(store)
    taken = store.store.write(loop(store)._take)
    assert store.store.write(lambda tx: job_store.free_expired(tx, tx.now)) == 0
    time_.now = taken.lease_until
    assert store.store.write(lambda tx: job_store.free_expired(tx, tx.now)) == 1
    assert row(store, job_id).state == "waiting"


def test_a_crash_between_the_turn_and_its_maintenance_leaves_the_job(
    server: ModelServer, time_: Recorded, tmp_path: Path
) -> None:
    class Crash(BaseException):
        pass

    path = str(tmp_path / "a.db")
    running = opened(server.model(), path, "sqlite", clock=time_.clock, ids=time_.ids)
    client = running.dispatcher.model
    assert client is not None

    def die(prompt: object) -> bytes:
        raise Crash

    client.ask = die  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(Crash):
        runtime(running).finalize_turn_and_maintain(conversation=CONVERSATION, turn=turn("t1", "I live in Porto."))
    running.store.close()
    server.answer = noted(PORTO)
    again = opened(server.model(), path, "sqlite", clock=time_.clock, ids=time_.ids)
    (left,) = open_jobs(again)
    assert (left.state, left.attempts) == ("leased", 0)
    assert loop(again).run_next() is False
    time_.go_on(10**9)
    assert loop(again).run_next() is True
    assert [each.content for each in runtime(again).list_long_term().records] == ["The user lives in Porto."]
    again.store.close()


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (None, "principal_gone"),
        (OWNER._replace(capabilities=OWNER.capabilities - {"maintain"}), "not_granted"),
        (OWNER._replace(views=("host_ui",)), "not_granted"),
        (OWNER._replace(owner_id="bob"), "not_granted"),
    ],
)
def test_a_job_whose_principal_no_longer_may_is_dropped(
    store: Opened, server: ModelServer, now: Caller | None, reason: str
) -> None:
    job_id = defer(store)
    assert loop(store, lambda _: now).run_next() is True
    assert (row(store, job_id).state, row(store, job_id).reason) == ("dropped", reason)
    assert server.asked == [] and events(store) == ["job_left", "job_dropped"]


def test_a_job_whose_conversation_is_gone_is_dropped(store: Opened, server: ModelServer) -> None:
    job_id = defer(store)

    def forget(tx: Any) -> None:
        tx.run("PRAGMA defer_foreign_keys=ON")
        tx.run("UPDATE conversation SET conversation_id = 'elsewhere'")

    store.store.write(forget)
    assert loop(store).run_next() is True
    assert (row(store, job_id).state, row(store, job_id).reason) == ("dropped", "conversation_gone")
    assert server.asked == []


def test_a_daemon_leaves_the_jobs_of_runtimes_in_other_processes_to_them(store: Opened, server: ModelServer) -> None:
    mine = defer(store, caller=OWNER._replace(name="agent", kind="principal"))
    theirs = defer(store, caller=OWNER._replace(name="embedded:[a]*?"), conversation="c2")
    daemon = loop(store, {"agent": OWNER}.get, not_whose=EMBEDDED)
    assert [daemon.run_next(), daemon.run_next()] == [True, False]
    assert (row(store, mine).state, row(store, theirs).state) == ("done", "waiting")
    assert loop(store, whose=exactly("embedded:a")).run_next() is False
    own = loop(store, {"embedded:[a]*?": OWNER}.get, whose=exactly("embedded:[a]*?"))
    assert own.run_next() is True
    assert row(store, theirs).state == "done" and len(server.asked) == 2


def test_two_principals_of_one_conversation_leave_a_job_each(store: Opened) -> None:
    other = OWNER._replace(name="agent", kind="principal")
    assert len({defer(store), defer(store, caller=other, turn_id="t2"), defer(store, turn_id="t3")}) == 2


def test_what_ended_long_ago_is_forgotten(store: Opened) -> None:
    def fill(tx: Any) -> None:
        space = tx.value("SELECT space FROM space")
        for number in range(job_store.FINISHED_KEPT + 20):
            new = NewJob(f"j{number}", "maintain", "p", "a", "local", "c", {"conversation_id": f"c{number}"})
            job, _ = job_store.enqueue(tx, space, new, tx.now, tx.now)
            job_store.end(tx, job, tx.now, "done", None)

    defer(store)
    store.store.write(fill)
    counts = {each.state: each.count for each in runtime(store).governance_report().deferred.jobs}
    assert counts == {"done": job_store.FINISHED_KEPT, "waiting": 1}


def test_a_job_s_row_and_events_hold_ids_and_no_content(store: Opened, server: ModelServer) -> None:
    server.answer = noted(PORTO)
    defer(store)
    loop(store).run_next()
    with store.store.read() as tx:
        told = str([*tx.rows("SELECT * FROM job")]) + str([*tx.rows("SELECT * FROM event_log")])
    assert "Porto" not in told and "lives" not in told


def wait_until(met: Callable[[], bool]) -> None:
    """Until another thread has done something that no event tells of."""
    end = time.monotonic() + 30
    pause = threading.Event()
    while not met():
        assert time.monotonic() < end
        pause.wait(0.01)


def test_a_runtime_with_a_model_does_its_jobs_by_itself_when_they_are_left(
    server: ModelServer, time_: Recorded
) -> None:
    store = opened(server.model())
    server.answer = noted(PORTO)
    start_jobs(store, {OWNER.name: OWNER}.get, only=OWNER.name)
    job_id = defer(store)
    wait_until(lambda: row(store, job_id).state == "done")
    assert len(runtime(store).list_long_term().records) == 1
    stop_jobs(store)
    store.store.close()


def test_jobs_that_were_left_before_the_start_are_done_after_it(server: ModelServer, tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    with MemoryRuntime.builder().store(path).profile("dev-full").open() as memory:
        memory.finalize_turn_and_maintain(conversation=CONVERSATION, turn=turn("t1", "I live in Porto."))
    server.answer = noted(PORTO)
    with (
        MemoryRuntime.builder().store(path).profile("dev-full").model("openai", "small", url=server.url).open() as again
    ):
        wait_until(lambda: again.list_long_term().total == 1)


def test_closing_does_not_wait_for_the_model(server: ModelServer, tmp_path: Path) -> None:
    begun, release = threading.Event(), threading.Event()

    def answer(asked: Asked) -> Answer:
        del asked
        begun.set()
        release.wait(60)
        return noted(PORTO)

    server.answer = answer
    path = str(tmp_path / "a.db")
    with MemoryRuntime.builder().store(path).profile("dev-full").open() as memory:
        memory.finalize_turn_and_maintain(conversation=CONVERSATION, turn=turn("t1", "I live in Porto."))
    builder = (
        MemoryRuntime.builder().store(path).profile("dev-full").model("openai", "m", url=server.url, timeout_s=600)
    )
    memory = builder.open()
    assert begun.wait(30)
    memory.close()
    assert not release.is_set()
    release.set()
    with MemoryRuntime.builder().store(path).profile("dev-full").open() as again:
        (left,) = again.governance_report().deferred.open_jobs
        assert (left.state, left.reason, left.attempts) == ("waiting", "closing", 0)


def test_the_embedded_runtime_does_the_jobs_of_its_own_principal(server: ModelServer, tmp_path: Path) -> None:
    from beetle.contracts.common import MemoryIdentity, MemoryScope
    from beetle.runtime.host.dependencies import Dependencies

    def embedded(agent: str, model: bool) -> Embedded:
        return open_embedded(
            store=str(tmp_path / "a.db"),
            profile="dev-full",
            backend=None,
            identity=MemoryIdentity(agent_id=agent),
            scope=MemoryScope(),
            dependencies=Dependencies(model=server.model() if model else None),
        )

    for agent in ("one", "two"):
        with MemoryRuntime(embedded(agent, False)) as memory:
            memory.finalize_turn_and_maintain(
                conversation={"conversation_id": agent}, turn=turn("t1", "I live in Porto.")
            )
    with MemoryRuntime(embedded("two", True)) as memory:
        wait_until(lambda: len(memory.governance_report().deferred.open_jobs) == 1)
        (left,) = memory.governance_report().deferred.open_jobs
        assert left.principal == "embedded:one"


def test_a_job_is_the_same_whatever_the_order_of_its_ids(store: Opened) -> None:
    def check(tx: Any) -> None:
        space = tx.value("SELECT space FROM space")
        one = NewJob("j-a", "maintain", "p", "a", "local", "c", {"x": 1, "y": 2})
        first, new = job_store.enqueue(tx, space, one, tx.now, tx.now)
        again, newer = job_store.enqueue(
            tx, space, one._replace(job_id="j-b", subject={"y": 2, "x": 1}), tx.now, tx.now
        )
        assert (new, newer, again.job_id) == (True, False, first.job_id)

    defer(store)
    store.store.write(check)
