from __future__ import annotations

import ast
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import beetle
from beetle.contracts.codec import convert_request
from beetle.contracts.errors import PayloadTooLarge
from beetle.contracts.memory import MemoryProjectionRequest, MemoryRecallRequest, ProceduralWrite
from beetle.contracts.operations import OPERATIONS
from beetle.contracts.transcript import MemoryTranscriptCommitRequest, MemoryTranscriptTimelineRequest
from beetle.runtime.host.profile import Budgets, load_profile
from beetle.runtime.pipeline.budgets import Bound, admit, bounds

BUDGETS = load_profile("profile-linux-device-compact-memory").budgets
MODEST = settings(deadline=None, max_examples=60)


def small(**changes: int) -> Budgets:
    return msgspec.structs.replace(BUDGETS, **changes)


def commit(*contents: str, refs: int = 0) -> MemoryTranscriptCommitRequest:
    turn = {
        "turn_id": "t",
        "at": "2024-05-01T10:00:00Z",
        "messages": [{"message_id": f"m{n}", "role": "user", "content": text} for n, text in enumerate(contents)],
        "host_refs": [{"kind": "k", "ref_id": f"{n}"} for n in range(refs)],
        "attrs": [{"key": "k", "value": text} for text in contents],
    }
    return convert_request({"conversation": {"conversation_id": "c"}, "turns": [turn]}, MemoryTranscriptCommitRequest)


@MODEST
@given(st.integers(1, 2**62))
def test_a_number_over_its_ceiling_is_lowered_and_said(limit: int) -> None:
    request, clipped = admit(MemoryRecallRequest(query="x", limit=limit), BUDGETS)
    assert request.limit == min(limit, BUDGETS.recall_limit)
    assert clipped is (limit > BUDGETS.recall_limit)
    assert request.query == "x"


def test_a_request_within_its_budgets_is_handed_on_as_it_is() -> None:
    request = MemoryRecallRequest(query="x")
    assert admit(request, BUDGETS) == (request, False)
    assert admit(request, BUDGETS)[0] is request


@MODEST
@given(st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=40), st.integers(1, 120))
def test_a_text_is_measured_in_the_unit_of_its_budget_and_never_cut(text: str, most: int) -> None:
    for size, check in (
        (len(text), lambda: admit(MemoryRecallRequest(query=text), small(query_chars=most))),
        (len(text.encode()), lambda: admit(commit(text), small(message_content_bytes=most))),
    ):
        if size <= most:
            check()
            continue
        with pytest.raises(PayloadTooLarge) as caught:
            check()
        assert caught.value.details["maximum"] == most
        assert text not in caught.value.message or len(text) < 10


@pytest.mark.parametrize(
    ("request_", "changes", "path", "limit"),
    [
        (commit("a", "toolong"), {"message_content_bytes": 3}, "$.args.turns[0].messages[1].content", None),
        (commit("a", refs=3), {"host_refs_per_turn": 2}, "$.args.turns[0].host_refs", None),
        (MemoryProjectionRequest(user_query="long"), {"query_chars": 3}, "$.args.user_query", "query_chars"),
    ],
    ids=["content", "refs", "query"],
)
def test_what_is_too_large_is_named_by_path_and_budget(
    request_: Any, changes: dict[str, int], path: str, limit: str | None
) -> None:
    with pytest.raises(PayloadTooLarge) as caught:
        admit(request_, small(**changes))
    details = caught.value.details
    assert details["path"] == path
    assert details["limit"] == (limit or next(iter(changes)))
    assert details["maximum"] == next(iter(changes.values()))
    assert details["actual"] > details["maximum"]
    assert path in caught.value.message


def test_an_attr_s_value_is_content_too() -> None:
    request = commit("ab")
    assert [each.name for each in bounds(type(request.turns[0].attrs[0]))] == ["value"]


def test_a_skill_s_text_stands_deep_and_is_measured() -> None:
    skill = {"name": "n", "topic": "t", "title": "t", "summary": "s", "content": "12345"}
    request = convert_request({"kind": "procedural", "source": "manual", "writes": [skill]}, ProceduralWrite)
    admit(request, small(skill_text_bytes=5))
    with pytest.raises(PayloadTooLarge):
        admit(request, small(skill_text_bytes=4))


@pytest.mark.parametrize("row", OPERATIONS, ids=lambda row: row.name)
def test_every_mark_of_a_request_names_a_budget_that_exists(row: Any) -> None:
    def walk(kind: type[msgspec.Struct], seen: set[type]) -> None:
        if kind in seen:
            return
        seen.add(kind)
        for bound in bounds(kind):
            for name in (bound.budget, bound.clip):
                assert name is None or isinstance(getattr(BUDGETS, name), int)

    for kind in row.kinds:
        walk(kind, set())


def test_bounds_are_found_in_unions_and_beneath() -> None:
    assert Bound("limit", None, "transcript_page_turns", False) in bounds(MemoryTranscriptTimelineRequest)
    (turns,) = [each for each in bounds(MemoryTranscriptCommitRequest) if each.name == "turns"]
    assert (turns.budget, turns.beneath) == ("commit_turns", True)


def enforced() -> dict[str, set[str]]:
    """Budget to the files that read it from a profile's budgets, or name it on a request's field."""
    found: dict[str, set[str]] = {name: set() for name in Budgets.__struct_fields__}
    for path in sorted(Path(beetle.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Attribute(value=ast.Name(of) | ast.Attribute(attr=of), attr=name) if of.endswith("budgets"):
                    pass
                case ast.Call(func=ast.Name("budgeted" | "clipped"), args=[ast.Constant(str(name))]):
                    pass
                case _:
                    continue
            found.setdefault(name, set()).add(path.name)
    return found


def test_every_budget_is_met_somewhere_and_says_what_reaching_it_does() -> None:
    sites = enforced()
    assert [name for name in Budgets.__struct_fields__ if not sites[name]] == []
    asked = {value for row in OPERATIONS for kind in row.kinds for value in budgets_named(kind)}
    for field in msgspec.structs.fields(Budgets):
        (says,) = (mark for mark in field.type.__metadata__ if mark.description)
        assert bool(says.extra["then"]) is (field.name not in asked), field.name


def budgets_named(kind: Any) -> Iterator[str]:
    """The budgets that the fields of a struct name, at any depth."""
    for mark in getattr(kind, "__metadata__", ()):
        yield from (getattr(mark, "extra", None) or {}).values()
    hints = typing.get_type_hints(kind, include_extras=True) if hasattr(kind, "__struct_fields__") else {}
    for part in (*typing.get_args(kind), *hints.values()):
        yield from budgets_named(part)
