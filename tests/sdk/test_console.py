"""The overview's figures: counted, measured and read, and shown to whom they belong."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.common import WireScope
from beetle.contracts.console import ConsoleOverviewReport
from beetle.contracts.errors import BeetleError
from beetle.contracts.memory import ProjectionAudit
from beetle.open import Opened, open_store
from beetle.runtime.host import metrics
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.history import MOST_STEPS, STEP_S, Gauges, History
from beetle.runtime.host.machine import disk_bytes, read_system
from beetle.runtime.host.metrics import BUCKETS, PRINCIPALS, PROJECTIONS, Metrics, bucket_of, upper_edge
from beetle.runtime.host.principals import OPERATOR
from beetle.runtime.pipeline.invocation import Call
from tests.building import talk, turn
from tests.conformance.doors import embedded_caller

PROFILE = "profile-server-linux-dev-full"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    made = open_store(str(tmp_path / "b.db"), PROFILE)
    yield made
    made.store.close()


def ask(opened: Opened, op: str, args: Any = None, caller: Caller = OPERATOR, **scope: str) -> Any:
    return opened.dispatcher.dispatch(Call(op, args, caller, WireScope(**scope) if scope else None)).report


def overview(opened: Opened, caller: Caller = OPERATOR, **scope: str) -> ConsoleOverviewReport:
    return ask(opened, "console.overview", {}, caller, **scope)


# Times in buckets


def test_every_time_is_in_the_first_bucket_whose_upper_edge_is_beyond_it() -> None:
    edges = [upper_edge(bucket) for bucket in range(BUCKETS)]
    assert edges == sorted(set(edges))
    for micros in [*range(5000), *(2**n + d for n in range(4, 26) for d in (-1, 0, 1))]:
        bucket = bucket_of(micros)
        assert micros < edges[bucket]
        assert bucket == 0 or micros >= edges[bucket - 1]
        if micros >= 16:
            assert edges[bucket] <= micros * 1.25 + 1, "at most a quarter above the true time"
    assert bucket_of(10**12) == BUCKETS - 1


def test_a_quantile_is_at_most_a_quarter_above_the_true_one_and_never_above_the_longest() -> None:
    counted = Metrics()
    times = [0.001 * n for n in range(1, 1001)]
    for seconds in times:
        counted.note("memory.recall", seconds, None)
    (found,) = counted.measured()
    for quantile, true in zip(found.quantiles, (500, 900, 990), strict=True):
        assert true <= quantile <= true * 1.25 + 0.001
    assert found.quantiles[2] <= found.longest == pytest.approx(1000, abs=0.01)


def test_errors_are_counted_by_key_and_operations_that_there_are_not_together() -> None:
    counted = Metrics()
    for name, error in (("skill.list", None), ("skill.list", "forbidden"), ("skill.list", "forbidden")):
        counted.note(name, 0.1, error)
    for number in range(100):
        counted.note(f"made.up.{number}", 0.1, "unknown_operation")
    assert [(each.operation, each.calls, each.errors) for each in counted.measured()] == [
        ("skill.list", 3, {"forbidden": 2}), (metrics.UNKNOWN, 100, {"unknown_operation": 100})
    ]  # fmt: skip


def test_no_call_is_lost_when_many_threads_note_at_once() -> None:
    counted = Metrics()
    threads = [
        threading.Thread(target=lambda: [counted.note("hello", 1e-5 * n, None) for n in range(2000)]) for _ in range(6)
    ]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(before)
    assert [each.calls for each in counted.measured()] == [12_000]


def test_figures_of_one_operation_take_a_fixed_few_hundred_bytes() -> None:
    counted = Metrics()
    for n in range(10_000):
        counted.note("hello", n * 0.01, None)
    (found,) = counted._operations.values()
    assert len(found.buckets) * found.buckets.itemsize == 352


def test_the_last_projections_are_remembered_by_principal_and_its_oldest_goes() -> None:
    counted = Metrics()
    for n in range(PROJECTIONS + 5):
        counted.note_projection(("p", f"space {n}"), ProjectionAudit(characters=n), n)
    counted.note_projection(("p", "space 5"), ProjectionAudit(characters=1000), 99)
    last = counted.last_projection(("p", "space 5"))
    assert last is not None and (last.audit.characters, last.at) == (1000, 99)
    assert counted.last_projection(("p", "space 4")) is None
    assert counted.last_projection(("p", f"space {PROJECTIONS + 4}")) is not None


def test_a_principal_takes_no_other_s_last_projection_and_principals_are_bounded() -> None:
    counted = Metrics()
    counted.note_projection(("quiet", "one"), ProjectionAudit(characters=7), 1)
    for n in range(10 * PRINCIPALS * PROJECTIONS):
        counted.note_projection(("loud", f"space {n}"), ProjectionAudit(characters=n), n)
    assert counted.last_projection(("quiet", "one")) is not None
    for n in range(PRINCIPALS):
        counted.note_projection((f"p{n}", "one"), ProjectionAudit(), n)
    assert counted.last_projection(("quiet", "one")) is None
    assert len(counted._projections) == PRINCIPALS


# The report


def test_operations_errors_and_refusals_are_counted_from_what_was_asked(opened: Opened) -> None:
    for n in range(3):
        ask(opened, "transcript.commit", talk(turn(f"t{n}", "the kettle")))
    with pytest.raises(BeetleError):
        ask(opened, "skill.detail", {"name": "nothing"})
    with pytest.raises(BeetleError):
        ask(opened, "skill.list", {}, OPERATOR._replace(capabilities=frozenset()))
    with pytest.raises(BeetleError):
        ask(opened, "no.such.thing")
    found = overview(opened).metrics
    assert found is not None
    counted = {each.operation: each for each in found.operations}
    assert counted["transcript.commit"].calls == 3 and counted["transcript.commit"].errors == {}
    assert counted["skill.detail"].errors == {"not_found": 1}
    assert counted["skill.list"].errors == {"forbidden": 1}
    assert counted["unknown"].errors == {"unknown_operation": 1}
    assert (found.calls, found.errors, found.refusals) == (6, 3, 1)
    again = overview(opened).metrics
    assert again is not None and again.calls == 7, "the overview counts itself"


def test_who_is_no_operator_is_shown_nothing_of_the_daemon_s(opened: Opened) -> None:
    ask(opened, "transcript.commit", talk(turn("t1", "the kettle")))
    panel = OPERATOR._replace(name="panel", kind="principal", owner_id="another")
    seen = overview(opened, panel)
    assert (seen.system, seen.metrics, seen.sessions) == (None, None, None)
    assert (seen.storage.path, seen.storage.disk_free_bytes, seen.runtime.pid) == (None, None, None)
    assert all(each.endpoint is None for each in seen.runtime.transports)
    assert seen.kernel.counts.turns == 0, "and of memory its own alone"
    whole = overview(opened)
    assert whole.storage.path is not None and whole.runtime.pid is not None
    assert whole.kernel.counts.turns == 1


def test_the_last_projection_is_the_caller_s_own_of_this_scope(opened: Opened) -> None:
    ask(opened, "transcript.commit", talk(turn("t1", "the kettle is on")))
    assert overview(opened).memory.last_projection is None
    made = ask(opened, "memory.project", {"user_query": "kettle"})
    memory = overview(opened).memory
    assert memory.last_projection == made.audit and memory.last_projection_at == made.lifecycle.at
    assert overview(opened, chat_id="elsewhere").memory.last_projection is None
    assert overview(opened, OPERATOR._replace(name="other")).memory.last_projection is None


def test_a_store_in_memory_has_no_path_and_no_disk(tmp_path: Path) -> None:
    opened = open_store(str(tmp_path / "b.db"), PROFILE, "in-memory")
    seen = overview(opened)
    assert (seen.storage.path, seen.storage.disk_total_bytes, seen.runtime.backend) == (None, None, "in-memory")
    assert seen.system is not None
    opened.store.close()


def test_the_session_of_an_embedded_owner_names_it_and_what_is_visible(opened: Opened) -> None:
    told = ask(opened, "console.session", {}, embedded_caller("ada"))
    assert (told.kind, told.transport, told.owner.owner_id) == ("embedded", "in_process", "ada")
    assert {"private.read", "transcript.raw", "admin", "recall"} <= set(told.capabilities)
    assert set(told.views) == {"raw_owner", "model_context", "host_ui", "operator_audit", "export"}


# The machine


def write(root: Path, name: str, text: str) -> None:
    place = root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def test_a_machine_s_figures_are_what_its_files_say(tmp_path: Path) -> None:
    write(tmp_path, "etc/os-release", 'NAME="Board"\nPRETTY_NAME="Board Linux 3 (pear)"\n')
    write(tmp_path, "proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 38\n\nModel\t\t: Pear Board 2 Rev 1.1\n")
    write(tmp_path, "proc/meminfo", "MemTotal:  120000 kB\nMemFree: 10 kB\nMemAvailable:   60000 kB\n")
    write(tmp_path, "proc/self/status", "VmRSS:\t   25000 kB\nCpus_allowed_list:\t0-3\n")
    write(tmp_path, "proc/loadavg", "0.10 0.20 0.30 1/100 999\n")
    write(tmp_path, "proc/uptime", "1234.56 999.00\n")
    seen = read_system(tmp_path, 1_000_000, tmp_path)
    assert (seen.os, seen.cpu, seen.cores) == ("Board Linux 3 (pear)", "Pear Board 2 Rev 1.1", 4)
    assert (seen.memory_total_bytes, seen.memory_available_bytes) == (120_000 * 1024, 60_000 * 1024)
    assert (seen.process_rss_bytes, seen.load, seen.up_s) == (25_000 * 1024, (0.1, 0.2, 0.3), 1234.56)
    assert seen.at == "1970-01-01T00:00:01Z"


@pytest.mark.parametrize("text", ["", "nonsense\n", "MemAvailable: -5 kB\nVmRSS: kB\n", "\x00\xff" * 50])
def test_a_figure_that_cannot_be_read_is_none_and_never_made_up(tmp_path: Path, text: str) -> None:
    for name in ("etc/os-release", "proc/cpuinfo", "proc/meminfo", "proc/self/status", "proc/loadavg", "proc/uptime"):
        write(tmp_path, name, text)
    seen = read_system(tmp_path, 0, tmp_path)
    assert seen.os == "Linux" and seen.cpu is None and seen.load == () and seen.up_s is None
    assert (seen.memory_available_bytes, seen.process_rss_bytes) == (None, None)
    assert disk_bytes(str(tmp_path / "nowhere")) == (None, None)


# Recent activity


def reads_nothing() -> Gauges:
    return Gauges(None, None, None)


def test_each_step_holds_what_was_asked_in_it_and_a_step_without_any_was_measured_too() -> None:
    now = 100.0
    looks: list[Gauges] = []

    def look() -> Gauges:
        looks.append(Gauges(10 + len(looks), 5, None))
        return looks[-1]

    history = History(look, lambda: now)
    history.note("memory.recall", 0.002)
    history.note("memory.write", 0.004)
    history.note("console.overview", 9.0)
    now += 3 * STEP_S + 1
    history.note("memory.write", 0.001)
    steps, running_s = history.last(60)
    assert [(each.writes, each.recalls, each.slowest_ms) for each in steps] == [
        (1, 1, 4.0), (0, 0, None), (0, 0, None), (1, 0, 1.0)
    ]  # fmt: skip
    assert [each.gauges.rss for each in steps] == [10, None, None, 11], "what was not read is not made up"
    assert running_s == 1.0 and len(looks) == 2
    assert [each.writes for each in history.last(2)[0]] == [0, 1]


def test_the_history_is_bounded_and_forgets_what_is_older() -> None:
    now = 0.0
    history = History(reads_nothing, lambda: now)
    for number in range(3 * MOST_STEPS):
        now = number * STEP_S
        history.note("memory.write", 0.001)
    steps, _ = history.last(10 * MOST_STEPS)
    assert len(steps) == MOST_STEPS and {each.writes for each in steps} == {1}
    now += MOST_STEPS * STEP_S
    assert {each.writes for each in history.last(MOST_STEPS)[0]} == {0}


def test_the_overview_tells_an_operator_of_recent_activity_and_nobody_else(opened: Opened) -> None:
    assert overview(opened).activity is None, "it was not asked for"
    ask(opened, "transcript.commit", talk(turn("t1", "the kettle")))
    found = ask(opened, "console.overview", {"steps": 240}).activity
    assert sum(found.writes) == 1 and found.step_s == STEP_S
    assert found.rss_bytes[-1] > 0 and found.disk_free_bytes[-1] > 0
    lengths = {len(getattr(found, name)) for name in found.__struct_fields__ if not name.endswith("_s")}
    assert len(lengths) == 1
    stranger = embedded_caller("ada")._replace(kind="principal")
    assert not stranger.is_operator
    assert ask(opened, "console.overview", {"steps": 240}, stranger).activity is None
