"""Cross-store replay: equal runs are found equal, and any difference is found."""

from __future__ import annotations

from typing import Any

import pytest

from beetle.contracts.codec import convert_request
from beetle.contracts.harness import Fixture
from beetle.contracts.names import BackendName
from beetle.contracts.operations import OPERATIONS
from beetle.harness import fixture_store, running
from beetle.harness.checks import MISSING
from beetle.harness.replay import MOST, NOT_COMPARED, compare, differences
from beetle.harness.running import Run, run_fixture
from tests.harness.recorded import Plain, fixture, own_document, works

LEARN = {
    "op": "memory.write",
    "args": {"kind": "candidates", "candidates": [
        {"candidate_id": "c", "authority": "user_asserted", "target": "long_term", "privacy": "shared_with_subject",
         "content": "Mara drinks tea.", "topic": "drink"}]},
    "expect": [{"check": "value", "path": "$.accepted", "equals": 1}],
}  # fmt: skip


def read(document: Plain) -> Fixture:
    return convert_request(document, Fixture, "$")


def runs_of(document: Plain, *backends: BackendName) -> dict[BackendName, Run]:
    return {each: run_fixture(read(document), each) for each in backends}


def test_the_same_requests_give_the_same_reports_ids_and_memory_on_two_backends() -> None:
    document = own_document("procedural-proposal-changes-nothing")
    runs = runs_of(document, "in-memory", "file")
    result = compare(read(document), runs)
    assert (result.equal, result.differences, result.steps) == (True, (), len(document["steps"]))
    assert result.fingerprint == runs["file"].fingerprint == runs["in-memory"].fingerprint


def test_a_second_run_of_one_backend_is_equal_too() -> None:
    first, again = run_fixture(read(fixture(LEARN)), "sqlite"), run_fixture(read(fixture(LEARN)), "sqlite")
    assert list(differences(first.reports[0], again.reports[0])) == []
    assert first.reports[0]["outcomes"][0]["ref"] == again.reports[0]["outcomes"][0]["ref"]


def test_another_id_source_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison rests on recorded ids: without them the reports of two stores differ."""
    first = run_fixture(read(fixture(LEARN)), "in-memory")
    monkeypatch.setattr(fixture_store.Recorded, "ids", lambda self, count: b"\x07" * count)
    other = run_fixture(read(fixture(LEARN)), "sqlite")
    result = compare(read(fixture(LEARN)), {"in-memory": first, "sqlite": other})
    assert not result.equal
    assert [(each.step, each.path, each.backend) for each in result.differences] == [(0, "$.outcomes[0].ref", "sqlite")]


def test_another_clock_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_fixture(read(fixture(LEARN)), "in-memory")
    before = fixture_store.Recorded.clock
    monkeypatch.setattr(fixture_store.Recorded, "clock", lambda self: before(self) + 1_000_000)
    other = run_fixture(read(fixture(LEARN)), "in-memory")
    result = compare(read(fixture(LEARN)), {"in-memory": first, "sqlite": other})
    assert (0, "$.lifecycle.at") in {(each.step, each.path) for each in result.differences}


def test_other_memory_behind_equal_reports_is_told_by_the_fingerprint() -> None:
    one, other = works(), works()
    other["steps"][0]["args"]["writes"][0] = {**other["steps"][0]["args"]["writes"][0], "content": "1. Go on."}
    first, second = run_fixture(read(one), "in-memory"), run_fixture(read(other), "sqlite")
    doctored = second._replace(reports=first.reports)
    result = compare(read(one), {"in-memory": first, "sqlite": doctored})
    (difference,) = result.differences
    assert (difference.step, result.equal, result.fingerprint) == (None, False, None)
    assert (difference.expected, difference.found) == (first.fingerprint, second.fingerprint)


def test_runs_that_fail_alike_are_not_equal() -> None:
    """Two stores that refuse what they should not prove nothing, however alike their errors are."""
    missing = fixture({"op": "skill.detail", "args": {"name": "x"}, "expect": [{"check": "says", "texts": ["x"]}]})
    result = compare(read(missing), runs_of(missing, "in-memory", "sqlite"))
    assert not result.equal
    assert {each.backend for each in result.differences} == {"in-memory", "sqlite"}


def test_at_most_so_many_differences_are_told_of_a_backend() -> None:
    first = run_fixture(read(works()), "in-memory")
    many = first._replace(reports=({str(n): n for n in range(50)}, *first.reports[1:]))
    assert len(compare(read(works()), {"in-memory": first, "sqlite": many}).differences) == MOST


@pytest.mark.parametrize(
    ("a", "b", "paths"),
    [
        ({"x": 1}, {"x": 1}, []), ({"x": 1}, {"x": 2}, ["$.x"]), ({"x": 1}, {"x": True}, ["$.x"]),
        ({"x": 1}, {"x": 1.0}, ["$.x"]), ({"x": 1}, {}, ["$.x"]), ({}, {"x": None}, ["$.x"]),
        ({"x": [1, 2]}, {"x": [2, 1]}, ["$.x[0]", "$.x[1]"]), ({"x": [1]}, {"x": [1, 2]}, ["$.x"]),
        ({"x": [{"y": "a"}]}, {"x": [{"y": "b"}]}, ["$.x[0].y"]),
        ({"receipt": "a"}, {"receipt": "b"}, []), ({"receipt": "a"}, {"receipt": None}, ["$.receipt"]),
        ({"receipt": "a"}, {}, ["$.receipt"]), ({"timings_ms": {"total": 1}}, {"timings_ms": {"total": 9}}, []),
    ],
)  # fmt: skip
def test_reports_are_compared_place_by_place(a: Any, b: Any, paths: list[str]) -> None:
    assert [path for path, _, _ in differences(a, b)] == paths
    assert MISSING not in (a, b)


def fields_of_reports() -> set[str]:
    """Every name of a field in any report, and in what stands in one."""
    import typing

    seen: set[type] = set()
    todo: list[Any] = [row.report for row in OPERATIONS]
    names: set[str] = set()
    while todo:
        kind = todo.pop()
        if isinstance(kind, type) and hasattr(kind, "__struct_fields__"):
            if kind not in seen:
                seen.add(kind)
                names |= set(kind.__struct_fields__)
                todo.extend(typing.get_type_hints(kind, include_extras=True).values())
        else:
            todo.extend(typing.get_args(kind))
    return names


def test_what_is_not_compared_are_fields_of_reports_each_with_its_reason() -> None:
    assert set(NOT_COMPARED) <= fields_of_reports()
    assert all(NOT_COMPARED.values())


def test_a_fixture_s_ids_come_from_its_name() -> None:
    one, other = fixture(LEARN), fixture(LEARN, name="another")
    refs = {running.run_fixture(read(each), "in-memory").reports[0]["outcomes"][0]["ref"] for each in (one, other)}
    assert len(refs) == 2
