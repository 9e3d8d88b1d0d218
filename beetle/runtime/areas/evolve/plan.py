"""What a proposal comes to: the operation behind its kind, the request to it, and what that would change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from beetle.contracts.codec import convert_request
from beetle.contracts.errors import BeetleError, NotFound
from beetle.contracts.evolve import Foreseen, ProposalDiff, ProposalVerdict
from beetle.contracts.fields import Request
from beetle.contracts.governance import Candidate, CandidatesWrite
from beetle.contracts.long_term import LongTermMutateReport, LongTermMutateRequest
from beetle.contracts.memory import MemoryWriteReport, ProceduralWrite
from beetle.contracts.names import ViewName
from beetle.contracts.operations import BY_NAME
from beetle.contracts.refs import format_ref
from beetle.contracts.skills import (
    RuntimeSkillEditRequest,
    RuntimeSkillMutationReport,
    RuntimeSkillSetEnabledRequest,
    RuntimeSkillWrite,
)
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.facts import mutate
from beetle.runtime.areas.facts.long_term import Eyes, existing
from beetle.runtime.areas.governance import judging
from beetle.runtime.areas.governance import write as governance
from beetle.runtime.areas.skills import runtime_skills
from beetle.runtime.pipeline.handlers import Prepare
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.long_term import fact_ref
from beetle.store import long_term, skills
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.long_term import FactRow
from beetle.store.proposals import ProposalRow, ProposalText
from beetle.store.skills import SkillRow

HANDLERS: Mapping[str, Prepare] = {
    "memory.write": governance.write,
    "skill.edit": runtime_skills.edit,
    "skill.set_enabled": runtime_skills.set_enabled,
    "long_term.mutate": mutate.mutate,
}
ACTIONS = {"fact_correct": "correct", "fact_stale": "mark_stale", "fact_forget": "delete"}
"""The action of long_term.mutate behind a kind."""
FORESEEN: Mapping[str, Foreseen] = {"accepted": "changes", "rejected": "rejected", "deferred": "deferred"}


class Plan(NamedTuple):
    """The operation that carries a proposal out, and the request to it."""

    operation: str
    request: Request


class Target(NamedTuple):
    """What a proposal is about, as it stands. `name` is a skill's full name or a fact's ref."""

    name: str | None
    revision: int | None
    private: bool = False
    skill: SkillRow | None = None
    fact: FactRow | None = None


class Done(NamedTuple):
    """What carrying a proposal out came to; `word` says it."""

    outcome: str
    word: str
    ref: str | None
    revision: int | None
    receipt: str | None = None


def plan_of(
    proposal_id: str,
    kind: str,
    target: str | None,
    text: ProposalText,
    view: ViewName | None,
    path: str = "$.args.proposal_id",
) -> Plan:
    """The request of a proposal, held to its operation's own rules.

    Raises:
        InvalidRequest: it does not keep them.
    """
    given, refs, root = text.change, text.evidence, f"{path}.change"
    if kind == "skill_create":
        fields = {name: given[name] for name in ("topic", "title", "summary")}
        named = {**fields, "name": target, "content": given["procedure"], "citations": refs}
        write = convert_request(named, RuntimeSkillWrite, root)
        return Plan("memory.write", ProceduralWrite(source="manual", writes=(write,)))
    if kind == "skill_edit":
        edit = {"name": target, "edit_reason": text.rationale, **given}
        return Plan("skill.edit", convert_request(edit, RuntimeSkillEditRequest, root))
    if kind in ("skill_enable", "skill_disable"):
        wanted = {"name": target, "enabled": kind == "skill_enable"}
        return Plan("skill.set_enabled", convert_request(wanted, RuntimeSkillSetEnabledRequest, root))
    if kind == "fact_write":
        defaults = {"authority": "assistant_claimed", "target": "long_term", "privacy": "shared_with_subject"}
        claim = {"candidate_id": proposal_id, **defaults, **given, "evidence_refs": refs}
        return Plan("memory.write", CandidatesWrite(candidates=(convert_request(claim, Candidate, root),)))
    change: dict[str, Any] = {"action": ACTIONS[kind], "ref": target, "reason": text.rationale, "view": view, **given}
    return Plan("long_term.mutate", convert_request(change, LongTermMutateRequest, root))


def inner(invocation: Invocation, plan: Plan, chat_id: str) -> Invocation:
    """The call of the operation behind a proposal, in the chat that it was proposed in."""
    return invocation._replace(operation=BY_NAME[plan.operation], scope=invocation.scope._replace(chat_id=chat_id))


def target_of(invocation: Invocation, tx: Reading, space: int, kind: str, target: str | None, seen: Eyes) -> Target:
    """What a proposal names, as it stands.

    Raises:
        NotFound: it is not there, or this viewer may not know of it. A skill that is to be created need not be there.
    """
    if target is None:
        return Target(None, None)
    if kind.startswith("fact_"):
        _, fact = existing(invocation, tx, target, seen)
        return Target(fact_ref(fact), fact.revision, fact.visibility == "private", fact=fact)
    name = runtime_skills.full_name(target)
    found = skills.find_skill(tx, space, name)
    if found is None and kind != "skill_create":
        raise NotFound(kind="runtime skill", name=name, listing="`beetle skill list` lists the skills")
    return Target(name, None if found is None else found.revision, skill=found)


def carry_out(invocation: Invocation, tx: WriteTransaction, plan: Plan) -> Done:
    """Run the operation's own handler, once the caller is known to be allowed to and there is room for what it adds."""
    invocation.shared.catalog.check(invocation.operation, invocation.caller)
    if invocation.operation.grows:
        mutate.check_room(invocation, tx)
    report: object = HANDLERS[plan.operation](invocation, plan.request)(tx)
    match report:
        case MemoryWriteReport(writes=(made,)):
            return Done("accepted", made.outcome, format_ref("procedural", made.name), made.revision)
        case MemoryWriteReport(outcomes=(judged,)):
            return Done(judged.outcome, judged.reason, judged.ref, judged.revision)
        case RuntimeSkillMutationReport():
            return Done(
                "accepted", report.outcome, format_ref("procedural", report.name), report.revision, report.receipt
            )
        case LongTermMutateReport():
            return Done("accepted", report.outcome, report.ref, report.revision, report.receipt)
        case _:
            raise AssertionError(f"{plan.operation} answers something else")


def verdict_of(
    invocation: Invocation, tx: Reading, space: int, row: ProposalRow, plan: Plan, target: Target
) -> tuple[ProposalVerdict, FactRow | None]:
    """What submitting would come to now, and the fact beside which a new one is judged."""
    if not invocation.shared.catalog.visible(invocation.operation, invocation.caller):
        return ProposalVerdict(outcome="refused", reason="forbidden"), None
    if target.revision != row.base:
        return ProposalVerdict(outcome="refused", reason="conflict"), None
    try:
        return _foresee(invocation, tx, space, plan, target)
    except BeetleError as error:
        return ProposalVerdict(outcome="refused", reason=error.key), None


def _foresee(
    invocation: Invocation, tx: Reading, space: int, plan: Plan, target: Target
) -> tuple[ProposalVerdict, FactRow | None]:
    match plan.request:
        case CandidatesWrite(candidates=(candidate,)):
            governance.check_authorities(invocation, (candidate,))
            claim = governance.claim_of_candidate(invocation, candidate)
            verdict, found = judging.foresee(invocation, tx, space, claim)
            old = found.facts[0] if found.facts else None
            superseded = fact_ref(old) if old is not None and verdict.reason == "superseded" else None
            outcome = "unchanged" if verdict.reason == "unchanged" else FORESEEN[verdict.outcome]
            return ProposalVerdict(outcome=outcome, reason=verdict.reason, superseded_ref=superseded), old
        case LongTermMutateRequest() as change:
            return _word(mutate.foresee(invocation, tx, change)), None
        case RuntimeSkillEditRequest() as edit:
            assert target.skill is not None
            before = skills.revision_of(tx, target.skill.skill, target.skill.revision)
            told = ((edit.title, before.title), (edit.topic, before.topic), (edit.summary, before.summary),
                    (edit.procedure, before.content))  # fmt: skip
            return _word("revised" if any(new not in (None, old) for new, old in told) else "unchanged"), None
        case RuntimeSkillSetEnabledRequest() as switch:
            assert target.skill is not None
            word = "enabled" if switch.enabled else "disabled"
            return _word("unchanged" if target.skill.enabled == switch.enabled else word), None
        case _:
            return _word("created"), None


def _word(word: str) -> ProposalVerdict:
    return ProposalVerdict(outcome="unchanged" if word == "unchanged" else "changes", reason=word)


def differences(
    tx: Reading, row: ProposalRow, text: ProposalText, target: Target, beside: FactRow | None
) -> tuple[ProposalDiff, ...]:
    """A unified diff of each text that would be another."""
    before, after = _texts(tx, row, text, target, beside)
    old = "nothing" if target.revision is None and beside is None else "now"
    made = (
        ProposalDiff(field=field, diff=_diff(before.get(field, ""), after.get(field, ""), old))
        for field in dict.fromkeys((*before, *after))
        if before.get(field, "") != after.get(field, "")
    )
    return tuple(made)


def _texts(
    tx: Reading, row: ProposalRow, text: ProposalText, target: Target, beside: FactRow | None
) -> tuple[dict[str, str], dict[str, str]]:
    """The texts that a proposal is about, as they are and as they would be."""
    if row.kind in ("skill_enable", "skill_disable"):
        assert target.skill is not None
        return {"enabled": _said(target.skill.enabled)}, {"enabled": _said(row.kind == "skill_enable")}
    if row.kind == "fact_stale":
        assert target.fact is not None
        return {"state": target.fact.state}, {"state": "stale"}
    after = {name: _said(value) for name, value in text.change.items() if name in WORDS}
    if row.kind == "fact_forget":
        return _fact_words(tx, target.fact), {}
    if row.kind in ("fact_correct", "fact_write"):
        before = _fact_words(tx, target.fact or beside)
    else:
        before = _skill_words(tx, target.skill)
    return before, {**before, **after}


WORDS = ("title", "topic", "summary", "procedure", "content", "keywords")


def _fact_words(tx: Reading, fact: FactRow | None) -> dict[str, str]:
    shown = None if fact is None else long_term.shown(tx, fact)
    if shown is None:
        return {}
    body = shown.body
    return {"topic": body.topic, "content": body.content, "keywords": _said(body.keywords)}


def _skill_words(tx: Reading, found: SkillRow | None) -> dict[str, str]:
    if found is None:
        return {}
    now = skills.revision_of(tx, found.skill, found.revision)
    return {"title": now.title, "topic": now.topic, "summary": now.summary, "procedure": now.content}


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else "\n".join(cast("Iterable[str]", value))


def _diff(before: str, after: str, old: str) -> str:
    from beetle.domain.line_diff import line_diff

    return line_diff(before, after, old, "proposed")
