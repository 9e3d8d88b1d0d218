"""evolve.propose, list, preview and submit: changes that are stored and looked at before anybody makes them."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.codec import replace, to_wire
from beetle.contracts.errors import BeetleError, Conflict, InvalidRequest, NotFound
from beetle.contracts.evolve import (
    EvolveListReport,
    EvolveListRequest,
    EvolvePreviewReport,
    EvolvePreviewRequest,
    EvolveProposeReport,
    EvolveProposeRequest,
    EvolveSubmitReport,
    EvolveSubmitRequest,
    Proposal,
    ProposalOutcome,
    ProposalSummary,
    SubmitOutcome,
)
from beetle.contracts.governance import CandidatesWrite
from beetle.contracts.refs import parse_ref
from beetle.runtime.areas import receipts, secrets
from beetle.runtime.areas.evidence.lifecycle import settle
from beetle.runtime.areas.evolve import proposals as evolve
from beetle.runtime.areas.evolve.plan import carry_out, differences, inner, plan_of, target_of, verdict_of
from beetle.runtime.areas.facts.long_term import FIRST, Eyes, eyes
from beetle.runtime.areas.governance import judging
from beetle.runtime.areas.governance.write import check_authorities
from beetle.runtime.pipeline import budgets
from beetle.runtime.pipeline.cursor import read_cursor
from beetle.runtime.pipeline.handlers import Apply, Handler, Read, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import page
from beetle.store import evidence, proposals
from beetle.store.damaged_rows import shown_time
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.proposals import ProposalRow, ProposalText

STATES = ("open", "submitted", "refused", "dropped")


def propose(invocation: Invocation, request: EvolveProposeRequest) -> Apply:
    """All of them or none. Each is held to the very request that submitting it will make."""
    for index, each in enumerate(request.proposals):
        _check(invocation, each, f"$.args.proposals[{index}]")

    def apply(tx: WriteTransaction) -> EvolveProposeReport:
        space = evidence.ensure_space(tx, invocation.space_id, tx.now)
        expired = evolve.drop_expired(invocation, tx, space)
        outcomes: list[ProposalOutcome] = []
        for index, each in enumerate(request.proposals):
            try:
                outcomes.append(_propose(invocation, tx, space, each, eyes(invocation, request.view)))
            except BeetleError as error:
                error.details["index"] = index
                raise
        return EvolveProposeReport(proposals=tuple(outcomes), expired=expired)

    return apply


def _check(invocation: Invocation, each: Proposal, path: str) -> None:
    plan = plan_of(each.proposal_id or "e", each.kind, each.target, _text(each), None, path)
    if isinstance(plan.request, CandidatesWrite):
        check_authorities(invocation, plan.request.candidates)
    words = ("title", "topic", "summary", "procedure", "content", "keywords")
    said = secrets.fields(each, path, "target", "rationale", "evidence_refs")
    secrets.refuse((*secrets.fields(each.change, f"{path}.change", *words), *said))
    budgets.admit(plan.request, invocation.shared.profile.budgets)


def _text(each: Proposal) -> ProposalText:
    change = {name: value for name, value in to_wire(each.change).items() if value is not None}
    refs = ((text, parse_ref(text)) for text in each.evidence_refs)
    return ProposalText(change, tuple(text if ref is None else str(ref) for text, ref in refs), each.rationale)


def _propose(invocation: Invocation, tx: WriteTransaction, space: int, each: Proposal, seen: Eyes) -> ProposalOutcome:
    text = _text(each)
    target = target_of(invocation, tx, space, each.kind, each.target, seen)
    row = ProposalRow(
        proposal=0,
        proposal_id=each.proposal_id or invocation.new_id("e"),
        kind=each.kind,
        target=target.name,
        base=target.revision,
        state="open",
        outcome=None,
        result=None,
        principal=invocation.caller.name,
        chat_id=invocation.scope.chat_id,
        visibility="private" if target.private or text.change.get("privacy") == "subject_private" else "shared",
        created_at=tx.now,
        updated_at=tx.now,
    )
    known = evolve.holder(invocation, tx, space, row.proposal_id)
    if known is not None:
        _check_known(invocation, tx, space, row, text, known)
    elif each.kind == "skill_create" and row.base is not None:
        raise Conflict(
            reason=f"{row.target} exists already, at revision {row.base}",
            hint="propose a skill_edit of it, or another name",
            revision=row.base,
        )
    else:
        hidden = proposals.find(tx, space, row.proposal_id) is not None
        kept = row._replace(proposal_id=evolve.id_apart(invocation, tx, space, row.proposal_id)) if hidden else row
        proposals.add(tx, space, kept, text)
        made = {"proposal_id": evolve.event_name(invocation, kept), "kind": row.kind}
        tx.log(invocation.event("memory", "proposal_made", evolve.matter_of(row), **made))
    return ProposalOutcome(
        proposal_id=row.proposal_id,
        outcome="proposed" if known is None else "unchanged",
        kind=each.kind,
        target=row.target,
        base_revision=row.base if known is None else known.base,
    )


def _check_known(
    invocation: Invocation, tx: Reading, space: int, row: ProposalRow, text: ProposalText, known: ProposalRow
) -> None:
    """The same open proposal again changes nothing; anything else under its id is another one."""
    same = (known.kind, known.target, known.visibility) == (row.kind, row.target, row.visibility)
    # Of one that is out of its sight the caller is told no more than that the id is given.
    if not same or not evolve.is_known(invocation, tx, space, known) or proposals.text_of(tx, known.proposal) != text:
        raise Conflict(
            reason=f"the proposal {row.proposal_id!r} exists already, with other content",
            hint="give a new proposal_id, or leave it out",
            proposal_id=row.proposal_id,
        )


def list_proposals(invocation: Invocation, request: EvolveListRequest, tx: Reading) -> EvolveListReport:
    """The newest first; the cursor stands at a proposal."""
    space = evidence.find_space(tx, invocation.space_id)
    seen = eyes(invocation, request.view)
    states = STATES if request.state == "all" else (request.state,)
    bound_to = invocation.bound(request.state, request.view, seen)
    below = FIRST if request.cursor is None else read_cursor(invocation.key, bound_to, request.cursor)
    rows = proposals.page(tx, space, states, private=seen.private, below=below, limit=request.limit + 1)
    found = page(
        invocation,
        rows,
        request.limit,
        lambda row: _summary(invocation, tx, space, row, proposals.text_of(tx, row.proposal)),
        bound_to=bound_to,
        place=lambda row: row.proposal,
    )
    return EvolveListReport(
        total=proposals.count(tx, space, states, private=seen.private),
        proposals=found.entries,
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        profile_budget_applied=found.cut,
    )


def _summary(
    invocation: Invocation, tx: Reading, space: int | None, row: ProposalRow, text: ProposalText | None
) -> ProposalSummary:
    assert space is not None, "a proposal belongs to a space"
    return ProposalSummary(
        proposal_id=evolve.name_of(invocation, tx, space, row),
        kind=row.kind,  # type: ignore[arg-type] - written from the contract's own words, as is the state
        target=row.target,
        state=row.state,  # type: ignore[arg-type]
        base_revision=row.base,
        outcome=row.outcome,
        result=row.result,
        by=row.principal,
        chat_id=row.chat_id,
        created_at=shown_time(row.created_at, "proposal", row.proposal),
        updated_at=shown_time(row.updated_at, "proposal", row.proposal),
        rationale=None if text is None else text.rationale,
    )


def _existing(invocation: Invocation, tx: Reading, proposal_id: str, seen: Eyes) -> tuple[int, ProposalRow]:
    space = evidence.find_space(tx, invocation.space_id)
    row = None if space is None else evolve.named(invocation, tx, space, proposal_id)
    if space is None or row is None or not evolve.is_seen(tx, space, row, private=seen.private):
        raise NotFound(kind="proposal", name=proposal_id, listing="`beetle evolve list` lists the proposals")
    return space, row


def preview(invocation: Invocation, request: EvolvePreviewRequest, tx: Reading) -> EvolvePreviewReport:
    """What would become of the target's text, and what the rules say to it now."""
    seen = eyes(invocation, request.view)
    space, row = _existing(invocation, tx, request.proposal_id, seen)
    text = proposals.text_of(tx, row.proposal)
    if text is None:
        return EvolvePreviewReport(
            proposal=_summary(invocation, tx, space, row, None),
            current_revision=None,
            moved=False,
            verdict=None,
            diffs=(),
            evidence_refs=(),
        )
    name = evolve.given_name(invocation, row.proposal_id)
    plan = plan_of(name, row.kind, row.target, text, request.view)
    target = target_of(invocation, tx, space, row.kind, row.target, seen)
    verdict, beside = verdict_of(inner(invocation, plan, row.chat_id), tx, space, row, plan, target)
    if beside is not None and not seen.see(tx, beside):
        verdict, beside = replace(verdict, superseded_ref=None), None
    return EvolvePreviewReport(
        proposal=_summary(invocation, tx, space, row, text),
        current_revision=target.revision,
        moved=target.revision != row.base,
        verdict=verdict,
        diffs=differences(tx, row, text, target, beside),
        evidence_refs=text.evidence,
    )


def submit(invocation: Invocation, request: EvolveSubmitRequest) -> Apply:
    """In one transaction, each in its order, by the handler of the operation behind its kind."""
    if len(set(request.proposal_ids)) < len(request.proposal_ids):
        raise InvalidRequest(
            reason="a proposal is named twice", hint="name each proposal once", path="$.args.proposal_ids"
        )
    receipts.ready(invocation)
    judging.ready(invocation)

    def apply(tx: WriteTransaction) -> EvolveSubmitReport:
        outcomes: list[SubmitOutcome] = []
        for index, proposal_id in enumerate(request.proposal_ids):
            try:
                outcomes.append(_decide(invocation, tx, proposal_id, request))
            except BeetleError as error:
                error.details.update(index=index, proposal_id=proposal_id)
                raise
        return EvolveSubmitReport(
            outcomes=tuple(outcomes),
            submitted=sum(each.state == "submitted" for each in outcomes),
            erasure="pending",
        )

    return apply


def _decide(
    invocation: Invocation, tx: WriteTransaction, proposal_id: str, request: EvolveSubmitRequest
) -> SubmitOutcome:
    seen = eyes(invocation, request.view)
    space, row = _existing(invocation, tx, proposal_id, seen)
    text = proposals.text_of(tx, row.proposal)
    if row.state != "open" or text is None:
        raise Conflict(
            reason=f"the proposal {proposal_id!r} is {row.state} already",
            hint="`beetle evolve list --state all` shows its state",
            state=row.state,
        )
    if request.decision == "withdraw":
        evolve.drop(invocation, tx, [row], "withdrawn")
        return SubmitOutcome(proposal_id=proposal_id, kind=row.kind, state="dropped", outcome="withdrawn")  # type: ignore[arg-type] - the contract's own words
    name = evolve.given_name(invocation, row.proposal_id)
    plan = plan_of(name, row.kind, row.target, text, request.view)
    _check_base(invocation, tx, space, row, seen)
    # Closed before it is carried out: forgetting a fact closes every proposal about it that is open.
    proposals.close(tx, row, "submitted", "submitted")
    done = carry_out(inner(invocation, plan, row.chat_id), tx, plan)
    state = "refused" if done.outcome == "rejected" else "submitted"
    proposals.record(tx, row, state, done.word, done.ref)
    told = {"proposal_id": evolve.event_name(invocation, row), "kind": row.kind, "outcome": done.word}
    tx.log(invocation.event("memory", f"proposal_{state}", evolve.matter_of(row), **told))
    return SubmitOutcome(
        proposal_id=proposal_id,
        kind=row.kind,  # type: ignore[arg-type] - the contract's own words
        state=state,
        outcome=done.word,
        ref=done.ref,
        revision=done.revision,
        receipt=done.receipt,
    )


def _check_base(invocation: Invocation, tx: Reading, space: int, row: ProposalRow, seen: Eyes) -> None:
    target = target_of(invocation, tx, space, row.kind, row.target, seen)
    if target.revision != row.base:
        name = evolve.name_of(invocation, tx, space, row)
        now = "exists already" if row.base is None else f"is at revision {target.revision}, not {row.base}"
        raise Conflict(
            reason=f"{row.target} {now}: the proposal was made for what it was",
            hint=f"withdraw it and propose anew; `beetle evolve preview {name}` shows the difference",
            revision=target.revision,
        )


HANDLERS: Mapping[str, Handler] = {
    "evolve.propose": Write(propose),
    "evolve.list": Read(list_proposals),
    "evolve.preview": Read(preview),
    "evolve.submit": Write(submit, settle),
}
