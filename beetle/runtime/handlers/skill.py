"""Procedural memory: memory.write of skills, and skill.list, detail, edit, set_enabled, delete."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from beetle.contracts.codec import format_us, pack, replace
from beetle.contracts.common import DerivedMemoryRef
from beetle.contracts.errors import Conflict, InvalidRequest, NotFound
from beetle.contracts.memory import MemoryWriteReport, ProceduralWrite
from beetle.contracts.refs import Ref, format_ref, parse_ref
from beetle.contracts.skills import (
    SKILL_PREFIX,
    RuntimeSkillDeleteRequest,
    RuntimeSkillDetailReport,
    RuntimeSkillDetailRequest,
    RuntimeSkillEditRequest,
    RuntimeSkillListReport,
    RuntimeSkillListRequest,
    RuntimeSkillMutationReport,
    RuntimeSkillSetEnabledRequest,
    RuntimeSkillSummary,
    RuntimeSkillWriteOutcome,
    SkillCitation,
    SkillRevision,
    StrategyDiff,
)
from beetle.memory.digest import keyed
from beetle.runtime import evolve, governance, procedural, receipts
from beetle.runtime.cursor import make_cursor, read_cursor
from beetle.runtime.handling import Apply, Context
from beetle.store import evidence, long_term, skills
from beetle.store.skills import RevisionRow, SkillRow
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction

NAME_LIMIT = 256


def write(context: Context, request: ProceduralWrite) -> Apply:
    """Create or revise skills; the same content again changes nothing."""
    named = [
        replace(each, name=full_name(each.name, f"$.args.writes[{index}].name"))
        for index, each in enumerate(request.writes)
    ]

    def apply(tx: WriteTransaction) -> MemoryWriteReport:
        space = evidence.ensure_space(tx, context.space_id, tx.now)
        outcomes: list[RuntimeSkillWriteOutcome] = []
        refs: list[DerivedMemoryRef] = []
        for each in named:
            outcome, derived = procedural.write_skill(context, tx, space, each, request.source)
            outcomes.append(outcome)
            refs.extend(derived)
        return MemoryWriteReport(accepted=len(outcomes), writes=tuple(outcomes), derived_refs=tuple(refs))

    return apply


def full_name(name: str, path: str = "$.args.name") -> str:
    """A skill's stored name: the prefix is added when absent."""
    full = name if name.startswith(SKILL_PREFIX) else SKILL_PREFIX + name
    if len(full) > NAME_LIMIT:
        raise InvalidRequest(reason=f"the name is longer than {NAME_LIMIT - len(SKILL_PREFIX)} characters", path=path)
    return full


def list_skills(context: Context, request: RuntimeSkillListRequest, tx: Reading) -> RuntimeSkillListReport:
    """By name, change or revision; the cursor stands at a skill's place in that order."""
    space = evidence.find_space(tx, context.space_id)
    total, active, disabled = skills.count_skills(tx, space)
    order = skills.SkillOrder(request.sort, request.descending)
    bound_to = context.bound(request.query, request.include_disabled, request.include_retired, *order)
    after = None if request.cursor is None else tuple(read_cursor(context.key, bound_to, request.cursor))
    wanted = skills.SkillFilter(request.query.lower().split(), request.include_disabled, request.include_retired)
    rows = skills.list_skills(tx, space, order, after, wanted, request.limit + 1)
    more = len(rows) > request.limit
    rows = rows[: request.limit]
    return RuntimeSkillListReport(
        total=total,
        active=active,
        disabled=disabled,
        runtime_skills=tuple(_summary(*row) for row in rows),
        has_more=more,
        next_cursor=make_cursor(context.key, bound_to, skills.place_of(rows[-1][0], order)) if more else None,
    )


def _summary(skill: SkillRow, title: str, topic: str, summary: str) -> RuntimeSkillSummary:
    return RuntimeSkillSummary(
        name=skill.name,
        title=title,
        topic=topic,
        summary=summary,
        enabled=skill.enabled,
        retired=skill.retired,
        revision=skill.revision,
        updated_at=format_us(skill.updated_at),
        ref=format_ref("procedural", skill.name),
    )


def detail(context: Context, request: RuntimeSkillDetailRequest, tx: Reading) -> RuntimeSkillDetailReport:
    """One skill with its history."""
    space, skill = _existing(context, tx, full_name(request.name))
    history = skills.revisions(tx, skill.skill)
    current = history[-1]
    return RuntimeSkillDetailReport(
        name=skill.name,
        title=current.title,
        topic=current.topic,
        summary=current.summary,
        procedure=current.content,
        enabled=skill.enabled,
        retired=skill.retired,
        revision=skill.revision,
        created_at=format_us(skill.created_at),
        updated_at=format_us(skill.updated_at),
        ref=format_ref("procedural", skill.name),
        citations=tuple(_citation(context, tx, space, text) for text in current.citations),
        lineage=tuple(_lineage(each) for each in history),
        strategy_diffs=tuple(_diff(a, b) for a, b in pairwise(history)),
        derived_refs=tuple(
            DerivedMemoryRef(derived=derived, evidence=source, relation=relation)
            for derived, source, relation, _ in skills.derived_refs_of(tx, skill.skill)
        ),
        raw_content=_raw(skill, current),
    )


def _citation(context: Context, tx: Reading, space: int, text: str) -> SkillCitation:
    cited = parse_ref(text)
    if cited is None:
        return SkillCitation(text=text)
    return SkillCitation(text=text, ref=str(cited), resolves=_resolves(context, tx, space, cited))


def _resolves(context: Context, tx: Reading, space: int, cited: Ref) -> bool | None:
    """Whether the record is there for this caller, as a tombstone too; None where only a look at files would tell."""
    match cited.plane:
        case "evidence":
            return skills.turn_of_ref(tx, space, cited.segments) is not None
        case "procedural":
            return skills.find_skill(tx, space, cited.segments[0]) is not None
        case "long_term":
            fact = long_term.find_fact(tx, space, cited.segments[0])
            return fact is not None and (fact.visibility == "shared" or context.sees_private)
        case "agent_skill":
            return None
        case _:
            return False  # this build keeps nothing in the other planes


def _lineage(each: RevisionRow) -> SkillRevision:
    return SkillRevision(
        revision=each.revision,
        at=format_us(each.at),
        source=each.source,
        observed_at=each.observed_at,
        source_chat_id=each.source_chat_id,
        edit_reason=each.edit_reason,
    )


def _diff(a: RevisionRow, b: RevisionRow) -> StrategyDiff:
    from difflib import unified_diff

    lines = unified_diff(
        a.content.splitlines(),
        b.content.splitlines(),
        f"revision {a.revision}",
        f"revision {b.revision}",
        lineterm="",
    )
    return StrategyDiff(from_revision=a.revision, to_revision=b.revision, diff="\n".join(lines))


def _raw(skill: SkillRow, current: RevisionRow) -> str:
    head = f"# {current.title}\n\nname: {skill.name}\ntopic: {current.topic}\nrevision: {current.revision}\n"
    cited = "".join(f"- {text}\n" for text in current.citations)
    tail = f"\n## Citations\n\n{cited}" if cited else ""
    return f"{head}\n{current.summary}\n\n{current.content}\n{tail}"


def edit(context: Context, request: RuntimeSkillEditRequest) -> Apply:
    """A new revision of an existing skill; what the request leaves out stays."""
    name = full_name(request.name)
    receipts.ready(context)

    def apply(tx: WriteTransaction) -> RuntimeSkillMutationReport:
        space, skill = _existing(context, tx, name)
        if request.expected_revision not in (None, skill.revision):
            raise Conflict(
                reason=f"{name} is at revision {skill.revision}, not {request.expected_revision}",
                hint=f"read it again (`beetle skill show --name {name}`), then edit that revision",
                revision=skill.revision,
            )
        before = skills.revision_of(tx, skill.skill, skill.revision)
        after = before._replace(
            revision=skill.revision + 1,
            source="edit",
            at=tx.now,
            topic=request.topic or before.topic,
            title=request.title or before.title,
            summary=request.summary or before.summary,
            content=request.procedure or before.content,
            edit_reason=request.edit_reason,
        )
        if procedural.says_the_same(before, after):
            return RuntimeSkillMutationReport(name=name, outcome="unchanged", revision=skill.revision)
        procedural.revise(tx, space, skill, after, is_new=False)
        procedural.derive(context, tx, space, skill, after)
        seq = tx.log(context.event("skill", "edited", name=name, revision=after.revision))
        receipt = _receipt(context, tx, "skill.edited", seq, [before, after])
        return RuntimeSkillMutationReport(name=name, outcome="revised", revision=after.revision, receipt=receipt)

    return apply


def set_enabled(context: Context, request: RuntimeSkillSetEnabledRequest) -> Apply:
    """Only the enabled state; no new revision."""
    name = full_name(request.name)
    receipts.ready(context)

    def apply(tx: WriteTransaction) -> RuntimeSkillMutationReport:
        space, skill = _existing(context, tx, name)
        if skill.enabled == request.enabled:
            return RuntimeSkillMutationReport(name=name, outcome="unchanged", revision=skill.revision)
        procedural.unindex(tx, space, skill)
        skills.set_enabled(tx, skill.skill, request.enabled, tx.now)
        current = skills.revision_of(tx, skill.skill, skill.revision)
        if request.enabled and not skill.retired:
            procedural.index(tx, space, skill, current)
        outcome = "enabled" if request.enabled else "disabled"
        seq = tx.log(context.event("skill", outcome, name=name, revision=skill.revision))
        receipt = _receipt(context, tx, f"skill.{outcome}", seq, [current])
        return RuntimeSkillMutationReport(name=name, outcome=outcome, revision=skill.revision, receipt=receipt)

    return apply


def delete(context: Context, request: RuntimeSkillDeleteRequest) -> Apply:
    """Record, revisions, derived refs and index row go; the event log keeps the fact of it.

    A deferred candidate that waited behind the skill is judged again.
    """
    name = full_name(request.name)
    receipts.ready(context)

    def apply(tx: WriteTransaction) -> RuntimeSkillMutationReport:
        space, skill = _existing(context, tx, name)
        history = skills.revisions(tx, skill.skill)
        procedural.unindex(tx, space, skill)
        skills.delete_skill(tx, skill.skill)
        evolve.drop_about(context, tx, space, [name])
        seq = tx.log(context.event("skill", "deleted", name=name, revision=skill.revision))
        receipt = _receipt(context, tx, "skill.deleted", seq, history)
        governance.judge_skill_again(context, tx, space, name)
        return RuntimeSkillMutationReport(name=name, outcome="deleted", revision=skill.revision, receipt=receipt)

    return apply


def _receipt(context: Context, tx: WriteTransaction, kind: str, seq: int, touched: Sequence[RevisionRow]) -> str:
    said = ((each.topic, each.title, each.summary, each.content, each.citations) for each in touched)
    digests = (keyed(context.key, "skill revision", pack(each)) for each in said)
    return receipts.make(context, tx, kind, seq, {"skills": 1, "revisions": len(touched)}, digests)


def _existing(context: Context, tx: Reading, name: str) -> tuple[int, SkillRow]:
    """The skill of that name, and the space it is in."""
    space = evidence.find_space(tx, context.space_id)
    found = skills.find_skill(tx, space, name)
    if space is None or found is None:
        raise NotFound(kind="runtime skill", name=name, listing="`beetle skill list` shows what is there")
    return space, found
