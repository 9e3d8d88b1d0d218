"""The rules against the specification's table, for every combination; and the small pure parts around them."""

from __future__ import annotations

import itertools
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beetle.domain.governance import (
    SLUG_LIMIT,
    Case,
    Cited,
    EvidenceMessage,
    Standing,
    evidence_trouble,
    extraction_authority,
    extraction_privacy,
    first_line,
    judge,
    normalised,
    skill_name,
)
from tests.governance.specification import (
    AUTHORITIES,
    EVIDENCE,
    EXISTING,
    POLICIES,
    PRIVACIES,
    TARGETS,
    expected,
    related,
)

MESSAGES = {
    "none": (),
    "user": (EvidenceMessage("user", "shared", "live"),),
    "tool": (EvidenceMessage("tool", "shared", "live"),),
    "assistant": (EvidenceMessage("assistant", "shared", "live"),),
    "masked": (EvidenceMessage("user", "shared", "masked"),),
    "deleted": (EvidenceMessage("user", "shared", "deleted"),),
    "missing": (),
    "other_space": (),
}


def cited(kind: str) -> tuple[Cited, ...]:
    return () if kind == "none" else (Cited(f"evidence:local/talk/t1/{kind}", None, MESSAGES[kind]),)


def standing(existing: str, authority: str) -> Standing | None:
    if existing in ("none", "stale", "superseded", "deleted"):
        return None
    return Standing(authority, existing == "same")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("evidence", EVIDENCE)
def test_every_combination_gives_the_outcome_and_the_reason_of_the_table(evidence: str, policy: str) -> None:
    checked = 0
    for authority, privacy, target, existing, key in itertools.product(
        AUTHORITIES, PRIVACIES, TARGETS, EXISTING, (True, False)
    ):
        for other in related(authority, existing):
            case = Case(
                authority=authority,
                target=target,
                privacy=privacy,
                suppressed=policy.startswith("suppressed"),
                paused=policy == "paused",
                sealable=key or target not in ("private_garden", "soul_candidate"),
                evidence=cited(evidence),
                standing=standing(existing, other),
            )
            for by_operator in (True, False):
                wanted = expected(
                    authority, privacy, target, existing, evidence, policy, key=key, by_operator=by_operator
                )
                assert tuple(judge(case._replace(by_operator=by_operator))) == wanted, case
            checked += 1
    assert checked == 6000


def test_a_suppression_counts_before_a_pause() -> None:
    case = Case("operator", "long_term", "public_runtime", True, True, True, (), None)
    assert judge(case) == ("rejected", "policy_suppressed")


def test_of_two_refs_a_missing_one_is_told_before_one_that_is_unavailable() -> None:
    assert evidence_trouble((*cited("masked"), *cited("missing")), "public_runtime") == "evidence_missing"


def test_evidence_of_a_whole_turn_is_available_only_if_all_of_its_messages_are() -> None:
    turn = Cited("evidence:local/talk/t1", 1, (*MESSAGES["user"], *MESSAGES["masked"]))
    assert evidence_trouble((turn,), "public_runtime") == "evidence_unavailable"


@pytest.mark.parametrize(
    ("visibility", "reaches"),
    [
        ("shared", ("public_runtime", "shared_with_subject", "subject_private", "soul_private")),
        ("private", ("subject_private", "soul_private")),
        ("soul", ("soul_private",)),
        ("backend", ()),
        ("operator", ()),
    ],
)
def test_nothing_is_made_less_private_than_what_it_rests_on(visibility: str, reaches: tuple[str, ...]) -> None:
    evidence = (Cited("r", 1, (EvidenceMessage("user", visibility, "live"),)),)
    for privacy in PRIVACIES:
        wanted = None if privacy in reaches else "evidence_unavailable"
        assert evidence_trouble(evidence, privacy) == wanted, privacy


@pytest.mark.parametrize(
    ("roles", "authority"),
    [
        ((), "host"),
        (("system",), "host"),
        (("assistant",), "assistant_claimed"),
        (("assistant", "system"), "assistant_claimed"),
        (("assistant", "tool"), "tool_observed"),
        (("tool_result",), "tool_observed"),
        (("assistant", "tool", "user"), "user_asserted"),
    ],
)
def test_an_extracted_item_is_the_word_of_the_strongest_message_it_cites(
    roles: tuple[str, ...], authority: str
) -> None:
    evidence = tuple(Cited(role, 1, (EvidenceMessage(role, "shared", "live"),)) for role in roles)
    assert extraction_authority(evidence) == authority
    assert extraction_privacy(evidence) == "shared_with_subject"


def test_one_private_message_makes_an_extracted_item_private() -> None:
    messages = (EvidenceMessage("user", "shared", "live"), EvidenceMessage("user", "private", "live"))
    assert extraction_privacy((Cited("r", 1, messages),)) == "subject_private"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Favourite  Tea", " favourite\ttea\n"),
        ("ﬁne", "FINE"),
        ("\uff34\uff45\uff41", "tea"),
        ("Straße", "STRASSE"),
        ("e\u0301clair", "\u00c9CLAIR"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("a\u00a0b\u2003c", "A B C"),
    ],
)
def test_topics_that_people_read_alike_are_alike(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@given(st.text())
def test_normalising_settles(text: str) -> None:
    once = normalised(text)
    assert normalised(once) == once
    assert once == once.strip() and "  " not in once


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u3000"])
def test_a_blank_topic_is_empty(text: str) -> None:
    assert normalised(text) == ""


@pytest.mark.parametrize(
    ("topic", "candidate_id", "name"),
    [
        ("Loud coolant pump!", "c1", "loud-coolant-pump"),
        ("", "Cand 7", "cand-7"),
        ("!!!", "c/1", "c-1"),
        ("", "!!!", "candidate"),
        ("冷却ポンプ", "c1", "冷却ポンプ"),
    ],
)
def test_a_skill_is_named_after_its_topic(topic: str, candidate_id: str, name: str) -> None:
    assert skill_name(topic, candidate_id) == name


@given(st.text(max_size=256), st.text(min_size=1, max_size=256))
def test_a_skill_s_name_is_a_name(topic: str, candidate_id: str) -> None:
    name = skill_name(topic, candidate_id)
    assert 0 < len(name) <= SLUG_LIMIT + 9
    assert not set(name) & set(string.whitespace + "/\x00\x1f\x7f")


def test_two_long_topics_that_differ_at_their_end_name_two_skills() -> None:
    assert skill_name("a" * 200 + "b", "c") != skill_name("a" * 200 + "c", "c")


def test_a_skill_s_name_is_cut_only_beyond_its_bound() -> None:
    assert skill_name("a" * SLUG_LIMIT, "c") == "a" * SLUG_LIMIT
    longer = skill_name("a" * (SLUG_LIMIT + 1), "c")
    assert longer.startswith("a" * SLUG_LIMIT + "-") and len(longer) == SLUG_LIMIT + 9


@pytest.mark.parametrize("letter", "mutan")
def test_only_the_dashes_at_the_cut_are_taken_off(letter: str) -> None:
    assert skill_name(letter * 200, "c").startswith(letter * SLUG_LIMIT + "-")
    dashed = skill_name(letter * (SLUG_LIMIT - 1) + " " + letter * 50, "c")
    assert dashed.startswith(letter * (SLUG_LIMIT - 1) + "-") and "--" not in dashed


def test_a_first_line_is_not_blank_and_not_long() -> None:
    assert first_line("\n  \n one \n two") == "one"
    assert first_line("x" * 200) == "x" * 200
    assert first_line("x" * 300) == "x" * 199 + "…"
