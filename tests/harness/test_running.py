"""harness.run as an operation: who may, what it leaves of itself, and when its gates do not let it pass."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.codec import to_plain
from beetle.contracts.errors import CapabilityHidden, Forbidden, ServicesUnavailable
from beetle.contracts.harness import HarnessRunRequest
from beetle.harness.gates import run
from beetle.open import open_store, state_fingerprint
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.profile import profile_names
from beetle.runtime.pipeline.invocation import Call
from tests.governance.judging import PROFILE, JudgedStore, candidate
from tests.harness.recorded import RECALL, WRITE, Plain, fixture, works, write
from tests.harness.test_files import benchmark


@pytest.fixture
def place() -> Iterator[JudgedStore]:
    found = JudgedStore()
    yield found
    found.close()


def failing(name: str = "failing") -> Plain:
    return fixture({**RECALL, "expect": [{"check": "hit", "says": "a flying whale"}]}, name=name)


def test_a_run_leaves_the_caller_s_store_as_it_was_but_for_its_event(place: JudgedStore, tmp_path: Path) -> None:
    place.judge(candidate("c", "Mara drinks tea."))
    before = state_fingerprint(place.opened, "owner")
    counts = place.call("memory.inspect", {})["counts"]
    report = place.call("harness.run", {"suite": "memory", "folder": write(tmp_path, works())})
    assert report["gates"] == [
        {"name": "memory_harness", "passed": False,
         "reason": "no fixture is about projection, privacy, procedural, tool_experience, temporal"}
    ]  # fmt: skip
    assert [each["passed"] for each in report["fixtures"]] == [True] * 4
    assert report["lifecycle"]["changed"]
    assert state_fingerprint(place.opened, "owner") == before
    assert place.call("memory.inspect", {})["counts"] == counts
    assert place.rows("SELECT event, operation FROM event_log ORDER BY seq DESC LIMIT 1") == [
        ("harness_run", "harness.run")
    ]
    assert place.rows("SELECT count(*) FROM skill") == [(0,)]


def test_temporary_stores_are_removed_after_a_run(
    place: JudgedStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path, works(), failing())
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    place.call("harness.run", {"suite": "memory", "folder": folder, "fixtures": ["small", "failing"]})
    assert list(scratch.iterdir()) == []


def test_what_failed_is_told_with_its_place(tmp_path: Path) -> None:
    folder = write(tmp_path, works(), failing())
    report = run(HarnessRunRequest(suite="memory", folder=folder, fixtures=("small", "failing"), backends=("sqlite",)))
    assert [(gate.name, gate.passed, gate.reason) for gate in report.gates] == [
        ("memory_harness", False, "fixtures that failed: failing")
    ]
    bad = next(each for each in report.fixtures if not each.passed)
    (failure,) = bad.failures
    assert (bad.name, bad.backend, failure.step, failure.op) == ("failing", "sqlite", 0, "memory.recall")
    assert failure.path == "$.steps[0].expect[0]" and "whale" in (failure.expected or "")
    assert [(each.subject, each.runs, each.passed) for each in report.subjects] == [("recall", 2, 1)]


@pytest.mark.parametrize(
    ("documents", "gate", "reason"),
    [
        ((works(), benchmark()), "memory_harness", "no fixture is about"),
        ((failing(), benchmark()), "memory_harness", "fixtures that failed: failing"),
        ((works(),), "benchmark", "no benchmark to run"),
        ((benchmark(),), "replay", "no fixture to replay"),
        ((fixture({"op": "skill.detail", "args": {"name": "x"}, "expect": [{"check": "says", "texts": ["x"]}]}),),
         "replay", "not equal on every backend: small"),
        ((works(), benchmark(floors={"hit_at_1": 1, "hit_at_5": 1, "mrr": 1, "behind_raw_at_most": 1,
                                     "ratio_at_most": 0.001})), "benchmark", "small-benchmark on in-memory: "),
    ],
)  # fmt: skip
def test_each_gate_can_fall(tmp_path: Path, documents: tuple[Plain, ...], gate: str, reason: str) -> None:
    report = run(HarnessRunRequest(folder=write(tmp_path, *documents), backends=("in-memory", "sqlite")))
    found = {each.name: each for each in report.gates}[gate]  # type: ignore[index] - a name of the contract
    assert not found.passed and reason in (found.reason or "") and not report.passed


def test_named_fixtures_leave_out_the_gates_that_they_are_not_for(tmp_path: Path) -> None:
    folder = write(tmp_path, works(), benchmark())
    only = run(HarnessRunRequest(folder=folder, fixtures=("small",), backends=("in-memory", "sqlite")))
    assert [gate.name for gate in only.gates] == ["memory_harness", "replay"] and only.passed
    only = run(HarnessRunRequest(folder=folder, fixtures=("small-benchmark",), backends=("in-memory", "sqlite")))
    assert [gate.name for gate in only.gates] == ["benchmark"] and only.passed


@pytest.mark.parametrize("suite", ["memory", "replay", "benchmark"])
def test_a_suite_runs_its_own_gate_alone(tmp_path: Path, suite: Any) -> None:
    folder = write(tmp_path, works(), benchmark())
    report = run(HarnessRunRequest(suite=suite, folder=folder, backends=("in-memory", "sqlite")))
    assert len(report.gates) == 1
    found = (len(report.fixtures), len(report.replays), len(report.benchmarks))
    assert found == {"memory": (2, 0, 0), "replay": (0, 1, 0), "benchmark": (0, 0, 2)}[suite]
    assert bool(report.not_compared) is (suite == "replay")


REFUSED: tuple[tuple[str, Plain], ...] = (
    ("not_found", {"folder": "/no/such/folder"}),
    ("not_found", {"fixtures": ["no-such-fixture"]}),
    ("invalid_request", {"folder": "relative/folder"}),
    ("invalid_request", {"backends": ["sqlite"]}),
    ("invalid_request", {"suite": "replay", "backends": ["sqlite"]}),
    ("invalid_request", {"backends": ["sqlite", "sqlite"]}),
    ("invalid_request", {"backends": []}),
    ("invalid_request", {"backends": ["paper"]}),
    ("invalid_request", {"suite": "everything"}),
)


@pytest.mark.parametrize(("key", "args"), REFUSED)
def test_what_cannot_be_run_is_refused(place: JudgedStore, key: str, args: Plain) -> None:
    before = place.rows("SELECT count(*) FROM event_log")
    assert place.refused(key, "harness.run", args).hint
    assert place.rows("SELECT count(*) FROM event_log") == before


def test_a_benchmark_cannot_be_asked_for_where_there_is_none(place: JudgedStore, tmp_path: Path) -> None:
    args = {"suite": "benchmark", "folder": write(tmp_path, works())}
    place.refused("not_found", "harness.run", args)


def helper(*capabilities: str) -> Caller:
    return Caller("helper", "principal", frozenset(capabilities), ("host_ui",), "unix_socket", "owner", "agent-main")


def ask(place: JudgedStore, who: Caller, args: Plain) -> Plain:
    report = place.opened.dispatcher.dispatch(Call("harness.run", args, who)).report
    return json.loads(json.dumps(to_plain(report)))


def test_only_an_operator_has_the_daemon_read_a_folder(place: JudgedStore, tmp_path: Path) -> None:
    args = {"suite": "memory", "folder": write(tmp_path, works())}
    with pytest.raises(Forbidden, match="folder"):
        ask(place, helper("harness"), args)
    with pytest.raises(Forbidden, match="capability"):
        ask(place, helper("inspect"), {})
    own = {"suite": "memory", "fixtures": ["recall-finds-what-was-said"], "backends": ["in-memory"]}
    assert ask(place, helper("harness"), own)["passed"]


def test_a_runtime_that_was_given_no_harness_says_so(place: JudgedStore) -> None:
    dispatcher = place.opened.dispatcher
    bare = dispatcher.shared._replace(dependencies=dispatcher.shared.dependencies._replace(harness=None))
    dispatcher.shared = bare
    with pytest.raises(ServicesUnavailable):
        ask(place, helper("harness"), {})


@pytest.mark.parametrize("profile", profile_names())
def test_the_harness_is_hidden_but_for_one_profile(tmp_path: Path, profile: str) -> None:
    opened = open_store(str(tmp_path / "beetle.db"), profile)
    args = {"suite": "memory", "fixtures": ["recall-finds-what-was-said"], "backends": ["in-memory"]}
    call = Call("harness.run", args, helper("harness"))
    if profile == PROFILE:
        assert opened.dispatcher.dispatch(call).report is not None
    else:
        with pytest.raises(CapabilityHidden):
            opened.dispatcher.dispatch(call)
    opened.store.close()


def test_the_clock_of_a_fixture_moves_as_it_says(tmp_path: Path) -> None:
    later = {**RECALL, "after_s": 86_400, "expect": [
        {"check": "value", "path": "$.lifecycle.at", "equals": "2025-01-02T00:00:00.001Z"}]}  # fmt: skip
    folder = write(tmp_path, fixture(WRITE, later))
    report = run(HarnessRunRequest(suite="memory", folder=folder, fixtures=("small",)))
    assert report.passed, report.fixtures
