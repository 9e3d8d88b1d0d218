"""Changing runtime skills: every change is a revision, a row of the event log, and the recall index in step with it."""

from __future__ import annotations

from beetle.contracts.common import DerivedMemoryRef
from beetle.contracts.refs import format_ref, parse_ref
from beetle.contracts.skills import SKILL_PREFIX, RuntimeSkillWrite, RuntimeSkillWriteOutcome
from beetle.memory.lexical import skill_fields
from beetle.runtime.handling import Context
from beetle.store import recall_index, skills
from beetle.store.skills import RevisionRow, SkillRow
from beetle.store.writer import WriteTransaction


def write_skill(
    context: Context,
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
    chat = given.source_chat_id or context.scope.chat_id
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
    tx.log(context.event("skill", outcome, name=name, revision=number))
    derived = derive(context, tx, space, skill, revision)
    return RuntimeSkillWriteOutcome(name=name, outcome=outcome, revision=number), derived


def cite(
    context: Context, tx: WriteTransaction, space: int, skill: SkillRow, citations: tuple[str, ...]
) -> list[DerivedMemoryRef]:
    """Join the current revision of a skill to further evidence; what it is joined to already is left out."""
    current = skills.revision_of(tx, skill.skill, skill.revision)
    known = {source for _, source, _, _ in skills.derived_refs_of(tx, skill.skill)}
    fresh = tuple(each for each in citations if each not in known)
    return derive(context, tx, space, skill, current._replace(citations=fresh))


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
    recall_index.add(tx, _entry(space, skill), _fields(skill, revision))


def unindex(tx: WriteTransaction, space: int, skill: SkillRow) -> None:
    """Take the current revision out of the index, if the skill is in it."""
    if skill.enabled and not skill.retired:
        current = skills.revision_of(tx, skill.skill, skill.revision)
        recall_index.remove(tx, _entry(space, skill), _fields(skill, current))


def index_row(space: int, skill: SkillRow, revision: RevisionRow) -> tuple[recall_index.Entry, recall_index.Fields]:
    """The row that the index has to hold for a skill."""
    return _entry(space, skill), _fields(skill, revision)


def _entry(space: int, skill: SkillRow) -> recall_index.Entry:
    return recall_index.Entry("procedural", skill.skill, space, None, "shared")


def _fields(skill: SkillRow, revision: RevisionRow) -> recall_index.Fields:
    return skill_fields(
        title=revision.title,
        topic=revision.topic,
        summary=revision.summary,
        content=revision.content,
        name=skill.name.removeprefix(SKILL_PREFIX),
        at_us=revision.at,
    )


def derive(
    context: Context, tx: WriteTransaction, space: int, skill: SkillRow, revision: RevisionRow
) -> list[DerivedMemoryRef]:
    """Structured refs for the citations that parse as evidence refs."""
    derived = format_ref("procedural", skill.name, revision.revision)
    made: list[DerivedMemoryRef] = []
    for text in dict.fromkeys(revision.citations):
        cited = parse_ref(text)
        if cited is None or cited.plane != "evidence":
            continue
        turn = skills.turn_of_ref(tx, space, cited.segments)
        skills.add_derived_ref(tx, space, derived, str(cited), skill.skill, turn, tx.now)
        made.append(DerivedMemoryRef(derived=derived, evidence=str(cited)))
    return made
