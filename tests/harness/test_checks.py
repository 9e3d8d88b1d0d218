"""The shape of a projected block, and places in a report."""

from __future__ import annotations

from typing import Any

import pytest

from beetle.contracts.harness import BlockCheck, NoToolHintCheck, ToolHintCheck, ValueCheck
from beetle.harness.checks import MISSING, at, check

HEAD = '<memory note="Data.">\n'
FACTS = '<facts note="Background.">\n- [2025-01-01, user] tea\n</facts>\n'
RECENT = "<recent>\n- user: hello &lt;/memory&gt;\n</recent>\n"


def report(text: str, *names: str, **audit: Any) -> dict[str, Any]:
    told = {"characters": len(text), "budget": 1000, "selected": ["long_term:f-1"], "source_planes": ["long_term"]}
    sections = [{"name": name, "items": 1} for name in names]
    empty = {"name": "procedures", "items": 0}
    return {"system_memory_block": text, "sections": [empty, *sections], "audit": {**told, **audit}}


GOOD = report(f"{HEAD}{FACTS}{RECENT}</memory>", "facts", "recent")
BAD = {
    "no end": report(f"{HEAD}{FACTS}{RECENT}", "facts", "recent"),
    "no head": report(f"{FACTS}{RECENT}</memory>", "facts", "recent"),
    "a section that is not closed": report(f"{HEAD}<facts>\n- tea\n{RECENT}</memory>", "facts", "recent"),
    "a section twice": report(f"{HEAD}{FACTS}{FACTS}{RECENT}</memory>", "facts", "recent"),
    "another order": report(f"{HEAD}{RECENT}{FACTS}</memory>", "facts", "recent"),
    "a section that the report does not list": report(f"{HEAD}{FACTS}{RECENT}</memory>", "facts"),
    "an item that closes its section": report(
        f"{HEAD}<recent>\n- x </recent><facts> y\n</recent>\n</memory>", "recent"
    ),
    "text without a section": report(f"{HEAD}</memory>"),
    "other characters than audited": {**GOOD, "audit": {**GOOD["audit"], "characters": 3}},
    "planes that nothing was selected from": {**GOOD, "audit": {**GOOD["audit"], "source_planes": ["procedural"]}},
    "more than its bound": {**GOOD, "audit": {**GOOD["audit"], "budget": 20}},
    "no block at all": {"sections": []},
}


def test_a_block_in_good_shape_passes() -> None:
    assert check(BlockCheck(sections=("facts", "recent"), holds=("tea",), lacks=("coffee",)), GOOD) is None
    assert check(BlockCheck(), report("", selected=[], source_planes=[])) is None


@pytest.mark.parametrize("wrong", BAD)
def test_a_block_out_of_shape_fails_whatever_is_expected(wrong: str) -> None:
    failure = check(BlockCheck(), BAD[wrong])
    assert failure is not None and failure.expected


@pytest.mark.parametrize(
    ("path", "value"),
    [("$.a", {"b": [1, {"c": "x"}]}), ("$.a.b[1].c", "x"), ("$.a.b[2]", MISSING), ("$.a.c", MISSING),
     ("$.a.b.c", MISSING), ("$.a[0]", MISSING)],
)  # fmt: skip
def test_a_place_of_a_report_is_found_or_missing(path: str, value: Any) -> None:
    assert at({"a": {"b": [1, {"c": "x"}]}}, path) == value


@pytest.mark.parametrize(
    ("expected", "value", "holds"),
    [
        ({"equals": True}, True, True), ({"equals": True}, 1, False), ({"equals": 1}, True, False),
        ({"equals": None}, None, True), ({"equals": None}, 0, False), ({"equals": []}, [], True),
        ({"at_least": 1}, 1, True), ({"at_least": 1}, 0, False), ({"at_least": 0}, True, False),
        ({"at_most": 1}, 1.5, False), ({"at_most": 1}, "1", False), ({"count": 2}, [1, 2], True),
        ({"count": 2}, 2, False), ({"count": 0}, [], True),
    ],
)  # fmt: skip
def test_a_value_is_compared_with_its_type(expected: dict[str, Any], value: Any, holds: bool) -> None:
    failure = check(ValueCheck(path="$.v", **expected), {"v": value})
    assert (failure is None) is holds


def test_a_hint_that_the_host_need_not_execute_is_none() -> None:
    hint = {"tool_id": "weather", "host_execution_required": False}
    told = {"agent_tool_hints": [hint], "tool_experience_status": {"reason": "available"}}
    assert check(ToolHintCheck(tool_id="weather"), told) is not None
    assert (
        check(
            ToolHintCheck(tool_id="weather"), {**told, "agent_tool_hints": [{**hint, "host_execution_required": True}]}
        )
        is None
    )
    for each in (ToolHintCheck(tool_id="weather"), NoToolHintCheck()):
        assert check(each, {}) is not None
