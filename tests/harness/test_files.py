"""A broken fixture is told with its file and its place, and nothing is run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.errors import InvalidRequest, NotFound
from beetle.harness import files
from beetle.harness.files import load
from tests.harness.recorded import RECALL, WRITE, Plain, fixture, own_document, works, write

EXPECTS = [{"check": "hit", "says": "pump"}]


def benchmark(**more: Any) -> Plain:
    lines = [{"id": f"l{n}", "speaker": "Mara", "says": f"line number {n}"} for n in range(10)]
    questions = [{"query": f"number {n}", "answers": [f"l{n}"]} for n in range(5)]
    floors = {"hit_at_1": 0, "hit_at_5": 0, "mrr": 0, "behind_raw_at_most": 1, "ratio_at_most": 1000}
    head = {"schema": "beetle.benchmark.v1", "name": "small-benchmark", "about": "x", "start": "2025-01-01T00:00:00Z"}
    return {**head, "lines": lines, "questions": questions, "floors": floors, **more}


BROKEN: dict[str, tuple[Plain, str]] = {
    "no steps": (fixture(), "$.steps"),
    "nothing expected": (fixture(WRITE), "$"),
    "unknown operation": (fixture({**RECALL, "op": "memory.recal", "expect": EXPECTS}), "$.steps[0].op"),
    "no place for it": (fixture({"op": "harness.run", "expect": EXPECTS}), "$.steps[0].op"),
    "a stream": (fixture({"op": "subscribe", "expect": EXPECTS}), "$.steps[0].op"),
    "wrong argument": (fixture({"op": "memory.recall", "args": {"query": 7}, "expect": EXPECTS}),
                       "$.steps[0].args.query"),
    "unknown argument": (fixture({"op": "hello", "args": {"x": 1}, "expect": EXPECTS}), "$.steps[0].args.x"),
    "unknown check": (fixture({**RECALL, "expect": [{"check": "hat"}]}), "$.steps[0].expect[0].check"),
    "hit of nothing": (fixture({**RECALL, "expect": [{"check": "hit"}]}), "$.steps[0].expect[0]"),
    "value of nothing": (fixture({**RECALL, "expect": [{"check": "value", "path": "$.hits"}]}), "$.steps[0].expect[0]"),
    "no path": (fixture({**RECALL, "expect": [{"check": "value", "path": "hits", "count": 0}]}),
                "$.steps[0].expect[0].path"),
    "refused and expected": (fixture({**RECALL, "refused": "conflict", "expect": EXPECTS}), "$.steps[0]"),
    "never kept": (fixture({"op": "memory.recall", "args": {"query": "${who}"}, "expect": EXPECTS}), "$.steps[0]"),
    "kept later": (fixture({**RECALL, "expect": [{"check": "hit", "ref": "${a}"}], "keep": {"a": "$.hits[0].ref"}}),
                   "$.steps[0]"),
    "unknown subject": (fixture({**RECALL, "expect": EXPECTS}, subject="speed"), "$.subject"),
    "unknown field": (fixture({**RECALL, "expect": EXPECTS}, colour="red"), "$.colour"),
    "a time without zone": (fixture({**RECALL, "expect": EXPECTS}, start="2025-01-01T00:00:00"), "$.start"),
    "back in time": (fixture({**RECALL, "expect": EXPECTS, "after_s": -1}), "$.steps[0].after_s"),
    "unknown asker": (fixture({**RECALL, "expect": EXPECTS, "asker": "root"}), "$.steps[0].asker"),
    "too few lines": (benchmark(lines=[]), "$.lines"),
    "an answer that is no line": (benchmark(questions=[{"query": "x", "answers": ["l77"]}] * 5),
                                  "$.questions[0].answers"),
    "two lines of one id": (benchmark(lines=[{"id": "l0", "speaker": "M", "says": "x"}] * 10), "$.lines"),
    "no such schema": ({**works(), "schema": "beetle.fixture.v9"}, "$.schema"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", BROKEN)
def test_what_is_no_fixture_is_refused_with_file_and_place(tmp_path: Path, wrong: str) -> None:
    document, path = BROKEN[wrong]
    folder = write(tmp_path, {**works(), "name": "whole"}, document)
    with pytest.raises(InvalidRequest) as caught:
        load(folder, ())
    assert caught.value.details["path"] == path
    assert caught.value.details["file"] == f"{folder}/{document['name']}.json"
    assert f"{document['name']}.json" in caught.value.message and path in caught.value.message


TEXTS = {
    "no JSON": (b"{", "$"),
    "no object": (b"[]", "$"),
    "NaN": (b'{"schema": NaN}', "$"),
    "a key twice": (b'{"schema": "beetle.fixture.v1", "schema": "beetle.fixture.v1"}', "$"),
    "no UTF-8": (b'{"schema": "\xff"}', "$"),
    "a lone surrogate": (json.dumps({**works(), "about": "\ud800"}).encode(), "$.about"),
    "nested without end": (b"[" * 100_000, "$"),
    "empty": (b"", "$"),
}


@pytest.mark.parametrize("wrong", TEXTS)
def test_a_file_that_cannot_be_read_is_told_by_its_name(tmp_path: Path, wrong: str) -> None:
    data, path = TEXTS[wrong]
    (tmp_path / "odd.json").write_bytes(data)
    with pytest.raises(InvalidRequest) as caught:
        load(str(tmp_path), ())
    assert caught.value.details["path"] == path and "odd.json" in caught.value.message


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(InvalidRequest, match=r"pipe\.json: it is not a regular file"):
        load(str(tmp_path), ())


def test_a_huge_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, works())
    monkeypatch.setattr(files, "MOST_BYTES", 10)
    with pytest.raises(InvalidRequest, match="more than 10 bytes"):
        load(str(tmp_path), ())


def test_a_name_stands_once(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(works()))
    (tmp_path / "b.json").write_text(json.dumps(works()))
    with pytest.raises(InvalidRequest, match=r"b\.json: another fixture has the name 'small'"):
        load(str(tmp_path), ())


@pytest.mark.parametrize("missing", ["nowhere", "empty"])
def test_a_folder_without_fixtures_is_not_found(tmp_path: Path, missing: str) -> None:
    if missing == "empty":
        (tmp_path / "empty").mkdir()
    with pytest.raises(NotFound):
        load(str(tmp_path / missing), ())


def test_an_unknown_name_is_not_found_and_the_known_ones_are_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        load(write(tmp_path, works()), ("large",))
    assert "small" in caught.value.hint


def test_named_fixtures_alone_are_taken(tmp_path: Path) -> None:
    folder = write(tmp_path, works(), {**works(), "name": "other"}, benchmark())
    found = load(folder, ("other", "small-benchmark"))
    assert [each.name for each in found.fixtures] == ["other"]
    assert [each.name for each in found.benchmarks] == ["small-benchmark"]


def test_one_broken_file_stops_a_run_of_another_fixture_too(tmp_path: Path) -> None:
    write(tmp_path, works())
    (tmp_path / "odd.json").write_text("{")
    with pytest.raises(InvalidRequest, match=r"odd\.json"):
        load(str(tmp_path), ("small",))


def test_arguments_that_are_to_be_refused_are_not_held_to_the_contract(tmp_path: Path) -> None:
    wrong = {"op": "memory.recall", "args": {"query": 7}, "refused": "invalid_request"}
    assert load(write(tmp_path, fixture(wrong)), ()).fixtures[0].steps[0].args == {"query": 7}


def test_a_kept_value_may_stand_where_no_text_does_and_nothing_else_may(tmp_path: Path) -> None:
    listed = {"op": "skill.list", "keep": {"n": "$.total"}}
    number = {"op": "memory.recall", "args": {"query": "x", "limit": "${n}"}, "expect": EXPECTS}
    assert len(load(write(tmp_path, fixture(listed, number)), ()).fixtures) == 1
    number["args"]["limit"] = "about ${n}"
    with pytest.raises(InvalidRequest, match=r"\$\.steps\[1\]\.args\.limit"):
        load(write(tmp_path, fixture(listed, number)), ())


def test_the_repository_s_own_benchmark_can_be_read() -> None:
    assert own_document("benchmark-household")["schema"] == "beetle.benchmark.v1"
