"""Days are cut beside the writer: what comes, or is masked, while a day is cut is in the next cut."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.runtime.areas.toc import building
from beetle.runtime.areas.toc.building import DayCut
from beetle.store import toc
from beetle.store.engine.transaction import Reading
from beetle.store.toc import Waiting
from tests.building import message, talk, turn
from tests.sdk.moving import Home
from tests.store.conftest import store_of
from tests.toc.conftest import JOBS, Plain, ask, build, event, everything, ingest, ms, node, open_memory

AT = ms("2026-01-30T10:00:00Z")
DAY_MS, MINUTE_MS = 86_400_000, 60_000
TEXT = "The kiln is fired at night, and the glaze melts at {} degrees."


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryRuntime]:
    with open_memory(str(tmp_path / "b.db")) as running:
        yield running


def say(memory: MemoryRuntime, *numbers: int) -> None:
    ingest(memory, *(event(f"e{n}", AT + n * MINUTE_MS, TEXT.format(n)) for n in numbers))


def cut(memory: MemoryRuntime) -> None:
    ask(memory, "scheduler.run", {"job_name": "outbox-processor", "wait": True})


def waiting(memory: MemoryRuntime) -> int:
    with store_of(memory).read() as tx:
        return toc.waiting_count(tx)


def bullets(nodes: dict[str, Plain]) -> dict[str, Any]:
    return {name: each["bullets"] for name, each in nodes.items()}


def while_cut(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]) -> None:
    """Have something happen on another thread, once, between the cutting of the next day and what comes of it."""
    plain, left = building.cut_day, [happens]

    def interrupted(tx: Reading, each: Waiting) -> DayCut:
        found = plain(tx, each)
        if left:
            other = threading.Thread(target=left.pop())
            other.start()
            other.join()
        return found

    monkeypatch.setattr(building, "cut_day", interrupted)


def assert_right(memory: MemoryRuntime) -> None:
    """Nothing waits, and a rebuild makes the same of the events."""
    assert waiting(memory) == 0 and memory.verify_store().clean
    before = everything(memory)
    assert ask(memory, "admin.rebuild_toc")["changed_nodes"] == 0
    assert everything(memory) == before


@pytest.mark.parametrize("late", [25, 200], ids=["in the middle", "a segment of its own"])
def test_an_event_that_comes_while_its_day_is_cut_is_in_the_next_cut(
    memory: MemoryRuntime, monkeypatch: pytest.MonkeyPatch, late: int
) -> None:
    say(memory, *range(20), 40)
    while_cut(monkeypatch, lambda: say(memory, late))
    cut(memory)
    assert waiting(memory) == 1 and ask(memory, "toc.root")["nodes"], "what was cut is there, to be cut again"
    build(memory)
    assert_right(memory)


def test_an_event_that_is_masked_while_its_day_is_cut_is_in_no_bullet(
    memory: MemoryRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(memory, 1, 3)
    ingest(memory, event("e2", AT + 2 * MINUTE_MS, "The submarine leaves the harbour on Monday."))
    where = {"channel_id": "event", "conversation_id": "s1"}
    mask = {"conversation": where, "action": "mask", "turn_ids": ["e2"], "reason": "a test asks"}
    while_cut(monkeypatch, lambda: ask(memory, "transcript.lifecycle", mask))
    cut(memory)
    assert waiting(memory) == 1
    build(memory)
    assert_right(memory)
    assert "submarine" not in str(everything(memory)) and "kiln" in str(everything(memory))


def test_a_segment_keeps_its_bullets_while_its_day_waits_to_be_cut_again(memory: MemoryRuntime) -> None:
    say(memory, *range(10))
    build(memory)
    before = everything(memory)
    say(memory, 20)
    cut(memory)
    say(memory, 21)
    for name in JOBS[1:]:
        ask(memory, "scheduler.run", {"job_name": name, "wait": True})
    between = everything(memory)
    assert waiting(memory) == 1 and bullets(between) == bullets(before)
    told = node(memory, "toc:year:2026")["bullets"][0]["text"]
    erased = f"e{told.split(' degrees')[0].split()[-1]}"
    where = {"channel_id": "event", "conversation_id": "s1"}
    gone = {"conversation": where, "action": "delete_raw", "turn_ids": [erased], "reason": "a test asks"}
    ask(memory, "transcript.lifecycle", gone)
    for name in ("toc reads", *JOBS[1:]):
        assert told not in str(everything(memory)), name
        if name in JOBS:
            ask(memory, "scheduler.run", {"job_name": name, "wait": True})
    build(memory)
    assert_right(memory)
    assert told not in str(everything(memory)) and node(memory, "toc:year:2026")["bullets"]


def test_what_an_older_run_has_cut_does_not_replace_a_newer_one_s(
    memory: MemoryRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(memory, *range(20))

    def overtake() -> None:
        say(memory, 300)
        ask(memory, "admin.rebuild_toc")

    while_cut(monkeypatch, overtake)
    cut(memory)
    assert_right(memory)


def test_days_that_were_taken_by_a_run_that_ended_are_cut_by_the_next(
    memory: MemoryRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(memory, *range(20))

    def broken(tx: Reading, each: Waiting) -> DayCut:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(building, "cut_day", broken)
        ask(memory, "scheduler.run", {"job_name": "outbox-processor", "wait": True})
    assert waiting(memory) == 1
    build(memory)
    assert_right(memory)


def test_days_that_are_read_with_the_minutes_before_midnight_wait_for_no_second_run(memory: MemoryRuntime) -> None:
    first = ms("2026-01-10T00:00:00Z")
    for day in range(20):
        morning, evening = first + day * DAY_MS + MINUTE_MS, first + (day + 1) * DAY_MS - MINUTE_MS
        ingest(
            memory,
            event(f"m{day}", morning, TEXT.format(day)),
            event(f"e{day}", evening, f"The harbour {day} is open."),
        )
    build(memory)
    assert_right(memory)
    ask(memory, "admin.rebuild_toc")
    assert waiting(memory) == 0


def test_what_is_said_before_midnight_while_the_next_day_is_cut_is_read_with_it(
    memory: MemoryRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    midnight = ms("2026-01-31T00:00:00Z")
    ingest(memory, event("n", midnight + MINUTE_MS, "And at night the kiln is opened."))

    def late() -> None:
        ingest(memory, event("l", midnight - MINUTE_MS, "In the evening the kiln is fired."))
        ask(memory, "admin.rebuild_toc")

    while_cut(monkeypatch, late)
    cut(memory)
    build(memory)
    assert_right(memory)


def test_a_conversation_that_is_replaced_while_a_day_is_cut_for_the_first_time_leaves_no_segment_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path, "one")

    def say(name: str, at: str) -> None:
        told = message(name, "The kiln is fired at night.", at=at)
        home.ask("transcript.commit", talk(turn(f"t{name}", told, at=at)))

    def run() -> None:
        home.ask("scheduler.run", {"job_name": "outbox-processor", "wait": True})

    say("a", "2024-05-01T10:00:00Z")
    run()
    data = home.snapshot()[0]
    say("b", "2024-05-05T10:00:00Z")
    while_cut(monkeypatch, lambda: home.take(data, mode="full_restore"))
    run()
    run()
    found = home.ask("store.verify", {})
    assert [each for each in found["findings"] if each["check"] == "toc"] == []
    assert home.rows("SELECT count(*) FROM toc_outbox") == [(0,)]
    home.close()
