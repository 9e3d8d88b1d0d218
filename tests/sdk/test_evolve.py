"""The evolution sandbox: proposals change nothing, and submitting one does what its operation does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from beetle.open import state_fingerprint
from tests.governance.judging import OWN, JudgedStore, Plain, caller, candidate, message, ref

SKILL = {"name": "pump", "topic": "pump", "title": "Quiet the pump", "summary": "When it is loud.",
         "content": "1. Stop it.\n2. Clean the strainer."}  # fmt: skip
WORDS = {"title": "Start the lathe", "topic": "lathe", "summary": "When it stands.", "procedure": "1. Oil it."}
TIMES = ("at", "created_at", "updated_at", "valid_from", "valid_until", "event_id", "lifecycle", "receipt")


@pytest.fixture
def place() -> Iterator[JudgedStore]:
    found = JudgedStore()
    yield found
    found.close()


def settled(place: JudgedStore) -> Plain:
    """A skill, a turn and a fact; the fact's ref."""
    place.call("memory.write", {"kind": "procedural", "source": "manual", "writes": [SKILL]})
    place.talk(message("m1", content="Mara drinks tea."))
    (kept,) = place.judge(candidate("c1", "Mara drinks tea.", topic="drink", evidence_refs=[ref("m1")]))
    return {"fact": kept["ref"]}


def proposal(kind: str, target: str | None = None, proposal_id: str = "p1", **change: Any) -> Plain:
    made: Plain = {"kind": kind, "rationale": "it is time", "proposal_id": proposal_id, "change": change}
    return made if target is None else {**made, "target": target}


def propose(place: JudgedStore, *made: Plain, **who: Any) -> list[Plain]:
    return list(place.call("evolve.propose", {"proposals": list(made)}, **who)["proposals"])


def submit(place: JudgedStore, *proposal_ids: str, **who: Any) -> list[Plain]:
    return list(place.call("evolve.submit", {"proposal_ids": list(proposal_ids)}, **who)["outcomes"])


def preview(place: JudgedStore, proposal_id: str = "p1", **who: Any) -> Plain:
    return place.call("evolve.preview", {"proposal_id": proposal_id}, **who)


KINDS: dict[str, Any] = {
    "skill_create": lambda fact: proposal("skill_create", "lathe", **WORDS),
    "skill_edit": lambda fact: proposal("skill_edit", "pump", procedure="1. Stop it.\n2. Change the strainer."),
    "skill_disable": lambda fact: proposal("skill_disable", "pump"),
    "skill_enable": lambda fact: proposal("skill_enable", "pump"),
    "fact_write": lambda fact: proposal(
        "fact_write", content="Mara drinks juice.", topic="drink", authority="operator"
    ),
    "fact_correct": lambda fact: proposal("fact_correct", fact, content="Mara drinks green tea."),
    "fact_stale": lambda fact: proposal("fact_stale", fact),
    "fact_forget": lambda fact: proposal("fact_forget", fact),
}
DIRECT: dict[str, Any] = {
    "skill_create": lambda fact: ("memory.write", {"kind": "procedural", "source": "manual", "writes": [
        {"name": "lathe", "title": WORDS["title"], "topic": WORDS["topic"], "summary": WORDS["summary"],
         "content": WORDS["procedure"]}]}),
    "skill_edit": lambda fact: ("skill.edit", {"name": "pump", "procedure": "1. Stop it.\n2. Change the strainer.",
                                               "edit_reason": "it is time"}),
    "skill_disable": lambda fact: ("skill.set_enabled", {"name": "pump", "enabled": False}),
    "skill_enable": lambda fact: ("skill.set_enabled", {"name": "pump", "enabled": True}),
    "fact_write": lambda fact: ("memory.write", {"kind": "candidates", "candidates": [
        candidate("p1", "Mara drinks juice.", "operator", topic="drink")]}),
    "fact_correct": lambda fact: ("long_term.mutate", {"action": "correct", "ref": fact, "reason": "it is time",
                                                       "content": "Mara drinks green tea."}),
    "fact_stale": lambda fact: ("long_term.mutate", {"action": "mark_stale", "ref": fact, "reason": "it is time"}),
    "fact_forget": lambda fact: ("long_term.mutate", {"action": "delete", "ref": fact, "reason": "it is time"}),
}  # fmt: skip


def memory_of(place: JudgedStore) -> Plain:
    """All that a caller can see of skills and facts, but times, receipts and the ids that a store made."""
    names = [each["name"] for each in place.call("skill.list", {})["runtime_skills"]]
    refs = [each["ref"] for each in place.facts("all")]
    found = {
        "skills": [place.call("skill.detail", {"name": name}) for name in names],
        "facts": [place.call("long_term.detail", {"ref": each, "history": True}) for each in refs],
        "hits": place.call("memory.recall", {"query": "pump tea juice lathe", "limit": 50})["hits"],
    }
    numbered = {each: f"long_term:{place_}" for place_, each in enumerate(refs)}
    return plain(found, numbered)


def plain(value: Any, numbered: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {k: plain(v, numbered) for k, v in value.items() if k not in (*TIMES, "record_id", "score", "total")}
    if isinstance(value, list):
        return [plain(each, numbered) for each in value]
    return numbered.get(value, value) if isinstance(value, str) else value


@pytest.mark.parametrize("kind", KINDS)
def test_a_proposal_changes_nothing_until_it_is_submitted(place: JudgedStore, kind: str) -> None:
    fact = settled(place)["fact"]
    if kind == "skill_enable":
        place.call("skill.set_enabled", {"name": "pump", "enabled": False})
    before, shown = state_fingerprint(place.opened, "owner"), memory_of(place)
    propose(place, KINDS[kind](fact))
    assert place.call("evolve.list", {})["total"] == 1
    assert preview(place)["verdict"]["outcome"] == "changes"
    assert (state_fingerprint(place.opened, "owner"), memory_of(place)) == (before, shown)
    place.call("evolve.submit", {"proposal_ids": ["p1"], "decision": "withdraw"})
    assert (state_fingerprint(place.opened, "owner"), memory_of(place)) == (before, shown)


@pytest.mark.parametrize("kind", KINDS)
def test_submitting_a_proposal_leaves_what_its_operation_leaves(place: JudgedStore, kind: str) -> None:
    other = JudgedStore()
    facts = settled(place)["fact"], settled(other)["fact"]
    for each in (place, other):
        if kind == "skill_enable":
            each.call("skill.set_enabled", {"name": "pump", "enabled": False})
    propose(place, KINDS[kind](facts[0]))
    foreseen = preview(place)["verdict"]["reason"]
    (done,) = submit(place, "p1")
    direct = other.call(*DIRECT[kind](facts[1]))
    assert memory_of(place) == memory_of(other)
    outcome = direct.get("outcome") or (direct.get("writes") or [None])[0]
    word = outcome["outcome"] if isinstance(outcome, dict) else outcome or direct["outcomes"][0]["reason"]
    assert (done["state"], done["outcome"]) == ("submitted", word)
    assert foreseen == word
    assert place.call("store.verify", {})["clean"]
    other.close()


def test_a_proposal_to_an_empty_space_leaves_it_empty(place: JudgedStore) -> None:
    before = state_fingerprint(place.opened, "owner")
    propose(place, proposal("fact_write", content="Mara rows."), proposal("skill_create", "lathe", "p2", **WORDS))
    assert state_fingerprint(place.opened, "owner") == before
    counts = place.call("memory.inspect", {})["counts"]
    assert {name: value for name, value in counts.items() if value} == {}


def test_what_is_submitted_is_told_in_the_event_log_by_the_operation_that_did_it(place: JudgedStore) -> None:
    settled(place)
    propose(place, proposal("skill_edit", "pump", title="Silence the pump"))
    (done,) = submit(place, "p1")
    told = place.rows("SELECT operation, event FROM event_log ORDER BY seq DESC LIMIT 2")
    assert told == [("evolve.submit", "proposal_submitted"), ("skill.edit", "edited")]
    assert place.call("store.verify", {"receipt": done["receipt"]})["receipt"]["reasons"] in ([], ["unsigned"])


def test_a_diff_shows_each_text_that_would_be_another(place: JudgedStore) -> None:
    settled(place)
    propose(
        place, proposal("skill_edit", "pump", procedure="1. Stop it.\n2. Change the strainer.", title=SKILL["title"])
    )
    (diff,) = preview(place)["diffs"]
    assert diff["field"] == "procedure"
    assert diff["diff"].splitlines()[2:] == ["@@ -1,2 +1,2 @@", " 1. Stop it.", "-2. Clean the strainer.",
                                            "+2. Change the strainer."]  # fmt: skip


def test_a_diff_of_a_forgotten_fact_shows_what_would_go(place: JudgedStore) -> None:
    fact = settled(place)["fact"]
    propose(place, proposal("fact_forget", fact))
    diffs = {each["field"]: each["diff"] for each in preview(place)["diffs"]}
    assert diffs["content"].endswith("-Mara drinks tea.") and diffs["topic"].endswith("-drink")


def test_a_target_that_moved_is_a_conflict_and_nothing_is_written(place: JudgedStore) -> None:
    fact = settled(place)["fact"]
    propose(
        place,
        proposal("skill_edit", "pump", "good", title="Silence the pump"),
        proposal("fact_correct", fact, "moved", content="Mara drinks coffee."),
    )
    place.call("long_term.mutate", {"action": "correct", "ref": fact, "content": "Mara drinks milk.", "reason": "r"})
    shown = preview(place, "moved")
    assert shown["moved"] and shown["verdict"] == {"outcome": "refused", "reason": "conflict", "superseded_ref": None}
    error = place.refused("conflict", "evolve.submit", {"proposal_ids": ["good", "moved"]})
    assert error.details["index"] == 1 and error.details["proposal_id"] == "moved" and error.hint
    assert place.call("skill.detail", {"name": "pump"})["revision"] == 1
    assert place.call("evolve.list", {})["total"] == 2
    assert submit(place, "good")[0]["state"] == "submitted"


def test_a_skill_that_came_to_be_in_the_meantime_is_a_conflict(place: JudgedStore) -> None:
    propose(place, proposal("skill_create", "pump", **WORDS))
    settled(place)
    place.refused("conflict", "evolve.submit", {"proposal_ids": ["p1"]})
    error = place.refused(
        "conflict", "evolve.propose", {"proposals": [proposal("skill_create", "pump", "p2", **WORDS)]}
    )
    assert "skill_edit" in error.hint


def test_of_two_proposals_for_one_revision_the_second_is_a_conflict(place: JudgedStore) -> None:
    settled(place)
    propose(place, proposal("skill_edit", "pump", "a", title="A"), proposal("skill_edit", "pump", "b", title="B"))
    place.refused("conflict", "evolve.submit", {"proposal_ids": ["a", "b"]})
    assert place.call("skill.detail", {"name": "pump"})["title"] == SKILL["title"]
    assert submit(place, "b")[0]["outcome"] == "revised"
    place.refused("conflict", "evolve.submit", {"proposal_ids": ["a"]})


def test_a_closed_proposal_has_no_text_and_is_decided_once(place: JudgedStore) -> None:
    settled(place)
    propose(place, proposal("skill_edit", "pump", title="A"), proposal("skill_disable", "pump", "p2"))
    submit(place, "p1")
    place.call("evolve.submit", {"proposal_ids": ["p2"], "decision": "withdraw"})
    assert place.rows("SELECT count(*) FROM proposal_body") == [(0,)]
    for each in ("p1", "p2"):
        place.refused("conflict", "evolve.submit", {"proposal_ids": [each]})
        shown = preview(place, each)
        assert (shown["verdict"], shown["diffs"], shown["proposal"]["rationale"]) == (None, [], None)
    states = {each["proposal_id"]: (each["state"], each["outcome"], each["result"])
              for each in place.call("evolve.list", {"state": "all"})["proposals"]}  # fmt: skip
    assert states == {
        "p1": ("submitted", "revised", "procedural:runtime_skill__pump"),
        "p2": ("dropped", "withdrawn", None),
    }


VERDICTS: dict[str, tuple[Plain, str, str]] = {
    "created": ({"content": "Mara rows.", "topic": "sport", "authority": "user_asserted"}, "changes", "submitted"),
    "unchanged": ({"content": "Mara drinks tea.", "topic": "drink", "authority": "host"}, "unchanged", "submitted"),
    "superseded": ({"content": "Mara drinks juice.", "topic": "drink", "authority": "user_asserted"}, "changes",
                   "submitted"),
    "weaker_authority": ({"content": "Mara drinks juice.", "topic": "drink", "authority": "host"}, "deferred",
                         "submitted"),
    "needs_assertion": ({"content": "Mara rows.", "topic": "sport"}, "deferred", "submitted"),
    "policy_suppressed": ({"content": "Mara is tired.", "topic": "health", "authority": "host"}, "rejected", "refused"),
    "policy_paused": ({"content": "Mara sleeps.", "topic": "sleep", "authority": "host"}, "deferred", "submitted"),
    "privacy_target_mismatch": ({"content": "x y", "privacy": "subject_private", "target": "shared_fact"}, "rejected",
                                "refused"),
}  # fmt: skip


@pytest.mark.parametrize("reason", VERDICTS)
def test_the_verdict_of_a_preview_is_what_submitting_comes_to(place: JudgedStore, reason: str) -> None:
    settled(place)
    place.call("long_term.policy", {"action": "suppress", "topic": "health"})
    place.call("long_term.policy", {"action": "pause", "topic": "sleep"})
    change, foreseen, state = VERDICTS[reason]
    seen = {"view": "raw_owner"}  # one of them is about a private fact
    place.call("evolve.propose", {"proposals": [{**proposal("fact_write"), "change": change}], **seen})
    verdict = place.call("evolve.preview", {"proposal_id": "p1", **seen})["verdict"]
    assert (verdict["outcome"], verdict["reason"]) == (foreseen, reason)
    (done,) = place.call("evolve.submit", {"proposal_ids": ["p1"], **seen})["outcomes"]
    assert (done["state"], done["outcome"]) == (state, reason)


@pytest.mark.parametrize("cited", ["evidence:local/talk/t9", "evidence:local/talk/t1/m1"], ids=["missing", "masked"])
def test_evidence_is_looked_at_when_it_is_submitted(place: JudgedStore, cited: str) -> None:
    settled(place)
    propose(place, {**proposal("fact_write", content="x y", authority="user_asserted"), "evidence_refs": [cited]})
    place.lifecycle("mask", "t1")
    reason = "evidence_missing" if "t9" in cited else "evidence_unavailable"
    assert preview(place)["verdict"]["reason"] == reason
    assert submit(place, "p1")[0]["outcome"] == reason


def limited(*capabilities: str) -> Any:
    """A principal of the owner's with these capabilities alone."""
    return caller("owner", "principal", "helper")._replace(
        capabilities=frozenset(capabilities), views=OWN[:2], transport="unix_socket"
    )


def ask(place: JudgedStore, who: Any, op: str, args: Plain) -> Plain:
    from beetle.contracts.codec import to_plain
    from beetle.runtime.pipeline.invocation import Call

    return to_plain(place.opened.dispatcher.dispatch(Call(op, args, who)).report)


@pytest.mark.parametrize("kind", KINDS)
def test_submitting_takes_the_capability_of_the_operation_behind_the_kind(place: JudgedStore, kind: str) -> None:
    from beetle.contracts.errors import Forbidden

    fact = settled(place)["fact"]
    if kind == "skill_enable":
        place.call("skill.set_enabled", {"name": "pump", "enabled": False})
    needed = {"skill_create": "write", "fact_write": "write"}.get(kind) or ("skill" if "skill" in kind else "long_term")
    made = KINDS[kind](fact)
    if kind == "fact_write":
        made["change"]["authority"] = "user_asserted"
    if kind == "fact_correct":
        made["change"] = {"content": "Mara drinks white tea."}
    ask(place, limited("evolve"), "evolve.propose", {"proposals": [made]})
    everything_else = limited("evolve", *({"write", "skill", "long_term"} - {needed}))
    verdict = ask(place, everything_else, "evolve.preview", {"proposal_id": "p1"})["verdict"]
    assert (verdict["outcome"], verdict["reason"]) == ("refused", "forbidden")
    with pytest.raises(Forbidden, match=needed):
        ask(place, everything_else, "evolve.submit", {"proposal_ids": ["p1"]})
    assert place.call("evolve.list", {})["total"] == 1
    done = ask(place, limited("evolve", needed), "evolve.submit", {"proposal_ids": ["p1"]})
    assert done["outcomes"][0]["state"] == "submitted"


def test_nobody_proposes_in_the_operator_s_name(place: JudgedStore) -> None:
    from beetle.contracts.errors import Forbidden

    with pytest.raises(Forbidden, match="operator"):
        ask(place, limited("evolve"), "evolve.propose", {"proposals": [KINDS["fact_write"]("")]})


def test_what_is_no_proposal_is_refused_with_its_place(place: JudgedStore) -> None:
    settled(place)
    for wrong, path in (
        (proposal("skill_edit", "pump"), "$.args.proposals[0]"),
        (proposal("skill_edit", title="T"), "$.args.proposals[0]"),
        (proposal("skill_edit", "pump", content="x"), "$.args.proposals[0]"),
        (proposal("skill_create", "lathe", title="T"), "$.args.proposals[0]"),
        (proposal("fact_write", "pump", content="x"), "$.args.proposals[0]"),
        (proposal("skill_create", "lathe", **{**WORDS, "topic": " "}), "$.args.proposals[0].change.topic"),
        ({**proposal("skill_disable", "pump"), "rationale": " "}, "$.args.proposals[0].rationale"),
        ({**proposal("skill_disable", "pump"), "extra": 1}, "$.args.proposals[0].extra"),
    ):
        error = place.refused("invalid_request", "evolve.propose", {"proposals": [wrong]})
        assert error.details["path"] == path, error
    place.refused("not_found", "evolve.propose", {"proposals": [proposal("skill_edit", "nowhere", title="T")]})
    place.refused("not_found", "evolve.propose", {"proposals": [proposal("fact_stale", "long_term:f-0")]})
    assert place.rows("SELECT count(*) FROM proposal") == [(0,)]
    place.refused("invalid_request", "evolve.submit", {"proposal_ids": ["a", "a"]})


def test_what_its_operation_would_find_too_large_is_refused_when_it_is_proposed(place: JudgedStore) -> None:
    budget = place.opened.profile.budgets.skill_text_bytes
    made = proposal("skill_create", "lathe", **{**WORDS, "procedure": "x" * (budget + 1)})
    place.refused("payload_too_large", "evolve.propose", {"proposals": [made]})


def test_the_same_proposal_again_changes_nothing_and_another_under_its_id_is_a_conflict(place: JudgedStore) -> None:
    settled(place)
    made = proposal("skill_edit", "pump", title="A")
    assert propose(place, made)[0]["outcome"] == "proposed"
    assert propose(place, made)[0]["outcome"] == "unchanged"
    place.refused("conflict", "evolve.propose", {"proposals": [{**made, "rationale": "another"}]})
    submit(place, "p1")
    place.refused("conflict", "evolve.propose", {"proposals": [made]})


def test_all_proposals_are_taken_or_none(place: JudgedStore) -> None:
    settled(place)
    made = [proposal("skill_edit", "pump", title="A"), proposal("skill_edit", "nowhere", "p2", title="B")]
    assert place.refused("not_found", "evolve.propose", {"proposals": made}).details["index"] == 1
    assert place.call("evolve.list", {})["total"] == 0


def test_pages_of_proposals_meet_without_gap_or_double(place: JudgedStore) -> None:
    settled(place)
    for number in range(5):
        propose(place, proposal("skill_disable", "pump", f"p{number}"))
    found: list[str] = []
    cursor: Plain = {}
    while True:
        page = place.call("evolve.list", {"limit": 2, **cursor})
        found += [each["proposal_id"] for each in page["proposals"]]
        if not page["has_more"]:
            break
        propose(place, proposal("skill_disable", "pump", f"late{len(found)}"))
        cursor = {"cursor": page["next_cursor"]}
    assert found == ["p4", "p3", "p2", "p1", "p0"]
    place.refused("invalid_request", "evolve.list", {"state": "all", **cursor})


def test_who_waits_too_long_is_dropped_by_the_next_proposal(place: JudgedStore) -> None:
    settled(place)
    propose(place, proposal("skill_disable", "pump"))
    place.sleep(place.days + 1)
    report = place.call("evolve.propose", {"proposals": [proposal("skill_disable", "pump", "p2")]})
    assert report["expired"] == 1
    (old,) = place.call("evolve.list", {"state": "dropped"})["proposals"]
    assert (old["proposal_id"], old["outcome"]) == ("p1", "expired")


def test_two_owners_see_and_submit_their_own_proposals_alone(place: JudgedStore) -> None:
    settled(place)
    propose(place, proposal("skill_edit", "pump", title="A"))
    assert place.call("evolve.list", {"state": "all"}, owner="other")["total"] == 0
    for op, args in (("evolve.preview", {"proposal_id": "p1"}), ("evolve.submit", {"proposal_ids": ["p1"]})):
        place.refused("not_found", op, args, owner="other")
    made = {"proposals": [proposal("skill_disable", "pump")]}
    place.refused("not_found", "evolve.propose", made, owner="other")
    place.call("memory.write", {"kind": "procedural", "source": "manual", "writes": [SKILL]}, owner="other")
    propose(place, proposal("skill_disable", "pump"), owner="other")
    assert preview(place)["proposal"]["kind"] == "skill_edit"
    submit(place, "p1", owner="other")
    assert place.call("skill.detail", {"name": "pump"})["enabled"]
    assert place.call("evolve.list", {})["total"] == 1


def test_a_batch_may_propose_and_not_submit(place: JudgedStore) -> None:
    settled(place)
    made = {"op": "evolve.propose", "args": {"proposals": [proposal("skill_disable", "pump")]}}
    place.call("batch", {"requests": [made]})
    assert place.call("evolve.list", {})["total"] == 1
    wrong = {"op": "evolve.submit", "args": {"proposal_ids": ["p1"]}}
    place.refused("invalid_request", "batch", {"requests": [wrong]})


def test_a_fact_that_is_submitted_belongs_to_the_chat_that_it_was_proposed_in(place: JudgedStore) -> None:
    made = proposal("fact_write", content="Mara rows.", authority="user_asserted")
    propose(place, made, chat="chat-7")
    (done,) = submit(place, "p1", chat="chat-1")
    detail = place.call("long_term.detail", {"ref": done["ref"]})
    assert detail["revisions"][0]["source_chat_id"] == "chat-7"


def test_a_full_store_takes_what_erases_and_withdraws_and_no_new_words(place: JudgedStore) -> None:
    fact = settled(place)["fact"]
    propose(
        place,
        proposal("skill_create", "lathe", "create", **WORDS),
        proposal("skill_edit", "pump", "edit", title="A"),
        proposal("fact_write", proposal_id="write", content="Mara rows.", authority="user_asserted"),
        proposal("fact_correct", fact, "correct", content="Mara drinks milk."),
        proposal("fact_forget", fact, "forget"),
        proposal("skill_disable", "pump", "disable"),
    )
    store = place.opened.store
    store.settings = store.settings._replace(store_bytes=1)
    for each in ("create", "edit", "write", "correct"):
        place.refused("store_budget_exceeded", "evolve.submit", {"proposal_ids": [each]})
    assert [each["outcome"] for each in submit(place, "forget", "disable")] == ["deleted", "disabled"]
    place.call("evolve.submit", {"proposal_ids": ["create"], "decision": "withdraw"})
    assert place.rows("SELECT count(*) FROM proposal_body") == [(2,)]
