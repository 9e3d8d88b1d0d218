"""Procedural memory: memory.write and the five skill operations."""

from __future__ import annotations

from typing import Any

import pytest

from tests.building import PREFIX, candidate, candidates, found_texts, skill, talk, turn, write
from tests.conformance.doors import Door, Plain


def detail(door: Door, name: str) -> Plain:
    return door.call("skill.detail", {"name": name})


def listed(door: Door, **args: Any) -> list[str]:
    return [each["name"].removeprefix(PREFIX) for each in door.call("skill.list", args)["runtime_skills"]]


def test_a_skill_s_name_gets_its_prefix_once(door: Door) -> None:
    report = door.call("memory.write", write(skill("plain"), skill(f"{PREFIX}given")))
    assert report["accepted"] == 2
    assert report["writes"] == [
        {"name": f"{PREFIX}plain", "outcome": "created", "revision": 1, "reason": None},
        {"name": f"{PREFIX}given", "outcome": "created", "revision": 1, "reason": None},
    ]
    assert detail(door, "given")["name"] == detail(door, f"{PREFIX}given")["name"] == f"{PREFIX}given"


def test_other_content_makes_a_revision_and_the_same_content_changes_nothing(door: Door) -> None:
    door.prepare("memory.write", write(skill("brew")))
    same = door.call("memory.write", write(skill("brew", observed_at=1_700_000_000), source="post_turn"))
    assert same["writes"][0] == {"name": f"{PREFIX}brew", "outcome": "unchanged", "revision": 1, "reason": None}
    assert same["lifecycle"]["changed"] is False
    changes: list[dict[str, Any]] = [
        {"title": "T"}, {"topic": "O"}, {"summary": "S"}, {"content": "C"}, {"citations": ["a book"]}
    ]  # fmt: skip
    for number, change in enumerate(changes, 2):
        report = door.call("memory.write", write(skill("brew", **change)))
        assert (report["writes"][0]["outcome"], report["writes"][0]["revision"]) == ("revised", number)
        assert report["lifecycle"]["changed"] is True


def test_a_write_makes_all_of_its_skills_or_none(door: Door) -> None:
    too_long = skill("n" * 250)
    door.refused("invalid_request", "memory.write", write(skill("fine"), too_long))
    assert listed(door) == []


@pytest.mark.parametrize("field", ["topic", "title", "summary", "content", "name"])
def test_the_texts_of_a_skill_are_not_blank(door: Door, field: str) -> None:
    blank = "" if field == "name" else " \n\t "
    error = door.refused("invalid_request", "memory.write", write({**skill("x"), field: blank}))
    assert f"$.args.writes[0].{field}" in error.message


def test_the_history_of_a_skill_is_shown_whole(door: Door) -> None:
    first = skill("brew", content="grind\nboil", source_chat_id="chat-9", observed_at=1_700_000_000)
    door.prepare("memory.write", write(first, source="replay_promotion"))
    door.prepare("memory.write", write(skill("brew", content="grind\nboil slowly")))
    edit = {"name": "brew", "procedure": "grind fine\nboil slowly", "edit_reason": "taste"}
    edited = door.call("skill.edit", edit)
    assert (edited["name"], edited["outcome"], edited["revision"]) == (f"{PREFIX}brew", "revised", 3)
    report = detail(door, "brew")
    assert (report["revision"], report["enabled"], report["retired"]) == (3, True, False)
    assert report["procedure"] == "grind fine\nboil slowly"
    assert report["title"] == "Title of brew"
    assert report["ref"] == f"procedural:{PREFIX}brew"
    lineage = [(each["revision"], each["source"], each["edit_reason"]) for each in report["lineage"]]
    assert lineage == [(1, "replay_promotion", None), (2, "manual", None), (3, "edit", "taste")]
    assert (report["lineage"][0]["observed_at"], report["lineage"][0]["source_chat_id"]) == (1_700_000_000, "chat-9")
    assert report["lineage"][1]["source_chat_id"] == "chat-1"
    assert [(each["from_revision"], each["to_revision"]) for each in report["strategy_diffs"]] == [(1, 2), (2, 3)]
    assert "-boil\n+boil slowly" in report["strategy_diffs"][0]["diff"]
    assert "-grind\n+grind fine" in report["strategy_diffs"][1]["diff"]
    for part in ("Title of brew", "Summary of brew", "topic of brew", "grind fine", f"{PREFIX}brew"):
        assert part in report["raw_content"]


def test_citations_that_are_evidence_refs_become_derived_refs(door: Door) -> None:
    door.prepare("transcript.commit", talk(turn("t 1", "hello")))
    here, gone = "evidence:local/talk/t%201/t%201.0", "evidence:local/talk/nowhere"
    cited = [here, gone, "a book, page 9", "procedural:runtime_skill__x", "evidence:too/few", here]
    error = door.refused("invalid_request", "memory.write", write(skill("y"), skill("x", citations=cited)))
    assert error.details["path"] == "$.args.writes[1].citations[1]" and "commit the turn first" in error.hint
    assert door.call("skill.list", {})["runtime_skills"] == [], "all of them or none"
    # What is brought from elsewhere may cite what did not come with it.
    report = door.call("memory.write", {**write(skill("x", citations=cited)), "source": "import"})
    derived = [{"derived": f"procedural:{PREFIX}x/1", "evidence": ref, "relation": "cites"} for ref in (here, gone)]
    assert report["derived_refs"] == derived
    shown = detail(door, "x")
    assert shown["derived_refs"] == derived
    assert [(each["text"], each["ref"], each["resolves"]) for each in shown["citations"]] == [
        (here, here, True),
        (gone, gone, False),
        ("a book, page 9", None, None),
        ("procedural:runtime_skill__x", "procedural:runtime_skill__x", True),
        ("evidence:too/few", None, None),
        (here, here, True),
    ]


def test_a_cited_fact_is_there_for_who_may_see_it(door: Door) -> None:
    """The own agent of a space sees its private facts, where a door is one; a deleted fact is there as a tombstone."""

    def learn(content: str, privacy: str) -> str:
        one = candidate("c", content, topic=content, privacy=privacy)
        return door.prepare("memory.write", candidates(one))["outcomes"][0]["ref"]

    shared, gone = learn("the kettle", "shared_with_subject"), learn("the teapot", "shared_with_subject")
    private = learn("the doctor", "subject_private")
    door.call("long_term.mutate", {"action": "delete", "ref": gone})
    cited = [shared, gone, private, "long_term:f-0000000000000000", "agent_skill:m/s", "chunks:7"]
    door.call("memory.write", write(skill("x", citations=cited)))
    found = {each["ref"]: each["resolves"] for each in detail(door, "x")["citations"]}
    assert found == {
        shared: True, gone: True, private: door.own_agent, cited[3]: False, cited[4]: None, cited[5]: False
    }  # fmt: skip
    if door.own_agent:
        assert door.call("long_term.detail", {"ref": private, "view": "model_context"})["record"]["ref"] == private
    else:
        # An operator sees what it wrote itself, and no skill tells anybody of it.
        assert door.call("long_term.detail", {"ref": private})["record"]["ref"] == private


def test_an_edit_changes_what_it_names_and_leaves_the_rest(door: Door) -> None:
    door.prepare("memory.write", write(skill("x", citations=["a book"])))
    before = detail(door, "x")
    door.call("skill.edit", {"name": "x", "title": "New title", "edit_reason": "clearer", "expected_revision": 1})
    after = detail(door, "x")
    assert (after["title"], after["revision"]) == ("New title", 2)
    for field in ("topic", "summary", "procedure", "citations", "enabled"):
        assert after[field] == before[field]
    same = door.call("skill.edit", {"name": "x", "title": "New title", "edit_reason": "again"})
    assert (same["outcome"], same["revision"], same["lifecycle"]["changed"]) == ("unchanged", 2, False)


def test_an_edit_of_another_revision_than_expected_is_a_conflict(door: Door) -> None:
    door.prepare("memory.write", write(skill("x")))
    for expected in (2, 99):
        args = {"name": "x", "title": "New", "edit_reason": "r", "expected_revision": expected}
        error = door.refused("conflict", "skill.edit", args)
        assert "revision 1" in error.message
        assert "skill show" in error.hint
    assert detail(door, "x")["revision"] == 1


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("skill.detail", {"name": "nobody"}),
        ("skill.edit", {"name": "nobody", "title": "T", "edit_reason": "r"}),
        ("skill.set_enabled", {"name": "nobody", "enabled": True}),
        ("skill.delete", {"name": "nobody"}),
    ],
)
def test_only_what_exists_can_be_shown_or_changed(door: Door, op: str, args: Plain) -> None:
    error = door.refused("not_found", op, args)
    assert f"{PREFIX}nobody" in error.message
    assert "skill list" in error.hint
    door.prepare("memory.write", write(skill("somebody")))
    door.refused("not_found", op, args)
    assert listed(door) == ["somebody"]


def test_an_edit_names_at_least_one_field_and_a_reason(door: Door) -> None:
    door.prepare("memory.write", write(skill("x")))
    door.refused("invalid_request", "skill.edit", {"name": "x", "edit_reason": "r"})
    door.refused("invalid_request", "skill.edit", {"name": "x", "title": "T"})
    door.refused("invalid_request", "skill.edit", {"name": "x", "title": "T", "edit_reason": " "})
    assert detail(door, "x")["revision"] == 1


def test_a_disabled_skill_is_listed_and_not_recalled(door: Door) -> None:
    door.prepare("memory.write", write(skill("pelican")))
    off = door.call("skill.set_enabled", {"name": "pelican", "enabled": False})
    assert (off["outcome"], off["revision"], off["name"]) == ("disabled", 1, f"{PREFIX}pelican")
    assert detail(door, "pelican")["enabled"] is False
    assert "pelican" not in found_texts(door.call("memory.recall", {"query": "pelican"}))
    again = door.call("skill.set_enabled", {"name": "pelican", "enabled": False})
    assert (again["outcome"], again["lifecycle"]["changed"]) == ("unchanged", False)
    door.prepare("skill.edit", {"name": "pelican", "summary": "A pelican, edited", "edit_reason": "r"})
    assert detail(door, "pelican")["enabled"] is False
    assert door.call("memory.recall", {"query": "pelican"})["hits"] == []
    on = door.call("skill.set_enabled", {"name": "pelican", "enabled": True})
    assert (on["outcome"], on["revision"]) == ("enabled", 2)
    assert "A pelican, edited" in found_texts(door.call("memory.recall", {"query": "pelican"}))


def test_a_deleted_skill_is_gone_with_every_revision(door: Door) -> None:
    door.prepare("memory.write", write(skill("pelican"), skill("heron")))
    door.prepare("skill.edit", {"name": "pelican", "title": "Pelican two", "edit_reason": "r"})
    report = door.call("skill.delete", {"name": "pelican"})
    assert (report["outcome"], report["revision"], report["lifecycle"]["changed"]) == ("deleted", 2, True)
    assert listed(door) == ["heron"]
    assert door.call("memory.recall", {"query": "pelican"})["hits"] == []
    door.refused("not_found", "skill.delete", {"name": "pelican"})
    made = door.call("memory.write", write(skill("pelican")))
    assert made["writes"][0] == {"name": f"{PREFIX}pelican", "outcome": "created", "revision": 1, "reason": None}
    assert len(detail(door, "pelican")["lineage"]) == 1


def test_the_list_counts_the_whole_space_and_shows_a_page(door: Door) -> None:
    empty = door.call("skill.list", {})
    assert (empty["total"], empty["active"], empty["disabled"], empty["runtime_skills"]) == (0, 0, 0, [])
    door.prepare("memory.write", write(*(skill(f"s{n}") for n in range(5))))
    door.prepare("skill.set_enabled", {"name": "s1", "enabled": False})
    page = door.call("skill.list", {"limit": 2})
    assert (page["total"], page["active"], page["disabled"]) == (5, 4, 1)
    assert [each["name"] for each in page["runtime_skills"]] == [f"{PREFIX}s0", f"{PREFIX}s1"]
    assert set(page["runtime_skills"][0]) == {
        "name", "title", "topic", "summary", "enabled", "retired", "revision", "updated_at", "ref"
    }  # fmt: skip
    assert page["has_more"] is True
    rest = door.call("skill.list", {"limit": 3, "cursor": page["next_cursor"]})
    assert [each["name"] for each in rest["runtime_skills"]] == [f"{PREFIX}s{n}" for n in (2, 3, 4)]
    assert (rest["has_more"], rest["next_cursor"], rest["total"]) == (False, None, 5)
    assert listed(door, include_disabled=False) == ["s0", "s2", "s3", "s4"]
    most = door.budgets.page_limit
    assert door.call("skill.list", {"limit": most + 1})["profile_budget_applied"] is True


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["birds", "fish"]),
        ("BIRDS", ["birds"]),
        ("summary fish", ["fish"]),
        ("fish birds", []),
        ("hidden", ["birds"]),
        ("%", []),
        ('" OR *', []),
    ],
)
def test_the_list_is_filtered_by_words_of_name_title_topic_and_summary(
    door: Door, query: str, names: list[str]
) -> None:
    door.prepare("memory.write", write(skill("birds", topic="a hidden topic"), skill("fish")))
    assert listed(door, query=query) == names


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("name", ["s0", "s1", "s2", "s3"]),
        ("updated", ["s1", "s3", "s0", "s2"]),
        ("revision", ["s1", "s3", "s0", "s2"]),
    ],
)
def test_the_list_is_sorted_page_by_page_by_name_change_or_revision(
    door: Door, sort: str, names: list[str], descending: bool
) -> None:
    door.prepare("memory.write", write(*(skill(f"s{n}") for n in range(4))))
    for revision, name in enumerate(("s3", "s0", "s0", "s2", "s2", "s2")):
        door.prepare("skill.edit", {"name": name, "summary": f"the {revision}th", "edit_reason": "a test"})
    asked = {"sort": sort, "descending": descending, "limit": 1}
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = door.call("skill.list", {**asked, **cursor})
        found += [each["name"].removeprefix(PREFIX) for each in page["runtime_skills"]]
        if not page["has_more"]:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert found == (names[::-1] if descending else names)
