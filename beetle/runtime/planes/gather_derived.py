"""Reading derived memory into records: facts and skills."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from beetle.contracts.codec import replace
from beetle.contracts.continuity_records import (
    DerivedRecord,
    FactRecord,
    FactRevisionRecord,
    FactTextRecord,
    Here,
    SkillRecord,
    SkillRevisionRecord,
    Source,
)
from beetle.contracts.refs import evidence_named, fact_named
from beetle.named_tuple import NamedTuple
from beetle.runtime.pipeline.views import visible_kinds
from beetle.runtime.planes.gathering import Gathering
from beetle.store import continuity, long_term
from beetle.store import skills as skill_store
from beetle.store.long_term import FactRow, RevisionRow


class _Carried(NamedTuple):
    """A fact that goes along, from one of its revisions on."""

    row: FactRow
    revisions: list[RevisionRow]


def fact_text(topic: str, content: str, keywords: tuple[str, ...]) -> FactTextRecord:
    """What is said, as a record."""
    return FactTextRecord(topic=topic, content=content, keywords=keywords)


def facts(gathering: Gathering, space: int) -> dict[str, Any]:
    """The facts that may leave; the gathering knows their places from then on."""
    tx, chat = gathering.tx, gathering.chat
    if chat is None:
        rows = continuity.facts(tx, space)
    else:
        rows = continuity.facts_of_chat(tx, space, gathering.conversation, chat.chat_id)
    carried = _carried(gathering, rows)
    places = {each.row.fact: place for place, each in enumerate(carried)}
    gathering.facts.update({each.row.record_id: place for place, each in enumerate(carried)})
    return {"facts": tuple(_fact(gathering, each, places) for each in carried)}


def _carried(gathering: Gathering, rows: list[FactRow]) -> list[_Carried]:
    """Without tombstones, what the view may not see, and what something took the place of that stays behind."""
    if gathering.sort == "everything":
        return [_Carried(row, long_term.revisions_of(gathering.tx, row.fact)) for row in rows]
    kinds = visible_kinds(gathering.viewer)
    found: dict[int, _Carried] = {}
    for row in rows:
        if row.state == "deleted":
            continue
        if row.visibility not in kinds:
            gathering.leave_out("private_facts", int(gathering.sight.private))
            continue
        revisions = long_term.revisions_of(gathering.tx, row.fact)
        hidden = [place for place, each in enumerate(revisions) if each.visibility not in kinds]
        if hidden:
            gathering.leave_out("private_revisions", (hidden[-1] + 1) * gathering.sight.private)
            revisions = revisions[hidden[-1] + 1 :]
        found[row.fact] = _Carried(row, revisions)
    while orphans := [key for key, each in found.items() if (each.row.superseded_by or key) not in found]:
        for key in orphans:
            gathering.leave_out("superseded_facts")
            del found[key]
    return list(found.values())


def _fact(gathering: Gathering, each: _Carried, places: dict[int, int]) -> FactRecord:
    row = each.row
    bodies = list(dict.fromkeys(one.body for one in each.revisions if one.body is not None))
    texts = [long_term.body_of(gathering.tx, row.fact, body) for body in bodies]
    place_of = {body: place for place, body in enumerate(bodies)}
    gathering.spend(sum(len(text.content) for text in texts))
    sources = ((_carried_source(gathering, text), to) for text, to in continuity.fact_derived(gathering.tx, row.fact))
    derived = [DerivedRecord(source=source, relation=to) for source, to in sources if source is not None]
    revisions = [_fact_revision(gathering, one, place_of) for one in each.revisions]
    if gathering.chat is not None and not any(isinstance(one.source, Here) for one in derived):
        # Its evidence stays behind, so by its first revision alone it is known to belong to this chat.
        revisions[0] = replace(revisions[0], here=True, source_chat_id=None)
    return FactRecord(
        record_id=row.record_id,
        target=cast(Any, row.target),
        kind=cast(Any, row.kind),
        created_at=row.created_at,
        texts=tuple(fact_text(text.topic, text.content, text.keywords) for text in texts),
        revisions=tuple(revisions),
        authority=cast(Any, row.authority),
        confidence=row.confidence,
        superseded_by=None if row.superseded_by is None else places.get(row.superseded_by),
        derived=tuple(derived),
    )


def _carried_source(gathering: Gathering, text: str) -> Source | None:
    """What a record rests on, where that goes along: evidence, the fact whose place it took, any text."""
    source = gathering.source(text)
    stays = gathering.sort != "everything" and isinstance(source, str)
    loose = fact_named(text) is not None or (gathering.chat is not None and evidence_named(text) is not None)
    if source is None or (stays and loose):
        gathering.leave_out("derived_refs", int(_may_be_shown(gathering, text)))
        return None
    return source


def _may_be_shown(gathering: Gathering, text: str) -> bool:
    """Whether the caller may know that something rests on what a text names."""
    record = fact_named(text)
    if record is None or gathering.sight.private:
        return True
    fact = long_term.find_fact(gathering.tx, gathering.space, record)
    return fact is None or fact.visibility == "shared"


def _fact_revision(gathering: Gathering, each: RevisionRow, places: dict[int, int]) -> FactRevisionRecord:
    here = gathering.chat is not None and each.source_chat_id == gathering.chat.chat_id
    return FactRevisionRecord(
        action=cast(Any, each.action),
        state=cast(Any, each.state),
        visibility=cast(Any, each.visibility),
        authority=cast(Any, each.authority),
        valid_from=each.valid_from,
        valid_until=each.valid_until,
        text=None if each.body is None else places[each.body],
        here=here,
        source_chat_id=None if here else each.source_chat_id,
        extractor=each.extractor,
        reason=each.reason,
    )


def skills(gathering: Gathering, space: int) -> dict[str, Any]:
    """Runtime skills with every revision."""
    chat = gathering.chat
    made: list[SkillRecord] = []
    for head in continuity.skill_heads(gathering.tx, space, None if chat is None else chat.chat_id):
        revisions = skill_store.revisions(gathering.tx, head.skill)
        gathering.spend(sum(len(each.content) + len(each.summary) for each in revisions))
        made.append(
            SkillRecord(
                name=head.name,
                enabled=bool(head.enabled),
                retired=bool(head.retired),
                created_at=head.created_at,
                updated_at=head.updated_at,
                authority=cast(Any, head.authority),
                revisions=tuple(_skill_revision(gathering, each) for each in revisions),
                derived=tuple(_skill_derived(gathering, head.skill)),
            )
        )
    return {"skills": tuple(made)}


def _skill_revision(gathering: Gathering, each: skill_store.RevisionRow) -> SkillRevisionRecord:
    here = gathering.chat is not None and each.source_chat_id == gathering.chat.chat_id
    return SkillRevisionRecord(
        source=each.source,
        at=each.at,
        topic=each.topic,
        title=each.title,
        summary=each.summary,
        content=each.content,
        # Text of the skill itself: it goes along also where what it names does not.
        citations=tuple(gathering.source(text) or gathering.here(text) for text in each.citations),
        here=here,
        source_chat_id=None if here else each.source_chat_id,
        observed_at=each.observed_at,
        edit_reason=each.edit_reason,
    )


def _skill_derived(gathering: Gathering, skill: int) -> Iterator[DerivedRecord]:
    for derived, text, relation in continuity.skill_derived(gathering.tx, skill):
        source = _carried_source(gathering, text)
        revision = derived.rpartition("/")[2]
        # A damaged row may name what is no revision of a skill.
        if source is not None and revision.isdecimal():
            yield DerivedRecord(source=source, relation=relation, revision=int(revision))
