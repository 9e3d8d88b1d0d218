"""The table through `memory.write`: every authority, privacy, target and existing state, in one store."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.governance.judging import JudgedStore, Plain, candidate, message, ref
from tests.governance.specification import (
    AUTHORITIES,
    EXISTING,
    PRIVACIES,
    PRIVATE_TARGETS,
    TAKES,
    TARGETS,
    expected,
    related,
)

SAID, OTHERWISE = "It is kept in the blue box", "it is kept in the red box"
MADE_BY_MUTATION = {"stale": "mark_stale", "superseded": "supersede", "deleted": "delete"}


class Given(NamedTuple):
    """One combination, and the authority of the record that stands there."""

    number: int
    authority: str
    privacy: str
    target: str
    existing: str
    evidence: str
    other: str

    @property
    def topic(self) -> str:
        return f"topic {self.number}"

    @property
    def said(self) -> str:
        """The message that says both of its texts."""
        return ref(f"u{self.number}", f"t{self.number // 100}")

    def text(self, said: str) -> str:
        # The private plane keeps no topics, so each of its texts is its own.
        return f"{said} ({self.number})" if self.target in PRIVATE_TARGETS else said

    def candidate(self) -> Plain:
        return candidate(
            f"c{self.number}",
            self.text(SAID),
            self.authority,
            target=self.target,
            privacy=self.privacy,
            topic=self.topic,
            evidence_refs=[self.said] if self.evidence == "user" else [],
        )

    def standing(self) -> Plain:
        """What is to be there before."""
        fitting = TAKES[self.target].split()
        says = SAID.upper() + "  " if self.existing == "same" and self.target not in PRIVATE_TARGETS else OTHERWISE
        return candidate(
            f"e{self.number}",
            self.text(SAID) if self.existing == "same" and self.target in PRIVATE_TARGETS else self.text(says),
            self.other,
            target=self.target,
            privacy=self.privacy if self.privacy in fitting else fitting[0],
            topic=self.topic.upper(),
            evidence_refs=[self.said],
        )


def combinations() -> Iterator[Given]:
    numbers = itertools.count(1)
    product = itertools.product(AUTHORITIES, PRIVACIES, TARGETS, EXISTING, ("none", "user"))
    for authority, privacy, target, existing, evidence in product:
        # One record of each relation that there is; the pure table has every one.
        for other in related(authority, existing)[:1]:
            yield Given(next(numbers), authority, privacy, target, existing, evidence, other)


def wanted(given: Given) -> tuple[str, str]:
    existing = given.existing if prepared(given) else "none"
    if given.target in PRIVATE_TARGETS and existing != "same":
        existing = "none"
    return expected(given.authority, given.privacy, given.target, existing, given.evidence, "none")


def prepared(given: Given) -> bool:
    """Whether a record is to be made first. A skill is never stale, and private material is only kept."""
    if given.existing == "none" or given.target == "soul_candidate":
        return False
    if given.target == "procedural":
        return given.existing not in ("stale", "superseded")
    return given.target not in PRIVATE_TARGETS or given.existing not in MADE_BY_MUTATION


@pytest.fixture(scope="module")
def place() -> Iterator[JudgedStore]:
    made = JudgedStore()
    for _, cases in itertools.groupby(combinations(), lambda each: each.number // 100):
        said = [(each.number, f"{each.text(SAID)}.\n{each.text(OTHERWISE)}.") for each in cases]
        made.talk(*(message(f"u{number}", content=text) for number, text in said), turn_id=f"t{said[0][0] // 100}")
    yield made
    made.close()


def batches(items: list[Plain]) -> Iterator[list[Plain]]:
    for start in range(0, len(items), 500):
        yield items[start : start + 500]


def bring_about(place: JudgedStore, cases: list[Given]) -> None:
    """Every record that must stand there, in the state that the combination names."""
    refs: dict[str, str] = {}
    for batch in batches([each.standing() for each in cases if prepared(each)]):
        # No assistant's claim becomes a fact by itself; an older store may have one.
        claimed = [each for each in batch if each["authority"] == "assistant_claimed"]
        made = [{**each, "authority": "host"} if each in claimed else each for each in batch]
        for given, outcome in zip(batch, place.judge(*made), strict=True):
            assert outcome["outcome"] == "accepted", (given, outcome)
            refs[given["candidate_id"]] = outcome["ref"]
        place.weaken(refs[each["candidate_id"]] for each in claimed)
    for each in cases:
        if each.existing not in MADE_BY_MUTATION or not prepared(each):
            continue
        fact = refs[f"e{each.number}"]
        if each.target == "procedural":
            place.call("skill.delete", {"name": fact.partition(":")[2]})
            continue
        action = MADE_BY_MUTATION[each.existing]
        words = {"content": f"{OTHERWISE} now", "topic": "elsewhere"} if action == "supersede" else {}
        place.call(
            "long_term.mutate", {"action": action, "ref": fact, "reason": "a test asked", "view": "raw_owner", **words}
        )


def test_every_combination_through_the_door_gives_the_outcome_of_the_table(place: JudgedStore) -> None:
    cases = list(combinations())
    assert len(cases) == 1520
    bring_about(place, cases)
    found: list[Plain] = []
    for batch in batches([each.candidate() for each in cases]):
        found.extend(place.judge(*batch))
    got = {each: (outcome["outcome"], outcome["reason"]) for each, outcome in zip(cases, found, strict=True)}
    assert {each: pair for each, pair in got.items() if pair != wanted(each)} == {}
    for each, outcome in zip(cases, found, strict=True):
        assert (outcome["superseded_ref"] is not None) is (outcome["reason"] == "superseded"), (each, outcome)
        kept = outcome["outcome"] == "accepted" or outcome["reason"] == "soul_handoff"
        assert (outcome["ref"] or outcome["record_id"] or "") != "" if kept else outcome["ref"] is None, (each, outcome)
