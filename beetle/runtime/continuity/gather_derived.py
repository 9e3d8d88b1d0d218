"""Reading derived memory into records: facts, skills, tool registries, tool experience."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from beetle.contracts.continuity_records import (
    BriefRecord,
    DerivedRecord,
    FactRecord,
    FactRevisionRecord,
    FactTextRecord,
    Here,
    ObservationRecord,
    OfFact,
    RegistryRecord,
    SkillRecord,
    SkillRevisionRecord,
    Source,
    ToolRecord,
)
from beetle.contracts.refs import format_ref, parse_ref
from beetle.runtime.views import Viewer, visible_kinds
from beetle.store import continuity, long_term
from beetle.store import skills as skill_store
from beetle.store.long_term import FactRow, RevisionRow

if TYPE_CHECKING:
    from beetle.runtime.continuity.gather import Gathering


class _Carried(NamedTuple):
    """A fact that goes along, from one of its revisions on."""

    row: FactRow
    revisions: list[RevisionRow]


def fact_text(topic: str, content: str, keywords: tuple[str, ...]) -> FactTextRecord:
    """What is said, as a record."""
    return FactTextRecord(topic=topic, content=content, keywords=keywords)


def of_fact(place: int) -> OfFact:
    """One of the facts, by its place."""
    return OfFact(fact=place)


def facts(gathering: Gathering, space: int) -> tuple[FactRecord, ...]:
    """The facts that may leave; the gathering knows their places from then on."""
    tx, chat = gathering.tx, gathering.chat
    if chat is None:
        rows = continuity.facts(tx, space)
    else:
        rows = continuity.facts_of_chat(tx, space, gathering.conversation, chat.chat_id)
    carried = _carried(gathering, rows)
    places = {each.row.fact: place for place, each in enumerate(carried)}
    gathering.facts.update({each.row.record_id: place for place, each in enumerate(carried)})
    return tuple(_fact(gathering, each, places) for each in carried)


def _carried(gathering: Gathering, rows: list[FactRow]) -> list[_Carried]:
    """Without tombstones, what the view may not see, and what something took the place of that stays behind."""
    if gathering.sort == "everything":
        return [_Carried(row, long_term.revisions_of(gathering.tx, row.fact)) for row in rows]
    kinds = visible_kinds(Viewer("export", include_private=gathering.sort == "private"))
    found: dict[int, _Carried] = {}
    for row in rows:
        if row.state == "deleted":
            continue
        if row.visibility not in kinds:
            gathering.leave_out("private_facts")
            continue
        revisions = long_term.revisions_of(gathering.tx, row.fact)
        hidden = [place for place, each in enumerate(revisions) if each.visibility not in kinds]
        if hidden:
            gathering.leave_out("private_revisions", hidden[-1] + 1)
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
    texts = [long_term.body_of(gathering.tx, body) for body in bodies]
    place_of = {body: place for place, body in enumerate(bodies)}
    gathering.spend(sum(len(text.content) for text in texts))
    derived = _fact_derived(gathering, row)
    revisions = [_fact_revision(gathering, one, place_of) for one in each.revisions]
    if gathering.chat is not None and not any(isinstance(one.source, Here) for one in derived):
        # Its evidence stays behind, so by its first revision alone it is known to belong to this chat.
        revisions[0] = _of_chat(revisions[0])
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


def _of_chat(first: FactRevisionRecord) -> FactRevisionRecord:
    from beetle.contracts.codec import replace

    return replace(first, here=True, source_chat_id=None)


def _fact_derived(gathering: Gathering, row: FactRow) -> list[DerivedRecord]:
    made: list[DerivedRecord] = []
    for text, relation in continuity.fact_derived(gathering.tx, row.fact):
        source = _carried_source(gathering, text)
        if source is not None:
            made.append(DerivedRecord(source=source, relation=relation))
    return made


def _carried_source(gathering: Gathering, text: str) -> Source | None:
    """What a record rests on, where that goes along: evidence, the fact whose place it took, any text."""
    source = gathering.source(text)
    found = parse_ref(text)
    stays = gathering.sort != "everything" and isinstance(source, str) and found is not None
    if source is None or (stays and found is not None and found.plane == "long_term"):
        gathering.leave_out("derived_refs")
        return None
    if stays and gathering.chat is not None and found is not None and found.plane == "evidence":
        gathering.leave_out("derived_refs")
        return None
    return source


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


def skills(gathering: Gathering, space: int) -> tuple[SkillRecord, ...]:
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
    return tuple(made)


def _skill_revision(gathering: Gathering, each: skill_store.RevisionRow) -> SkillRevisionRecord:
    here = gathering.chat is not None and each.source_chat_id == gathering.chat.chat_id
    return SkillRevisionRecord(
        source=each.source,
        at=each.at,
        topic=each.topic,
        title=each.title,
        summary=each.summary,
        content=each.content,
        citations=tuple(_citation(gathering, text) for text in each.citations),
        here=here,
        source_chat_id=None if here else each.source_chat_id,
        observed_at=each.observed_at,
        edit_reason=each.edit_reason,
    )


def _citation(gathering: Gathering, text: str) -> Source:
    """A citation is text of the skill itself: it goes along also where what it names does not."""
    return gathering.source(text) or gathering.here(text)


def _skill_derived(gathering: Gathering, skill: int) -> Iterator[DerivedRecord]:
    for derived, text, relation in continuity.skill_derived(gathering.tx, skill):
        source = _carried_source(gathering, text)
        if source is not None:
            revision = int(derived.rpartition("/")[2])
            yield DerivedRecord(source=source, relation=relation, revision=revision)


def registries(gathering: Gathering, space: int) -> Iterator[RegistryRecord]:
    """The tool registries of a space."""
    for (_, registry_id, scope, fingerprint, revision, created_at, updated_at), tools in continuity.registries(
        gathering.tx, space
    ):
        yield RegistryRecord(
            registry_id=registry_id,
            scope=scope,
            fingerprint=fingerprint,
            revision=revision,
            created_at=created_at,
            updated_at=updated_at,
            tools=tuple(
                ToolRecord(
                    tool_id=tool_id, title=title, summary=summary, schema_fingerprint=schema,
                    permission_tags=continuity.tags(permission), risk_tags=continuity.tags(risk),
                )
                for tool_id, title, summary, schema, permission, risk in tools
            ),
        )  # fmt: skip


def observations(gathering: Gathering, space: int) -> Iterator[ObservationRecord]:
    """What was observed of tools, without what was observed in a turn of which anything stays behind.

    In a public archive it is tied to no turn and has no brief.
    """
    sort = gathering.sort
    for each in continuity.observations(gathering.tx, space):
        turn = None
        if each.channel is not None and each.conversation_id is not None and each.in_turn is not None:
            named = (each.channel, each.conversation_id, each.in_turn)
            if (sort == "public" and not each.open) or (sort == "private" and not gathering.is_whole(*named)):
                gathering.leave_out("observations")
                continue
            turn = None if sort == "public" else format_ref("evidence", *named)
        shown = sort != "public" and each.brief is not None
        if each.brief is not None and not shown:
            gathering.leave_out("briefs")
        yield ObservationRecord(
            registry_id=each.registry_id, registry_fingerprint=each.registry_fingerprint,
            registry_scope=each.registry_scope, tool_id=each.tool_id, schema_fingerprint=each.schema_fingerprint,
            outcome=cast(Any, each.outcome), at=each.at, duration_ms=each.duration_ms,
            permission_tags=continuity.tags(each.permission_tags), risk_tags=continuity.tags(each.risk_tags),
            turn=turn, turn_id=None if sort == "public" else each.turn_id,
            brief=BriefRecord(**continuity.brief(each.brief)) if shown and each.brief is not None else None,
        )  # fmt: skip
