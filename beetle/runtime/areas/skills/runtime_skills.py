"""Procedural memory: memory.write of skills, and skill.list, detail, edit, set_enabled, delete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from beetle.contracts.codec import replace
from beetle.contracts.common import DerivedMemoryRef
from beetle.contracts.errors import Conflict, InvalidRequest, NotFound
from beetle.contracts.memory import MemoryWriteReport, ProceduralWrite
from beetle.contracts.refs import format_ref, parse_ref
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
from beetle.runtime.areas import receipts, secrets
from beetle.runtime.areas.cited import refuse_absent
from beetle.runtime.areas.evolve import proposals
from beetle.runtime.areas.governance import judging
from beetle.runtime.areas.skills import procedural
from beetle.runtime.pipeline.cursor import read_cursor
from beetle.runtime.pipeline.handlers import Apply, Handler, Read, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import Room, page
from beetle.runtime.planes import table
from beetle.runtime.planes.procedural import digests_of, erase
from beetle.store import evidence, skills
from beetle.store.damaged_rows import shown_time, whole
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.skills import RevisionRow, SkillRow

NAME_LIMIT = 256


def write(invocation: Invocation, request: ProceduralWrite) -> Apply:
    """Create or revise skills; the same content again changes nothing."""
    named = [
        replace(each, name=full_name(each.name, f"$.args.writes[{index}].name"))
        for index, each in enumerate(request.writes)
    ]
    for index, each in enumerate(named):
        path, words = f"$.args.writes[{index}]", ("name", "topic", "title", "summary", "content", "citations")
        secrets.refuse(secrets.fields(each, path, *words), names=secrets.fields(each, path, "source_chat_id"))

    def apply(tx: WriteTransaction) -> MemoryWriteReport:
        space = evidence.ensure_space(tx, invocation.space_id, tx.now)
        outcomes: list[RuntimeSkillWriteOutcome] = []
        refs: list[DerivedMemoryRef] = []
        for index, each in enumerate(named):
            # What is brought from elsewhere may cite evidence that did not come with it.
            if request.source != "import":
                refuse_absent(tx, space, each.citations, f"$.args.writes[{index}].citations")
            outcome, derived = procedural.write_skill(invocation, tx, space, each, request.source)
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


def list_skills(invocation: Invocation, request: RuntimeSkillListRequest, tx: Reading) -> RuntimeSkillListReport:
    """By name, change or revision; the cursor stands at a skill's place in that order."""
    space = evidence.find_space(tx, invocation.space_id)
    total, active, disabled = skills.count_skills(tx, space)
    order = skills.SkillOrder(request.sort, request.descending)
    bound_to = invocation.bound(request.query, request.include_disabled, request.include_retired, *order)
    after = None if request.cursor is None else tuple(read_cursor(invocation.key, bound_to, request.cursor))
    wanted = skills.SkillFilter(request.query.lower().split(), request.include_disabled, request.include_retired)
    rows = skills.list_skills(tx, space, order, after, wanted, request.limit + 1)
    found = page(
        invocation,
        rows,
        request.limit,
        lambda row: _summary(*row),
        bound_to=bound_to,
        place=lambda row: skills.place_of(row[0], order),
    )
    return RuntimeSkillListReport(
        total=total,
        active=active,
        disabled=disabled,
        runtime_skills=found.entries,
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        profile_budget_applied=found.cut,
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
        updated_at=shown_time(skill.updated_at, "skill", skill.name),
        ref=format_ref("procedural", skill.name),
    )


def detail(invocation: Invocation, request: RuntimeSkillDetailRequest, tx: Reading) -> RuntimeSkillDetailReport:
    """One skill with its history."""
    space, skill = _existing(invocation, tx, full_name(request.name))
    history, current = skills.revisions(tx, skill.skill), skills.revision_of(tx, skill.skill, skill.revision)
    room = Room(invocation)
    diffs = room.fill(_diffs(invocation, history))
    return RuntimeSkillDetailReport(
        name=skill.name,
        title=current.title,
        topic=current.topic,
        summary=current.summary,
        procedure=current.content,
        enabled=skill.enabled,
        retired=skill.retired,
        revision=skill.revision,
        created_at=shown_time(skill.created_at, "skill", skill.name),
        updated_at=shown_time(skill.updated_at, "skill", skill.name),
        ref=format_ref("procedural", skill.name),
        citations=tuple(_citation(invocation, tx, space, text) for text in current.citations),
        lineage=tuple(
            whole(
                history,
                lambda each: SkillRevision(
                    revision=each.revision,
                    at=shown_time(each.at, "skill_revision", each.revision),
                    source=each.source,
                    observed_at=each.observed_at,
                    source_chat_id=each.source_chat_id,
                    edit_reason=each.edit_reason,
                ),
            )
        ),
        strategy_diffs=diffs[::-1],
        derived_refs=tuple(
            DerivedMemoryRef(derived=derived, evidence=source, relation=relation)
            for derived, source, relation, _ in skills.derived_refs_of(tx, skill.skill)
        ),
        raw_content=_raw(skill, current),
        profile_budget_applied=room.full,
    )


def _citation(invocation: Invocation, tx: Reading, space: int, text: str) -> SkillCitation:
    cited = parse_ref(text)
    if cited is None:
        return SkillCitation(text=text)
    records = table.named_by(cited.plane)
    # This build keeps nothing in the planes that are only reserved.
    resolves = False if records is None else records.resolves(invocation, tx, space, cited)
    return SkillCitation(text=text, ref=str(cited), resolves=resolves)


def _diffs(invocation: Invocation, history: Sequence[RevisionRow]) -> Iterator[StrategyDiff]:
    """Of each revision to the next, the newest first."""
    for later, earlier in pairwise(reversed(history)):
        invocation.check("all revisions were compared")
        yield _diff(earlier, later)


def _diff(a: RevisionRow, b: RevisionRow) -> StrategyDiff:
    from beetle.domain.line_diff import line_diff

    found = line_diff(a.content, b.content, f"revision {a.revision}", f"revision {b.revision}")
    return StrategyDiff(from_revision=a.revision, to_revision=b.revision, diff=found)


def _raw(skill: SkillRow, current: RevisionRow) -> str:
    head = f"# {current.title}\n\nname: {skill.name}\ntopic: {current.topic}\nrevision: {current.revision}\n"
    cited = "".join(f"- {text}\n" for text in current.citations)
    tail = f"\n## Citations\n\n{cited}" if cited else ""
    return f"{head}\n{current.summary}\n\n{current.content}\n{tail}"


def edit(invocation: Invocation, request: RuntimeSkillEditRequest) -> Apply:
    """A new revision of an existing skill; what the request leaves out stays."""
    name = full_name(request.name)
    secrets.refuse(secrets.fields(request, "$.args", "topic", "title", "summary", "procedure", "edit_reason"))
    receipts.ready(invocation)

    def apply(tx: WriteTransaction) -> RuntimeSkillMutationReport:
        space, skill = _existing(invocation, tx, name)
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
        procedural.derive(invocation, tx, space, skill, after)
        seq = tx.log(invocation.event("skill", "edited", name=name, revision=after.revision))
        receipt = _receipt(invocation, tx, "skill.edited", seq, [before, after])
        return RuntimeSkillMutationReport(name=name, outcome="revised", revision=after.revision, receipt=receipt)

    return apply


def set_enabled(invocation: Invocation, request: RuntimeSkillSetEnabledRequest) -> Apply:
    """Only the enabled state; no new revision."""
    name = full_name(request.name)
    receipts.ready(invocation)

    def apply(tx: WriteTransaction) -> RuntimeSkillMutationReport:
        space, skill = _existing(invocation, tx, name)
        if skill.enabled == request.enabled:
            return RuntimeSkillMutationReport(name=name, outcome="unchanged", revision=skill.revision)
        procedural.unindex(tx, space, skill)
        skills.set_enabled(tx, skill.skill, request.enabled, tx.now)
        current = skills.revision_of(tx, skill.skill, skill.revision)
        if request.enabled and not skill.retired:
            procedural.index(tx, space, skill, current)
        outcome = "enabled" if request.enabled else "disabled"
        seq = tx.log(invocation.event("skill", outcome, name=name, revision=skill.revision))
        receipt = _receipt(invocation, tx, f"skill.{outcome}", seq, [current])
        return RuntimeSkillMutationReport(name=name, outcome=outcome, revision=skill.revision, receipt=receipt)

    return apply


def delete(invocation: Invocation, request: RuntimeSkillDeleteRequest) -> Apply:
    """Record, revisions, derived refs and index row go; the event log keeps the fact of it.

    A deferred candidate that waited behind the skill is judged again.
    """
    name = full_name(request.name)
    receipts.ready(invocation)

    def apply(tx: WriteTransaction) -> RuntimeSkillMutationReport:
        space, skill = _existing(invocation, tx, name)
        history = skills.revisions(tx, skill.skill)
        authority = "operator" if invocation.caller.is_operator else "user_asserted"
        proposals.drop_about(invocation, tx, space, [skill.name])
        seq = erase(invocation, tx, space, skill, authority)
        receipt = _receipt(invocation, tx, "skill.deleted", seq, history)
        judging.judge_skill_again(invocation, tx, space, name)
        return RuntimeSkillMutationReport(name=name, outcome="deleted", revision=skill.revision, receipt=receipt)

    return apply


def _receipt(invocation: Invocation, tx: WriteTransaction, kind: str, seq: int, touched: Sequence[RevisionRow]) -> str:
    digests = digests_of(invocation, touched)
    return receipts.make(invocation, tx, kind, seq, {"skills": 1, "revisions": len(touched)}, digests)


def _existing(invocation: Invocation, tx: Reading, name: str) -> tuple[int, SkillRow]:
    """The skill of that name, and the space it is in."""
    space = evidence.find_space(tx, invocation.space_id)
    found = skills.find_skill(tx, space, name)
    if space is None or found is None:
        raise NotFound(kind="runtime skill", name=name, listing="`beetle skill list` lists the skills")
    return space, found


HANDLERS: Mapping[str, Handler] = {
    "skill.list": Read(list_skills),
    "skill.detail": Read(detail),
    "skill.edit": Write(edit),
    "skill.set_enabled": Write(set_enabled),
    "skill.delete": Write(delete),
}
