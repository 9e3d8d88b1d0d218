"""The benchmark gate: how well recall finds, and its time against that of a plain full-text query. Never seconds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from beetle.contracts.codec import to_us
from beetle.contracts.harness import Benchmark, BenchmarkFloors, BenchmarkResult
from beetle.contracts.names import BackendName
from beetle.harness.fixture_store import FixtureStore, temporary_store
from beetle.named_tuple import NamedTuple
from beetle.store.baseline_index import BaselineIndex

CONVERSATION = {"channel_id": "benchmark", "conversation_id": "lines"}
TURNS_A_COMMIT = 100
DEPTH = 10
ROUNDS = 3
"""Each query is timed so often both ways, in turns; the shortest counts: a busy machine makes times longer, never
shorter."""


class Quality(NamedTuple):
    """Shares of questions answered by the first hit and among the first five, and the mean reciprocal rank."""

    hit_at_1: float
    hit_at_5: float
    mrr: float


def run_benchmark(benchmark: Benchmark, backend: BackendName) -> BenchmarkResult:
    """Ask every question both ways, on one backend."""
    floor = BaselineIndex((line.id, line.says) for line in benchmark.lines)
    try:
        with temporary_store(benchmark.name, backend, to_us(benchmark.start)) as store:
            for turns in _commits(benchmark):
                store.wait(0)
                store.call("transcript.commit", {"conversation": CONVERSATION, "turns": turns})
            ours, raw, ratio = _ask(benchmark, store, floor)
    finally:
        floor.close()
    fell = tuple(missed(benchmark.floors, ours, raw, ratio))
    return BenchmarkResult(
        name=benchmark.name,
        backend=backend,
        passed=not fell,
        questions=len(benchmark.questions),
        hit_at_1=round(ours.hit_at_1, 4),
        hit_at_5=round(ours.hit_at_5, 4),
        mrr=round(ours.mrr, 4),
        raw_hit_at_5=round(raw.hit_at_5, 4),
        raw_mrr=round(raw.mrr, 4),
        ratio=round(ratio, 2),
        missed=fell,
    )


def _commits(benchmark: Benchmark) -> Iterator[list[dict[str, Any]]]:
    at = benchmark.start
    turns: list[dict[str, Any]] = []
    for line in benchmark.lines:
        at += timedelta(seconds=line.after_s)
        said = {"message_id": line.id, "role": "user", "content": line.says, "actor": {"speaker": line.speaker}}
        turns.append({"turn_id": line.id, "at": at.isoformat(), "messages": [said]})
    for first in range(0, len(turns), TURNS_A_COMMIT):
        yield turns[first : first + TURNS_A_COMMIT]


def _ask(benchmark: Benchmark, store: FixtureStore, floor: BaselineIndex) -> tuple[Quality, Quality, float]:
    """The quality of both, and how many times as long a recall takes as the plain query."""
    ranks: list[int | None] = []
    raw_ranks: list[int | None] = []
    spent = raw_spent = 0.0
    for question in benchmark.questions:
        asked = {"query": question.query, "limit": DEPTH, "conversation": CONVERSATION, "planes": ["evidence"]}
        best, raw_best = float("inf"), float("inf")
        found: list[Any] = []
        plain: list[Any] = []
        for _ in range(ROUNDS):
            seconds, report = _timed(lambda asked=asked: store.call("memory.recall", asked))
            raw_seconds, plain = _timed(lambda question=question: floor.find(question.query, DEPTH))
            found = [hit["message_id"] for hit in report["hits"]]
            best, raw_best = min(best, seconds), min(raw_best, raw_seconds)
        spent, raw_spent = spent + best, raw_spent + raw_best
        ranks.append(_rank(found, question.answers))
        raw_ranks.append(_rank(plain, question.answers))
    return _quality(ranks), _quality(raw_ranks), spent / raw_spent


def _timed(ask: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    answer = ask()
    return time.perf_counter() - started, answer


def _rank(found: list[Any], answers: tuple[str, ...]) -> int | None:
    return next((rank for rank, each in enumerate(found, 1) if each in answers), None)


def _quality(ranks: list[int | None]) -> Quality:
    return Quality(
        hit_at_1=statistics.fmean(rank == 1 for rank in ranks),
        hit_at_5=statistics.fmean(rank is not None and rank <= 5 for rank in ranks),
        mrr=statistics.fmean(0.0 if rank is None else 1 / rank for rank in ranks),
    )


def missed(floors: BenchmarkFloors, ours: Quality, raw: Quality, ratio: float) -> Iterator[str]:
    """The floors that were not reached, by their names."""
    for name in Quality._fields:
        if getattr(ours, name) < getattr(floors, name):
            yield name
    if raw.mrr - ours.mrr > floors.behind_raw_at_most:
        yield "behind_raw"
    if ratio > floors.ratio_at_most:
        yield "ratio"
