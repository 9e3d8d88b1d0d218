"""memory.recall: any text is a query; planes, times and conversations; what never comes back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.building import CONVERSATION, candidate, candidates, found_texts, message, skill, step, talk, turn, write
from tests.conformance.doors import Door, Plain

OTHER = {"channel_id": "local", "conversation_id": "other"}

PLAIN_TEXTS = [
    "the of and", "a", "\x00", "x\x00pelican", "?!...,;:", "-", "日本語", "カタカナ", "한국어 pelican",
    "\U0001f41e\U0001f41e", "def f(x): return x[1:-1]", "AND", "OR pelican", "NOT pelican", '"', '"pelican', "pel*",
    "*", "NEAR(pelican bird, 3)", "text:pelican", "{text names}: pelican", "^pelican", "(", ")", "pelican)", "'; --",
    "a\\b", "%_", "$1", "scope:s1", "\u202epelican", "e\u0301", "\ufffd", "\ufeff", "-pelican", "+pelican",
    "pelican AND", "when was it", "2024-13-45", "may", "0", "1e999", "<b>pelican</b>", "C++", "x" * 5000,
]  # fmt: skip


def test_any_text_is_a_query_and_none_is_an_error(door: Door) -> None:
    door.prepare("transcript.commit", talk(turn("t1", "the pelican is a bird")))
    for text in PLAIN_TEXTS:
        report = door.call("memory.recall", {"query": text})
        assert isinstance(report["hits"], list), text
        assert text not in {key: value for key, value in report.items() if key != "hits"}.values()
        if door.name != "in_process":
            continue
        assert isinstance(door.call("transcript.search", {"query": text, "view": "host_ui"})["hits"], list), text
        assert isinstance(door.call("memory.project", {"user_query": text})["system_memory_block"], str), text
        assert isinstance(door.call("memory.inspect", {"query": text})["recall_hits"], list), text


@pytest.mark.parametrize("query", ["pel* pelican", "NOT pelican", '"pelican', "text:pelican", "pelican)", "PELICANS"])
def test_query_syntax_is_read_as_words(door: Door, query: str) -> None:
    door.prepare("transcript.commit", talk(turn("t1", "the pelican is a bird")))
    assert found_texts(door.call("memory.recall", {"query": query})) == "the pelican is a bird"


def test_an_empty_query_is_an_invalid_request(door: Door) -> None:
    for op, args in (("memory.recall", {}), ("transcript.search", {"view": "host_ui"})):
        error = door.refused("invalid_request", op, {**args, "query": ""})
        assert "$.args.query" in error.message


def test_a_limit_over_the_ceiling_is_clipped_and_says_so(door: Door) -> None:
    ceiling = door.budgets.recall_limit
    door.prepare("transcript.commit", talk(*(turn(f"t{n}", f"pelican number {n}") for n in range(ceiling + 5))))
    exact = door.call("memory.recall", {"query": "pelican", "limit": ceiling})
    assert (len(exact["hits"]), exact["profile_budget_applied"]) == (ceiling, False)
    clipped = door.call("memory.recall", {"query": "pelican", "limit": ceiling + 1})
    assert (len(clipped["hits"]), clipped["profile_budget_applied"]) == (ceiling, True)
    search = {"query": "pelican", "view": "host_ui", "limit": 2**62}
    assert door.call("transcript.search", search)["profile_budget_applied"] is True
    assert len(door.call("memory.recall", {"query": "pelican"})["hits"]) == 8
    assert len(door.call("memory.recall", {"query": "pelican", "limit": 1})["hits"]) == 1


def both_planes(door: Door) -> None:
    door.prepare("transcript.commit", talk(turn("t1", message("m1", "a pelican ate", actor={"speaker": "Ana"}))))
    door.prepare("memory.write", write(skill("feed the pelican")))


def test_the_fused_list_holds_the_hits_of_every_plane_best_first(door: Door) -> None:
    both_planes(door)
    report = door.call("memory.recall", {"query": "pelican"})
    scores = [hit["score"] for hit in report["hits"]]
    assert scores == sorted(scores, reverse=True)
    assert sorted(hit["plane"] for hit in report["hits"]) == ["evidence", "procedural"]
    assert report["evidence"] == [hit for hit in report["hits"] if hit["plane"] == "evidence"]
    assert report["runtime_skills"] == [hit for hit in report["hits"] if hit["plane"] == "procedural"]
    assert report["evidence"][0]["ref"] == "evidence:local/talk/t1/m1"
    assert report["evidence"][0]["title"] == "Ana"
    assert report["runtime_skills"][0]["ref"] == "procedural:runtime_skill__feed%20the%20pelican"
    assert report["runtime_skills"][0]["title"] == "Title of feed the pelican"
    assert all(hit["why"] for hit in report["hits"])
    for plane in ("agent_skills", "long_term", "thoughts", "chunks", "agent_tool_hints"):
        assert report[plane] == []
    assert "query" not in report


@pytest.mark.parametrize(
    ("planes", "found"),
    [
        (["evidence"], {"evidence"}),
        (["procedural"], {"procedural"}),
        (["procedural", "evidence"], {"evidence", "procedural"}),
        (["chunks"], {"chunks"}),
        (["long_term", "chunks"], {"chunks", "long_term"}),
        (["long_term", "evidence"], {"evidence", "long_term"}),
    ],
)
def test_planes_narrow_what_is_searched(door: Door, planes: list[str], found: set[str]) -> None:
    both_planes(door)
    door.prepare("memory.write", candidates(candidate("c", "The pelican is tame.", privacy="public_runtime")))
    door.prepare("chunk.create", {"content": "The pelican likes fish", "conversation_id": "c"})
    report = door.call("memory.recall", {"query": "pelican", "planes": planes})
    assert {hit["plane"] for hit in report["hits"]} == found
    assert set(report["working_recall"]["planes"]) == found


def test_an_unknown_plane_or_none_is_an_invalid_request(door: Door) -> None:
    door.refused("invalid_request", "memory.recall", {"query": "x", "planes": []})
    error = door.refused("invalid_request", "memory.recall", {"query": "x", "planes": ["evidence", "private"]})
    assert "$.args.planes[1]" in error.message


def months(door: Door) -> None:
    """A pelican in each of January to June."""
    turns = [turn(f"t{n}", f"pelican of month {n}", at=f"2024-0{n}-15T00:00:00Z") for n in range(1, 7)]
    door.prepare("transcript.commit", talk(*turns))


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ({}, "123456"),
        ({"since": "2024-03-15T00:00:00Z"}, "3456"),
        ({"since": "2024-03-15T00:00:00.000001Z"}, "456"),
        ({"until": "2024-03-15T00:00:00Z"}, "123"),
        ({"until": "2024-03-15T02:00:00+02:00"}, "123"),
        ({"since": "2024-02-01T00:00:00Z", "until": "2024-04-30T00:00:00Z"}, "234"),
        ({"as_of": "2024-02-20T00:00:00Z"}, "12"),
        ({"as_of": "2024-02-20T00:00:00Z", "since": "2024-02-01T00:00:00Z"}, "2"),
        ({"as_of": "2024-04-20T00:00:00Z", "until": "2024-01-20T00:00:00Z"}, "1"),
        ({"since": "2030-01-01T00:00:00Z"}, ""),
    ],
    ids=str,
)
def test_times_narrow_what_is_found_ends_included(door: Door, args: Plain, found: str) -> None:
    months(door)
    report = door.call("memory.recall", {"query": "pelican month", **args})
    assert {hit["excerpt"][-1] for hit in report["hits"]} == set(found)


def test_skills_are_recalled_as_they_stood_at_a_time(door: Door) -> None:
    door.prepare("memory.write", write(skill("pelican", content="the old way")))
    then = door.call("skill.detail", {"name": "pelican"})["updated_at"]
    door.prepare("skill.edit", {"name": "pelican", "procedure": "the new way", "edit_reason": "r"})
    query = {"query": "pelican", "planes": ["procedural"]}
    assert "the new way" in found_texts(door.call("memory.recall", query))
    assert "the old way" in found_texts(door.call("memory.recall", {**query, "as_of": then}))
    assert door.call("memory.recall", {**query, "as_of": "2001-01-01T00:00:00Z"})["hits"] == []


def two_talks(door: Door) -> None:
    """The same words in two conversations; the last one committed to is `other`."""
    door.prepare("transcript.commit", talk(turn("t1", "the pelican flew")))
    door.prepare("transcript.commit", talk(turn("t1", "the pelican flew"), conversation=OTHER))


def test_a_conversation_narrows_evidence_and_leaves_the_other_planes(door: Door) -> None:
    two_talks(door)
    door.prepare("memory.write", write(skill("pelican")))
    report = door.call("memory.recall", {"query": "pelican", "conversation": CONVERSATION})
    assert [hit["conversation"] for hit in report["evidence"]] == [CONVERSATION]
    assert len(report["runtime_skills"]) == 1
    nowhere = {"channel_id": "local", "conversation_id": "nowhere"}
    report = door.call("memory.recall", {"query": "pelican", "conversation": nowhere})
    assert (report["evidence"], len(report["runtime_skills"])) == ([], 1)


def current(report: Plain) -> Any:
    return report["working_recall"]["current_conversation"]


def test_the_conversation_last_committed_to_counts_as_current_and_filters_nothing(door: Door) -> None:
    assert current(door.call("memory.recall", {"query": "pelican"})) is None
    two_talks(door)
    report = door.call("memory.recall", {"query": "pelican"})
    assert current(report) == OTHER
    assert [hit["conversation"] for hit in report["hits"]] == [OTHER, CONVERSATION]
    assert "current_conversation" in report["hits"][0]["why"]
    assert "current_conversation" not in report["hits"][1]["why"]


def test_what_a_request_names_comes_before_what_is_remembered(door: Door) -> None:
    two_talks(door)
    named = door.call("memory.recall", {"query": "pelican", "conversation": CONVERSATION})
    assert current(named) == CONVERSATION
    scoped = door.call("memory.recall", {"query": "pelican"}, {"conversation_id": "talk"})
    assert current(scoped) == CONVERSATION
    elsewhere = door.call("memory.recall", {"query": "pelican"}, {"chat_id": "chat-2"})
    assert current(elsewhere) is None
    aliased = door.call("memory.recall", {"query": "pelican"}, {"chat_id": "talk"})
    assert current(aliased) == CONVERSATION


def test_what_was_disabled_masked_or_deleted_never_comes_back(door: Door) -> None:
    said = [turn(f"t{n}", message(f"m{n}", f"pelican {word}")) for n, word in enumerate(("kept", "masked", "deleted"))]
    door.prepare("transcript.commit", talk(*said))
    door.prepare("memory.write", write(skill("pelican-on"), skill("pelican-off"), skill("pelican-gone")))
    door.prepare("transcript.lifecycle", step("mask", "t1"))
    door.prepare("transcript.lifecycle", step("delete_raw", "t2"))
    door.prepare("skill.set_enabled", {"name": "pelican-off", "enabled": False})
    door.prepare("skill.delete", {"name": "pelican-gone"})
    answers = [
        door.call("memory.recall", {"query": "pelican", "limit": 50}),
        door.call("transcript.search", {"query": "pelican", "view": "host_ui"}),
        door.call("memory.inspect", {"query": "pelican"}),
        door.call("memory.project", {"user_query": "pelican"}),
    ]
    for report in answers:
        text = str(report)
        assert "pelican kept" in text
        for gone in ("pelican masked", "pelican deleted", "pelican-off", "pelican-gone"):
            assert gone not in text


def test_a_neighbour_that_a_caller_may_not_see_lends_nothing_and_is_not_found(door: Door) -> None:
    door.prepare(
        "transcript.commit",
        talk(turn("t1", "the pelican"), turn("t2", message("m", "flew away", visibility="soul")), turn("t3", "yes")),
    )
    assert "flew" not in str(door.call("memory.recall", {"query": "pelican flew away"}))
    assert door.call("memory.recall", {"query": "flew"})["hits"] == []


def test_registries_of_the_host_are_named_back_without_experience(door: Door) -> None:
    refs = [{"registry_id": "tools", "fingerprint": "f1"}]
    report = door.call("memory.recall", {"query": "pelican", "tool_registry_refs": refs})
    assert report["tool_experience_status"] == {
        "reason": "no_governed_tool_experience", "registries": ["tools"], "missing": ["tools"], "drifted": [],
    }  # fmt: skip
    assert report["agent_tool_hints"] == []
    assert set(report["timings_ms"]) == {"search", "load", "rank", "total"}
