"""What cited words bear, and what they do not: by a table, and by changes that must make a statement unborne."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from beetle.domain.bearing import MOST_CONTENT, Said, bearing
from tests.domain.bearing_pairs import BORNE, UNBORNE, pairs

NAMES = ("Rita", "Tom", "Ana", "Rui", "Mallory", "Porto", "Faro")
VERBS = ("likes", "hates", "pays", "knows", "visits", "fears", "calls", "follows", "sells", "drives")
NOUNS = ("cheese", "boats", "cats", "music", "mountains", "tea")
few = settings(max_examples=40)
ENDINGS = ("", " in Porto", " with Rui", " since 2019", " on 3 May", " every day")


def borne(content: str, *texts: str, role: str = "user", speaker: str | None = None) -> bool:
    return bearing(content, [Said(role, text, speaker) for text in texts]).borne


@pytest.mark.parametrize(("content", "said"), pairs(BORNE))
def test_what_a_message_says_in_these_words_is_borne(content: str, said: str) -> None:
    assert borne(content, said)


@pytest.mark.parametrize(("content", "said"), pairs(UNBORNE))
def test_what_no_message_says_is_not_borne(content: str, said: str) -> None:
    assert not borne(content, said)


def test_the_tables_are_as_long_as_they_should_be() -> None:
    assert len(pairs(BORNE)) >= 60 and len(pairs(UNBORNE)) >= 120


@pytest.mark.parametrize("statement", [content for content, _ in pairs(BORNE)])
def test_a_statement_bears_itself(statement: str) -> None:
    assert borne(statement, statement)
    assert borne(statement, f"Hello. {statement}\nBye.")


def test_who_speaks_is_who_is_meant() -> None:
    assert borne("Ana lives in Porto.", "I live in Porto.", speaker="Ana")
    assert borne("Ana Lima lives in Porto.", "I live in Porto.", speaker="Ana Lima")
    assert not borne("Ana lives in Porto.", "I live in Porto.", speaker="Rui")
    assert not borne("Ana Reis lives in Porto.", "I live in Porto.", speaker="Ana Lima")
    assert borne("The user lives in Porto.", "You live in Porto.", role="assistant")
    assert not borne("The user lives in Porto.", "I live in Porto.", role="assistant")
    assert borne("The assistant knows pumps.", "I know pumps.", role="assistant")
    assert not borne("The assistant knows pumps.", "I know pumps.")
    assert not borne("The user lives in Porto.", "I live in Porto.", role="tool")


def test_words_of_two_messages_make_no_third_statement() -> None:
    assert not borne("The user lives in Faro.", "I live in Porto.", "Faro is warm.")
    assert not borne("Tom pays Ana.", "Tom pays Rita.", "Ana pays Bob.")
    assert borne("The user lives in Porto. The user likes tea.", "I live in Porto.", "I like tea.")


def test_it_is_told_who_bears_it_and_which_words_nobody_said() -> None:
    found = bearing("The user lives in Porto.", [Said("user", "Hello."), Said("user", "I live in Porto.")])
    assert found == (True, (1,), ())
    found = bearing("The user lives in Lisbon with Mallory.", [Said("user", "I live in Porto.")])
    assert (found.borne, found.missing) == (False, ("lisbon", "with", "mallory"))
    assert bearing("x", []) == (False, (), ())


@st.composite
def statements(draw: st.DrawFn) -> tuple[str, str, str, str]:
    """Who, does what, to whom, and the rest; no two parts alike."""
    who, whom = draw(st.permutations([*NAMES, *NOUNS]).filter(lambda each: each[0] in NAMES))[:2]
    return who, draw(st.sampled_from(VERBS)), whom, draw(st.sampled_from(ENDINGS))


def said(who: str, verb: str, whom: str, rest: str) -> str:
    return f"{who} {verb} {whom}{rest}."


@few
@given(statements())
def test_a_sentence_bears_itself_in_the_first_and_the_third_person(one: tuple[str, str, str, str]) -> None:
    who, verb, whom, rest = one
    assert borne(said(*one), said(*one))
    assert borne(said("The user", verb, whom, rest), said("I", verb[:-1], whom, rest))
    assert borne(said(*one), said("I", verb[:-1], whom, rest), speaker=who)


@few
@given(statements(), st.sampled_from(VERBS))
def test_another_predicate_is_not_borne(one: tuple[str, str, str, str], verb: str) -> None:
    assume(verb != one[1])
    assert not borne(said(one[0], verb, *one[2:]), said(*one))
    assert not borne(said("The user", verb, *one[2:]), said("I", one[1][:-1], *one[2:]))


@few
@given(statements(), st.sampled_from(NAMES), st.booleans())
def test_another_name_is_not_borne(one: tuple[str, str, str, str], name: str, first: bool) -> None:
    assume(name not in said(*one))
    changed = (name, *one[1:]) if first else (*one[:2], name, one[3])
    assert not borne(said(*changed), said(*one))


@few
@given(statements())
def test_two_names_that_change_places_are_not_borne(one: tuple[str, str, str, str]) -> None:
    who, verb, whom, rest = one
    assert not borne(said(whom, verb, who, rest), said(*one))
    assert not borne(said(whom, verb, "the user", rest), said("I", verb[:-1], whom, rest))


NEGATIONS = ("does not {}", "doesn't {}", "never {}s", "no longer {}s", "hardly {}s", "stopped {}ing", "won't {}")


@few
@given(statements(), st.sampled_from(NEGATIONS))
def test_a_negation_that_comes_or_goes_is_not_borne(one: tuple[str, str, str, str], negation: str) -> None:
    who, verb, whom, rest = one
    denied = said(who, negation.format(verb[:-1]), whom, rest)
    assert borne(denied, denied)
    assert not borne(denied, said(*one))
    assert not borne(said(*one), denied)


@few
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(("dogs", "euros", "km")))
def test_another_number_is_not_borne(one: int, other: int, unit: str) -> None:
    assume(one != other)
    assert borne(f"The user has {one} {unit}.", f"I have {one} {unit}.")
    assert not borne(f"The user has {other} {unit}.", f"I have {one} {unit}.")


FRAMES = (
    "If {}",
    "{}?",
    "Tom says {}",
    "Maybe {}",
    "Imagine {}",
    'He wrote "{} and more of this"',
    "Does it matter if {}",
)


@few
@given(statements(), st.sampled_from(FRAMES))
def test_what_is_asked_supposed_or_told_of_others_is_not_borne(one: tuple[str, str, str, str], frame: str) -> None:
    statement = said(*one).rstrip(".")
    assert not borne(said(*one), frame.format(statement))


@few
@given(st.text(max_size=300), st.lists(st.text(max_size=300), max_size=3))
def test_any_text_is_answered(content: str, texts: list[str]) -> None:
    found = bearing(content, [Said("user", text) for text in texts])
    assert found.borne is bool(found.by)


@pytest.mark.parametrize(
    "text",
    ["a " * 100_000, "and " * 100_000, "Tom and " * 50_000, "I like ham, " * 30_000, "not " * 100_000, "." * 200_000,
     "'s" * 100_000, '"' * 200_000, "我喜欢" * 60_000, "1," * 100_000],
    ids=lambda text: text[:8],
)  # fmt: skip
def test_a_long_message_costs_no_more_than_a_bounded_number_of_steps(text: str) -> None:
    assert not borne("The user likes Porto and Tom and Ana.", text)
    assert borne("The user lives in Porto.", f"{text}\nI live in Porto.")
    assert not borne("Tom and " * 200 + "Tom", text)


def test_a_long_content_is_borne_by_nothing() -> None:
    long = "I live in Porto. " * MOST_CONTENT
    assert not borne(long, long)
