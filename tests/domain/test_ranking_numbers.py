"""The numbers of the order of recall: each factor by itself, so that what is left is what the docstrings say."""

from __future__ import annotations

import pytest

from beetle.domain.lexical import parse_query
from beetle.domain.ranking import (
    WEIGHTS,
    WORD_FLOOR,
    Candidate,
    Ranked,
    Weights,
    rank,
)
from beetle.domain.surroundings import SESSION_GAP_US

DAY = 24 * 60 * 60 * 1_000_000
MAY_8_2023 = 1_683_504_000_000_000
POTTERY = parse_query("pottery")

PLAIN = Weights(
    near=0.0, far=0.0, answer=0.0, length=0.0, coverage=0.0, session=0.0, speaker=0.0, first_person=0.0, when=0.0,
    day=0.0, month=0.0, question=1.0, title=0.0, current=0.0, archived=1.0, alone=1.0,
)  # fmt: skip
"""Nothing but the scores of the index: no length, no bonus, no factor."""


def record(source_id: str, text: str = "pottery", bm25: float = 2.0, **fields: object) -> Candidate:
    """A turn of a conversation of its own, so that nothing is lent."""
    given = {"conversation": int(source_id), "at_us": MAY_8_2023, "sequence": 1} | fields
    return Candidate("evidence", source_id, text, bm25=bm25, **given)  # type: ignore[arg-type]


def scores(ranked: list[Ranked]) -> dict[str, float]:
    return {entry.candidate.source_id: entry.score for entry in ranked}


def test_without_any_weight_the_scores_are_those_of_the_index() -> None:
    pool = [record("1", "pottery", 8.0), record("2", "pottery " * 30, 4.0), record("3", "a pottery class", 2.0)]
    found = scores(rank(POTTERY, pool, weights=PLAIN))
    assert found == pytest.approx({"1": 1.0, "2": 0.5, "3": 0.25})


def test_length_counts_beside_the_median_and_up_to_ten_times_of_it() -> None:
    # Lengths plus one: 10, 20, 40, 1000; the median of four is the third. k1 is 1.2, b 0.75.
    lengths = {"1": 10, "2": 20, "3": 40, "4": 1000}
    pool = [record(name, "pottery".ljust(length - 1, "."), 2.0) for name, length in lengths.items()]
    found = scores(rank(POTTERY, pool, weights=PLAIN._replace(length=0.75)))
    factor = {name: 1 + 1.2 * (0.25 + 0.75 * min(10.0, length / 40)) for name, length in lengths.items()}
    assert found == pytest.approx({name: factor["1"] / each for name, each in factor.items()})


def test_in_a_store_of_a_few_rows_each_word_that_matches_counts_something() -> None:
    tiny = [record("1", "pottery lesson", 1e-6), record("2", "pottery alone", 1e-6), record("3", "neither", 1e-6)]
    found = scores(rank(parse_query("lesson pottery"), tiny, weights=PLAIN))
    assert found == pytest.approx({"1": 1.0, "2": 0.5, "3": 0.5})
    strong = record("4", "pottery", 20 * WORD_FLOOR)
    assert scores(rank(POTTERY, [*tiny[1:], strong], weights=PLAIN))["2"] == pytest.approx(1 / 20)


def test_all_the_words_of_the_query_double_the_score_and_a_rarer_word_counts_more() -> None:
    pool = [record("1", "lesson in pottery"), record("2", "lesson"), record("3", "pottery"), record("4", "pottery"),
            record("5", "neither")]  # fmt: skip
    found = scores(rank(parse_query("lesson pottery"), pool, weights=PLAIN._replace(coverage=1.0)))
    assert found["5"] == pytest.approx(found["1"] / 2)
    assert found["1"] > found["2"] > found["3"] == found["4"] > found["5"]


@pytest.mark.parametrize("mark", ["?", "\uff1f", "\u061f", "? \n"])
def test_a_turn_that_asks_is_damped_and_a_record_of_no_conversation_is_not(mark: str) -> None:
    weights = PLAIN._replace(question=0.75)
    found = scores(rank(POTTERY, [record("1", "pottery."), record("2", "pottery" + mark)], weights=weights))
    assert found["2"] == pytest.approx(0.75, rel=0.2) and found["2"] < 0.9
    alone = [record("1", "pottery ."), record("2", "pottery ?", conversation=None)]
    assert scores(rank(POTTERY, alone, weights=weights)) == pytest.approx({"1": 1.0, "2": 1.0})


def test_the_day_of_a_date_counts_whole_the_week_after_it_half_and_the_month_less() -> None:
    days = {-1: 1.25, 0: 1.5, 1: 1.25, 7: 1.25, 8: 1.25}
    weights = PLAIN._replace(day=0.5, month=0.25)
    for after, bonus in (days | {-8: 1.0, 24: 1.0}).items():
        pool = [record("1", "pottery 8 may", at_us=MAY_8_2023 - 400 * DAY),
                record("2", "pottery 8 may", at_us=MAY_8_2023 + after * DAY)]  # fmt: skip
        found = scores(rank(parse_query("pottery on 8 May 2023"), pool, weights=weights))
        assert found["2"] / found["1"] == pytest.approx(bonus), after
    # The week after reaches into the next month, and where the two differ the half of a day is no month.
    weights = PLAIN._replace(day=0.5, month=0.0)
    for after, bonus in {-1: 1.0, 0: 1.5, 1: 1.25, 7: 1.25, 8: 1.0}.items():
        pool = [record("1", at_us=MAY_8_2023 - 400 * DAY), record("2", at_us=MAY_8_2023 + after * DAY)]
        found = scores(rank(parse_query("pottery on 8 May 2023"), pool, weights=weights))
        assert found["2"] / found["1"] == pytest.approx(bonus), after


def test_of_one_record_that_was_found_twice_the_better_hit_counts() -> None:
    other = record("2", bm25=4.0)
    for pool in ([record("1", bm25=2.0), record("1", bm25=1.0), other], [record("1", bm25=1.0), record("1"), other]):
        assert scores(rank(POTTERY, pool, weights=PLAIN)) == pytest.approx({"1": 0.5, "2": 1.0})


def test_a_pause_of_just_thirty_minutes_is_within_a_sitting() -> None:
    hit = record("1", sequence=5)
    for step, at_us in ((1, SESSION_GAP_US), (1, SESSION_GAP_US // 2), (-1, -SESSION_GAP_US), (-1, 0)):
        beside = record("2", "said", 0.0, conversation=1, sequence=5 + step, at_us=MAY_8_2023 + at_us)
        assert scores(rank(POTTERY, [hit, beside], weights=WEIGHTS))["2"] > 0


def test_a_text_in_the_first_person_or_of_a_time_counts_by_one_more_than_its_weight() -> None:
    said = [record("1", "my pottery", speaker="Maria"), record("2", "a pottery", speaker="Maria")]
    found = scores(rank(parse_query("Maria pottery"), said, weights=PLAIN._replace(first_person=0.25)))
    assert found["1"] / found["2"] == pytest.approx(1.25)
    timed = [record("1", "pottery yesterday"), record("2", "pottery, of course")]
    found = scores(rank(parse_query("when was pottery"), timed, weights=PLAIN._replace(when=0.25)))
    assert found["1"] / found["2"] == pytest.approx(1.25)
