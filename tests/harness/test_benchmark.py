"""The benchmark gate falls when recall gets worse or much slower, and for nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from beetle.contracts.codec import convert_request
from beetle.contracts.harness import Benchmark, BenchmarkFloors
from beetle.harness.benchmark import Quality, missed, run_benchmark
from beetle.store.baseline_index import BaselineIndex
from tests.harness.recorded import Plain, own_document

FLOORS = BenchmarkFloors(hit_at_1=0.8, hit_at_5=0.9, mrr=0.85, behind_raw_at_most=0.05, ratio_at_most=10)
GOOD = Quality(0.8, 0.9, 0.85)
RAW = Quality(0.7, 0.9, 0.8)


def read(document: Plain) -> Benchmark:
    return convert_request(document, Benchmark, "$")


@pytest.mark.parametrize(
    ("ours", "raw", "ratio", "fell"),
    [
        (GOOD, RAW, 10.0, []),
        (GOOD._replace(hit_at_1=0.79), RAW, 1.0, ["hit_at_1"]),
        (GOOD._replace(hit_at_5=0.89), RAW, 1.0, ["hit_at_5"]),
        (GOOD._replace(mrr=0.84), RAW, 1.0, ["mrr"]),
        (GOOD, RAW._replace(mrr=0.91), 1.0, ["behind_raw"]),
        (GOOD, RAW, 10.1, ["ratio"]),
        (Quality(0, 0, 0), RAW, 99.0, ["hit_at_1", "hit_at_5", "mrr", "behind_raw", "ratio"]),
    ],
)
def test_each_floor_is_held(ours: Quality, raw: Quality, ratio: float, fell: list[str]) -> None:
    assert list(missed(FLOORS, ours, raw, ratio)) == fell


def test_a_recall_that_finds_something_else_falls() -> None:
    """The same questions with answers that are not found: as if the ranking had been lost."""
    document = own_document("benchmark-household")
    lines = [line["id"] for line in document["lines"] if line["id"].startswith("c")]
    for number, question in enumerate(document["questions"]):
        question["answers"] = [lines[number]]
    document["floors"]["ratio_at_most"] = 10**6
    result = run_benchmark(read(document), "in-memory")
    assert not result.passed and {"hit_at_1", "hit_at_5", "mrr"} <= set(result.missed)
    assert "ratio" not in result.missed


def test_a_recall_that_is_slower_than_it_may_be_falls() -> None:
    document = own_document("benchmark-household")
    document["floors"]["ratio_at_most"] = 0.001
    result = run_benchmark(read(document), "in-memory")
    assert result.missed == ("ratio",) and result.ratio > 0.001


def test_quality_is_the_same_on_every_run_and_backend() -> None:
    document: Any = own_document("benchmark-household")
    document["questions"] = document["questions"][:5]
    first, other = run_benchmark(read(document), "in-memory"), run_benchmark(read(document), "embedded")
    assert first.questions == 5
    for name in ("hit_at_1", "hit_at_5", "mrr", "raw_hit_at_5", "raw_mrr"):
        assert getattr(first, name) == getattr(other, name)


def test_the_floor_finds_by_any_word_and_takes_any_text() -> None:
    floor = BaselineIndex([("a", "The pump is loud."), ("b", "A quiet lathe."), ("c", "Pumps pump.")])
    assert floor.find("pumping lathe", 10)[0] in ("b", "c")
    assert set(floor.find("pump", 10)) == {"a", "c"}
    assert floor.find("pump", 1) == ["c"]
    for odd in ("", '"', "AND NEAR(", "* col:", "…"):
        assert isinstance(floor.find(odd, 10), list)
    floor.close()
