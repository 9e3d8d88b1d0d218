"""memory.write: skills, candidates, extractions and tool feedback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from beetle.contracts.common import DerivedMemoryRef
from beetle.contracts.errors import Forbidden
from beetle.contracts.governance import (
    Candidate,
    CandidatesWrite,
    ExtractedItem,
    Extraction,
    GovernanceOutcome,
    LongTermExtractionWrite,
    ToolFeedbackWrite,
)
from beetle.contracts.memory import MemoryWriteReport, MemoryWriteRequest, ProceduralWrite
from beetle.memory.governance import extraction_authority, extraction_privacy
from beetle.runtime import governance
from beetle.runtime.facts import content_mac, topic_mac
from beetle.runtime.governance import judge_again
from beetle.runtime.handlers import skill, tool_feedback
from beetle.runtime.handling import Apply, Context
from beetle.runtime.targets import Claim
from beetle.store import evidence
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction

__all__ = ["judge_again", "write"]

ClaimOf = Callable[[Reading, int], Claim]
"""A claim as the store's evidence makes it, in a space."""


def write(context: Context, request: MemoryWriteRequest) -> Apply:
    """By the request's kind."""
    match request:
        case ProceduralWrite():
            return skill.write(context, request)
        case CandidatesWrite():
            return _candidates(context, request)
        case LongTermExtractionWrite():
            return _extraction(context, request)
        case ToolFeedbackWrite():
            return tool_feedback.write(context, request)
        case _:
            assert_never(request)


def _candidates(context: Context, request: CandidatesWrite) -> Apply:
    check_authorities(context, request.candidates)
    made = [claim_of_candidate(context, each) for each in request.candidates]
    return _considering(context, [lambda tx, space, claim=claim: claim for claim in made])


def check_authorities(context: Context, given: Sequence[Candidate]) -> None:
    """Refuse the operator's authority to whoever is none.

    Raises:
        Forbidden: a candidate claims it.
    """
    for index, each in enumerate(given):
        if each.authority == "operator" and not context.caller.is_operator:
            raise Forbidden(
                reason=f"candidate {index} claims the authority operator, which {context.caller.name} does not have",
                hint="give the authority of whoever said it: user_asserted, tool_observed, host or assistant_claimed",
                index=index,
                path=f"$.args.candidates[{index}].authority",
            )


def claim_of_candidate(context: Context, given: Candidate) -> Claim:
    """A candidate as it is judged."""
    return Claim(
        candidate_id=given.candidate_id,
        authority=given.authority,
        target=given.target,
        privacy=given.privacy,
        kind=given.kind,
        topic=given.topic,
        content=given.content,
        keywords=(),
        confidence=None,
        evidence=given.evidence_refs,
        chat_id=context.scope.chat_id,
        extractor=None,
        topic_mac=topic_mac(context.key, given.topic),
        content_mac=content_mac(context.key, given.content),
    )


def _extraction(context: Context, request: LongTermExtractionWrite) -> Apply:
    given = request.extraction
    return _considering(
        context, [lambda tx, space, item=item: _claim_of_item(context, tx, space, given, item) for item in given.items]
    )


def _claim_of_item(context: Context, tx: Reading, space: int, given: Extraction, item: ExtractedItem) -> Claim:
    """Whose word an item is, and whom it may reach, is what its evidence says."""
    cited = governance.cited(tx, space, item.evidence_refs)
    return Claim(
        candidate_id="",
        authority=extraction_authority(cited),
        target="long_term",
        privacy=extraction_privacy(cited),
        kind=item.kind,
        topic=item.topic,
        content=item.content,
        keywords=item.keywords,
        confidence=item.confidence,
        evidence=item.evidence_refs,
        chat_id=given.source_chat_id or context.scope.chat_id,
        extractor=given.extractor,
        topic_mac=topic_mac(context.key, item.topic),
        content_mac=content_mac(context.key, item.content),
    )


def _considering(context: Context, claims: list[ClaimOf]) -> Apply:
    """Judge claims in their order, each against the state that those before it left."""
    governance.ready(context)
    most = context.shared.profile.budgets.derived_refs

    def apply(tx: WriteTransaction) -> MemoryWriteReport:
        space = evidence.ensure_space(tx, context.space_id, tx.now)
        governance.drop_expired(context, tx, space)
        outcomes: list[GovernanceOutcome] = []
        refs: list[DerivedMemoryRef] = []
        for index, claim_of in enumerate(claims):
            outcome, made = governance.consider(context, tx, space, index, claim_of(tx, space))
            outcomes.append(outcome)
            refs.extend(made)
        return MemoryWriteReport(
            accepted=sum(each.outcome == "accepted" for each in outcomes),
            outcomes=tuple(outcomes),
            derived_refs=tuple(refs[:most]),
            profile_budget_applied=len(refs) > most,
        )

    return apply
