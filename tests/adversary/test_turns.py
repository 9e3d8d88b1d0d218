"""Turns: one principal's queue holds up another's first request by no more than one request of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from beetle.runtime.areas.care import verify_store
from beetle.runtime.areas.recall.inspect import inspect
from beetle.runtime.areas.table import HANDLERS
from beetle.runtime.host.profile import load_profile, profile_names
from beetle.runtime.pipeline.handlers import Read
from beetle.store.engine.readers import MOST_REST_S, PAUSE_S, rest_after
from beetle.store.engine.turns import FairQueue
from tests.adversary.crowd import Crowd, Held
from tests.transports.conftest import commit
from tests.transports.serving import Served, open_folder, until

MANY = 8


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as made:
        yield made


def reading(monkeypatch: pytest.MonkeyPatch) -> Held:
    held = Held(inspect)
    monkeypatch.setitem(HANDLERS, "memory.inspect", Read(held))
    return held


def verifying(monkeypatch: pytest.MonkeyPatch) -> Held:
    held = Held(verify_store)
    monkeypatch.setitem(HANDLERS, "store.verify", Read(held))
    return held


def writers(served: Served) -> list[str]:
    with served.store.read() as tx:
        return [who for (who,) in tx.rows("SELECT principal FROM event_log WHERE operation <> '' ORDER BY seq")]


def served(queue: FairQueue[int]) -> int:
    by = queue.next_by()
    assert by is not None
    return queue.take(by)


def test_who_waits_is_served_in_turn_however_long_another_s_queue_is() -> None:
    queue: FairQueue[int] = FairQueue()
    queue.serve("greedy")
    for number in range(MANY):
        queue.add("greedy", number)
    queue.add("quiet", 100)
    assert queue.next_by(["quiet"]) == "greedy" and queue.next_by(["quiet", "greedy"]) is None
    assert served(queue) == 100
    queue.add("quiet", 101)
    assert [served(queue) for _ in range(3)] == [0, 101, 1]
    assert queue.remove("greedy", 2) and not queue.remove("greedy", 2)
    assert queue.drain() == [3, 4, 5, 6, 7] and not len(queue)


def test_a_read_waits_for_no_queue_of_another_and_one_alone_never_has_every_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Served(folder, readers=1, default_deadline_ms=60_000) as served:
        crowd, held = Crowd(served.dispatcher), reading(monkeypatch)
        turns = served.store.readers.turns
        for number in range(MANY):
            crowd.send("greedy", "memory.inspect")
            until(lambda number=number: len(held.order) + turns.waiting == number + 1, "a read that waits")
        crowd.send("quiet", "memory.inspect")
        until(lambda: held.order == ["greedy", "quiet"], "the other's read, although one has every reader")
        crowd.send("third", "memory.inspect")
        until(lambda: turns.waiting == MANY, "a third one's read that waits")
        held.go.release()
        until(lambda: len(held.order) == 3, "whoever has the place that became free")
        assert held.order[2] == "third"
        held.let_go()
        crowd.join()
        assert len(held.order) == MANY + 2


def test_a_write_goes_before_the_queue_of_another(folder: Path) -> None:
    with Served(folder) as served:
        crowd = Crowd(served.dispatcher)
        crowd.ask("greedy", "transcript.commit", commit(0))
        with served.held_writer():
            for number in range(MANY):
                crowd.send("greedy", "transcript.commit", commit(1 + number))
                until(lambda number=number: served.store.writer.queued == number + 1, "a write that waits")
            crowd.send("quiet", "transcript.commit", commit(100))
            until(lambda: served.store.writer.queued == MANY + 1, "the other's write that waits")
        crowd.join()
        assert writers(served)[:3] == ["greedy", "quiet", "greedy"]


def test_who_writes_slowly_joins_no_commit_of_another(folder: Path) -> None:
    with Served(folder, write_queue=64, write_group=16) as served:
        store, commits = served.store, list[str]()
        store.on_commit(lambda logged: commits.append("".join(each.event.principal for each in logged)))
        begun, go = threading.Event(), threading.Event()

        def note(who: str, slow: bool) -> Any:
            def write(tx: Any) -> None:
                if slow:
                    begun.set()
                    go.wait()
                    time.sleep(0.03)
                tx.log(EVENT._replace(principal=who))

            return write

        from beetle.store.event_log import Event

        EVENT = Event("memory", "noted", "test", "", None, {})
        threads = [threading.Thread(target=store.write, args=(note("s", True),), kwargs={"by": "s"}) for _ in range(4)]
        threads[0].start()
        begun.wait()
        for each in threads[1:]:
            each.start()
        until(lambda: store.writer.queued == 3, "the slow writes that wait")
        quick = threading.Thread(target=store.write, args=(note("q", False),), kwargs={"by": "q"})
        quick.start()
        until(lambda: store.writer.queued == 4, "the quick write that waits")
        go.set()
        for each in (*threads, quick):
            each.join()
        assert commits[:2] == ["s", "q"] and "".join(commits) == "sqsss"


def test_a_queue_that_one_has_filled_is_not_full_for_who_has_nothing_in_it(folder: Path) -> None:
    with Served(folder, write_queue=2, write_group=2) as served:
        crowd = Crowd(served.dispatcher)
        with served.held_writer():
            for number in range(2):
                crowd.send("greedy", "transcript.commit", commit(number))
            until(lambda: served.store.writer.queued == 2, "a full queue")
            assert crowd.ask("greedy", "transcript.commit", commit(2)) == "overloaded"
            answer = crowd.send("quiet", "transcript.commit", commit(3))
            until(lambda: served.store.writer.queued == 3, "the other's write that waits")
            assert crowd.ask("quiet", "transcript.commit", commit(4)) == "overloaded"
        crowd.join()
        assert answer[0].committed == 1


def test_heavy_work_runs_one_at_a_time_and_takes_no_reader(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Served(folder, readers=1) as served:
        crowd, held = Crowd(served.dispatcher), verifying(monkeypatch)
        waiting = served.dispatcher.shared.heavy_turns
        for number in range(MANY):
            crowd.send("greedy", "store.verify")
            until(lambda number=number: len(held.order) + waiting.waiting == number + 1, "a check that waits")
        for _ in range(20):
            assert crowd.ask("quiet", "memory.recall", {"query": "kettle"}).hits == ()
        crowd.send("quiet", "store.verify")
        until(lambda: waiting.waiting == MANY, "the other's check that waits")
        assert crowd.ask("greedy", "transcript.repair", deadline_ms=1) in ("overloaded", "deadline_exceeded")
        held.let_go()
        crowd.join()
        assert held.most == 1 and held.order[:2] == ["greedy", "quiet"] and len(held.order) == MANY + 1


def test_heavy_work_rests_while_others_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []
    with Served(folder) as served:
        monkeypatch.setattr("beetle.store.engine.readers.time", SimpleNamespace(**vars(time) | {"sleep": rests.append}))
        count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) SELECT count(*) FROM n"
        with served.store.read(heavy=True) as tx:
            tx.value(count)
            assert not rests, "nobody else is there"
            with served.store.read():
                tx.value(count)
        assert rests and all(0 < each <= PAUSE_S for each in rests)


@pytest.mark.parametrize("profile", profile_names())
def test_heavy_work_rests_by_the_share_of_the_profile(profile: str) -> None:
    share = load_profile(profile).budgets.background_share_percent
    for worked in (0.001, 0.02, 0.2):
        rest = rest_after(worked, share)
        assert worked / (worked + rest) == pytest.approx(share / 100)
    assert rest_after(1.0, 100) == 0
    assert rest_after(3600.0, share) == MOST_REST_S, "a process that stood still does not rest for hours"


def test_a_store_rests_by_the_share_of_its_profile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []
    with Served(folder, background_share_percent=20) as served:
        monkeypatch.setattr("beetle.store.engine.readers.time", SimpleNamespace(**vars(time) | {"sleep": rests.append}))
        with served.store.read():
            served.store.readers._give_way(0.2)
        assert sum(rests) == pytest.approx(0.8) and max(rests) <= PAUSE_S
        served.store.readers._give_way(0.2)
        assert sum(rests) == pytest.approx(0.8), "nobody reads any more"
        assert served.store.readers.rested == pytest.approx(0.8), "what other jobs are not to rest once more for"


def test_heavy_work_rests_no_more_once_the_log_that_it_holds_is_beyond_its_budget(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []
    with Served(folder, wal_bytes=1_000_000) as served:
        monkeypatch.setattr("beetle.store.engine.readers.time", SimpleNamespace(**vars(time) | {"sleep": rests.append}))
        log = Path(served.store.settings.path + "-wal")
        with served.store.read(heavy=True) as held, served.store.read():
            held.value("SELECT count(*) FROM meta")
            served.store.readers._give_way(0.2)
            assert rests, "the log is short, and another reads"
            served.store.write(lambda tx: tx.run("CREATE TABLE large AS SELECT randomblob(2000000) AS it"))
            assert log.stat().st_size > 1_000_000
            rests.clear()
            served.store.readers._give_way(0.2)
        assert not rests
