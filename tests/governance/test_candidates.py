"""Candidates and extractions through `memory.write`: what is believed, what waits, and when it is judged again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle.runtime.host.profile import load_profile
from tests.governance.judging import JudgedStore, Plain, candidate, message, ref
from tests.governance.keeping import key_file
from tests.store.conftest import open_runtime

CANARY = "heliotrope7431"
PUMP = "Stop the pump.\n2. Clean the strainer."
WORDS = (
    f"tea at five\nat five\nsays user_asserted\nsays tool_observed\nsays host\nsays assistant_claimed\n{CANARY}\n{PUMP}"
)


@pytest.fixture
def place() -> Iterator[JudgedStore]:
    made = JudgedStore()
    made.talk(
        message("u1", content=WORDS),
        message("a1", "assistant"),
        message("x1", "tool", WORDS),
        message("p1", content=WORDS, visibility="private"),
        message("s1", visibility="soul"),
        message("b1", visibility="backend"),
    )
    yield made
    made.close()


def extraction(*items: Plain, **more: str) -> Plain:
    return {"kind": "long_term_extraction", "extraction": {"items": list(items), "extractor": "test 1", **more}}


def item(content: str, *evidence: str, **more: object) -> Plain:
    return {
        "kind": "preference", "topic": "tea", "content": content, "confidence": 0.5, "keywords": ["drink"],
        "evidence_refs": list(evidence), **more,
    }  # fmt: skip


def contents(place: JudgedStore, state: str = "current") -> list[str]:
    return sorted(each["content"] for each in place.facts(state))


@pytest.mark.parametrize("evidence", [[], [ref("a1")]])
def test_an_assistant_s_claim_about_itself_never_becomes_a_fact_alone(place: JudgedStore, evidence: list[str]) -> None:
    claim = candidate("c1", "I am always right", "assistant_claimed", topic="self", evidence_refs=evidence)
    for _ in range(3):
        assert place.verdict(claim) == ("deferred", "needs_assertion")
    assert place.facts("all") == []
    assert place.waiting() == [("c1", "needs_assertion")]
    again = candidate("c2", "I am always right", "assistant_claimed", topic="self", evidence_refs=evidence)
    assert place.verdict(again) == ("deferred", "needs_assertion")
    assert place.facts("all") == []


@pytest.mark.parametrize("said_by", ["u1", "x1"])
def test_an_assistant_s_claim_beside_a_user_s_or_a_tool_s_message_waits_too(place: JudgedStore, said_by: str) -> None:
    claim = candidate("c1", "tea at five", "assistant_claimed", topic="tea", evidence_refs=[ref("a1"), ref(said_by)])
    assert place.verdict(claim) == ("deferred", "needs_assertion")


def test_a_user_s_assertion_settles_what_an_assistant_had_claimed(place: JudgedStore) -> None:
    place.judge(
        candidate("same", "Tea at FIVE", "assistant_claimed", topic="tea", evidence_refs=[ref("a1")]),
        candidate("other", "tea at six", "assistant_claimed", topic="tea"),
        candidate("elsewhere", "tea at five", "assistant_claimed", topic="coffee"),
    )
    (outcome,) = place.judge(candidate("u", "tea at five", topic=" TEA ", evidence_refs=[ref("u1")]))
    assert (outcome["outcome"], outcome["reason"]) == ("accepted", "created")
    assert place.waiting() == [("elsewhere", "needs_assertion")]
    (fact,) = place.facts()
    assert (fact["authority"], fact["evidence"], fact["content"]) == ("user_asserted", 2, "tea at five")
    assert place.events()[-5:] == [
        "fact_created", "candidate_accepted", "fact_evidence_added", "candidate_accepted", "candidate_dropped",
    ]  # fmt: skip


def test_a_waiting_claim_whose_evidence_was_masked_since_is_rejected_when_it_is_judged_again(
    place: JudgedStore,
) -> None:
    place.talk(message("a2", "assistant"), turn_id="t2")
    claim = candidate("c", "tea at five", "assistant_claimed", topic="tea", evidence_refs=[ref("a2", "t2")])
    place.judge(claim)
    place.lifecycle("mask", "t2")
    place.judge(candidate("u", "tea at five", topic="tea"))
    assert place.waiting() == []
    (fact,) = place.facts()
    assert fact["evidence"] == 0
    assert place.events()[-1] == "candidate_rejected"


def test_a_weaker_authority_never_overwrites_a_stronger_one(place: JudgedStore) -> None:
    place.judge(candidate("o", "at five", "operator", topic="tea"))
    for authority in ("user_asserted", "tool_observed", "host"):
        weaker = candidate(f"w-{authority}", f"says {authority}", authority, topic="tea", evidence_refs=[ref("u1")])
        assert place.verdict(weaker) == ("deferred", "weaker_authority")
    assert contents(place) == ["at five"]


def test_what_waits_for_a_stronger_record_to_go_is_judged_when_it_goes_and_once(place: JudgedStore) -> None:
    (strong,) = place.judge(candidate("o", "at five", "operator", topic="tea"))
    place.judge(
        candidate("w1", "at six", "tool_observed", topic="tea"),
        candidate("w2", "at seven", "user_asserted", topic="tea"),
        candidate("w3", "at eight", "host", topic="tea"),
    )
    place.call("long_term.mutate", {"action": "delete", "ref": strong["ref"], "reason": "a test asked"})
    # In the order in which they came: six, then the user's seven over it; the host's eight is weaker and waits on.
    assert contents(place) == ["at seven"]
    assert place.waiting() == [("w3", "weaker_authority")]
    before = place.events()
    place.judge(candidate("n", "x", topic="another"))
    assert place.events()[len(before) :] == ["fact_created", "candidate_accepted"]


def test_what_is_deferred_is_dropped_with_an_event_after_the_profile_s_days(place: JudgedStore) -> None:
    assert place.days == 90
    place.judge(candidate("old", "I am old", "assistant_claimed", topic="a"))
    place.sleep(50)
    place.judge(candidate("young", "I am young", "assistant_claimed", topic="b"))
    place.sleep(39.99)
    place.judge(candidate("n1", "x", topic="c"))
    assert [name for name, _ in place.waiting()] == ["old", "young"]
    place.sleep(0.02)
    place.judge(candidate("n2", "y", topic="d"))
    assert [name for name, _ in place.waiting()] == ["young"]
    assert place.events().count("candidate_dropped") == 1
    assert place.rows("SELECT count(*) FROM candidate_body") == [(1,)]


def test_the_same_candidate_waits_once(place: JudgedStore) -> None:
    claim = candidate("c", "I am", "assistant_claimed", topic="a")
    place.judge(claim, claim, candidate("c2", "I am", "assistant_claimed", topic="a"))
    assert [name for name, _ in place.waiting()] == ["c", "c2"]


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("$.args.candidates[1].authority", {"authority": "god"}),
        ("$.args.candidates[1].target", {"target": "evidence"}),
        ("$.args.candidates[1].privacy", {"privacy": "public"}),
        ("$.args.candidates[1].content", {"content": "  \n"}),
        ("$.args.candidates[1].candidate_id", {"candidate_id": ""}),
        ("$.args.candidates[1].kind", {"kind": "rumour"}),
        ("$.args.candidates[1].topic", {"topic": "x" * 257}),
        ("$.args.candidates[1].evidence_refs[0]", {"evidence_refs": [""]}),
        ("$.args.candidates[1].outcome", {"outcome": "accepted"}),
    ],
)
def test_a_batch_with_one_invalid_field_writes_nothing(place: JudgedStore, path: str, change: Plain) -> None:
    request = {"kind": "candidates", "candidates": [candidate("a", "one"), {**candidate("b", "two"), **change}]}
    error = place.refused("invalid_request", "memory.write", request)
    assert error.details["path"] == path
    assert place.facts("all") == []
    assert place.events() == []


def test_no_candidates_and_a_missing_kind_are_refused(place: JudgedStore) -> None:
    empty = place.refused("invalid_request", "memory.write", {"kind": "candidates", "candidates": []})
    assert empty.details["path"] == "$.args.candidates"
    missing = place.refused("invalid_request", "memory.write", {"candidates": [candidate("a", "one")]})
    assert missing.details["path"] == "$.args.kind"


@pytest.mark.parametrize("kind", ["principal", "device"])
def test_the_operator_s_authority_is_not_for_others_to_claim(place: JudgedStore, kind: str) -> None:
    request = {"kind": "candidates", "candidates": [candidate("a", "one"), candidate("b", "two", "operator")]}
    error = place.refused("forbidden", "memory.write", request, kind=kind, name="agent-7")
    assert error.details["index"] == 1
    assert error.details["path"] == "$.args.candidates[1].authority"
    assert place.facts("all") == []
    told = place.rows("SELECT principal, subject FROM event_log WHERE event = 'refused'")
    assert told == [("agent-7", '{"count":1,"error":"forbidden"}')]


def test_a_candidate_is_judged_against_what_those_before_it_left(place: JudgedStore) -> None:
    found = place.judge(
        candidate("1", "at five", topic="tea"),
        candidate("2", "AT FIVE", topic="Tea"),
        candidate("3", "at six", topic="tea"),
        candidate("4", "at seven", "host", topic="tea"),
    )
    assert [each["reason"] for each in found] == ["created", "unchanged", "superseded", "weaker_authority"]
    assert found[0]["ref"] == found[1]["ref"] == found[2]["superseded_ref"]
    assert found[2]["ref"] != found[0]["ref"]


def test_an_outcome_names_its_evidence_as_derived_refs(place: JudgedStore) -> None:
    given = candidate("1", "at five", topic="tea", evidence_refs=[ref("u1"), ref("x1"), ref("u1")])
    report = place.call("memory.write", {"kind": "candidates", "candidates": [given]})
    made = [(each["derived"], each["evidence"], each["relation"]) for each in report["derived_refs"]]
    fact = report["outcomes"][0]["ref"]
    assert made == [(fact, ref("u1"), "cites"), (fact, ref("x1"), "cites")]
    again = place.call("memory.write", {"kind": "candidates", "candidates": [given]})
    assert again["derived_refs"] == []


@pytest.mark.parametrize(
    "evidence",
    [
        "evidence:local/talk/t9",
        "evidence:local/talk/t1/m9",
        "evidence:local/other/t1",
        "procedural:x",
        "a book",
        "evidence:",
    ],
)
def test_a_ref_that_does_not_resolve_rejects(place: JudgedStore, evidence: str) -> None:
    assert place.verdict(candidate("c", "x", evidence_refs=[evidence])) == ("rejected", "evidence_missing")


def test_evidence_of_another_space_is_not_there(place: JudgedStore) -> None:
    assert place.verdict(candidate("c", "x", evidence_refs=[ref("u1")]), owner="someone") == (
        "rejected", "evidence_missing",
    )  # fmt: skip


@pytest.mark.parametrize("action", ["mask", "delete_raw"])
def test_masked_and_deleted_evidence_rejects(place: JudgedStore, action: str) -> None:
    place.lifecycle(action, "t1")
    for evidence in (ref("u1"), ref()):
        assert place.verdict(candidate("c", "x", evidence_refs=[evidence])) == ("rejected", "evidence_unavailable")


def test_the_event_log_holds_ids_kinds_and_reasons_and_never_content(place: JudgedStore) -> None:
    for authority in ("user_asserted", "assistant_claimed", "tool_observed", "host"):
        for target, privacy in (
            ("long_term", "subject_private"), ("shared_fact", "public_runtime"), ("private_garden", "soul_private"),
            ("soul_candidate", "soul_private"), ("long_term", "soul_private"),
        ):  # fmt: skip
            given = candidate("c", f"{CANARY} {authority}", authority, target=target, privacy=privacy, topic=CANARY)
            place.judge(given, {**given, "evidence_refs": ["evidence:local/none/t1"]})
    place.call("memory.write", extraction(item(CANARY, ref("u1"), topic=CANARY, keywords=[CANARY]), source_chat_id="c"))
    place.call("long_term.policy", {"action": "pause", "topic": CANARY, "reason": CANARY})
    place.judge(candidate("c", CANARY, topic=CANARY))
    place.call("long_term.policy", {"action": "resume", "topic": CANARY})
    log = "\n".join(map(str, place.rows("SELECT event, operation, principal, subject FROM event_log")))
    assert CANARY not in log
    kept = "\n".join(map(str, place.rows("SELECT * FROM idempotency")))
    assert CANARY not in kept


def test_a_decision_s_event_names_the_candidate_and_the_reason(place: JudgedStore) -> None:
    place.judge(candidate("c-17", "x", "host", target="shared_fact", privacy="soul_private"))
    (subject,) = place.rows("SELECT subject FROM event_log WHERE event = 'candidate_rejected'")
    assert subject == (
        '{"authority":"host","candidate_id":"c-17","kind":"fact","privacy":"soul_private",'
        '"reason":"privacy_target_mismatch","target":"shared_fact"}',
    )


def test_an_empty_topic_matches_only_the_same_words(place: JudgedStore) -> None:
    found = place.judge(
        candidate("1", "Tea at five"),
        candidate("2", "tea  AT five", topic="  "),
        candidate("3", "tea at six"),
        candidate("4", "tea at five", kind="preference"),
    )
    assert [each["reason"] for each in found] == ["created", "unchanged", "created", "created"]
    assert found[0]["ref"] == found[1]["ref"]


@pytest.mark.parametrize(
    ("one", "other"), [("Tea Time", "  tea\u2003TIME "), ("\uff34\uff45\uff41", "tea"), ("茶", "茶"), ("ﬁne", "FINE")]
)
def test_topics_are_compared_without_case_spacing_and_form(place: JudgedStore, one: str, other: str) -> None:
    found = place.judge(candidate("1", "at five", topic=one), candidate("2", "at six", topic=other))
    assert [each["reason"] for each in found] == ["created", "superseded"]
    (fact,) = place.facts()
    assert fact["topic"] == other


def test_kinds_and_targets_are_apart(place: JudgedStore) -> None:
    found = place.judge(
        candidate("1", "a", topic="t"),
        candidate("2", "b", topic="t", kind="goal"),
        candidate("3", "c", topic="t", target="shared_fact"),
    )
    assert [each["reason"] for each in found] == ["created"] * 3


def test_content_over_the_budget_is_too_large_and_content_at_it_is_kept(place: JudgedStore) -> None:
    most = load_profile("dev-full").budgets.message_content_bytes
    for request, path in (
        ({"kind": "candidates", "candidates": [candidate("a", "b"), candidate("c", "ä" * (most // 2) + "b")]},
         "$.args.candidates[1].content"),
        (extraction(item("x" * (most + 1))), "$.args.extraction.items[0].content"),
    ):  # fmt: skip
        error = place.refused("payload_too_large", "memory.write", request)
        assert error.details["path"] == path
    many = [candidate(f"c{n}", "x") for n in range(1001)]
    error = place.refused("payload_too_large", "memory.write", {"kind": "candidates", "candidates": many})
    assert error.details["path"] == "$.args.candidates"
    assert place.facts("all") == []
    assert place.verdict(candidate("a", "ä" * (most // 2))) == ("accepted", "created")


@pytest.mark.parametrize(
    ("evidence", "authority", "visibility", "reason"),
    [
        ((), "host", "shared", "created"),
        (("u1",), "user_asserted", "shared", "created"),
        (("a1", "x1"), "tool_observed", "shared", "created"),
        (("p1", "a1"), "user_asserted", "private", "created"),
        (("a1",), None, None, "needs_assertion"),
        (("s1",), None, None, "evidence_unavailable"),
        (("b1", "u1"), None, None, "evidence_unavailable"),
        (("none",), None, None, "evidence_missing"),
    ],
)
def test_an_extraction_s_authority_and_reach_follow_from_its_evidence(
    place: JudgedStore, evidence: tuple[str, ...], authority: str | None, visibility: str | None, reason: str
) -> None:
    report = place.call("memory.write", extraction(item("at five", *map(ref, evidence))))
    (outcome,) = report["outcomes"]
    assert (outcome["reason"], outcome["candidate_id"], outcome["index"]) == (reason, None, 0)
    facts = place.call("long_term.list", {"state": "all", "view": "raw_owner"})["records"]
    assert [(each["authority"], each["visibility"]) for each in facts] == (
        [] if authority is None else [(authority, visibility)]
    )
    if facts:
        assert (facts[0]["confidence"], facts[0]["keywords"], facts[0]["kind"]) == (0.5, ["drink"], "preference")


def test_an_extraction_keeps_its_chat_and_extractor(place: JudgedStore) -> None:
    report = place.call("memory.write", extraction(item("at five")), chat="chat-9")
    other = place.call("memory.write", extraction(item("x", topic="b"), source_chat_id="chat-2"), chat="chat-9")
    for made, chat in ((report, "chat-9"), (other, "chat-2")):
        detail = place.call("long_term.detail", {"ref": made["outcomes"][0]["ref"]})
        assert [(each["source_chat_id"], each["extractor"]) for each in detail["revisions"]] == [(chat, "test 1")]


def test_an_accepted_procedural_candidate_is_a_runtime_skill(place: JudgedStore) -> None:
    given = candidate("c1", PUMP, "tool_observed", target="procedural", topic="Loud  pump", evidence_refs=[ref("u1")])
    report = place.call("memory.write", {"kind": "candidates", "candidates": [given]})
    assert report["outcomes"][0]["ref"] == "procedural:runtime_skill__loud-pump"
    shown = place.call("skill.detail", {"name": "loud-pump"})
    assert (shown["title"], shown["summary"], shown["procedure"]) == ("Loud pump", "Stop the pump.", PUMP)
    assert [each["source"] for each in shown["lineage"]] == ["candidate"]
    assert [each["evidence"] for each in shown["derived_refs"]] == [ref("u1")]
    assert [hit["ref"] for hit in place.call("memory.recall", {"query": "strainer"})["runtime_skills"]] == [
        "procedural:runtime_skill__loud-pump"
    ]


def test_a_skill_that_a_person_wrote_is_the_operator_s_word(place: JudgedStore) -> None:
    skill = {"name": "loud-pump", "topic": "t", "title": "t", "summary": "s", "content": "by hand"}
    place.call("memory.write", {"kind": "procedural", "source": "manual", "writes": [skill]})
    given = candidate("c1", "otherwise", target="procedural", topic="loud pump")
    assert place.verdict(given) == ("deferred", "weaker_authority")
    assert place.verdict({**given, "content": " BY hand"}) == ("accepted", "unchanged")
    (outcome,) = place.judge({**given, "authority": "operator"})
    assert (outcome["reason"], outcome["revision"]) == ("superseded", 2)
    assert outcome["superseded_ref"] == "procedural:runtime_skill__loud-pump/1"


def test_a_candidate_s_skill_that_a_person_edits_becomes_the_operator_s_word(place: JudgedStore) -> None:
    given = candidate("c1", "one way", "user_asserted", target="procedural", topic="pump")
    assert place.verdict(given) == ("accepted", "created")
    assert place.verdict({**given, "content": "another way"}) == ("accepted", "superseded")
    place.call("skill.edit", {"name": "pump", "procedure": "a third way", "edit_reason": "r"})
    assert place.verdict({**given, "content": "a fourth way"}) == ("deferred", "weaker_authority")


def test_what_waits_for_a_skill_to_go_is_judged_when_it_is_deleted(place: JudgedStore) -> None:
    given = candidate("c1", "by order", "operator", target="procedural", topic="pump")
    place.judge(given, {**given, "candidate_id": "c2", "content": "as seen", "authority": "tool_observed"})
    assert place.waiting() == [("c2", "weaker_authority")]
    place.call("skill.delete", {"name": "pump"})
    assert place.waiting() == []
    assert place.call("skill.detail", {"name": "pump"})["procedure"] == "as seen"


def test_a_fact_that_waits_is_let_be_when_a_skill_of_the_same_name_is_deleted(place: JudgedStore) -> None:
    for target in ("procedural", "long_term"):
        strong = candidate(f"{target}-1", "by order", "operator", target=target, topic="pump", kind="preference")
        place.judge(strong, {**strong, "candidate_id": f"{target}-2", "authority": "tool_observed", "content": "seen"})
    place.call("skill.delete", {"name": "pump"})
    assert place.waiting() == [("long_term-2", "weaker_authority")]


def test_private_material_is_sealed_kept_once_and_never_found(place: JudgedStore) -> None:
    garden = candidate("g", CANARY, target="private_garden", privacy="subject_private", evidence_refs=[ref("u1")])
    soul = candidate("s", CANARY, target="soul_candidate", privacy="soul_private")
    first, again, handed = place.judge(garden, garden, soul)
    assert [each["reason"] for each in (first, again, handed)] == ["created", "unchanged", "soul_handoff"]
    assert first["record_id"] == again["record_id"] and first["ref"] is None
    items = place.call("private.list", {})["items"]
    assert [(each["record_id"], each["state"]) for each in items] == [
        (first["record_id"], "kept"), (handed["record_id"], "handoff"),
    ]  # fmt: skip
    assert place.call("private.get", {"record_id": first["record_id"]})["content"] == CANARY
    assert {hit["plane"] for hit in place.call("memory.recall", {"query": CANARY})["hits"]} == {"evidence"}
    assert place.rows("SELECT derived FROM derived_ref") == [(f"private_garden:{first['record_id']}",)]
    assert place.waiting() == []


def test_private_material_that_waits_is_sealed_too_and_leaves_with_its_candidate(place: JudgedStore) -> None:
    claim = candidate(
        "c", CANARY, "assistant_claimed", target="private_garden", privacy="subject_private", topic=CANARY
    )
    (waits,) = place.judge(claim)
    assert waits["reason"] == "needs_assertion"
    (row,) = place.rows("SELECT topic_mac, content_mac, record_id FROM candidate")
    assert row == (None, None, waits["record_id"])
    assert place.rows("SELECT * FROM candidate_body") == []
    assert [each["state"] for each in place.call("private.list", {})["items"]] == ["waiting"]
    place.sleep(91)
    place.judge(candidate("n", "x"))
    assert place.call("private.list", {})["items"] == []


def test_a_private_claim_of_an_assistant_is_kept_when_the_user_says_it_too(place: JudgedStore) -> None:
    claim = candidate("c", "zen", "assistant_claimed", target="private_garden", privacy="subject_private")
    (waits,) = place.judge(claim)
    (said,) = place.judge({**claim, "candidate_id": "u", "authority": "user_asserted"})
    assert (said["reason"], said["record_id"]) == ("created", waits["record_id"])
    assert place.waiting() == []
    assert [each["state"] for each in place.call("private.list", {})["items"]] == ["kept"]


def test_what_waits_goes_when_the_turn_that_it_cites_is_erased_and_not_when_it_is_masked(place: JudgedStore) -> None:
    place.talk(message("a2", "assistant"), turn_id="t2")
    place.talk(message("a3", "assistant"), turn_id="t3")
    sealed = {"target": "private_garden", "privacy": "subject_private"}
    place.judge(
        candidate("message", CANARY, "assistant_claimed", topic="a", evidence_refs=[ref("a2", "t2")]),
        candidate("turn", CANARY, "assistant_claimed", topic="b", evidence_refs=[ref("a3", "t3"), ref(None, "t2")]),
        candidate("sealed", CANARY, "assistant_claimed", evidence_refs=[ref("a2", "t2")], **sealed),
        candidate("other", "I am", "assistant_claimed", topic="c", evidence_refs=[ref("a3", "t3")]),
    )
    place.lifecycle("mask", "t2")
    assert len(place.waiting()) == 4
    place.lifecycle("delete_raw", "t2")
    assert place.waiting() == [("other", "needs_assertion")]
    assert place.rows("SELECT content FROM candidate_body") == [("I am",)]
    assert place.rows("SELECT * FROM private_item") == []
    assert place.events()[-3:] == ["candidate_dropped"] * 3


@pytest.mark.parametrize("target", ["private_garden", "soul_candidate"])
def test_without_a_usable_identity_private_material_is_rejected_and_facts_are_kept(tmp_path: Path, target: str) -> None:
    path = str(tmp_path / "store.db")
    with open_runtime(path):
        pass
    key_file(path).unlink()
    with open_runtime(path) as memory:
        private = candidate("p", CANARY, target=target, privacy="soul_private")
        memory.long_term_policy(action="pause", topic="paused")
        found = memory.write(
            kind="candidates",
            candidates=[
                private,
                {**private, "topic": "paused"},
                candidate("f", "a fact"),
                candidate("q", "b", topic="paused"),
            ],
        )
        assert [each.reason for each in found.outcomes] == [
            "private_unavailable", "private_unavailable", "created", "policy_paused",
        ]  # fmt: skip
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert CANARY.encode() not in left
