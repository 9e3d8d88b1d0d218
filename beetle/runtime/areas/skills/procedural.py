"""Changing runtime skills: every change is a revision, a row of the event log, and the recall index in step with it."""

from __future__ import annotations

from beetle.contracts.common import DerivedMemoryRef
from beetle.contracts.refs import evidence_named, format_ref
from beetle.contracts.skills import RuntimeSkillWrite, RuntimeSkillWriteOutcome
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.procedural import NAME, index_row, unindex
from beetle.store import recall_index, skills
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.skills import RevisionRow, SkillRow


def write_skill(
    invocation: Invocation,
    tx: WriteTransaction,
    space: int,
    given: RuntimeSkillWrite,
    source: str,
    authority: str | None = None,
) -> tuple[RuntimeSkillWriteOutcome, list[DerivedMemoryRef]]:
    """Create or revise a skill, whose name is full; the same content again changes nothing.

    Args:
        authority: whose word it is; None is a person's or a host's own hand.
    """
    name = given.name
    chat = given.source_chat_id or invocation.scope.chat_id
    found = skills.find_skill(tx, space, name)
    number = 1 if found is None else found.revision + 1
    revision = RevisionRow(
        number, source, chat, given.observed_at, tx.now, given.topic, given.title, given.summary, given.content,
        given.citations, None,
    )  # fmt: skip
    if found is not None:
        before = skills.revision_of(tx, found.skill, found.revision)
        if says_the_same(before, revision):
            return RuntimeSkillWriteOutcome(name=name, outcome="unchanged", revision=found.revision), []
    skill = skills.add_skill(tx, space, name, tx.now) if found is None else found
    revise(tx, space, skill, revision, is_new=found is None, authority=authority)
    outcome = "created" if found is None else "revised"
    tx.log(invocation.event("skill", outcome, name=name, revision=number))
    derived = derive(invocation, tx, space, skill, revision)
    return RuntimeSkillWriteOutcome(name=name, outcome=outcome, revision=number), derived


def cite(
    invocation: Invocation, tx: WriteTransaction, space: int, skill: SkillRow, citations: tuple[str, ...]
) -> list[DerivedMemoryRef]:
    """Join the current revision of a skill to further evidence; what it is joined to already is left out."""
    current = skills.revision_of(tx, skill.skill, skill.revision)
    known = {source for _, source, _, _ in skills.derived_refs_of(tx, skill.skill)}
    fresh = tuple(each for each in citations if each not in known)
    return derive(invocation, tx, space, skill, current._replace(citations=fresh))


def says_the_same(a: RevisionRow, b: RevisionRow) -> bool:
    """Whether a revision would change nothing."""
    return (a.topic, a.title, a.summary, a.content, a.citations) == (
        b.topic,
        b.title,
        b.summary,
        b.content,
        b.citations,
    )


def revise(
    tx: WriteTransaction, space: int, skill: SkillRow, revision: RevisionRow, is_new: bool, authority: str | None = None
) -> None:
    """Write a revision and bring the recall index in step."""
    if not is_new:
        unindex(tx, space, skill)
    skills.add_revision(tx, skill.skill, revision, authority)
    if skill.enabled and not skill.retired:
        index(tx, space, skill, revision)


def index(tx: WriteTransaction, space: int, skill: SkillRow, revision: RevisionRow) -> None:
    """Put a revision into the index."""
    recall_index.add(tx, *index_row(space, skill, revision))


def derive(
    invocation: Invocation, tx: WriteTransaction, space: int, skill: SkillRow, revision: RevisionRow
) -> list[DerivedMemoryRef]:
    """Structured refs for the citations that parse as evidence refs."""
    derived = format_ref(NAME, skill.name, revision.revision)
    made: list[DerivedMemoryRef] = []
    for text in dict.fromkeys(revision.citations):
        cited = evidence_named(text)
        if cited is None:
            continue
        turn = skills.turn_of_ref(tx, space, cited)
        skills.add_derived_ref(tx, space, derived, str(cited), skill.skill, turn, tx.now)
        made.append(DerivedMemoryRef(derived=derived, evidence=str(cited)))
    return made
