"""Procedural memory: runtime skills, each by its current revision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from beetle.contracts.codec import pack
from beetle.contracts.memory import RecallHit
from beetle.contracts.refs import Ref, format_ref, parse_ref
from beetle.contracts.skills import SKILL_PREFIX
from beetle.contracts.transcript_repair import Problem
from beetle.domain.digest import keyed
from beetle.domain.excerpts import excerpt
from beetle.domain.lexical import ParsedQuery, skill_fields
from beetle.domain.projection import Item
from beetle.domain.ranking import Candidate, Ranked
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import gather_derived, removed
from beetle.runtime.planes.forgetting import Forgetting, Forgotten, Gone, Kind, Known, Selecting
from beetle.runtime.planes.plane import (
    Asked,
    Exported,
    Indexed,
    IndexRow,
    Loaded,
    Named,
    Plane,
    Projected,
    Recall,
    Verified,
)
from beetle.runtime.planes.query_words import said_in
from beetle.store import forgetting, plane_procedural, recall_index, repair, skills
from beetle.store.damaged_rows import is_readable, shown_time
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.recall_index import Entry
from beetle.store.sight import Sight
from beetle.store.skills import RevisionRow, SkillRow
from beetle.store.verify import Finding

NAME: Final = "procedural"
TABLES = (plane_procedural.SKILLS,)


# Recall.


def _load(asked: Asked) -> Loaded:
    """The skills behind the matches, each as it is now, or as it was at the time that is named."""
    scores, then = asked.scores(NAME), asked.search.as_of
    shown: dict[str, SkillRow] = {}
    candidates: list[Candidate] = []
    for skill in skills.skills_by_key(asked.tx, asked.space, scores):
        revision = (
            skills.find_revision(asked.tx, skill.skill, skill.revision)
            if then is None
            else skills.revision_as_of(asked.tx, skill.skill, then)
        )
        if revision is not None and _is_readable(skill, revision):
            shown[str(skill.skill)] = skill
            candidates.append(
                Candidate(
                    plane=NAME,
                    source_id=str(skill.skill),
                    text=f"{revision.summary}\n{revision.content}",
                    at_us=skill.updated_at,
                    bm25=scores[skill.skill],
                    title=revision.title,
                )
            )
    return Loaded(candidates, shown)


def _is_readable(skill: SkillRow, revision: RevisionRow) -> bool:
    texts = (skill.name, revision.title, revision.topic, revision.summary, revision.content)
    return is_readable(texts=texts, times=(skill.updated_at, revision.at))


def _hit(ranked: Ranked, skill: SkillRow, parsed: ParsedQuery) -> RecallHit:
    return RecallHit(
        plane=NAME,
        ref=format_ref(NAME, skill.name),
        score=round(ranked.score, 4),
        excerpt=excerpt(ranked.candidate.text, parsed),
        why=ranked.why,
        at=shown_time(skill.updated_at, "skill", skill.name),
        title=ranked.candidate.title,
    )


def _items(invocation: Invocation, tx: Reading, space: int | None, hits: tuple[RecallHit, ...]) -> list[Item]:
    """Skills whole: half a procedure is worse than none."""
    del invocation
    items: list[Item] = []
    for hit in hits:
        skill = skills.find_skill(tx, space, hit.ref.partition(":")[2])
        if skill is not None:
            current = skills.revision_of(tx, skill.skill, skill.revision)
            items.append(Item(hit.ref, f"{current.title}: {current.summary}\n{current.content}"))
    return items


# The recall index.


def index_row(space: int, skill: SkillRow, revision: RevisionRow) -> IndexRow:
    """The row that the index has to hold for a skill."""
    fields = skill_fields(
        title=revision.title,
        topic=revision.topic,
        summary=revision.summary,
        content=revision.content,
        name=skill.name.removeprefix(SKILL_PREFIX),
        at_us=revision.at,
    )
    return Entry(NAME, skill.skill, space, None, "shared"), fields


def unindex(tx: WriteTransaction, space: int, skill: SkillRow) -> None:
    """Take the current revision out of the index, if the skill is in it."""
    if skill.enabled and not skill.retired:
        current = skills.revision_of(tx, skill.skill, skill.revision)
        recall_index.remove(tx, *index_row(space, skill, current))


def _rows(key: bytes, tx: Reading, skill: int) -> list[IndexRow] | None:
    del key
    space = plane_procedural.space_of_skill(tx, skill)
    found = skills.skills_by_key(tx, space, [skill])
    if space is None or not found:
        return []
    current = [each for each in skills.revisions(tx, skill) if each.revision == found[0].revision]
    return [index_row(space, found[0], each) for each in current] or None


# Refs.


def _problem(tx: Reading, space: int, derived: str) -> Problem | None:
    record = parse_ref(derived)
    if record is None:
        return "unknown_record"
    skill = repair.skill_is_there(tx, space, record.segments[0])
    if skill is None:
        return "record_gone"
    revision = record.segments[1] if len(record.segments) > 1 else None
    if revision is None or (revision.isdecimal() and repair.revision_is_there(tx, skill, int(revision))):
        return None
    return "revision_gone"


def _resolves(invocation: Invocation, tx: Reading, space: int, ref: Ref) -> bool | None:
    del invocation
    return skills.find_skill(tx, space, ref.segments[0]) is not None


def _of_space(tx: Reading, space: int, sight: Sight) -> Iterator[Finding]:
    del sight
    for name in plane_procedural.without_revision(tx, space):
        yield Finding(NAME, format_ref(NAME, name), "its current revision is missing")


# Erasure.


def erase(invocation: Invocation, tx: WriteTransaction, space: int, skill: SkillRow, authority: str | None) -> int:
    """Record, revisions, derived refs and index row go; the number of the event that tells.

    `authority`: as of `Kind.erase`.
    """
    unindex(tx, space, skill)
    if authority is not None:
        values = (removed.Value(skill.name, each.content) for each in skills.revisions(tx, skill.skill))
        removed.record(invocation, tx, space, values, authority)
    skills.delete_skill(tx, skill.skill)
    return tx.log(invocation.event("skill", "deleted", name=skill.name, revision=skill.revision))


def digests_of(invocation: Invocation, revisions: Iterable[RevisionRow]) -> list[bytes]:
    """Keyed digests of what some revisions say."""
    said = ((each.topic, each.title, each.summary, each.content, each.citations) for each in revisions)
    return [keyed(invocation.key, "skill revision", pack(each)) for each in said]


def _said(tx: Reading, skill: int, name: str) -> Iterator[str]:
    """All that a skill says and ever said: under its name it is found too."""
    yield name.removeprefix(SKILL_PREFIX)
    for said, citations in forgetting.skill_texts(tx, skill):
        yield said
        yield said_in(citations)


def _select(asked: Forgetting) -> None:
    """The skills of which every source goes, or of which any revision holds the words."""

    def is_said(skill: int, name: str) -> bool:
        if asked.request.whole_space:
            return True
        return bool(asked.words) and asked.words.are_in(*_said(asked.tx, skill, name))

    _take(asked, is_said)


def _take(asked: Selecting, is_said: Callable[[int, str], bool] = lambda skill, name: False) -> None:
    alone, others = ({each.skill for each in rows.values() if each.skill is not None} for rows in asked.resting)
    for skill, name, revision, created_at in forgetting.skills(asked.tx, asked.space):
        ref = format_ref(NAME, name)
        if skill in alone or is_said(skill, name):
            asked.found.add(SKILL, skill, Known((name, created_at), revision, ref=ref))
            asked.found.refs.append(ref)
            asked.targets.add(name)
        elif skill in others:
            asked.found.keep(SKILL.counted_as, "cited_elsewhere", ref)


def _known(invocation: Invocation, tx: Reading, space: int, key: int) -> Known | None:
    del invocation
    name = forgetting.skill_name(tx, space, key)
    skill = None if name is None else skills.find_skill(tx, space, name)
    if skill is None:
        return None
    return Known((skill.name, skill.created_at), skill.revision, ref=format_ref(NAME, skill.name))


def _targets(tx: Reading, space: int, key: int) -> list[str]:
    name = forgetting.skill_name(tx, space, key)
    return [] if name is None else [name]


def _erase(invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str | None) -> Gone | None:
    name = forgetting.skill_name(tx, space, key)
    skill = None if name is None else skills.find_skill(tx, space, name)
    if skill is None:
        return None
    digests = digests_of(invocation, skills.revisions(tx, key))
    erase(invocation, tx, space, skill, authority)
    return Gone(digests, skill=skill.name)


SKILL = Kind("skill", "skills", 70, _known, _erase, _targets, refs=NAME)

PLANE = Plane(
    NAME,
    recall=Recall("runtime_skills", TABLES, _load, _hit),
    projected=Projected(10, "procedures", {"normal": 25, "elevated": 35, "critical": 10}, _items),
    indexed=Indexed(TABLES, plane_procedural.missing, _rows),
    verified=Verified(plane_procedural.rows, {"skills": plane_procedural.revisions}, _of_space),
    named=Named((NAME,), _problem, _resolves),
    forgotten=Forgotten(20, _select, (SKILL,), _take),
    exported=Exported(30, gather_derived.skills),
    counts=plane_procedural.counts,
)
