"""Tokens, types, links and reasoning of chunks."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.domain.chunks.answering import respelt, tag_factor
from beetle.domain.chunks.kinds import ORDER, detect_type
from beetle.domain.chunks.linking import (
    FOLLOWS_MS,
    MOST_FOLLOWS,
    MOST_RELATED,
    Linkable,
    follows_strength,
    links_on_create,
    related_strength,
    strength_of,
)
from beetle.domain.chunks.reasoning import MOST_CONTRADICTIONS, Evidence, contradictions, reason
from beetle.domain.chunks.tokens import PATTERN, TokenRuler, count_tokens

MINUTE = 60_000
texts = st.text(st.sampled_from(list("aB3 .,\t\n\réあ漢😀\u200d\u0301-")), max_size=60)
few = settings(max_examples=150, derandomize=True, deadline=None)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("Hello world", 2),
        ("User prefers Python over JavaScript", 6),
        ("This is a longer sentence with about fifteen tokens.", 10),
        ("internationalization", 3),
        ("createChunkWithLinks()", 5),
        ("1234567", 3),
        ("用户决定", 4),
        ("\U0001f40d\U0001f40d", 2),
        (" " * 16, 1),
        ("a  b", 3),
        ("\r\n\r\n", 1),
    ],
)
def test_tokens_of_known_texts(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


@few
@given(texts, texts)
def test_tokens_leave_no_character_out_and_never_grow_by_joining(first: str, second: str) -> None:
    assert "".join(match.group() for match in re.finditer(PATTERN, first)) == first
    assert count_tokens(first + second) <= count_tokens(first) + count_tokens(second)


@few
@given(texts, st.integers(0, 60), st.integers(0, 60), st.integers(1, 20))
def test_a_ruler_never_measures_less_than_is_there(text: str, one: int, other: int, tokens: int) -> None:
    start, end = sorted((min(one, len(text)), min(other, len(text))))
    ruler = TokenRuler(text)
    assert ruler.count(start, end) >= count_tokens(text[start:end])
    if start < len(text):
        after = ruler.after(start, tokens)
        assert start < after and ruler.count(start, after) <= tokens
        assert after == len(text) or ruler.count(start, after + 1) == tokens + 1


@pytest.mark.parametrize(
    ("kind", "cues"),
    [
        (
            "decision",
            "We decided to use Python|I chose blue|They selected it|She has chosen|We are going with React|"
            "He opted for it|He opts for it|She went with it|The team settled on tea|We concluded it|"
            "User decided to use RLM architecture",
        ),
        (
            "pattern",
            "I usually wake up early|There's a pattern here|He tends to be late|They tend to|It happens every time|"
            "Most of the time I'm happy|Whenever I can|I generally prefer silence|They always like tea",
        ),
        (
            "preference",
            "User prefers Python over JavaScript|I prefer tea|She preferred it|He likes it|He wants it|I'd rather stay|"
            "I would like to learn|My favorite color|Mon favourite thing|I favour it|PREFERS",
        ),
        (
            "fact",
            "Python is a programming language|This is an important feature|They were a group|She works at Google|"
            "They work for us|He lived in Paris|He was born in 1990|He graduated from MIT|The team has 10 members|"
            "There are 50 states|There is a problem|It is\n a wrapped line|The office is located\r\nin Porto",
        ),
        (
            "note",
            "|Just a random thought|Testing 123|like_count|We must decide today|select * from chunks|It is\n\na|There",
        ),
    ],
)
def test_types_by_their_cues(kind: str, cues: str) -> None:
    assert {cue: detect_type(cue) for cue in cues.split("|")} == dict.fromkeys(cues.split("|"), kind)


def test_the_first_type_with_a_cue_wins() -> None:
    cues = dict(zip(ORDER, ("decided", "usually", "prefers", "is a"), strict=True))
    for place, kind in enumerate(ORDER):
        assert detect_type(" ".join(reversed([cues[each] for each in ORDER[place:]]))) == kind


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("pytesst prefernce", "pytest preference"),
        ("Pytest preference", None),
        ("unittests for pythn", "unittest for python"),
        ("прогулки по лессу", "прогулки по лесу"),
        ("cat dog zebras", None),
        ("xpytest", None),
    ],
)
def test_a_misspelt_word_is_taken_for_the_most_similar_one(query: str, expected: str | None) -> None:
    texts = ["User prefers pytest over unittest for Python", "preference testing", "Прогулки по лесу", "cut dot"]
    assert respelt(query, texts, nothing) == expected
    assert respelt(query, [], nothing) is None


def test_looking_for_misspelt_words_ends_when_it_is_told_to_and_compares_no_word_that_is_none() -> None:
    looks: list[int] = []

    def look() -> None:
        looks.append(1)
        if len(looks) > 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        respelt("wordd", (f"word{n}" for n in range(100)), look)
    # Each comparison of two such words would take seconds.
    long = "a" * 20_000
    assert respelt(f"{long}b", [f"{long}{letter}" for letter in "cdefgh"], nothing) is None
    most = [f"unknown{n}" for n in range(64)]
    assert respelt(" ".join([*most, "prefernce"]), ["preference"], nothing) is None
    assert respelt(" ".join(["prefernce", *most]), ["preference"], nothing) is not None


def test_a_word_in_a_tag_counts_more_than_one_in_the_text() -> None:
    factors = [tag_factor("which Apples or pears", tags) for tags in ((), ("apple",), ("pears", "apple trees"), ("a",))]
    assert factors == [1, 1.5, 2, 1]


def nothing() -> None:
    """Looks nowhere."""


def chunk(chunk_id: str, conversation: str, minutes: float, *tags: str) -> Linkable:
    return Linkable(chunk_id, conversation, int(minutes * MINUTE), frozenset(tags))


def test_a_chunk_follows_those_of_its_conversation_within_five_minutes() -> None:
    new = chunk("new", "c", 10)
    others = [
        chunk("at_the_start", "c", 5),
        chunk("too_old", "c", 4.999),
        chunk("same_moment", "c", 10),
        chunk("later", "c", 10.001),
        chunk("elsewhere", "d", 9),
        chunk("middle", "c", 7.5),
        new,
    ]
    assert [(link.kind, link.target) for link in links_on_create(new, others)] == [
        ("follows", "same_moment"),
        ("follows", "middle"),
        ("follows", "at_the_start"),
    ]


def test_a_chunk_is_related_to_those_elsewhere_with_a_tag_in_common() -> None:
    new = chunk("new", "c", 10, "Python", "ml")
    others = [
        chunk("one", "d", 1, "Python"),
        chunk("two", "d", 90, "ml", "Python", "more"),
        chunk("other_case", "d", 1, "python"),
        chunk("same_conversation", "c", 1, "Python"),
        chunk("untagged", "d", 1),
    ]
    assert [tuple(link) for link in links_on_create(new, others)] == [
        ("related_to", "two", 0.7),
        ("related_to", "one", 0.5),
    ]


def test_strengths() -> None:
    new = chunk("new", "c", 10)
    by_age = [follows_strength(new, chunk("old", "c", 10 - age)) for age in (0, 1, 2.5, 3.5, 5)]
    assert by_age == [1.0, 0.8, 0.5, pytest.approx(0.3), 0.3]
    shared = [related_strength(frozenset("abcdef"), frozenset("abcdef"[:n])) for n in (1, 2, 3, 4)]
    assert shared == [0.5, 0.7, 0.9, 0.9]
    assert strength_of("context_of", new, new) == 1.0
    assert strength_of("supports", new, new) == strength_of("contradicts", new, new) == 0.5


@few
@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.sampled_from("cd"), st.integers(0, 20), st.sets(st.sampled_from("xyz"))),
        max_size=60,
    )
)
def test_links_are_bounded_distinct_newest_first_and_in_any_order_the_same(
    given: list[tuple[int, str, int, set[str]]],
) -> None:
    others = list({f"k{each[0]}": chunk(f"k{each[0]}", each[1], each[2], *each[3]) for each in given}.values())
    new = chunk("k1", "c", 12, "x")
    links = links_on_create(new, others)
    assert links == links_on_create(new, list(reversed(others + others)))
    created = {each.chunk_id: each.created_ms for each in others}
    for kind, most in (("follows", MOST_FOLLOWS), ("related_to", MOST_RELATED)):
        targets = [link.target for link in links if link.kind == kind]
        assert len(targets) <= most and len(set(targets)) == len(targets) and "k1" not in targets
        assert [created[each] for each in targets] == sorted((created[each] for each in targets), reverse=True)
    assert all(0 < link.strength <= 1 for link in links)
    assert all(new.created_ms - created[link.target] <= FOLLOWS_MS for link in links if link.kind == "follows")


def said(
    chunk_id: str, content: str, *tags: str, confidence: float = 0.7, day: int = 1, linked: bool = True
) -> Evidence:
    return Evidence(chunk_id, content, confidence, day, f"2026-02-{day:02}", "note", tags, linked)


def test_two_preferences_of_one_tag_that_differ_contradict() -> None:
    python, rust = said("a", "User prefers Python", "lang"), said("b", "User preferred Rust", "lang")
    (found,) = contradictions([python, rust], nothing)
    assert (found.type, found.topic, found.first, found.second) == ("potential_preference_conflict", "lang", "a", "b")
    assert not contradictions([python, rust._replace(tags=("other",))], nothing)
    assert not contradictions([python, said("b", "user PREFERS python!", "lang")], nothing)


@pytest.mark.parametrize("denial", ["does not like", "doesn\u2019t like", "never likes", "dislikes", "avoids"])
def test_a_negation_on_one_side_contradicts(denial: str) -> None:
    likes, denies = said("a", "User likes apples", "fruit", "food"), said("b", f"User {denial} apples", "food", "fruit")
    (found,) = contradictions([likes, denies], nothing)
    assert found.type == "negation_conflict"
    assert not contradictions([denies, denies._replace(chunk_id="c")], nothing)


def test_a_pair_is_told_once_and_a_link_by_hand_first() -> None:
    first = said("a", "User likes apples", "fruit")._replace(contradicts=("b", "gone"))
    found = contradictions([first, said("b", "User hates apples", "fruit")], nothing)
    assert [(each.type, each.first, each.second) for each in found] == [
        ("explicit", "a", "b"),
        ("explicit", "a", "gone"),
    ]


def test_many_chunks_under_many_tags_are_told_up_to_a_number_and_comparing_ends_when_it_is_told_to() -> None:
    tags = tuple(f"tag{n}" for n in range(20))
    many = [said(f"c{n:03}", f"I prefer {' '.join(f'w{n}-{m}' for m in range(200))}", *tags) for n in range(256)]
    found = contradictions(many, nothing)
    assert len(found) == MOST_CONTRADICTIONS == len({(each.first, each.second) for each in found})

    def look() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        contradictions(many, look)


def test_a_synthesis_ranks_by_confidence_then_age_and_tells_what_stands_twice_once() -> None:
    evidence = [
        said("old", "Old rule", confidence=0.5),
        said("older", "Another\nrule", confidence=0.9, day=1),
        said("new", "New rule", confidence=0.9, day=2),
        said("again", "new  RULE", confidence=0.2, day=3),
    ]
    found = reason("rules", evidence, "synthesis", nothing)
    assert found.synthesis.splitlines()[3:] == [" 1. New rule", " 2. Another rule", " 3. Old rule"]
    assert found.sources == ["new", "older", "old"]
    assert found.confidence == pytest.approx((0.9 + 0.9 + 0.5) / 3)
    many = reason("rules", [said(f"k{each}", f"Rule {each}") for each in range(12)], "synthesis", nothing)
    assert many.synthesis.endswith(" ... and 5 other supporting memories.")


def test_conflicts_are_the_last_insight_of_every_analysis() -> None:
    pair = [said("a", "User prefers Python", "lang"), said("b", "User prefers Rust", "lang")]
    for analysis in ("synthesis", "comparison", "pattern", "gap"):
        found = reason("language", pair, analysis, nothing)
        assert found.insights[-1] == "Identified 1 potential conflicts in memory"
        assert found.sources == ["a", "b"] and len(found.contradictions) == 1
    assert reason("language", pair, "synthesis", nothing).insights[0] == "Preference identified: User prefers Python"


def test_comparison_pattern_and_gap() -> None:
    pair = [
        said("a", "Use Python", "lang", "web", confidence=0.5, linked=False),
        said("b", "Use Go", "lang", day=2)._replace(kind="decision"),
    ]
    compared = reason("which", pair, "comparison", nothing)
    assert compared.synthesis.splitlines()[2:] == [" Option 1: Use Python", " Option 2: Use Go"]
    assert compared.confidence == 0.7
    alone = reason("which", pair[:1], "comparison", nothing)
    assert (alone.synthesis, alone.confidence) == ("Need at least 2 items to compare", 0.0)
    patterns = reason("which", pair, "pattern", nothing)
    assert patterns.confidence == 0.75
    assert patterns.insights == [
        "Common themes: lang, web",
        "Source types: decision, note",
        "Evidence spans 2 unique days",
    ]
    gaps = reason("which", pair, "gap", nothing)
    assert gaps.confidence == 0.6
    assert gaps.insights == ["1 sources have low confidence scores", "1 items are isolated (no graph links)"]
    assert reason("which", pair[1:], "gap", nothing).insights == [
        "No significant structural gaps identified in the available evidence"
    ]
    assert reason("which", [], "synthesis", nothing).confidence == 0.0
