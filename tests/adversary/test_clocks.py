"""A board without a battery: its clock begins before 1970, and jumps decades. Everything goes on, in its order."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.codec import format_us, to_plain
from beetle.open import Opened, open_store
from beetle.runtime.host.dependencies import Dependencies
from beetle.runtime.pipeline.invocation import Call
from beetle.store import jobs
from tests.adversary.test_damaged_text import OWN, READS, REFS
from tests.building import CONVERSATION, Plain, candidate, candidates, message, skill, step, talk, turn, write
from tests.conformance.doors import PROFILE
from tests.forked import Daemon
from tests.running import ROOT

SECOND = 1_000_000
HOUR, DAY, YEAR = 3600 * SECOND, 86_400 * SECOND, 31_557_600 * SECOND
NOW = 56 * YEAR
CLOCKS = {
    "zero": 0,
    "before 1970": -SECOND - 1,
    "a century before": -100 * YEAR,
    "the first that is shown": -62_135_596_800 * SECOND,
    "2200": 230 * YEAR,
    "the last that a job may wait in": 253_402_300_799 * SECOND - YEAR,
}
WORDS = "the spare key hangs by the door"


class Clock:
    """What the product asks for the time; a test sets it."""

    def __init__(self, at: int) -> None:
        self.at = at

    def __call__(self) -> int:
        return self.at


def begin(path: Path, clock: Clock, profile: str = PROFILE) -> Opened:
    return open_store(str(path), profile, dependencies=Dependencies(clock=clock, elapsed=lambda: 0))


def call(opened: Opened, op: str, args: Mapping[str, Any] | None = None) -> Plain:
    report = opened.dispatcher.dispatch(Call(op, dict(args or {}), OWN, None)).report
    return json.loads(json.dumps(to_plain(report), default=repr))


def use(opened: Opened, name: str) -> None:
    """One of everything that stamps a time; nothing of it may be refused."""
    said = turn(name, message(f"{name}.0", f"{WORDS} {name}", actor={"speaker": "Mara"}), host_refs=REFS)
    call(opened, "transcript.commit", talk(said))
    evidence = [f"evidence:local/talk/{name}"]
    call(opened, "memory.write", candidates(candidate(name, f"{WORDS} {name}", topic=name, evidence_refs=evidence)))
    call(opened, "memory.write", write(skill(name)))
    call(opened, "transcript.lifecycle", step("mask", name))
    call(opened, "transcript.lifecycle", step("unmask", name))
    for op, args in [*READS, ("console.overview", {}), ("memory.inspect", {}), ("event_log.read", {})]:
        name_of = {"name": f"runtime_skill__{name}"} if op == "skill.detail" else {}
        call(opened, op, {**args, **name_of})
    call(opened, "memory.recover", {"trigger": "operator_requested"})


@pytest.mark.parametrize("clock", CLOCKS)
def test_nothing_is_refused_under_any_clock(tmp_path: Path, clock: str) -> None:
    at = Clock(CLOCKS[clock])
    opened = begin(tmp_path / "store.db", at)
    use(opened, "first")
    for later, moved in enumerate((1, NOW, CLOCKS[clock])):
        at.at = moved
        use(opened, f"later{later}")
    assert call(opened, "store.verify")["clean"]
    turns = call(opened, "transcript.replay", {"conversation": CONVERSATION, "view": "host_ui"})["turns"]
    assert [each["turn_id"] for each in turns] == ["first", "later0", "later1", "later2"]
    assert call(opened, "memory.inspect")["operator"]["uptime_s"] >= 0
    opened.store.close()


def test_snapshots_are_listed_and_pruned_in_the_order_in_which_they_were_made(tmp_path: Path) -> None:
    at = Clock(NOW)
    opened = begin(tmp_path / "store.db", at)
    made = []
    for moment in (NOW, 0, -NOW, NOW + 30 * YEAR, NOW - 1):
        at.at = moment
        made.append(call(opened, "snapshot.create")["snapshot"]["snapshot_id"])
        assert call(opened, "snapshot.verify", {"snapshot_id": made[-1]})["valid"]
    newest = made[::-1]
    listed, cursor = [], None
    while True:
        page = call(opened, "snapshot.list", {"limit": 2, **({"cursor": cursor} if cursor else {})})
        listed += [each["snapshot_id"] for each in page["snapshots"]]
        if (cursor := page["next_cursor"]) is None:
            break
    assert listed == newest
    pruned = call(opened, "snapshot.prune", {"keep": 2})
    assert pruned["kept"] == newest[:2] and set(pruned["removed"]) == set(newest[2:])
    assert call(opened, "snapshot.restore", {"snapshot_id": newest[0]})["changed"]
    opened.store.close()


def wait_for_somebody(opened: Opened, name: str) -> None:
    """A candidate that waits, and a proposal that is open."""
    claim = candidate(name, f"Zed cooks {name}.", authority="assistant_claimed", topic=name, evidence_refs=[])
    call(opened, "memory.write", candidates(claim))
    change = {"content": f"Ann bakes {name}.", "topic": name}
    proposal = {"proposal_id": name, "kind": "fact_write", "rationale": "r", "change": change}
    call(opened, "evolve.propose", {"proposals": [proposal]})


def waiting(opened: Opened) -> dict[str, str]:
    """The candidates that wait, and since when; the open proposals have the same names and times."""
    assert call(opened, "scheduler.run", {"job_name": "retention", "wait": True})["job"]["last_result"] == "success"
    rows = call(opened, "governance.list", {"what": "candidates"})["candidates"]
    found = {each["candidate_id"]: each["since"] for each in rows}
    proposed = call(opened, "evolve.list", {"state": "open"})["proposals"]
    assert {each["proposal_id"]: each["created_at"] for each in proposed} == found
    return found


@pytest.mark.parametrize(
    ("start", "steps"),
    [(HOUR, [NOW]), (NOW, [10 * YEAR, -10 * YEAR]), (NOW, [-NOW, NOW, YEAR]), (NOW, [-50 * YEAR, -80 * YEAR])],
)
def test_what_waits_does_not_grow_old_by_a_step_of_the_clock(tmp_path: Path, start: int, steps: list[int]) -> None:
    """Neither what came before it nor what comes later. What waits while the store is closed does."""
    at, path = Clock(start), tmp_path / "store.db"
    opened = begin(path, at, "dev-full")
    for number, moved in enumerate((0, *steps)):
        at.at += moved
        with pytest.raises(ZeroDivisionError):
            opened.store.write(lambda tx: tx.now // 0)
        wait_for_somebody(opened, f"c{number}")
        assert waiting(opened) == dict.fromkeys((f"c{each}" for each in range(number + 1)), format_us(at.at))
    before = {f"c{each}" for each in range(len(steps) + 1)}
    for days, left in ((opened.profile.budgets.deferred_days - 1, before | {"later"}), (2, {"later", "last"})):
        opened.store.close()
        at.at += days * DAY
        opened = begin(path, at, "dev-full")
        wait_for_somebody(opened, "last" if "last" in left else "later")
        assert set(waiting(opened)) == left
    assert call(opened, "store.verify")["clean"]
    opened.store.close()


@pytest.mark.parametrize("off", [-NOW, 400 * DAY])
@pytest.mark.parametrize("writes", [1, 2])
@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
def test_what_waits_is_as_old_as_it_was_when_a_step_is_taken_back(
    tmp_path: Path, off: int, writes: int, closed: bool
) -> None:
    """However many writes there were meanwhile, and also if the store was closed in between."""
    at, path = Clock(NOW), tmp_path / "store.db"
    opened = begin(path, at, "dev-full")
    wait_for_somebody(opened, "first")
    at.at += off
    for number in range(writes):
        call(opened, "transcript.commit", talk(turn(f"t{number}", "said by another clock")))
    if closed:
        opened.store.close()
    at.at += SECOND - off
    opened = begin(path, at, "dev-full") if closed else opened
    call(opened, "transcript.commit", talk(turn("back", "said by the first clock")))
    assert set(waiting(opened)) == {"first"}
    with opened.store.read() as tx:
        assert abs(tx.value("SELECT at FROM candidate") - at.at) < DAY
    assert call(opened, "store.verify")["clean"]
    opened.store.close()


@pytest.mark.parametrize("leased", [True, False])
def test_a_job_does_not_wait_for_a_time_of_another_clock(tmp_path: Path, leased: bool) -> None:
    at = Clock(NOW)
    opened = begin(tmp_path / "store.db", at)
    use(opened, "t1")

    def leave(tx: Any) -> jobs.JobRow:
        new = jobs.NewJob("j1", "maintain", "embedded:agent-main", "agent-main", "local", "chat-1", {})
        job, _ = jobs.enqueue(tx, 1, new, tx.now, tx.now + 30 * SECOND)
        return jobs.lease(tx, job, tx.now, tx.now + 60 * SECOND) if leased else job

    def due(tx: Any) -> bool:
        return jobs.due(tx, tx.now, "*", "") is not None

    opened.store.write(leave)
    until = NOW + (60 if leased else 30) * SECOND
    for at.at, planned in ((NOW + SECOND, until), (NOW - SECOND, until), (0, 0), (NOW + 61 * SECOND, until)):
        assert opened.store.write(due) is (planned <= at.at)
        with opened.store.read() as tx:
            assert jobs.next_due(tx, at.at, "*", "") == planned
        (shown,) = call(opened, "governance.list", {"what": "jobs"})["jobs"]
        told = call(opened, "governance.report")["deferred"]["open_jobs"]
        assert [shown["due_at"], *(each["due_at"] for each in told)] == [format_us(planned)] * 2
    at.at = 0
    assert opened.store.write(lambda tx: jobs.free_expired(tx, tx.now)) == leased
    opened.store.close()


SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
/* The system's clock as a file says: seconds to add. The monotonic clock is left alone. */
static long moved(void) {
    long by = 0;
    FILE *file = fopen(SHIFT, "r");
    if (file) { if (fscanf(file, "%ld", &by) != 1) by = 0; fclose(file); }
    return by;
}
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int answer = real(id, at);
    if (!answer && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) at->tv_sec += moved();
    return answer;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec exact;
    int answer = clock_gettime(CLOCK_REALTIME, &exact);
    at->tv_sec = exact.tv_sec; at->tv_usec = exact.tv_nsec / 1000;
    return answer;
}
time_t time(time_t *out) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (out) *out = exact.tv_sec;
    return exact.tv_sec;
}
"""
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="the clock is moved by a library that gcc makes")


@needs_gcc
def test_a_daemon_whose_clock_jumps_goes_on(tmp_path: Path) -> None:
    """A real process: its clock is before 1970 when it starts, then it is set to decades later, and back."""
    shift, library = tmp_path / "shift", tmp_path / "shim.so"
    source = tmp_path / "shim.c"
    source.write_text(SHIM)
    made = ["gcc", "-shared", "-fPIC", "-O1", f'-DSHIFT="{shift}"', "-o", str(library), str(source), "-ldl"]
    subprocess.run(made, check=True)
    command = f"env LD_PRELOAD={library} {sys.executable} -m beetle"
    shift.write_text(str(-70 * 31_557_600))
    with Daemon(profile=PROFILE, folder=str(tmp_path), command=command) as daemon, daemon.client() as client:
        for number, years in enumerate((-70, 100, 0)):
            shift.write_text(str(years * 31_557_600))
            said = turn(f"t{number}", message(f"m{number}", WORDS))
            client.call("transcript.commit", talk(said))
            at = client.create_snapshot().snapshot.created_at
            assert abs(int(at[:4]) - (time.gmtime().tm_year + years)) <= 1, "the clock was moved"
            assert client.verify_store().clean and client.recall(query="spare key").hits
            assert client.inspect().operator.uptime_s >= 0
        kept = client.prune_snapshots(keep=1).kept
        assert client.verify_snapshot(snapshot_id=kept[0]).checked["event_log"] >= 3
        shift.write_text(str(-70 * 31_557_600))
        doctor = [*command.split(), "--socket", daemon.socket, "doctor"]
        told = subprocess.run(doctor, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
        assert "Traceback" not in told.stderr and "the clock shows" in told.stdout
        daemon.stop()
        assert "Traceback" not in (tmp_path / "log").read_text()
        daemon.start()
