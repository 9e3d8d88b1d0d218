"""tool_registry.*: compact registries of the host's tools, and the hints that experience with them gives."""

from __future__ import annotations

from typing import Any

import pytest

from tests.building import CONVERSATION, talk, turn
from tests.conformance.doors import Door, InProcess, Plain
from tests.governance.test_sensitive import RESULTS, SCHEMAS, SECRETS

ID = "host-tools"


def tool(tool_id: str = "weather", **more: Any) -> Plain:
    return {
        "tool_id": tool_id, "title": "Weather", "summary": "Looks up the weather.", "schema_fingerprint": "s1",
        "permission_tags": ["network"], "risk_tags": [], **more,
    }  # fmt: skip


def registry(*tools: Plain, **more: Any) -> Plain:
    return {"registry_id": ID, "fingerprint": "f1", "tools": list(tools or (tool(),)), **more}


def told(report: Plain) -> Plain:
    return {name: value for name, value in report.items() if name not in ("lifecycle", "profile_budget_applied")}


def test_a_registry_is_created_replaced_and_left_as_it_is(door: Door) -> None:
    first = door.call("tool_registry.upsert", registry(tool(), tool("mail")))
    assert told(first) == {
        "registry_id": ID, "outcome": "created", "revision": 1, "added": ["weather", "mail"], "removed": [],
        "drifted": [],
    }  # fmt: skip
    again = door.call("tool_registry.upsert", registry(tool(), tool("mail")))
    assert (again["outcome"], again["revision"], again["lifecycle"]["changed"]) == ("unchanged", 1, False)
    other = door.call("tool_registry.upsert", registry(tool("print"), tool(schema_fingerprint="s2"), fingerprint="f2"))
    assert told(other) == {
        "registry_id": ID, "outcome": "replaced", "revision": 2, "added": ["print"], "removed": ["mail"],
        "drifted": ["weather"],
    }  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [{"fingerprint": "f2"}, {"scope": "project"}, {"tools": [tool(title="Rain")]}, {"tools": [tool(risk_tags=["x"])]}],
)
def test_any_change_is_a_revision(door: Door, change: Plain) -> None:
    door.prepare("tool_registry.upsert", registry())
    report = door.call("tool_registry.upsert", registry(**change))
    assert (report["outcome"], report["revision"], report["drifted"]) == ("replaced", 2, [])


def test_a_registry_is_shown_as_it_was_given(door: Door) -> None:
    tools = [tool("b"), tool("a", summary="", permission_tags=["x", "y"])]
    door.prepare("tool_registry.upsert", registry(*tools, scope="project"))
    report = door.call("tool_registry.get", {"registry_id": ID})
    assert report["tools"] == tools
    shown = report["registry"]
    assert (shown["registry_id"], shown["fingerprint"], shown["scope"]) == (ID, "f1", "project")
    assert (shown["revision"], shown["tools"], shown["created_at"]) == (1, 2, shown["updated_at"])


def test_registries_are_listed_by_id_page_by_page(door: Door) -> None:
    for name in ("b", "c", "a"):
        door.prepare("tool_registry.upsert", {**registry(), "registry_id": name})
    first = door.call("tool_registry.list", {"limit": 2})
    assert [each["registry_id"] for each in first["registries"]] == ["a", "b"]
    assert (first["total"], first["has_more"]) == (3, True)
    second = door.call("tool_registry.list", {"limit": 2, "cursor": first["next_cursor"]})
    assert [each["registry_id"] for each in second["registries"]] == ["c"]
    assert (second["total"], second["has_more"], second["next_cursor"]) == (3, False, None)


def test_a_deleted_registry_is_gone(door: Door) -> None:
    door.prepare("tool_registry.upsert", registry())
    report = door.call("tool_registry.delete", {"registry_id": ID})
    assert (report["outcome"], report["revision"], report["removed"]) == ("deleted", 1, ["weather"])
    assert door.call("tool_registry.list", {})["registries"] == []
    for operation in ("tool_registry.get", "tool_registry.delete"):
        assert "tool-registry list" in door.refused("not_found", operation, {"registry_id": ID}).hint
    made = door.call("tool_registry.upsert", registry())
    assert (made["outcome"], made["revision"]) == ("created", 1)


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("fingerprint", {"fingerprint": ""}),
        ("fingerprint", {"fingerprint": "a\nb"}),
        ("scope", {"scope": ""}),
        ("registry_id", {"registry_id": ""}),
        ("tools[0].tool_id", {"tools": [tool("")]}),
        ("tools[0].title", {"tools": [tool(title=" ")]}),
        ("tools[0].summary", {"tools": [tool(summary="x" * 513)]}),
        ("tools[0].schema_fingerprint", {"tools": [tool(schema_fingerprint="")]}),
        ("tools[1].tool_id", {"tools": [tool(), tool()]}),
        ("tools[0].permission_tags[0]", {"tools": [tool(permission_tags=[""])]}),
        ("tools[0].input_schema", {"tools": [tool(input_schema={"type": "object"})]}),
        ("tools", {"tools": [tool(f"t{n}") for n in range(513)]}),
    ],
)
def test_a_wrong_field_is_refused_with_its_path(door: Door, path: str, change: Plain) -> None:
    error = door.refused("invalid_request", "tool_registry.upsert", registry(**change))
    assert f"$.args.{path}" in f"{error.message} {error.details.get('path', '')}"
    assert door.call("tool_registry.list", {})["total"] == 0


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("registry_id", SECRETS["github"]),
        ("fingerprint", '{"properties": {"city": {"type": "string"}}}'),
        ("scope", SECRETS["gitlab"]),
        ("tools[0].tool_id", SECRETS["stripe"]),
        ("tools[0].title", SECRETS["assigned"]),
        ("tools[0].summary", SCHEMAS["json schema"]),
        ("tools[0].schema_fingerprint", '{"type": "object", "properties": {}}'),
        ("tools[0].permission_tags[0]", SECRETS["github"]),
        ("tools[0].risk_tags[0]", '{"$schema": "x"}'),
    ],
)
def test_a_schema_or_a_secret_is_refused_wherever_it_stands(door: Door, path: str, text: str) -> None:
    changed: Plain = {path: text}
    if path.startswith("tools"):
        name = path.removeprefix("tools[0].").removesuffix("[0]")
        changed = {"tools": [{**tool(), name: [text] if name.endswith("tags") else text}]}
    error = door.refused("privacy_denied", "tool_registry.upsert", registry(**changed))
    assert f"$.args.{path}" in error.message and error.hint
    assert text not in f"{error.message} {error.hint} {error.details}"
    assert door.call("tool_registry.list", {})["total"] == 0


@pytest.mark.parametrize("name", sorted({**SCHEMAS, **RESULTS}))
def test_schemas_and_results_of_every_sort_are_no_summary(in_process: InProcess, name: str) -> None:
    text = {**SCHEMAS, **RESULTS}[name]
    key = "privacy_denied" if len(text) <= 512 else "invalid_request"
    in_process.refused(key, "tool_registry.upsert", registry(tool(summary=text)))


def test_experience_becomes_a_hint_and_goes_with_its_registry(door: Door) -> None:
    door.prepare("tool_registry.upsert", registry())
    door.prepare("transcript.commit", talk(turn("t1", "What is the weather?"), turn("t2", "And now?")))
    scope = {"chat_id": CONVERSATION["conversation_id"]}
    observation = {"tool_id": "weather", "schema_fingerprint": "s1", "outcome": "succeeded", "summary": "it was fine"}
    for turn_id in ("t1", "t2"):
        feedback = {
            "registry_ref": {"registry_id": ID, "fingerprint": "f1"}, "turn_id": turn_id,
            "observations": [observation],
        }  # fmt: skip
        door.prepare("memory.write", {"kind": "agent_tool_usage_feedback", "feedback": feedback}, scope)
    for operation, query in (("memory.recall", {"query": "x"}), ("memory.project", {"user_query": "x"})):
        report = door.call(operation, {**query, "tool_registry_refs": [{"registry_id": ID, "fingerprint": "f1"}]})
        (hint,) = report["agent_tool_hints"]
        assert (hint["tool_id"], hint["registry_id"], hint["schema_fingerprint"]) == ("weather", ID, "s1")
        assert hint["host_execution_required"] is True and hint["permission_tags"] == ["network"]
        assert report["tool_experience_status"]["reason"] == "available"
        drifted = door.call(operation, {**query, "tool_registry_refs": [{"registry_id": ID, "fingerprint": "f2"}]})
        assert (drifted["agent_tool_hints"], drifted["tool_experience_status"]["reason"]) == ([], "registry_drifted")
    door.prepare("tool_registry.delete", {"registry_id": ID})
    gone = door.call("memory.recall", {"query": "x"})
    assert (gone["agent_tool_hints"], gone["tool_experience_status"]["reason"]) == ([], "registry_missing")


def test_a_registration_with_an_idempotency_key_happens_once(door: Door) -> None:
    first = door.call("tool_registry.upsert", registry(), idempotency_key="k")
    door.prepare("tool_registry.delete", {"registry_id": ID})
    assert door.call("tool_registry.upsert", registry(), idempotency_key="k") == first
    assert door.call("tool_registry.list", {})["total"] == 0
    door.refused("conflict", "tool_registry.upsert", registry(fingerprint="f2"), idempotency_key="k")
