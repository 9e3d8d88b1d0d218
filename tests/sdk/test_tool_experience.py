"""The rule by which uses of a tool become experience."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beetle.domain.tool_experience import MINUTE_US, Use, weigh

outcomes = st.sampled_from(["succeeded", "failed", "denied", "aborted"])
uses = st.lists(
    st.builds(Use, outcomes, st.sampled_from([None, None, "a", "b", "c"]), st.integers(0, 10 * MINUTE_US)), max_size=12
)


def good(at: int, turn: str | None = None) -> Use:
    return Use("succeeded", turn, at)


@pytest.mark.parametrize(
    ("given", "sittings"),
    [
        ([], 0),
        ([good(0, "t1")], 1),
        ([good(0, "t1"), good(0, "t2")], 2),
        ([good(0, "t1"), good(9 * MINUTE_US, "t1")], 1),
        ([good(0), good(MINUTE_US - 1)], 1),
        ([good(0), good(MINUTE_US)], 2),
        ([good(0), good(MINUTE_US - 1), good(MINUTE_US)], 2),
        ([good(0), good(MINUTE_US), good(2 * MINUTE_US - 1), good(2 * MINUTE_US)], 3),
        ([good(0, "t1"), good(1)], 1),
        ([good(0, "t1"), good(MINUTE_US)], 2),
        ([good(0), good(1, "t1")], 1),
        ([good(0, "t1"), Use("failed", "t2", 5), Use("denied", "t3", 6), Use("aborted", "t4", 7)], 1),
    ],
)
def test_sittings_are_turns_or_calls_a_minute_apart(given: list[Use], sittings: int) -> None:
    found = weigh(given)
    assert (found.sittings, found.known) == (sittings, sittings >= 2)


def test_the_score_and_the_sentence_follow_from_the_counts() -> None:
    twice = [good(1_750_000_000_000_000, "t1"), good(1_750_000_000_000_001, "t2")]
    assert weigh(twice).score == 0.75
    assert weigh(twice).reason == "Succeeded in 2 of its last 2 uses, in 2 sittings; last on 2025-06-15."
    assert weigh([*twice, Use("failed", "t3", 5)]).score == 0.6
    assert weigh([]).score == 0.5


@given(uses)
def test_the_order_of_the_uses_does_not_matter(given: list[Use]) -> None:
    assert weigh(given) == weigh(list(reversed(given)))


@given(uses, st.sampled_from(["failed", "denied", "aborted"]))
def test_what_did_not_succeed_lowers_and_never_makes_experience(given: list[Use], outcome: str) -> None:
    before = weigh(given)
    after = weigh([*given, Use(outcome, "z", 3)])
    assert after.score < before.score and after.sittings == before.sittings


@given(uses, st.sampled_from(["a", "z", None]))
def test_a_success_raises_and_takes_no_sitting_away(given: list[Use], turn: str | None) -> None:
    before = weigh(given)
    after = weigh([*given, good(11 * MINUTE_US, turn)])
    assert after.score > before.score and after.sittings >= before.sittings
    assert 0 < before.score < 1
