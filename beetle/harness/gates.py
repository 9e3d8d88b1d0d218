"""The run of a suite, and the gates over it."""

from __future__ import annotations

from collections.abc import Iterator

from beetle.contracts.errors import InvalidRequest, NotFound
from beetle.contracts.harness import (
    SUBJECTS,
    BenchmarkResult,
    FixtureResult,
    GateName,
    GateResult,
    HarnessRunReport,
    HarnessRunRequest,
    ReplayResult,
    SubjectResult,
)
from beetle.contracts.names import BackendName
from beetle.harness.benchmark import run_benchmark
from beetle.harness.files import Loaded, load
from beetle.harness.replay import NOT_COMPARED, compare
from beetle.harness.running import Run, run_fixture


def run(request: HarnessRunRequest) -> HarnessRunReport:
    """Run a suite of fixtures, each in temporary stores of its own.

    Raises:
        NotFound: there is no such folder or fixture, or nothing for the gate that is asked for.
        InvalidRequest: a fixture is broken, a backend stands twice, or one alone was given to compare.
    """
    backends = request.backends
    if len(set(backends)) < len(backends):
        raise InvalidRequest(reason="a backend is named twice", hint="name each once", path="$.args.backends")
    if request.suite in ("all", "replay") and len(backends) < 2:
        raise InvalidRequest(
            reason="a replay compares at least two backends",
            hint="name two, or run the suites memory and benchmark",
            path="$.args.backends",
        )
    loaded = load(request.folder, request.fixtures)
    _check_there(request, loaded)
    runs: dict[str, dict[BackendName, Run]] = {}
    if request.suite != "benchmark":
        runs = {each.name: {backend: run_fixture(each, backend) for backend in backends} for each in loaded.fixtures}
    fixtures = tuple(each.result for by_backend in runs.values() for each in by_backend.values())
    replays: tuple[ReplayResult, ...] = ()
    if request.suite in ("all", "replay"):
        replays = tuple(compare(each, runs[each.name]) for each in loaded.fixtures)
    benchmarks: tuple[BenchmarkResult, ...] = ()
    if request.suite in ("all", "benchmark"):
        benchmarks = tuple(run_benchmark(each, backend) for each in loaded.benchmarks for backend in backends)
    if request.suite == "replay":
        fixtures = ()
    gates = tuple(gates_over(request, fixtures, replays, benchmarks))
    return HarnessRunReport(
        passed=bool(gates) and all(gate.passed for gate in gates),
        suite=request.suite,
        gates=gates,
        subjects=_subjects(fixtures),
        fixtures=fixtures,
        replays=replays,
        benchmarks=benchmarks,
        not_compared=tuple(NOT_COMPARED) if replays else (),
    )


def _check_there(request: HarnessRunRequest, loaded: Loaded) -> None:
    """A gate that is asked for by name has something to judge."""
    wanted = {"memory": loaded.fixtures, "replay": loaded.fixtures, "benchmark": loaded.benchmarks}
    if request.suite != "all" and not wanted[request.suite]:
        kind = "benchmark" if request.suite == "benchmark" else "fixture"
        raise NotFound(
            kind=kind, name=", ".join(request.fixtures) or "*", listing="the folder holds none, or not by it"
        )


def gates_over(
    request: HarnessRunRequest,
    fixtures: tuple[FixtureResult, ...],
    replays: tuple[ReplayResult, ...],
    benchmarks: tuple[BenchmarkResult, ...],
) -> Iterator[GateResult]:
    """The gates of a suite. Where fixtures were named, a gate that none of them is for is left out."""
    every = not request.fixtures
    if request.suite in ("all", "memory") and (every or fixtures):
        yield _memory(fixtures, every)
    if request.suite in ("all", "replay") and (every or replays):
        unequal = [each.name for each in replays if not each.equal]
        reason = f"not equal on every backend: {', '.join(unequal)}" if unequal else None
        yield _gate("replay", reason if replays else "no fixture to replay")
    if request.suite in ("all", "benchmark") and (every or benchmarks):
        missed = [f"{each.name} on {each.backend}: {', '.join(each.missed)}" for each in benchmarks if not each.passed]
        yield _gate("benchmark", ("; ".join(missed) or None) if benchmarks else "no benchmark to run")


def _memory(fixtures: tuple[FixtureResult, ...], every: bool) -> GateResult:
    failed = list(dict.fromkeys(each.name for each in fixtures if not each.passed))
    if failed:
        return _gate("memory_harness", f"fixtures that failed: {', '.join(failed)}")
    missing = [each for each in SUBJECTS if all(each != run.subject for run in fixtures)]
    if every and missing:
        return _gate("memory_harness", f"no fixture is about {', '.join(missing)}")
    return _gate("memory_harness", None)


def _gate(name: GateName, reason: str | None) -> GateResult:
    return GateResult(name=name, passed=reason is None, reason=reason)


def _subjects(fixtures: tuple[FixtureResult, ...]) -> tuple[SubjectResult, ...]:
    made: list[SubjectResult] = []
    for subject in SUBJECTS:
        mine = [each for each in fixtures if each.subject == subject]
        if mine:
            made.append(SubjectResult(subject=subject, runs=len(mine), passed=sum(each.passed for each in mine)))
    return tuple(made)
