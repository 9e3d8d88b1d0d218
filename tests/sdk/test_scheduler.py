"""The scheduler: what is due, what came of it, pause, back-off, hung runs, steps of the clock."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from beetle import MemoryRuntime
from beetle.contracts.codec import format_us
from beetle.contracts.errors import (
    BeetleError,
    Conflict,
    Forbidden,
    IntegrityViolation,
    InvalidRequest,
    NotFound,
    StorageFull,
)
from beetle.contracts.scheduler import SchedulerJob
from beetle.open import Opened, open_store, stop_jobs
from beetle.runtime.areas.scheduled import JOBS
from beetle.runtime.areas.snapshots import store_snapshots
from beetle.runtime.areas.snapshots.file_form import SnapshotFile
from beetle.runtime.host.caller import OPERATOR_VIEWS, Caller
from beetle.runtime.host.config import Snapshots
from beetle.runtime.host.scheduled_job import FIRST_PAUSE_S, MOST_PAUSE_S, Job
from beetle.runtime.host.scheduler import MISSED_S
from beetle.store.engine.store import Store
from tests.adversary.test_damaged_values import put_damaged
from tests.sdk.answering import runtime
from tests.sdk.recorded import DAY_US, Recorded
from tests.store.test_writer import Crowd

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
EVERY_MINUTE = "0 * * * * *"
AGENT = Caller("agent", "principal", frozenset({"scheduler"}), OPERATOR_VIEWS[:2], "unix_socket")


class Doing:
    """A job's function: counts its calls, and does in each what it is told."""

    def __init__(self) -> None:
        self.calls = 0
        self.then: Callable[[Any], int] = lambda _: 1

    def __call__(self, invocation: Any) -> int:
        self.calls += 1
        return self.then(invocation)


class Held(Doing):
    """One that begins and ends when it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.free = threading.Event(), threading.Event()
        self.then = self.hold

    def hold(self, invocation: Any) -> int:
        del invocation
        self.begun.set()
        assert self.free.wait(60)
        return 1


class Timed(NamedTuple):
    """A store with jobs of a test's own, at a clock of its own, whose scheduler looks when it is told."""

    store: Opened
    time: Recorded
    memory: MemoryRuntime

    def job(self, name: str = "a") -> SchedulerJob:
        return next(each for each in self.memory.scheduler_status().jobs if each.job_name == name)

    def look(self) -> None:
        """Start what is due, and wait for it."""
        scheduler = self.store.dispatcher.scheduler
        scheduler.tick()
        scheduler.join(60)
        while any(each.waiting and not self.others_ask for each in scheduler.status()):
            # The share of the profile has it rest for as long as it worked.
            scheduler.tick()
            scheduler.join(60)

    @property
    def others_ask(self) -> bool:
        return self.store.dispatcher.crowd.is_asked("scheduler")

    def go_on(self, microseconds: int) -> None:
        self.time.go_on(microseconds)
        self.look()

    def next(self, name: str = "a") -> None:
        """To the next time of a job."""
        self.go_on(self.job(name).next_run_ms * 1000 - self.time.now)

    def close(self) -> None:
        stop_jobs(self.store)
        self.store.store.close()


def timed(*jobs: Job, path: str = "unused", time: Recorded | None = None, **more: Any) -> Timed:
    time = time or Recorded("scheduler")
    backend = "in-memory" if path == "unused" else "sqlite"
    store = open_store(path, "dev-full", backend, dependencies=time.dependencies(**more), jobs=jobs)
    found = Timed(store, time, runtime(store))
    store.dispatcher.scheduler.status()  # from here on its times are counted
    return found


def job(run: Callable[[Any], int], name: str = "a", cron: str = EVERY_MINUTE, **more: Any) -> Job:
    return Job(name, cron, run, "a test's own", **more)


@pytest.fixture
def doing() -> Doing:
    return Doing()


@pytest.fixture
def one(doing: Doing) -> Iterator[Timed]:
    found = timed(job(doing))
    yield found
    found.close()


def events(place: Timed) -> list[str]:
    rows = place.memory.read_event_log(topics=("job",)).rows
    return [each.event for each in rows]


def test_a_job_runs_at_its_time_and_its_status_is_true(one: Timed, doing: Doing) -> None:
    first = one.job()
    assert (first.last_run_ms, first.last_result, first.run_count, first.is_running) == (0, "unspecified", 0, False)
    assert first.next_run_ms == (one.time.now // MINUTE + 1) * MINUTE // 1000
    one.look()
    assert doing.calls == 0
    one.next()
    now = one.job()
    assert doing.calls == 1
    assert (now.run_count, now.error_count, now.last_result) == (1, 0, "success")
    assert (now.last_run_ms, now.next_run_ms - now.last_run_ms) == (first.next_run_ms, 60_000)
    one.look()
    assert doing.calls == 1


def test_counters_and_pause_are_there_after_a_restart(doing: Doing, tmp_path: Path) -> None:
    path, time = str(tmp_path / "a.db"), Recorded("restart")
    place = timed(job(doing), job(doing, "b"), path=path, time=time)
    place.next()
    assert place.memory.pause_job(job_name="a").changed
    assert not place.memory.pause_job(job_name="a").changed
    place.next()
    before = place.memory.scheduler_status().jobs
    assert [(each.is_paused, each.run_count, each.skip_count) for each in before] == [(True, 1, 1), (False, 2, 0)]
    assert (before[0].last_result, before[0].skip_reason) == ("skipped", "paused")
    place.close()
    again = timed(job(doing), job(doing, "b"), path=path, time=time)
    assert again.memory.scheduler_status().jobs == before
    calls = doing.calls
    again.next()
    assert doing.calls == calls + 1, "b alone"
    assert again.memory.resume_job(job_name="a").changed and not again.memory.resume_job(job_name="a").changed
    again.next()
    assert doing.calls == calls + 3
    assert events(again) == ["scheduled_job_paused", "scheduled_job_resumed"]
    again.close()


def test_a_job_that_fails_waits_for_longer_each_time_and_no_other_with_it(one: Timed, doing: Doing) -> None:
    def fail(invocation: Any) -> int:
        raise StorageFull(path="/somewhere/else")

    doing.then = fail
    for failures in range(1, 10):
        one.next()
        now = one.job()
        assert (now.error_count, now.run_count, now.last_result, now.last_error_key) == (
            failures, 0, "failed", "storage_full",
        )  # fmt: skip
        pause = min(FIRST_PAUSE_S * 2 ** (failures - 1), MOST_PAUSE_S) * 1000
        assert pause <= now.next_run_ms - now.last_run_ms <= pause + 60_000
    doing.then = lambda _: 1
    one.next()
    now = one.job()
    assert (now.run_count, now.last_result, now.last_error, now.last_error_key) == (1, "success", None, None)
    assert now.next_run_ms - now.last_run_ms == 60_000
    assert events(one) == ["scheduled_job_failed", "scheduled_job_recovered"]


def test_a_defect_is_an_internal_error_that_tells_no_content(
    one: Timed, doing: Doing, caplog: pytest.LogCaptureFixture
) -> None:
    text = "a secret text"

    def fail(invocation: Any) -> int:
        raise RuntimeError(text)

    doing.then = fail
    one.next()
    assert one.job().last_error_key == "internal" and "secret" not in str(one.job())
    assert "RuntimeError" in caplog.text and "secret" not in caplog.text


def test_a_run_that_hangs_is_told_and_holds_up_neither_the_others_nor_the_end(doing: Doing) -> None:
    held = Held()
    place = timed(job(held, timeout_s=0), job(doing, "b"))
    place.memory.pause_job(job_name="b")
    place.time.go_on(MINUTE)
    scheduler = place.store.dispatcher.scheduler
    scheduler.tick()
    assert held.begun.wait(60)
    place.memory.resume_job(job_name="b")
    scheduler.tick()
    hung = place.job()
    assert (hung.is_running, hung.is_hung, hung.error_count, hung.last_error_key) == (
        True,
        True,
        1,
        "deadline_exceeded",
    )
    place.next("b")
    assert doing.calls == 1
    place.go_on(2 * MINUTE)
    assert place.job().skip_reason == "overlap" and held.calls == 1
    with pytest.raises(Conflict, match="is running"):
        place.memory.run_job(job_name="a")
    place.close()
    assert not held.free.is_set()
    held.free.set()


def test_a_run_that_ends_late_is_counted_once(doing: Doing) -> None:
    held = Held()
    place = timed(job(held, timeout_s=0))
    scheduler = place.store.dispatcher.scheduler
    place.time.go_on(MINUTE)
    scheduler.tick()
    assert held.begun.wait(60)
    run = scheduler._jobs["a"].run
    scheduler.tick()
    held.free.set()
    assert run is not None and run.ended.wait(60)
    now = place.job()
    assert (now.is_running, now.is_hung, now.error_count, now.run_count) == (False, False, 1, 0)
    place.close()


def test_a_job_must_end_when_its_time_is_over(doing: Doing) -> None:
    place = timed(job(doing, timeout_s=0))

    def look(invocation: Any) -> int:
        invocation.check("the work was done")
        return 1

    doing.then = look
    place.next()
    now = place.job()
    assert (now.last_error_key, now.error_count, now.is_running) == ("deadline_exceeded", 1, False)
    place.close()


def test_an_overlap_is_left_out_and_counts_neither_as_run_nor_as_error() -> None:
    held = Held()
    place = timed(job(held))
    place.time.go_on(MINUTE)
    place.store.dispatcher.scheduler.tick()
    assert held.begun.wait(60)
    place.time.go_on(MINUTE)
    place.store.dispatcher.scheduler.tick()
    now = place.job()
    assert (now.is_running, now.skip_count, now.run_count, now.error_count) == (True, 1, 0, 0)
    held.free.set()
    place.store.dispatcher.scheduler.join(60)
    assert (place.job().run_count, place.job().last_result, held.calls) == (1, "success", 1)
    place.close()


def test_run_starts_a_paused_job_now_and_is_refused_while_it_runs(one: Timed, doing: Doing) -> None:
    one.memory.pause_job(job_name="a")
    seen: list[str] = []

    def again(invocation: Any) -> int:
        with pytest.raises(Conflict) as raised:
            one.memory.run_job(job_name="a")
        seen.append(raised.value.hint)
        assert one.job().is_running
        return 0

    doing.then = again
    report = one.memory.run_job(job_name="a", wait=True)
    assert (report.job.run_count, report.job.is_running, report.job.is_paused) == (1, False, True)
    assert "scheduler status" in seen[0]


@pytest.mark.parametrize("ask", ["pause_job", "resume_job", "run_job"])
def test_an_unknown_job_is_not_found_and_the_nearest_is_named(one: Timed, ask: str) -> None:
    with pytest.raises(NotFound) as raised:
        getattr(one.memory, ask)(job_name="A-job")
    assert "scheduler status" in raised.value.hint


steps = st.lists(
    st.one_of(
        st.integers(0, 3 * MINUTE),
        st.integers(-90 * MINUTE, 90 * MINUTE),
        st.sampled_from((-3600 * SECOND, 3600 * SECOND, -56 * 365 * DAY_US, 30 * 365 * DAY_US)),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=30, derandomize=True, deadline=None)
@given(steps, st.sampled_from((EVERY_MINUTE, "0 */15 * * * *", "0 0 * * * *", "30 30 3 * * *")))
def test_no_step_of_the_clock_makes_a_job_run_more_than_once_or_stop(moved: list[int], cron: str) -> None:
    """After each step the next run is the library's first time behind the clock, and what became due ran once."""
    doing = Doing()
    place = timed(job(doing, cron=cron), time_zone="UTC")
    for step in moved:
        due = place.job().next_run_ms * 1000
        calls = doing.calls
        place.go_on(step)
        assert doing.calls - calls == (1 if step >= 0 and place.time.now >= due else 0)
        now = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=place.time.now)
        expected = next(CronSim(cron, now))
        assert place.job().next_run_ms == (expected - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    place.close()


def test_a_device_that_starts_in_1970_goes_on_when_the_clock_is_set(doing: Doing) -> None:
    place = timed(job(doing), time=Recorded("boot", start=0))
    place.next()
    place.go_on(1_795_000_000 * SECOND)
    assert doing.calls == 2
    place.next()
    assert (doing.calls, place.job().run_count) == (3, 3)
    place.close()


def test_what_was_missed_while_nothing_ran_is_made_up_for_once_after_the_start(doing: Doing, tmp_path: Path) -> None:
    path, time = str(tmp_path / "a.db"), Recorded("missed")
    place = timed(job(doing, cron="0 0 3 * * *"), path=path, time=time)
    place.next()
    place.close()
    time.go_on(9 * DAY_US + 3600 * SECOND)
    again = timed(job(doing, cron="0 0 3 * * *"), path=path, time=time)
    again.look()
    assert (doing.calls, again.job().next_run_ms) == (1, (time.now + MISSED_S * SECOND) // 1000)
    again.next()
    assert doing.calls == 2
    again.look()
    assert again.job().next_run_ms % 86_400_000 == 3 * 3_600_000
    again.close()


def test_a_device_that_is_off_at_every_time_of_a_job_runs_it_once_each_day(doing: Doing, tmp_path: Path) -> None:
    """Also one that has never run, and one whose last run was under a clock far ahead."""
    path, time = str(tmp_path / "a.db"), Recorded("noon")
    time.go_on(DAY_US - time.now % DAY_US + 12 * HOUR)
    for day, moved in enumerate((DAY_US, DAY_US, 7 * DAY_US, -30 * DAY_US, DAY_US)):
        place = timed(job(doing, cron="0 30 3 * * *"), path=path, time=time, time_zone="UTC")
        place.look()
        assert doing.calls == max(0, day - 1)
        place.go_on(MISSED_S * SECOND)
        assert doing.calls == day, "the first day has missed nothing"
        place.close()
        time.go_on(moved - MISSED_S * SECOND)


def test_a_job_waits_while_somebody_asks_but_not_for_ever(
    one: Timed, doing: Doing, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler, crowd = one.store.dispatcher.scheduler, one.store.dispatcher.crowd
    with crowd.asking("agent"):
        one.next()
        assert doing.calls == 0 and scheduler.status()[0].waiting
    one.look()
    assert doing.calls == 1 and not one.job().waiting
    monkeypatch.setattr("beetle.runtime.host.scheduler.MOST_BUSY_S", 0.0)
    with crowd.asking("agent"):
        one.next()
    one.look()
    assert doing.calls == 2


def test_a_mode_in_which_no_job_runs_leaves_them_alone(one: Timed, doing: Doing) -> None:
    one.store.dispatcher.lifecycle.enter("read_only")
    one.time.go_on(MINUTE)
    one.store.dispatcher.scheduler.tick()
    assert doing.calls == 0 and one.job().waiting
    with pytest.raises(Forbidden):
        one.memory.run_job(job_name="a")
    one.store.dispatcher.lifecycle.enter("normal")
    one.look()
    assert doing.calls == 1


def test_jobs_of_one_kind_run_one_after_the_other() -> None:
    held, other = Held(), Doing()
    place = timed(job(held, "a"), job(other, "b"), job(other, "c", uses="model"))
    place.time.go_on(MINUTE)
    scheduler = place.store.dispatcher.scheduler
    scheduler.tick()
    assert held.begun.wait(60)
    scheduler._jobs["c"].run is None or scheduler._jobs["c"].run.ended.wait(60)
    assert (other.calls, place.job("b").waiting, place.job("c").run_count) == (1, True, 1)
    held.free.set()
    scheduler.join(60)
    place.look()
    assert (other.calls, place.job("b").run_count) == (2, 1)
    place.close()


def test_a_job_that_wants_to_run_beside_its_schedule_does() -> None:
    doing, wanted = Doing(), [0]
    place = timed(job(doing, cron="0 0 0 1 1 *", due=lambda _: wanted[0] or None))
    place.go_on(DAY_US)
    assert doing.calls == 0
    wanted[0] = place.time.now + 5 * SECOND
    place.store.dispatcher.scheduler.wake()
    place.look()
    assert place.job().next_run_ms == wanted[0] // 1000
    place.go_on(4 * SECOND)
    assert doing.calls == 0
    place.go_on(SECOND)
    wanted[0] = 0
    assert doing.calls >= 1
    place.close()


def test_a_job_without_a_schedule_runs_when_it_is_asked_for_alone(doing: Doing) -> None:
    """Whatever it wants; also from and until a reload that says so."""
    wanted: list[int] = []
    doing.then = lambda _: wanted.clear() or 1
    place = timed(job(doing, due=lambda _: min(wanted, default=None)), schedules={"a": "off"})
    scheduler = place.store.dispatcher.scheduler
    for round_ in range(1, 3):
        wanted.append(place.time.now)
        scheduler.wake()
        place.go_on(DAY_US)
        assert (doing.calls, place.job().next_run_ms) == (2 * round_ - 2, 0)
        scheduler.configure({"a": "0 0 0 1 1 *"}, None, scheduler.keep_snapshots)
        place.look()
        assert doing.calls == 2 * round_ - 1
        wanted.append(place.time.now)
        scheduler.configure({"a": "off"}, None, scheduler.keep_snapshots)
        assert place.job().next_run_ms == 0
        place.memory.run_job(job_name="a", wait=True)
        assert doing.calls == 2 * round_
    place.close()


def test_schedules_can_be_set_or_switched_off(doing: Doing) -> None:
    place = timed(job(doing), job(doing, "b"), schedules={"a": "0 30 2 * * *", "b": "off"}, time_zone="Europe/Berlin")
    report = place.memory.scheduler_status()
    assert report.time_zone == "Europe/Berlin"
    assert [(each.cron_expr, each.next_run_ms) for each in report.jobs] == [
        ("0 30 2 * * *", int(datetime(2025, 6, 16, 0, 30, tzinfo=UTC).timestamp() * 1000)),
        ("off", 0),
    ]
    place.go_on(40 * DAY_US)
    assert doing.calls == 1
    assert place.memory.run_job(job_name="b", wait=True).job.run_count == 1
    place.close()


@pytest.mark.parametrize(
    ("more", "path", "hint"),
    [
        ({"schedules": {"a": "0 3 * * *"}}, "$.scheduler.jobs.a", "six fields"),
        ({"schedules": {"b": "0 0 3 * * *"}}, "$.scheduler.jobs.b", "a"),
        ({"time_zone": "Europe/Nowhere"}, "$.scheduler.time_zone", "Europe/Berlin"),
        ({"time_zone": "../../etc/passwd"}, "$.scheduler.time_zone", "Europe/Berlin"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_refused(more: Any, path: str, hint: str, doing: Doing) -> None:
    with pytest.raises(InvalidRequest) as raised:
        timed(job(doing), **more)
    assert raised.value.details["path"] == path and hint in raised.value.hint


def test_an_agent_sees_the_jobs_without_errors_texts_and_changes_none(one: Timed, doing: Doing) -> None:
    def fail(invocation: Any) -> int:
        raise StorageFull(path="/somewhere/else")

    doing.then = fail
    one.next()
    assert "/somewhere/else" in (one.job().last_error or "")
    agent = runtime(one.store, AGENT, owner="owner-default")
    (seen,) = agent.scheduler_status().jobs
    assert (seen.last_error, seen.last_error_key, seen.error_count) == (None, "storage_full", 1)
    for ask in (agent.pause_job, agent.resume_job, agent.run_job):
        with pytest.raises(Forbidden):
            ask(job_name="a")
    nobody = runtime(one.store, AGENT._replace(capabilities=frozenset({"recall"})), owner="owner-default")
    with pytest.raises(Forbidden):
        nobody.scheduler_status()


def refuse(*_: Any, **__: Any) -> None:
    raise StorageFull(path="x")


def test_a_pause_that_cannot_be_written_is_none(one: Timed, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(one.store.store, "write", refuse)
        with pytest.raises(BeetleError):
            one.memory.pause_job(job_name="a")
    assert not one.job().is_paused


def test_a_run_and_a_pause_stand_where_another_write_of_their_group_fails(doing: Doing) -> None:
    place = timed(job(doing), job(doing, "b"))
    crowd = Crowd(place.store.store)
    crowd.ask("run", lambda: place.memory.run_job(job_name="a", wait=True))
    crowd.ask("pause", lambda: place.memory.pause_job(job_name="b"))
    crowd.add("fails", lambda tx: 1 / 0, by="another")
    answers = crowd.release()
    assert answers["run"].job.run_count == doing.calls == 1 and answers["pause"].changed
    assert place.job("b").is_paused and not place.job().is_running
    assert sorted(events(place)) == ["scheduled_job_ended", "scheduled_job_paused", "scheduled_job_started"]
    place.close()


def test_a_run_that_cannot_be_written_leaves_the_job_waiting(
    one: Timed, doing: Doing, monkeypatch: pytest.MonkeyPatch
) -> None:
    with one.store.dispatcher.crowd.asking("agent"):
        one.next()
        with monkeypatch.context() as patch:
            patch.setattr(one.store.store, "write", refuse)
            with pytest.raises(StorageFull):
                one.memory.run_job(job_name="a")
        assert one.job().waiting and not one.job().is_running
    one.look()
    assert doing.calls == 1


def test_what_waits_of_a_job_is_left_out_when_it_is_paused(doing: Doing, tmp_path: Path) -> None:
    path, time = str(tmp_path / "a.db"), Recorded("waits")
    place = timed(job(doing), path=path, time=time)
    with place.store.dispatcher.crowd.asking("agent"):
        place.next()
        assert place.job().waiting
        paused = place.memory.pause_job(job_name="a").job
    assert (paused.waiting, paused.skip_count, paused.last_result, paused.skip_reason) == (
        False,
        1,
        "skipped",
        "paused",
    )
    place.look()
    place.memory.resume_job(job_name="a")
    place.look()
    assert doing.calls == 0, "it runs at its next time"
    place.close()
    again = timed(job(doing), path=path, time=time)
    assert again.job().skip_count == 1
    again.next()
    assert doing.calls == 1
    again.close()


@pytest.mark.parametrize(
    ("column", "value"), [("failures", "'x'"), ("last_run", "x'00'"), ("paused", "NULL"), ("last_result", "'odd'")]
)
def test_a_job_whose_row_is_damaged_runs_no_more_until_it_is_resumed_and_the_others_go_on(
    doing: Doing, tmp_path: Path, column: str, value: str
) -> None:
    path, time, other = tmp_path / "a.db", Recorded("damaged"), Doing()
    place = timed(job(doing), job(other, "b"), path=str(path), time=time)
    place.next()
    place.memory.pause_job(job_name="b")
    place.memory.resume_job(job_name="b")
    place.close()
    assert put_damaged(path, "scheduled_job", column, f"CASE name WHEN 'a' THEN {value} ELSE {column} END")
    again = timed(job(doing), job(other, "b"), path=str(path), time=time)
    assert [each.job_name for each in again.memory.scheduler_status().jobs] == ["b"]
    again.next("b")
    assert (doing.calls, other.calls) == (1, 2)
    with pytest.raises(IntegrityViolation, match="scheduled_job a is damaged"):
        again.memory.run_job(job_name="a")
    assert not again.memory.verify_store(pages=True).clean
    assert again.memory.resume_job(job_name="a").job.run_count == 0
    again.next()
    assert doing.calls == 2
    again.close()
    last = timed(job(doing), job(other, "b"), path=str(path), time=time)
    assert [each.run_count for each in last.memory.scheduler_status().jobs] == [1, 3]
    assert last.memory.verify_store(pages=True).findings == ()
    last.close()


def test_counters_end_at_their_bound_and_are_never_below_zero(doing: Doing, tmp_path: Path) -> None:
    path, time = tmp_path / "a.db", Recorded("counters")
    place = timed(job(doing), path=str(path), time=time)
    place.next()
    place.close()
    beyond = {"run_count": 2**63 - 1, "skip_count": 2**63 - 1, "error_count": -5, "last_run": -(2**63)}
    for column, value in beyond.items():
        assert put_damaged(path, "scheduled_job", column, str(value))
    again = timed(job(doing), path=str(path), time=time)
    report = again.memory.run_job(job_name="a", wait=True).job
    most = 2**53 - 1
    assert (report.run_count, report.error_count, report.skip_count) == (most, 0, most)
    again.memory.pause_job(job_name="a")
    again.next()
    again.close()
    last = timed(job(doing), path=str(path), time=time)
    assert (last.job().run_count, last.job().skip_count, last.job().last_result) == (most, most, "skipped")
    last.close()


def test_a_profile_without_background_work_starts_no_job_but_the_one_that_is_asked_for(doing: Doing) -> None:
    place = timed(job(doing))
    scheduler = place.store.dispatcher.scheduler
    scheduler._limits = scheduler._limits._replace(share_percent=0)
    scheduler.start()
    assert not place.memory.scheduler_status().scheduler_running
    assert place.memory.run_job(job_name="a").job.run_count == 1
    place.close()


KILLED = """
import sys
from beetle.open import open_store, start_jobs
from beetle.runtime.host.scheduled_job import Job
from tests.sdk.answering import OWNER, runtime

def hang(invocation):
    invocation.shared.store.write(lambda tx: tx.run("INSERT INTO meta VALUES ('half', 'done')"))
    print("running", flush=True)
    sys.stdin.read()
    return 1

store = open_store(sys.argv[1], "dev-full", "sqlite", jobs=(Job("a", "0 0 0 1 1 *", hang, "hangs"),))
start_jobs(store, lambda _: OWNER)
runtime(store).run_job(job_name="a")
sys.stdin.read()
"""


def test_a_kill_in_a_job_leaves_a_whole_store_and_no_run(doing: Doing, tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    command = [sys.executable, "-c", KILLED, path]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as child:
        assert child.stdout is not None and child.stdout.readline() == "running\n"
        child.kill()
    place = timed(job(doing, cron="0 0 0 1 1 *"), path=path)
    now = place.job()
    assert (now.is_running, now.run_count, now.error_count, now.last_run_ms) == (False, 0, 0, 0)
    assert place.memory.run_job(job_name="a", wait=True).job.run_count == 1
    assert place.memory.verify_store(pages=True).clean
    place.close()


def test_the_runtime_s_own_jobs_succeed_on_a_store_with_something_in_it(tmp_path: Path) -> None:
    with MemoryRuntime.open(str(tmp_path / "a.db"), profile="dev-full") as memory:
        memory.remember(text="The harbour opens at six.")
        assert memory.scheduler_status().scheduler_running
        for each in JOBS:
            report = memory.run_job(job_name=each.name, wait=True)
            assert (report.job.last_result, report.job.run_count) == ("success", 1), report
        assert [each.label for each in memory.list_snapshots().snapshots] == ["scheduled"]


def test_of_scheduled_snapshots_the_policy_s_are_kept_and_of_others_all(tmp_path: Path) -> None:
    """An hourly run for two days, a clock that jumps back in between: the list tells why each is kept."""
    keep = Snapshots(keep_newest=1, keep_hourly=2, keep_daily=2, keep_weekly=0)
    place = timed(*JOBS, path=str(tmp_path / "a.db"), snapshots=keep, schedules={"snapshot": "0 0 * * * *"})
    place.memory.create_snapshot(label="by hand")
    started = place.time.now
    for hours in (0, 1, 2, 24, -400_000, 25):
        place.time.now = started + hours * HOUR
        place.memory.run_job(job_name="snapshot", wait=True)
    listed = place.memory.list_snapshots()
    told = [(each.label, each.kept_by) for each in listed.snapshots]
    assert told == [
        ("scheduled", ("newest", "hourly", "daily")),
        ("scheduled", ("hourly", "daily")),
        ("by hand", ("hand",)),
    ], "the one of the wrong time was made before the last: it is one of the last two days"
    assert listed.keep == {"newest": 1, "hourly": 2, "daily": 2, "weekly": 0}
    with_other = place.memory.inspect().runtime
    assert (with_other.replica_horizon is not None, with_other.copies_until) == (True, None), "one stays for ever"
    os.unlink(store_snapshots.path_of(place.store.store, listed.snapshots[-1].snapshot_id))
    until = place.memory.inspect().runtime.copies_until
    assert until is not None and until > format_us(place.time.now)
    place.memory.pause_job(job_name="snapshot")
    assert place.memory.inspect().runtime.copies_until is None, "nothing removes them"
    place.close()


def test_a_new_snapshot_that_the_disk_does_not_give_back_removes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = timed(*JOBS, path=str(tmp_path / "a.db"), snapshots=Snapshots(keep_newest=1, keep_hourly=0, keep_daily=0))
    place.memory.run_job(job_name="snapshot", wait=True)
    find = store_snapshots.find

    def damaged(store: Store, snapshot_id: str) -> SnapshotFile:
        found = find(store, snapshot_id)
        with open(found.path, "r+b") as file:
            file.seek(-9, os.SEEK_END)
            file.write(b"not that")
        return found

    monkeypatch.setattr(store_snapshots, "find", damaged)
    report = place.memory.run_job(job_name="snapshot", wait=True)
    assert (report.job.last_result, report.job.last_error_key) == ("failed", "integrity_violation")
    assert place.memory.list_snapshots().total == 2
    place.close()


def test_verification_fails_with_what_it_found(tmp_path: Path) -> None:
    place = timed(*JOBS, path=str(tmp_path / "a.db"))
    place.memory.remember(text="The harbour opens at six.")
    place.store.store.write(lambda tx: tx.mend("UPDATE body SET content = 'The harbour is shut.'"))
    report = place.memory.run_job(job_name="verification", wait=True)
    assert report.job.last_error_key == "integrity_violation"
    assert "evidence" in (report.job.last_error or "") and "harbour" not in (report.job.last_error or "")
    place.close()
