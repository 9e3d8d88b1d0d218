"""The repository's own fixtures pass every gate, on every backend; each of their expectations can fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from beetle.contracts.codec import convert_request, to_wire
from beetle.contracts.harness import SUBJECTS, Fixture, HarnessRunRequest
from beetle.contracts.names import BACKEND_NAMES
from beetle.harness.gates import run
from beetle.harness.running import run_fixture
from tests.harness.recorded import OWN, Plain, own_document

WRONG = "zq no such thing qz"


def test_every_gate_passes_on_every_backend() -> None:
    report = run(HarnessRunRequest())
    told = [(each.name, failure) for each in report.fixtures for failure in each.failures]
    unequal = [(each.name, each.differences) for each in report.replays if not each.equal]
    assert (told, unequal, [each.missed for each in report.benchmarks if each.missed]) == ([], [], [])
    assert report.passed and [gate.name for gate in report.gates] == ["memory_harness", "replay", "benchmark"]
    assert {each.backend for each in report.fixtures} == set(BACKEND_NAMES)
    assert {each.subject for each in report.subjects} == set(SUBJECTS)
    assert all(each.fingerprint is not None for each in report.replays)
    assert all(each.checks >= 5 for each in report.fixtures)


def broken_ones() -> Iterator[Any]:
    """(fixture, step, expectation's number or None, what stands there instead) for one of each kind in each fixture."""
    for each in OWN.fixtures:
        seen: set[tuple[str, str]] = set()
        for number, step in enumerate(own_document(each.name)["steps"]):
            for place, expectation in enumerate(step.get("expect", [])):
                for aspect, instead in contrary(expectation):
                    if (expectation["check"], aspect) not in seen:
                        seen.add((expectation["check"], aspect))
                        name = f"{each.name}-{expectation['check']}-{aspect}"
                        yield pytest.param(each.name, number, place, instead, id=name)
            if "refused" in step and ("refused", "") not in seen:
                seen.add(("refused", ""))
                yield pytest.param(each.name, number, None, "overloaded", id=f"{each.name}-refused")


def contrary(expectation: Plain) -> Iterator[tuple[str, Plain]]:
    """What must fail where this holds: the opposite, or one thing that is not so."""
    match expectation["check"]:
        case "hit":
            selectors = {key: expectation[key] for key in ("says", "ref", "plane", "within") if key in expectation}
            yield "opposite", {"check": "no_hit", **selectors}
            for key in ("says", "ref"):
                if key in expectation:
                    yield key, {**expectation, key: WRONG}
            if "plane" in expectation:
                yield "plane", {**expectation, "plane": "chunks"}
            yield "why", {**expectation, "why": ["no_such_signal"]}
            yield "within", {**expectation, "within": "no_such_list"}
        case "no_hit":
            yield "opposite", {**expectation, "check": "hit", "plane": expectation.get("plane", "chunks")}
            yield "within", {**expectation, "within": "no_such_list"}
        case "block":
            yield "sections", {**expectation, "sections": ["evidence", "procedures", "recent"]}
            yield "holds", {**expectation, "holds": [WRONG]}
            yield "at_least", {**expectation, "at_least": 100_000}
            if expectation.get("holds"):
                yield "lacks", {**expectation, "holds": [], "lacks": expectation["holds"]}
                yield "at_most", {**expectation, "at_most": 10}
        case "says":
            yield "opposite", {"check": "lacks", "texts": expectation["texts"]}
            yield "texts", {"check": "says", "texts": [*expectation["texts"], WRONG]}
        case "lacks":
            yield "opposite", {"check": "says", "texts": expectation["texts"]}
        case "value":
            for key in ("equals", "count", "at_least", "at_most"):
                if key in expectation:
                    wrong = {"equals": WRONG, "count": 77, "at_least": 10**6, "at_most": -1}[key]
                    yield key, {**expectation, key: wrong}
            yield "path", {**expectation, "path": "$.no.such[0].place"}
        case "tool_hint":
            yield "opposite", {"check": "no_tool_hint", "tool_id": expectation["tool_id"]}
            yield "tool_id", {**expectation, "tool_id": WRONG}
            yield "fingerprint", {**expectation, "schema_fingerprint": WRONG}
        case "no_tool_hint":
            yield "opposite", {"check": "tool_hint", "tool_id": WRONG}
            yield "reason", {**expectation, "reason": WRONG}
        case other:
            raise AssertionError(f"the test knows no contrary of {other}")


@pytest.mark.parametrize(("name", "step", "place", "instead"), list(broken_ones()))
def test_each_expectation_fails_when_it_does_not_hold(name: str, step: int, place: int | None, instead: Any) -> None:
    document = own_document(name)
    if place is None:
        document["steps"][step]["refused"] = instead
        path = f"$.steps[{step}].refused"
    else:
        document["steps"][step]["expect"][place] = instead
        path = f"$.steps[{step}].expect[{place}]"
    result = run_fixture(convert_request(document, Fixture, "$"), "in-memory").result
    assert [each.path for each in result.failures] == [path]
    assert not result.passed and result.failures[0].expected and result.failures[0].found


@pytest.mark.parametrize("rank", [1, 2])
def test_a_rank_is_held_to_its_bound(rank: int) -> None:
    """The second of two hits is at rank 2, and not before."""
    document = own_document("recall-finds-what-was-said")
    document["steps"][1] = {
        "op": "memory.recall",
        "args": {"query": "coolant pump pressure dropped"},
        "expect": [{"check": "hit", "ref": "evidence:local/workshop/t3/m4", "rank_at_most": 5}],
    }
    found = run_fixture(convert_request(document, Fixture, "$"), "in-memory")
    refs = [hit["ref"] for hit in found.reports[1]["hits"]]
    wanted = {"check": "hit", "ref": refs[1], "rank_at_most": rank}
    document["steps"][1]["expect"] = [wanted]
    failures = run_fixture(convert_request(document, Fixture, "$"), "in-memory").result.failures
    assert len(failures) == (1 if rank == 1 else 0)


def test_a_value_that_cannot_be_kept_fails_its_step() -> None:
    document = own_document("temporal-correction-replaces")
    document["steps"][0]["keep"] = {"old": "$.outcomes[7].ref"}
    failures = run_fixture(convert_request(document, Fixture, "$"), "in-memory").result.failures
    assert failures[0].path == "$.steps[0].keep.old"


@pytest.mark.parametrize("each", OWN.fixtures, ids=lambda each: each.name)
def test_a_fixture_s_file_holds_what_its_struct_does(each: Fixture) -> None:
    assert convert_request(to_wire(each), Fixture, "$") == each
