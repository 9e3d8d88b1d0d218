"""The evolution sandbox: what someone would have changed. Only evolve.submit writes, through the normal write path."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import Cursor, PageLimit, Report
from beetle.contracts.fields import NO_CONTROL, NONBLANK, Content, Id, Open, Part, Piece, Request, budgeted
from beetle.contracts.governance import (
    Authority,
    EvidenceRefs,
    FactPrivacy,
    FactText,
    Keywords,
    KindArg,
    Topic,
)
from beetle.contracts.long_term import ViewOption
from beetle.contracts.operation import EVOLVE, Operation
from beetle.contracts.skills import SkillSummary, SkillText, SkillTitle

ProposalKind = Literal[
    "skill_create", "skill_edit", "skill_enable", "skill_disable",
    "fact_write", "fact_correct", "fact_stale", "fact_forget",
]  # fmt: skip
ShownId = Annotated[str, Meta(min_length=1, max_length=512, pattern=NO_CONTROL)]
"""An id as reports show it: one that was given twice has a mark behind it."""
ProposalState = Literal["open", "submitted", "refused", "dropped"]
Foreseen = Literal["changes", "unchanged", "deferred", "rejected", "refused"]

FIELDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "skill_create": (frozenset({"title", "topic", "summary", "procedure"}), frozenset()),
    "skill_edit": (frozenset(), frozenset({"title", "topic", "summary", "procedure"})),
    "skill_enable": (frozenset(), frozenset()),
    "skill_disable": (frozenset(), frozenset()),
    "fact_write": (frozenset({"content"}), frozenset({"topic", "kind", "target", "privacy", "authority"})),
    "fact_correct": (frozenset(), frozenset({"content", "topic", "keywords"})),
    "fact_stale": (frozenset(), frozenset()),
    "fact_forget": (frozenset(), frozenset()),
}
"""The fields of `change` that a kind needs, and those that it may have. One that needs none and may have some needs
one of them."""


class ProposedChange(Part, frozen=True, kw_only=True):
    """What would be different. The fields have the names that the operation behind the kind gives them."""

    title: SkillTitle | None = None
    topic: Topic | None = None
    summary: SkillSummary | None = None
    procedure: SkillText | None = None
    content: FactText | None = None
    keywords: Annotated[Keywords, Meta(description="additional search words for the fact")] | None = None
    kind: KindArg | None = None
    target: (
        Annotated[Literal["long_term", "shared_fact"], Meta(description="where to store the fact: long_term")] | None
    ) = None
    privacy: Annotated[FactPrivacy, Meta(description="visibility of the fact; default: shared_with_subject")] | None = (
        None
    )
    authority: Annotated[Authority, Meta(description="authority of the fact; default: assistant_claimed")] | None = None


class Proposal(Part, frozen=True, kw_only=True):
    """One change that is proposed. `target` names a skill, or is a fact's ref; fact_write has none."""

    proposal_id: Annotated[Id, Meta(description="the proposal's id; default: generated")] | None = None
    kind: Annotated[ProposalKind, Meta(description="action to take")]
    target: (
        Annotated[str, Meta(min_length=1, max_length=1024, description="name of the skill, or ref of the fact")] | None
    ) = None
    change: ProposedChange = ProposedChange()
    rationale: Annotated[str, Meta(min_length=1, max_length=512, pattern=NONBLANK, description="reason of the change")]
    evidence_refs: EvidenceRefs = ()

    def __post_init__(self) -> None:
        if (self.target is None) != (self.kind == "fact_write"):
            raise ValueError("give target for every kind but fact_write")
        needed, possible = FIELDS[self.kind]
        given = {name for name in self.change.__struct_fields__ if getattr(self.change, name) is not None}
        if missing := sorted(needed - given):
            raise ValueError(f"{self.kind} needs {', '.join(missing)} in change")
        if excess := sorted(given - needed - possible):
            raise ValueError(f"{self.kind} takes no {', '.join(excess)} in change")
        if possible and not given:
            raise ValueError(f"{self.kind} needs one of {', '.join(sorted(possible))} in change")


class EvolveProposeRequest(Request, frozen=True, kw_only=True):
    """Propose changes to skills and facts: all of them are stored, or none; nothing else changes."""

    proposals: Annotated[
        tuple[Proposal, ...],
        Meta(min_length=1, extra=budgeted("batch_requests"), description="the proposed changes"),
    ]
    view: ViewOption | None = None


class ProposalOutcome(Piece, frozen=True, kw_only=True):
    """One proposal as it was taken. `base_revision` is the target's, which the proposal was made for."""

    proposal_id: Open[str]
    outcome: Open[Literal["proposed", "unchanged"]]
    kind: Open[ProposalKind]
    target: Open[str | None]
    base_revision: Open[int | None]


class EvolveProposeReport(Report, frozen=True, kw_only=True):
    """In the order of the request. `expired` counts older proposals that were not decided within the profile's time."""

    proposals: Open[tuple[ProposalOutcome, ...]]
    expired: Open[int] = 0


StateFilter = Annotated[ProposalState | Literal["all"], Meta(description="only proposals in this state")]


class EvolveListRequest(Request, frozen=True, kw_only=True):
    """List proposals, the newest first, by state."""

    state: StateFilter = "open"
    view: ViewOption | None = None
    limit: PageLimit = 50
    cursor: Cursor | None = None


class ProposalSummary(Piece, frozen=True, kw_only=True):
    """A proposal. `outcome` is that of a closed one in one word, `result` is the ref of what it made or changed.

    The text of a closed proposal is erased.
    """

    proposal_id: Open[str]
    kind: Open[ProposalKind]
    target: Open[str | None]
    state: Open[ProposalState]
    base_revision: Open[int | None]
    outcome: Open[str | None]
    result: Open[str | None]
    by: Open[str]
    chat_id: Open[str]
    created_at: Open[str]
    updated_at: Open[str]
    rationale: Content[str | None] = None


class EvolveListReport(Report, frozen=True, kw_only=True):
    """`total` counts every proposal in the state that the caller may see, not the page."""

    total: Open[int]
    proposals: Open[tuple[ProposalSummary, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class EvolvePreviewRequest(Request, frozen=True, kw_only=True):
    """Show what a proposal would change in the caller's view, and the current verdict of governance."""

    proposal_id: Annotated[ShownId, Meta(description="the proposal's id")]
    view: ViewOption | None = None


class ProposalDiff(Piece, frozen=True, kw_only=True):
    """What one field would become, as a unified diff of its text."""

    field: Open[str]
    diff: Content[str | None]


class ProposalVerdict(Piece, frozen=True, kw_only=True):
    """What submitting it now would come to: `reason` is the outcome's word, a rule's, or the key of the error."""

    outcome: Open[Foreseen]
    reason: Open[str]
    superseded_ref: Open[str | None] = None


class EvolvePreviewReport(Report, frozen=True, kw_only=True):
    """`moved` says that the target is no more what the proposal was made for: submitting it is a conflict.

    A closed proposal has no verdict and no text left.
    """

    proposal: Open[ProposalSummary]
    current_revision: Open[int | None]
    moved: Open[bool]
    verdict: Open[ProposalVerdict | None]
    diffs: Open[tuple[ProposalDiff, ...]]
    evidence_refs: Open[tuple[str, ...]]


class EvolveSubmitRequest(Request, frozen=True, kw_only=True):
    """Apply proposals through the normal write path with the caller's capabilities, or withdraw them.

    All of them or none.
    """

    proposal_ids: Annotated[
        tuple[ShownId, ...],
        Meta(
            min_length=1,
            extra=budgeted("batch_requests"),
            description="ids of the proposals, in the order to apply them",
        ),
    ]
    decision: Annotated[
        Literal["submit", "withdraw"], Meta(description="apply them, or withdraw them without a change")
    ] = "submit"
    view: ViewOption | None = None


class SubmitOutcome(Piece, frozen=True, kw_only=True):
    """The outcome of one proposal in one word, the `ref` of what was made or changed, its revision and receipt."""

    proposal_id: Open[str]
    kind: Open[ProposalKind]
    state: Open[ProposalState]
    outcome: Open[str]
    ref: Open[str | None] = None
    revision: Open[int | None] = None
    receipt: Open[str | None] = None


class EvolveSubmitReport(Report, frozen=True, kw_only=True):
    """In the order of the request. `submitted` counts those that were carried out.

    `erasure` is `done` when no byte of the closed proposals' text is left in the store's files, else `pending`;
    `replica_horizon` says until when snapshots hold it.
    """

    outcomes: Open[tuple[SubmitOutcome, ...]]
    submitted: Open[int]
    erasure: Open[Literal["done", "pending"] | None] = None
    replica_horizon: Open[str | None] = None
    replicated_until: Open[str | None] = None
    copies_until: Open[str | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "evolve.propose", "propose", EvolveProposeRequest, EvolveProposeReport, "write", "evolve", EVOLVE,
        ("evolve", "propose"),
        "propose changes to skills and facts: all of them are stored, or none; nothing else changes",
        example={"proposals": [{"kind": "skill_disable", "target": "backup", "rationale": "the host is gone"}]},
        shell=("beetle evolve propose --proposals @proposals.json",),
        idempotent=False,
    ),
    Operation(
        "evolve.list", "list_proposals", EvolveListRequest, EvolveListReport, "read", "evolve", EVOLVE,
        ("evolve", "list"),
        "list proposals, the newest first, by state",
    ),
    Operation(
        "evolve.preview", "preview_proposal", EvolvePreviewRequest, EvolvePreviewReport, "read", "evolve", EVOLVE,
        ("evolve", "preview"),
        "show what a proposal would change in the caller's view, and the current verdict of governance",
        word="proposal_id",
        example={"proposal_id": "e-1"},
    ),
    Operation(
        "evolve.submit", "submit_proposals", EvolveSubmitRequest, EvolveSubmitReport, "write", "evolve", EVOLVE,
        ("evolve", "submit"),
        "apply proposals through the normal write path with the caller's capabilities, or withdraw them",
        batch=False, grows=False,
        example={"proposal_ids": ["e-1"]},
        shell=(
            "beetle evolve submit --proposal-ids p1 --proposal-ids p2",
            "beetle evolve submit --proposal-ids p1 --decision withdraw",
        ),
        destructive=True, idempotent=False,
    ),
)  # fmt: skip
