"""The order of recall: what lends, what is preferred, and what must change nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beetle.domain import ranking
from beetle.domain.excerpts import excerpt
from beetle.domain.lexical import parse_query
from beetle.domain.ranking import WEIGHTS, Candidate, Ranked, neighbours_wanted, rank
from beetle.domain.surroundings import SESSION_GAP_US

MINUTE = 60 * 1_000_000
MAY_8_2023 = 1_683_504_000_000_000
DAY = 24 * 60 * MINUTE
JANUARY_2_2026 = 1_767_355_445_000_000


def turn(sequence: int, text: str = "said", bm25: float = 0.0, **fields: object) -> Candidate:
    given = {"conversation": 1, "at_us": MAY_8_2023 + sequence * MINUTE, "source_id": f"e{sequence}"} | fields
    return Candidate(plane="evidence", sequence=sequence, text=text, bm25=bm25, **given)  # type: ignore[arg-type]


def order(ranked: list[Ranked]) -> list[str]:
    return [entry.candidate.source_id for entry in ranked]


def scores(ranked: list[Ranked]) -> dict[str, float]:
    return {entry.candidate.source_id: entry.score for entry in ranked}


def why(ranked: list[Ranked], source_id: str) -> tuple[str, ...]:
    return next(entry.why for entry in ranked if entry.candidate.source_id == source_id)


POTTERY = parse_query("pottery")

texts = st.one_of(
    st.text(max_size=60),
    st.sampled_from(["I made pottery yesterday", "Did you go?", "my pottery class", "in May 2023"]),
)
candidates = st.builds(
    Candidate,
    plane=st.sampled_from(["evidence", "procedural"]),
    source_id=st.integers(0, 40).map(str),
    text=texts,
    at_us=st.one_of(st.integers(0, 6).map(lambda n: MAY_8_2023 + n * 20 * MINUTE), st.integers(-(2**63), 2**63 - 1)),
    bm25=st.one_of(st.sampled_from([0.0, -1.0]), st.floats(1e-6, 50)),
    conversation=st.one_of(st.none(), st.integers(1, 3)),
    sequence=st.integers(0, 8),
    speaker=st.one_of(st.none(), st.sampled_from(["Maria", "user", "", "東京"])),
    title=texts,
    archived=st.booleans(),
)
pools = st.lists(candidates, max_size=25)
queries = st.one_of(
    st.text(max_size=40),
    st.sampled_from(["When did Maria do pottery in May 2023?", "my class on 8 May", "on 29 February", "pottery class"]),
)


@given(queries, pools, st.integers(1, 3))
def test_every_match_comes_back_once_in_falling_order_with_scores_up_to_one(
    query: str, pool: list[Candidate], current: int
) -> None:
    ranked = rank(parse_query(query), pool, asker=("user",), current_conversation=current)
    keys = [(entry.candidate.plane, entry.candidate.source_id) for entry in ranked]
    assert len(keys) == len(set(keys))
    assert {(c.plane, c.source_id) for c in pool if c.bm25 > 0} <= set(keys) <= {(c.plane, c.source_id) for c in pool}
    values = [entry.score for entry in ranked]
    assert values == sorted(values, reverse=True)
    assert all(0 < value <= 1 for value in values)
    assert values[:1] in ([], [1.0])


@given(queries, st.lists(candidates, max_size=25, unique_by=lambda c: (c.plane, c.source_id)), st.randoms())
def test_the_order_candidates_come_in_does_not_matter(query: str, pool: list[Candidate], random: object) -> None:
    shuffled = list(pool)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert rank(parse_query(query), pool) == rank(parse_query(query), shuffled)


@given(queries, pools, st.booleans(), st.integers(0, 6))
def test_a_part_of_the_answer_is_what_the_whole_has_of_it(
    query: str, pool: list[Candidate], matching: bool, limit: int
) -> None:
    parsed = parse_query(query)
    whole = [each for each in rank(parsed, pool) if "lexical" in each.why or not matching]
    assert rank(parsed, pool, matching=matching, limit=limit) == whole[:limit]


def test_the_columns_of_candidates_are_their_fields() -> None:
    assert ranking._Columns._fields == Candidate._fields


def test_a_turn_beside_a_hit_is_found_through_it() -> None:
    ranked = rank(POTTERY, [turn(5, "pottery", 4.0), turn(6), turn(7), turn(8)])
    assert order(ranked)[:3] == ["e5", "e6", "e7"]
    assert "e8" not in scores(ranked)
    assert why(ranked, "e5")[0] == "lexical"
    assert "neighbour" in why(ranked, "e6")
    assert "lexical" not in why(ranked, "e6")


@pytest.mark.parametrize("text", ["the pottery class ended", "two pottery classes", "my pottery-class is over"])
def test_a_phrase_that_no_score_has_yet_counts_where_the_text_has_it(text: str) -> None:
    query, apart = parse_query("pottery class"), turn(50, "a class about the making of pottery", 4.0)
    hit = turn(5, text.ljust(len(apart.text)), 4.0)
    assert scores(rank(query, [hit, apart]))["e50"] == 1
    ranked = rank(query, [hit, apart], phrases={"pottery class": 4.0})
    assert order(ranked) == ["e5", "e50"] and scores(ranked)["e50"] <= 0.5
    assert rank(query, [hit._replace(bm25=0.0), apart], phrases={"pottery class": 4.0})[0].candidate == apart


def test_a_turn_between_two_hits_ranks_above_a_turn_beside_one() -> None:
    ranked = rank(POTTERY, [turn(1, "pottery", 3.0), turn(2), turn(3, "pottery", 3.0), turn(4)])
    assert scores(ranked)["e2"] > scores(ranked)["e4"]


def test_a_question_lends_more_to_its_answer_than_to_the_turn_before() -> None:
    ranked = rank(POTTERY, [turn(1), turn(2, "how was pottery?", 3.0), turn(3)])
    assert scores(ranked)["e3"] > scores(ranked)["e1"] > 0


@given(st.integers(1, 10_000), st.sampled_from([-2, -1, 1, 2]))
def test_nothing_is_lent_across_a_pause_of_more_than_thirty_minutes(beyond: int, step: int) -> None:
    hit = turn(5, "pottery", 4.0)
    near = turn(5 + step, at_us=hit.at_us + (SESSION_GAP_US if step > 0 else -SESSION_GAP_US))
    far = near._replace(at_us=near.at_us + (beyond if step > 0 else -beyond))
    assert scores(rank(POTTERY, [hit, near]))[near.source_id] > 0
    assert far.source_id not in scores(rank(POTTERY, [hit, far]))


def test_a_hit_lends_nothing_to_the_same_place_of_another_conversation() -> None:
    for here, there in ((1, 2), (2, 1)):
        ranked = rank(POTTERY, [turn(5, "pottery", 4.0, conversation=here), turn(6, conversation=there)])
        assert order(ranked) == ["e5"]


@given(queries, pools)
def test_nothing_is_lent_between_conversations_or_to_a_record_of_none(query: str, pool: list[Candidate]) -> None:
    lenders = {c.conversation for c in pool if c.bm25 > 0}
    for entry in rank(parse_query(query), pool):
        if entry.candidate.conversation is None:
            assert "neighbour" not in entry.why
        assert entry.candidate.bm25 > 0 or entry.candidate.conversation in lenders


def test_a_hidden_turn_neither_lends_nor_passes_anything_on() -> None:
    visible = [turn(5, "pottery", 2.0), turn(7), turn(8)]
    hidden = turn(6, "pottery", 9.0)
    without_near = WEIGHTS._replace(near=0.0, answer=0.0)
    assert rank(POTTERY, visible) == rank(POTTERY, visible, weights=without_near)
    assert order(rank(POTTERY, visible)) == ["e5", "e7"]
    assert scores(rank(POTTERY, [*visible, hidden]))["e8"] > 0


def test_a_fetched_neighbour_that_is_also_a_hit_counts_once_as_the_hit() -> None:
    hit = turn(5, "pottery", 4.0)
    assert rank(POTTERY, [hit._replace(bm25=0.0), hit]) == rank(POTTERY, [hit])


def test_the_places_wanted_are_within_two_turns_of_the_best_hits_and_not_yet_there() -> None:
    pool = [turn(5, bm25=4.0), turn(6, bm25=1.0), turn(90, bm25=0.5), turn(1, bm25=9.0, conversation=None)]
    assert neighbours_wanted(pool, 2) == [(1, 4), (1, 3), (1, 7), (1, 8)]
    assert neighbours_wanted([], 5) == []


@given(pools, st.integers(0, 10))
def test_the_places_wanted_are_few_distinct_and_missing(pool: list[Candidate], top: int) -> None:
    wanted = neighbours_wanted(pool, top)
    assert len(wanted) == len(set(wanted)) <= 4 * top
    assert not set(wanted) & {(c.conversation, c.sequence) for c in pool}


@pytest.mark.parametrize(
    ("query", "preferred", "other", "signal"),
    [
        ("Maria pottery", {"speaker": "Maria"}, {"speaker": "John"}, "speaker"),
        ("pottery on 8 May 2023", {}, {"at_us": MAY_8_2023 - 90 * DAY}, "date"),
        ("pottery on 1 May", {"at_us": MAY_8_2023 - 3 * DAY}, {"at_us": MAY_8_2023 - 90 * DAY}, "date"),
        ("pottery on 30 December", {"at_us": JANUARY_2_2026}, {"at_us": MAY_8_2023}, "date"),
        ("pottery on 30 April", {"at_us": MAY_8_2023 - 3 * DAY}, {"at_us": MAY_8_2023}, "date"),
        ("pottery in May", {}, {"at_us": MAY_8_2023 + 90 * DAY}, "date"),
        ("when was pottery", {"text": "pottery yesterday"}, {"text": "pottery, of course"}, "time_expression"),
        (
            "Maria pottery",
            {"speaker": "Maria", "text": "My pottery"},
            {"speaker": "Maria", "text": "A pottery"},
            "speaker",
        ),
        ("my pottery", {"speaker": "user"}, {"speaker": "assistant"}, "speaker"),
        ("pottery", {"text": "pottery again"}, {"text": "a pottery ?"}, "lexical"),
        ("pottery", {}, {"archived": True}, "lexical"),
        ("pottery", {"title": "Pottery at home"}, {"title": "Cooking"}, "title"),
        ("pottery", {"conversation": 7}, {"conversation": 8}, "current_conversation"),
        ("pottery class", {"text": "pottery class"}, {"text": "pottery"}, "phrase"),
        ("pottery", {"at_us": MAY_8_2023 + DAY}, {"at_us": MAY_8_2023}, "lexical"),
    ],
)
def test_of_two_equal_hits_the_one_with_the_signal_comes_first(
    query: str, preferred: dict[str, object], other: dict[str, object], signal: str
) -> None:
    pool = [
        turn(1, **({"text": "pottery", "bm25": 2.0, "source_id": "b", "conversation": 7} | preferred)),  # type: ignore[arg-type]
        turn(1, **({"text": "pottery", "bm25": 2.0, "source_id": "a", "conversation": 8} | other)),  # type: ignore[arg-type]
    ]
    ranked = rank(parse_query(query), pool, asker=("user",), current_conversation=7 if "current" in signal else None)
    assert order(ranked) == ["b", "a"]
    assert signal in why(ranked, "b")


@pytest.mark.parametrize(
    ("query", "text", "counts"),
    [
        ("when was pottery", "pottery yesterday", True),
        ("when was pottery", "pottery, of course", False),
        ("pottery", "pottery yesterday", False),
    ],
)
def test_a_time_expression_counts_in_the_answer_to_when_alone(query: str, text: str, counts: bool) -> None:
    assert ("time_expression" in why(rank(parse_query(query), [turn(1, text, 1.0)]), "e1")) == counts


def test_what_damps_a_hit_damps_it_by_each_factor() -> None:
    kinds = {"plain": ".", "question": "?", "superseded": ".", "archived": ".", "all": "?"}
    pool = [
        turn(
            1, f"a pottery {end}", 2.0, source_id=name, conversation=place,
            superseded=name in ("superseded", "all"), archived=name in ("archived", "all"),
        )
        for place, (name, end) in enumerate(kinds.items())
    ]  # fmt: skip
    found = scores(rank(POTTERY, pool))
    assert found["plain"] == 1 and max(found["question"], found["superseded"], found["archived"]) < 1
    assert found["all"] == pytest.approx(found["question"] * found["superseded"] * found["archived"])


def test_the_asker_is_not_meant_when_the_query_does_not_say_i() -> None:
    assert "speaker" not in why(rank(POTTERY, [turn(1, "pottery", 1.0, speaker="user")], asker=("user",)), "e1")


def test_no_signal_brings_back_what_neither_matches_nor_stands_beside_a_match() -> None:
    stranger = turn(90, "I went in May", speaker="Maria", conversation=2)
    ranked = rank(
        parse_query("When did Maria go in May 2023?"), [turn(1, "went", 0.1), stranger], current_conversation=2
    )
    assert order(ranked) == ["e1"]


def test_a_turn_that_holds_both_words_ranks_above_one_that_scores_the_same_for_one() -> None:
    pool = [turn(1, "pottery pottery", 3.0), turn(50, "pottery lesson", 3.0), *(turn(n, "x", 0.1) for n in (20, 30))]
    assert order(rank(parse_query("lesson pottery"), pool))[0] == "e50"


def test_a_skill_of_the_same_score_stands_among_the_turns_and_a_better_one_above() -> None:
    skill = Candidate("procedural", "s1", "how to fire pottery", MAY_8_2023, 4.0, title="Fire pottery")
    talk = [turn(n, "pottery", 4.0) for n in range(5, 8)]
    assert order(rank(POTTERY, [skill, turn(20, "pottery", 4.0), turn(21)]))[0] == "s1"
    assert order(rank(POTTERY, [skill._replace(bm25=12.0), *talk]))[0] == "s1"
    assert order(rank(POTTERY, [skill._replace(bm25=1.0), *talk]))[-1] == "s1"


def test_hits_of_one_sitting_lift_each_other() -> None:
    sitting = [turn(n, "pottery", 2.0) for n in (10, 14, 18)]
    alone = turn(40, "pottery", 2.0, conversation=2)
    ranked = rank(POTTERY, [alone, *sitting])
    assert order(ranked)[-1] == "e40"
    assert "session" in why(ranked, "e10")


def test_weights_are_shares_that_a_caller_can_set() -> None:
    pool = [turn(5, "pottery", 4.0), turn(6)]
    assert order(rank(POTTERY, pool, weights=WEIGHTS._replace(near=0.0))) == ["e5"]


@given(st.text(max_size=600), queries, st.integers(0, 300))
def test_an_excerpt_is_never_longer_than_asked_and_a_part_of_the_content(content: str, query: str, length: int) -> None:
    parsed = parse_query(query)
    part = excerpt(content, parsed, length)
    assert len(part) <= length
    assert part == excerpt(content, parsed, length)
    if len(content) <= length:
        assert part == content
    else:
        assert part.removeprefix("…").removesuffix("…") in content


def test_an_excerpt_shows_the_place_with_most_of_the_words_cut_between_words() -> None:
    content = "filler words " * 40 + "the pottery class was on the hill " + "more of nothing " * 40 + "pottery"
    part = excerpt(content, parse_query("pottery class hill"), 80)
    assert "pottery class was on the hill" in part
    assert part.startswith("…")
    assert part.endswith("…")
    assert set(part.strip("…").split()) <= set(content.split())


def test_an_excerpt_without_a_match_is_the_beginning() -> None:
    assert excerpt("one two three four five", POTTERY, 12) == "one two…"


def test_an_excerpt_finds_inflections_and_unspaced_text() -> None:
    assert "camping" in excerpt("x " * 200 + "we were camping " + "y " * 200, parse_query("camped"), 40)
    assert "東京" in excerpt("あ" * 200 + "東京" + "い" * 200, parse_query("東京"), 40)


@pytest.mark.parametrize("cluster", ["e\u0301", "👩\u200d👩\u200d👧", "👍🏽", "🇫🇷", "न\u093f", "\r\n", "❤\ufe0f"])
@pytest.mark.parametrize("length", range(14, 40))
def test_an_excerpt_does_not_cut_what_is_drawn_as_one(cluster: str, length: int) -> None:
    content = cluster * 60 + "pottery" + cluster * 60
    part = excerpt(content, POTTERY, length)
    assert part.strip("…").replace(cluster, "") == "pottery"


def test_an_excerpt_is_as_long_as_asked_where_nothing_is_to_cut_between() -> None:
    content = "x" * 500 + "pottery" + "y" * 500
    parsed = parse_query("pottery")
    assert len(excerpt("z" * 1000, parsed, 100)) == 99  # room for two marks, and one was needed
    assert len(excerpt("茶" * 500 + "陶芸" + "茶" * 500, parse_query("陶芸"), 100)) == 100
    assert len(excerpt(content, parsed, 100)) == 99


def test_an_excerpt_begins_and_ends_with_a_word() -> None:
    content = "before " * 60 + "pottery " + "behind " * 60
    found = excerpt(content, POTTERY, 80)
    assert "pottery" in found
    assert found.startswith("…before") and found.endswith("behind…")


def test_an_excerpt_shows_the_whole_word_and_not_one_that_ends_with_it() -> None:
    content = "handpottery " + "and so on " * 60 + "my pottery " + "and so on " * 60
    assert "my pottery" in excerpt(content, POTTERY, 60)


def test_an_excerpt_shows_two_words_together_rather_than_each_by_itself() -> None:
    filler = "and so on " * 60
    content = f"pottery {filler} lesson {filler} a lesson in pottery {filler} pottery {filler} lesson"
    assert "a lesson in pottery" in excerpt(content, parse_query("lesson pottery"), 60)


@pytest.mark.parametrize("shift", range(4))
def test_an_excerpt_never_cuts_a_flag_in_two(shift: int) -> None:
    flags = "\U0001f1e9\U0001f1ea" * 60
    for length in range(20, 28):
        found = excerpt("a" * shift + flags, parse_query("nothing"), length)
        assert found[shift:-1] in flags and len(found[shift:-1]) % 2 == 0
        middle = excerpt("a" * shift + flags + "陶芸" + flags, parse_query("陶芸"), length)
        left = middle.strip("…").split("陶芸")[0].lstrip("a")
        assert len(left) % 2 == 0
