"""Any sequence of candidates of one topic: the strongest, latest assertion is current, and nothing beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.governance.judging import JudgedStore, Plain, candidate, message, ref
from tests.governance.specification import AUTHORITIES, rank

TEXTS = ("at five", "at six", "at seven")
SAID = (message("u1", content="\n".join(TEXTS)), message("a1", "assistant", "\n".join(TEXTS)))


class Assertion(NamedTuple):
    authority: str
    text: str
    backed: bool


steps = st.lists(
    st.builds(Assertion, st.sampled_from(AUTHORITIES), st.sampled_from(TEXTS), st.booleans()), min_size=1, max_size=12
)


@pytest.fixture(scope="module")
def place() -> Iterator[JudgedStore]:
    made = JudgedStore()
    made.talk(*SAID)
    yield made
    made.close()


NUMBERS = iter(range(1_000_000))


def asked(step: Assertion, topic: str, number: int, style: int) -> Plain:
    shown = (step.text, step.text.upper(), f"  {step.text.title()}\n")[style % 3]
    return candidate(
        f"c{number}", shown, step.authority, topic=(topic, topic.upper())[style % 2],
        evidence_refs=[ref("u1") if step.backed else ref("a1")],
    )  # fmt: skip


def counts(step: Assertion) -> bool:
    """What only an assistant has said asserts nothing that needs a user or a tool; what it claims asserts nothing."""
    return step.authority in ("operator", "host") or (step.backed and step.authority != "assistant_claimed")


def strongest_latest(taken: list[Assertion]) -> tuple[str, int] | None:
    """The text of the strongest, latest assertion and how strong it is; None when nothing was asserted."""
    asserted = [step for step in taken if counts(step)]
    if not asserted:
        return None
    best = min(rank(step.authority) for step in asserted)
    return next(step.text for step in reversed(asserted) if rank(step.authority) == best), best


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(taken=steps, at_once=st.booleans())
def test_the_strongest_latest_assertion_is_current_and_alone(
    place: JudgedStore, taken: list[Assertion], at_once: bool
) -> None:
    number = next(NUMBERS)
    topic = f"topic {number}"
    given_ = [asked(step, topic, place_, place_) for place_, step in enumerate(taken)]
    if at_once:
        place.judge(*given_)
    else:
        for each in given_:
            place.judge(each)
    found = [each for each in place.rows(
        "SELECT f.state, b.content, f.authority, b.topic FROM fact f JOIN fact_revision r"
        " ON r.fact = f.fact AND r.revision = f.revision JOIN fact_body b ON b.fact_body = r.body"
    ) if each[3].lower() == topic]  # fmt: skip
    current = [each for each in found if each[0] == "current"]
    wanted = strongest_latest(taken)
    if wanted is None:
        assert found == []
        return
    ((_, content, authority, _),) = current
    assert (content.strip().lower(), rank(authority)) == wanted
    assert {each[0] for each in found} <= {"current", "superseded"}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(taken=steps)
def test_after_every_deletion_what_is_current_is_what_waited_and_nothing_waits_behind_nothing(
    place: JudgedStore, taken: list[Assertion]
) -> None:
    topic = "gone"
    owner = f"owner {next(NUMBERS)}"
    place.talk(*SAID, owner=owner)
    place.judge(*(asked(step, topic, number, number) for number, step in enumerate(taken)), owner=owner)
    said: set[str] = set()
    for _ in range(len(taken) + 1):
        current = place.facts(owner=owner)
        assert len(current) <= 1
        said |= {each["content"].strip().lower() for each in place.facts("all", owner=owner) if each["content"]}
        if not current:
            break
        place.call("long_term.mutate", {"action": "delete", "ref": current[0]["ref"]}, owner=owner)
    else:
        raise AssertionError("more records came back than there were candidates")
    waiting = place.rows(
        "SELECT c.reason, b.content FROM candidate c JOIN space s ON s.space = c.space"
        " JOIN candidate_body b ON b.candidate = c.candidate WHERE s.memory_space_id = ?",
        f"space:{owner}",
    )
    assert {reason for reason, _ in waiting} <= {"needs_assertion", "evidence_does_not_bear", "weaker_authority"}
    # What waits for authority is what an operator has just deleted, or a stronger word has replaced.
    assert {text.strip().lower() for reason, text in waiting if reason == "weaker_authority"} <= said
