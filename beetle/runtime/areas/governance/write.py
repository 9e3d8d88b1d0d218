"""memory.write: skills, candidates, extractions and tool feedback."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from beetle.domain.governance import extraction_privacy
from beetle.runtime.areas import secrets, tools
from beetle.runtime.areas.governance import grounds, judging, queue
from beetle.runtime.areas.governance.judging import judge_again
from beetle.runtime.areas.governance.targets import Claim, claim_of_item
from beetle.runtime.areas.skills import runtime_skills
from beetle.runtime.pipeline.handlers import Apply, Handler, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.long_term import content_mac, topic_mac
from beetle.store import evidence
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction

__all__ = ["judge_again", "write"]

ClaimOf = Callable[[Reading, int], Claim]
"""A claim as the store's evidence makes it, in a space."""


def write(invocation: Invocation, request: MemoryWriteRequest) -> Apply:
    """By the request's kind."""
    match request:
        case ProceduralWrite():
            return runtime_skills.write(invocation, request)
        case CandidatesWrite():
            check_authorities(invocation, request.candidates)
            for index, each in enumerate(request.candidates):
                secrets.refuse(secrets.fields(each, f"$.args.candidates[{index}]", "topic", "content"))
            made = [claim_of_candidate(invocation, each) for each in request.candidates]
            return considering(invocation, [given_claim(claim) for claim in made])
        case LongTermExtractionWrite():
            given = request.extraction
            for index, item in enumerate(given.items):
                root = f"$.args.extraction.items[{index}]"
                secrets.refuse(secrets.fields(item, root, "topic", "content", "keywords"))
            return considering(
                invocation,
                [
                    lambda tx, space, item=item: _claim_of_item(invocation, tx, space, given, item)
                    for item in given.items
                ],
            )
        case ToolFeedbackWrite():
            return tools.write(invocation, request)
        case _:
            assert_never(request)


def check_authorities(invocation: Invocation, given: Sequence[Candidate]) -> None:
    """Refuse the operator's authority to whoever is none.

    Raises:
        Forbidden: a candidate claims it.
    """
    for index, each in enumerate(given):
        if each.authority == "operator" and not invocation.caller.is_operator:
            raise Forbidden(
                reason=f"candidate {index} claims the authority operator, which {invocation.caller.name} does not have",
                hint="give the authority of the source: user_asserted, tool_observed, host or assistant_claimed",
                index=index,
                path=f"$.args.candidates[{index}].authority",
            )


def claim_of_candidate(invocation: Invocation, given: Candidate) -> Claim:
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
        chat_id=invocation.scope.chat_id,
        extractor=None,
        topic_mac=topic_mac(invocation.key, given.topic),
        content_mac=content_mac(invocation.key, given.content),
    )


def _claim_of_item(invocation: Invocation, tx: Reading, space: int, given: Extraction, item: ExtractedItem) -> Claim:
    """Whose word an item is, and whom it may reach, is what its evidence says."""
    cited = judging.cited(tx, space, item.evidence_refs)
    authority = grounds.authority_of_item(invocation, tx, space, item.content, cited)
    privacy = extraction_privacy(cited)
    chat_id = given.source_chat_id or invocation.scope.chat_id
    return claim_of_item(invocation, item, item.evidence_refs, authority, privacy, chat_id, given.extractor)


def given_claim(claim: Claim) -> ClaimOf:
    """A claim that the store's evidence does not change."""
    return lambda tx, space: claim


def considering(invocation: Invocation, claims: list[ClaimOf]) -> Callable[[WriteTransaction], MemoryWriteReport]:
    """Judge claims in their order, each against the state that those before it left."""
    judging.ready(invocation)
    most = invocation.shared.profile.budgets.derived_refs

    def apply(tx: WriteTransaction) -> MemoryWriteReport:
        space = evidence.ensure_space(tx, invocation.space_id, tx.now)
        queue.drop_expired(invocation, tx, space)
        outcomes: list[GovernanceOutcome] = []
        refs: list[DerivedMemoryRef] = []
        for index, claim_of in enumerate(claims):
            outcome, made = judging.consider(invocation, tx, space, index, claim_of(tx, space))
            outcomes.append(outcome)
            refs.extend(made)
        return MemoryWriteReport(
            accepted=sum(each.outcome == "accepted" for each in outcomes),
            outcomes=tuple(outcomes),
            derived_refs=tuple(refs[:most]),
            profile_budget_applied=len(refs) > most,
        )

    return apply


HANDLERS: Mapping[str, Handler] = {
    "memory.write": Write(write),
}
