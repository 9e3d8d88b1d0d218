"""Hints from governed experience with the host's tools: when there are any, of what, and when there are none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.errors import InvalidRequest
from beetle.runtime.areas.tools import MOST_HINTS
from beetle.sdk import MemoryRuntime
from tests.governance.judging import JudgedStore, Plain, message

MINUTE = 1 / (24 * 60)
REGISTRY = "host-tools"
CANARY = "heliotrope7431"


@pytest.fixture
def place() -> Iterator[JudgedStore]:
    made = JudgedStore()
    yield made
    made.close()


def tool(tool_id: str = "weather", schema: str = "s1", **more: Any) -> Plain:
    return {
        "tool_id": tool_id, "title": tool_id.title(), "summary": f"Looks up the {tool_id}.",
        "schema_fingerprint": schema, "permission_tags": ["network"], "risk_tags": ["low"], **more,
    }  # fmt: skip


def register(place: JudgedStore, *tools: Plain, fingerprint: str = "f1", scope: str = "global", **where: Any) -> Plain:
    args = {
        "registry_id": where.pop("registry_id", REGISTRY), "fingerprint": fingerprint, "scope": scope,
        "tools": list(tools or (tool(),)),
    }  # fmt: skip
    return place.call("tool_registry.upsert", args, **where)


def use(place: JudgedStore, turn_id: str | None = None, outcome: str = "succeeded", **more: Any) -> None:
    """One feedback call with one observation, of a turn that is there."""
    where = {name: more.pop(name) for name in ("owner", "chat") if name in more}
    registry = {
        "registry_id": more.pop("registry_id", REGISTRY),
        "fingerprint": "f1",
        "scope": more.pop("scope", "global"),
    }
    observation = {
        "tool_id": "weather", "schema_fingerprint": "s1", "outcome": outcome, "summary": f"{CANARY} was looked up",
        **more,
    }  # fmt: skip
    if turn_id is not None and (where.get("owner", "owner"), turn_id) not in place.turns:
        said(place, turn_id, **where)
    feedback = {"registry_ref": registry, "turn_id": turn_id, "observations": [observation]}
    place.call("memory.write", {"kind": "agent_tool_usage_feedback", "feedback": feedback}, **where)


def ref(fingerprint: str = "f1", scope: str = "global", registry_id: str = REGISTRY) -> Plain:
    return {"registry_id": registry_id, "fingerprint": fingerprint, "scope": scope}


def asked(place: JudgedStore, *refs: Plain, **where: Any) -> tuple[list[str], str]:
    """The hints' tools, and the reason; recall and projection must say the same."""
    recalled = place.call("memory.recall", {"query": "weather", "tool_registry_refs": list(refs)}, **where)
    projected = place.call("memory.project", {"user_query": "weather", "tool_registry_refs": list(refs)}, **where)
    for name in ("agent_tool_hints", "tool_experience_status"):
        assert recalled[name] == projected[name]
    assert (recalled["tool_experience_status"]["reason"] == "available") == bool(recalled["agent_tool_hints"])
    return [each["tool_id"] for each in recalled["agent_tool_hints"]], recalled["tool_experience_status"]["reason"]


def said(place: JudgedStore, *turn_ids: str, visibility: str = "shared", **where: Any) -> None:
    for turn_id in turn_ids:
        place.talk(
            message(f"{turn_id}-m", content=f"What of {turn_id}?", visibility=visibility), turn_id=turn_id, **where
        )


def known(place: JudgedStore) -> None:
    """A registry, and experience with its one tool in two turns."""
    register(place)
    said(place, "t1", "t2")
    use(place, "t1")
    use(place, "t2")


NONE = ([], "no_governed_tool_experience")
WEATHER = (["weather"], "available")


def test_a_hint_says_what_the_seed_says_it_does(place: JudgedStore) -> None:
    known(place)
    report = place.call("memory.recall", {"query": "weather"})
    assert report["agent_tool_hints"] == [
        {
            "tool_id": "weather", "registry_id": REGISTRY, "schema_fingerprint": "s1",
            "reason": "Succeeded in 2 of its last 2 uses, in 2 sittings; last on 2025-06-15.",
            "permission_tags": ["network"], "risk_tags": ["low"], "host_execution_required": True,
            "score": 0.75, "registry_fingerprint": "f1", "registry_scope": "global",
        }
    ]  # fmt: skip
    assert report["tool_experience_status"] == {
        "reason": "available", "registries": [REGISTRY], "missing": [], "drifted": [],
    }  # fmt: skip


def test_without_experience_there_are_no_hints_whatever_is_registered(place: JudgedStore) -> None:
    assert asked(place) == asked(place, ref()) == NONE
    register(place)
    assert asked(place) == asked(place, ref()) == NONE


def test_one_success_is_no_experience_and_two_in_one_turn_neither(place: JudgedStore) -> None:
    register(place)
    said(place, "t1", "t2")
    use(place, "t1")
    assert asked(place) == NONE
    use(place, "t1")
    place.sleep(1)
    use(place, "t1")
    assert asked(place) == NONE
    use(place, "t2")
    assert asked(place) == WEATHER


def test_without_turns_it_takes_two_calls_a_minute_apart(place: JudgedStore) -> None:
    register(place)
    use(place)
    use(place)
    assert asked(place) == NONE
    place.sleep(MINUTE)
    use(place)
    assert asked(place) == WEATHER


@pytest.mark.parametrize("outcome", ["failed", "denied", "aborted"])
def test_what_did_not_succeed_is_no_experience_and_lowers_what_there_is(place: JudgedStore, outcome: str) -> None:
    register(place)
    for turn_id in ("t1", "t2", "t3"):
        use(place, turn_id, outcome)
    assert asked(place) == NONE
    use(place, "t4")
    use(place, "t5")
    (hint,) = place.call("memory.recall", {"query": "x"})["agent_tool_hints"]
    assert hint["score"] == round(3 / 7, 4) and hint["reason"].startswith("Succeeded in 2 of its last 5 uses")


def test_hints_come_by_score_and_then_by_the_last_success(place: JudgedStore) -> None:
    register(place, tool("a"), tool("b"), tool("c"), tool("d"))
    for name in ("c", "a", "b"):
        for turn_id in ("t1", "t2"):
            use(place, turn_id, tool_id=name)
    use(place, "t3", "failed", tool_id="b")
    use(place, "t3", tool_id="d")
    assert asked(place) == (["a", "c", "b"], "available")


def test_many_hints_are_clipped_and_told(place: JudgedStore) -> None:
    names = [f"tool{n:02}" for n in range(MOST_HINTS + 2)]
    register(place, *map(tool, names))
    for name in names:
        for turn_id in ("t1", "t2"):
            use(place, turn_id, tool_id=name)
    report = place.call("memory.recall", {"query": "x"})
    assert len(report["agent_tool_hints"]) == MOST_HINTS and report["profile_budget_applied"]


def test_only_the_last_uses_count_so_that_what_was_mended_recovers(place: JudgedStore) -> None:
    known(place)
    for number in range(40):
        use(place, f"bad{number}", "failed")
    assert asked(place) == NONE
    for number in range(40):
        use(place, f"good{number}")
    (hint,) = place.call("memory.recall", {"query": "x"})["agent_tool_hints"]
    assert hint["score"] > 0.95


# Drift and absence


def test_another_schema_stales_the_experience_and_the_old_one_revives_it(place: JudgedStore) -> None:
    known(place)
    report = register(place, tool(schema="s2"), fingerprint="f2")
    assert (report["outcome"], report["drifted"], report["revision"]) == ("replaced", ["weather"], 2)
    assert asked(place) == asked(place, ref("f2")) == ([], "experience_stale")
    use(place, "t3", schema_fingerprint="s2")
    assert asked(place) == ([], "experience_stale")
    register(place, fingerprint="f3")
    assert asked(place, ref("f3")) == WEATHER


def test_a_tool_that_the_registry_has_no_more_is_stale(place: JudgedStore) -> None:
    known(place)
    assert register(place, tool("another"), fingerprint="f2")["removed"] == ["weather"]
    assert asked(place) == ([], "experience_stale")


@pytest.mark.parametrize("named", [ref("f2"), ref(scope="project"), ref("F1"), ref(fingerprint="")])
def test_a_ref_that_is_not_what_is_registered_has_drifted(place: JudgedStore, named: Plain) -> None:
    known(place)
    assert asked(place, named) == ([], "registry_drifted")
    report = place.call("memory.recall", {"query": "x", "tool_registry_refs": [named]})
    assert report["tool_experience_status"]["drifted"] == [REGISTRY]
    assert asked(place, named, ref()) == WEATHER, "one of its two namings holds"


def test_a_ref_without_experience_is_no_governed_experience_whatever_else_is_wrong(place: JudgedStore) -> None:
    register(place)
    assert asked(place, ref("f2")) == asked(place, ref(registry_id="unknown")) == NONE


def test_a_missing_registry_hides_its_experience_and_a_new_one_brings_it_back(place: JudgedStore) -> None:
    known(place)
    place.call("tool_registry.delete", {"registry_id": REGISTRY})
    assert asked(place) == asked(place, ref()) == ([], "registry_missing")
    assert len(place.rows("SELECT * FROM tool_observation")) == 2
    register(place)
    assert asked(place) == WEATHER


def test_feedback_alone_registers_nothing(place: JudgedStore) -> None:
    use(place, "t1")
    use(place, "t2")
    assert asked(place) == ([], "registry_missing")


def test_registries_that_are_named_are_the_only_ones_that_count(place: JudgedStore) -> None:
    known(place)
    register(place, tool("mail"), registry_id="other")
    assert asked(place, ref(registry_id="other")) == NONE
    use(place, "t1", registry_id="other", tool_id="mail")
    use(place, "t2", registry_id="other", tool_id="mail")
    assert asked(place, ref(registry_id="other")) == (["mail"], "available")
    assert asked(place, ref()) == WEATHER
    assert sorted(asked(place)[0]) == ["mail", "weather"]
    assert sorted(asked(place, ref(), ref(registry_id="other"), ref(registry_id="gone"))[0]) == ["mail", "weather"]


def test_a_tool_of_another_registry_of_the_same_name_and_schema_is_another_tool(place: JudgedStore) -> None:
    register(place, registry_id="other")
    known(place)
    assert asked(place, ref(registry_id="other")) == NONE


def test_a_registry_of_a_scope_counts_when_it_is_named(place: JudgedStore) -> None:
    register(place, scope="project")
    use(place, "t1", scope="project")
    use(place, "t2", scope="project")
    assert asked(place, ref(scope="project")) == WEATHER
    assert asked(place) == NONE
    register(place, scope="global", fingerprint="f2")
    assert asked(place) == ([], "experience_stale"), "what was seen in a project does not hold everywhere"


def test_experience_of_one_space_is_none_in_another(place: JudgedStore) -> None:
    known(place)
    register(place, owner="other")
    assert asked(place, owner="other") == NONE
    use(place, "t1", owner="other")
    assert asked(place, owner="other") == NONE and asked(place) == WEATHER


# What may speak


@pytest.mark.parametrize("action", ["mask", "delete_raw"])
def test_a_turn_that_is_masked_or_deleted_does_not_speak(place: JudgedStore, action: str) -> None:
    known(place)
    place.lifecycle(action, "t2")
    assert asked(place) == NONE
    if action == "mask":
        place.lifecycle("unmask", "t2")
        assert asked(place) == WEATHER


def test_an_archived_turn_still_speaks(place: JudgedStore) -> None:
    known(place)
    place.lifecycle("archive", "t1", "t2")
    assert asked(place) == WEATHER


@pytest.mark.parametrize(("visibility", "expected"), [("private", WEATHER), ("soul", NONE), ("backend", WEATHER)])
def test_a_turn_speaks_to_who_may_see_it(place: JudgedStore, visibility: str, expected: tuple[list[str], str]) -> None:
    """The caller is the space's own agent, who sees private material and never the soul's."""
    register(place)
    said(place, "t1", "t2", visibility=visibility)
    use(place, "t1")
    use(place, "t2")
    assert asked(place) == expected
    assert asked(place, kind="device") == (NONE if visibility != "backend" else WEATHER)


def test_no_word_of_an_observation_is_in_a_hint(place: JudgedStore) -> None:
    known(place)
    for op, args in (("memory.recall", {"query": CANARY}), ("memory.project", {"user_query": CANARY})):
        assert CANARY not in str(place.call(op, args))


# A turn that is not there


@pytest.mark.parametrize("where", [{}, {"owner": "other"}, {"chat": "elsewhere"}])
def test_feedback_about_a_turn_that_is_not_there_is_refused_with_its_place(place: JudgedStore, where: Plain) -> None:
    register(place)
    said(place, "t0")
    if where:
        said(place, "t1")
    observation = {"tool_id": "weather", "schema_fingerprint": "s1", "outcome": "succeeded", "summary": CANARY}
    feedback = {"registry_ref": ref(), "turn_id": "t1", "observations": [observation]}
    error = place.refused(
        "invalid_request", "memory.write", {"kind": "agent_tool_usage_feedback", "feedback": feedback}, **where
    )
    assert error.details["path"] == "$.args.feedback.turn_id" and "commit the turn first" in error.hint
    assert place.rows("SELECT * FROM tool_observation") == [] and asked(place) == NONE
    place.call("memory.write", {"kind": "agent_tool_usage_feedback", "feedback": {**feedback, "turn_id": "t0"}})
    assert len(place.rows("SELECT * FROM tool_observation")) == 1


# The builder, and inspection


def test_a_registry_given_to_the_builder_is_there_when_the_store_is_open(tmp_path: Path) -> None:
    builder = MemoryRuntime.builder().store(str(tmp_path / "m.db")).profile("dev-full")
    builder = builder.agent_tool_registry(registry_id=REGISTRY, fingerprint="f1", tools=[tool()])
    with builder.open() as memory:
        assert memory.get_agent_tool_registry(registry_id=REGISTRY).registry.revision == 1
    with builder.open() as memory:
        assert memory.list_agent_tool_registries().registries[0].revision == 1, "the same again changes nothing"


def test_a_registry_that_is_refused_leaves_no_runtime_open(tmp_path: Path) -> None:
    builder = MemoryRuntime.builder().store(str(tmp_path / "m.db")).profile("dev-full")
    with pytest.raises(InvalidRequest, match="fingerprint"):
        builder.agent_tool_registry(registry_id=REGISTRY, tools=[])
    twice = builder.agent_tool_registry(registry_id=REGISTRY, fingerprint="f1", tools=[tool(), tool()])
    for _ in range(2):
        with pytest.raises(InvalidRequest, match="occurs twice"):
            twice.open()
    with builder.open() as memory:
        assert memory.list_agent_tool_registries().total == 0


def test_an_inspection_counts_registries_and_what_is_known(place: JudgedStore) -> None:
    def inspected() -> Plain:
        return place.call("memory.inspect", {})["tool_registries"]

    assert inspected() == {"registries": 0, "tools": 0, "experienced": 0, "reason": "no_governed_tool_experience"}
    known(place)
    register(place, tool("a"), tool("b"), registry_id="other", scope="project")
    assert inspected() == {"registries": 2, "tools": 3, "experienced": 1, "reason": "available"}
    register(place, tool(schema="s2"), fingerprint="f2")
    assert inspected() == {"registries": 2, "tools": 3, "experienced": 0, "reason": "experience_stale"}
    assert place.call("memory.inspect", {}, owner="other")["tool_registries"]["registries"] == 0


def test_the_words_of_a_replaced_and_a_deleted_registry_are_erased(tmp_path: Path) -> None:
    entry = {**tool(), "summary": CANARY}
    with MemoryRuntime.open(str(tmp_path / "m.db"), profile="dev-full", backend="sqlite") as memory:
        memory.upsert_agent_tool_registry(registry_id=REGISTRY, fingerprint="f1", tools=[entry])
        memory.upsert_agent_tool_registry(registry_id=REGISTRY, fingerprint="f2", tools=[tool()])
        memory.upsert_agent_tool_registry(registry_id="other", fingerprint="f1", tools=[entry])
        memory.delete_agent_tool_registry(registry_id="other")
    assert [each.name for each in tmp_path.iterdir() if CANARY.encode() in each.read_bytes()] == []


def test_the_log_of_a_registry_holds_ids_and_counts_alone(place: JudgedStore) -> None:
    register(place, {**tool(), "summary": CANARY, "title": CANARY})
    register(place, {**tool(schema="s2"), "title": CANARY}, fingerprint="f2")
    place.call("tool_registry.delete", {"registry_id": REGISTRY})
    assert place.events() == ["tool_registry_created", "tool_registry_replaced", "tool_registry_deleted"]
    assert CANARY not in str(place.rows("SELECT * FROM event_log"))
