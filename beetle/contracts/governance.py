"""What is asked to be remembered beside skills: candidates, extractions, tool feedback; and the policies over them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import RegistryRef, Report
from beetle.contracts.fields import NONBLANK, Content, Id, Label, Open, Part, Piece, Request, budgeted
from beetle.contracts.operation import LONG_TERM, Operation

Authority = Literal["user_asserted", "assistant_claimed", "tool_observed", "operator", "host"]
Target = Literal["long_term", "shared_fact", "procedural", "private_garden", "soul_candidate"]
Privacy = Literal["public_runtime", "shared_with_subject", "subject_private", "soul_private"]
FactPrivacy = Literal["public_runtime", "shared_with_subject", "subject_private"]
FactVisibility = Literal["shared", "private", "soul"]
FactKind = Literal["profile", "preference", "fact", "event", "relationship", "constraint", "goal"]
OutcomeName = Literal["accepted", "rejected", "deferred"]
Reason = Literal[
    "created", "unchanged", "superseded",
    "policy_suppressed", "privacy_target_mismatch", "private_unavailable", "evidence_missing", "evidence_unavailable",
    "policy_paused", "soul_handoff", "needs_assertion", "evidence_does_not_bear", "weaker_authority",
    "queue_full", "declined",
]  # fmt: skip
ToolOutcome = Literal["succeeded", "failed", "denied", "aborted"]

Topic = Annotated[str, Meta(max_length=256, description="topic; a later fact of the same topic replaces this one")]
FactText = Annotated[
    str, Meta(pattern=NONBLANK, extra=budgeted("message_content_bytes"), description="the text to remember")
]
EvidenceRefs = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=1024)], ...],
    Meta(max_length=64, description="refs of the messages or turns that it rests on"),
]
Keywords = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=128)], ...], Meta(max_length=32)]
ReasonText = Annotated[str, Meta(min_length=1, max_length=512, pattern=NONBLANK)]
KindArg = Annotated[FactKind, Meta(description="kind of the fact")]
Tags = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=64)], ...], Meta(max_length=32, description="short labels")
]


class Candidate(Part, frozen=True, kw_only=True):
    """One thing that a host would have remembered. `topic` may be empty: then only the same text is the same fact."""

    candidate_id: Annotated[Id, Meta(description="the host's own id of it, given back in the outcome")]
    authority: Annotated[Authority, Meta(description="authority of the claim; only an operator may give operator")]
    target: Annotated[Target, Meta(description="where to store it")]
    privacy: Annotated[Privacy, Meta(description="privacy of the claim: which callers may see it")]
    content: FactText
    evidence_refs: EvidenceRefs = ()
    kind: KindArg = "fact"
    topic: Topic = ""


class CandidatesWrite(Request, frozen=True, kw_only=True, tag="candidates", tag_field="kind"):
    """Have candidates judged, each in its order: accepted, rejected or deferred, and why."""

    candidates: Annotated[
        tuple[Candidate, ...],
        Meta(min_length=1, extra=budgeted("batch_requests"), description="the candidates to judge"),
    ]


class ExtractedItem(Part, frozen=True, kw_only=True):
    """One item of an extraction; whose word it is and whom it may reach follow from the evidence."""

    kind: KindArg
    topic: Topic
    content: FactText
    keywords: Annotated[Keywords, Meta(description="additional search words")] = ()
    confidence: Annotated[float, Meta(ge=0, le=1, description="the extractor's confidence, 0 to 1")]
    evidence_refs: EvidenceRefs = ()


class Extraction(Part, frozen=True, kw_only=True):
    """What an extractor made of a conversation."""

    items: Annotated[
        tuple[ExtractedItem, ...],
        Meta(min_length=1, extra=budgeted("batch_requests"), description="the extracted items"),
    ]
    source_chat_id: Annotated[Label, Meta(description="chat that it comes from; default: the scope's chat")] | None = (
        None
    )
    extractor: Annotated[
        Label, Meta(min_length=1, description="name and version of what extracted it, no control characters")
    ]


class LongTermExtractionWrite(Request, frozen=True, kw_only=True, tag="long_term_extraction", tag_field="kind"):
    """Have the items of an extraction judged as candidates for long-term facts."""

    extraction: Annotated[Extraction, Meta(description="the extraction: items, chat and extractor")]


class ToolObservation(Part, frozen=True, kw_only=True):
    """One use of a tool of the host, in short: never its full result, a schema or a secret."""

    tool_id: Annotated[Id, Meta(description="the host's id of the tool")]
    schema_fingerprint: Annotated[Label, Meta(min_length=1, description="fingerprint of the schema it had then")]
    outcome: Annotated[ToolOutcome, Meta(description="outcome of the use")]
    duration_ms: Annotated[int, Meta(ge=0, le=2**43, description="duration")] | None = None
    permission_tags: Tags = ()
    risk_tags: Tags = ()
    summary: Annotated[str, Meta(max_length=512, description="what the tool did, in one or two sentences")]


class ToolUsageFeedback(Part, frozen=True, kw_only=True):
    """What a host observed of its tools while it served one turn."""

    registry_ref: RegistryRef
    turn_id: (
        Annotated[Id, Meta(description="committed turn of the current conversation that it was observed in")] | None
    ) = None
    observations: Annotated[
        tuple[ToolObservation, ...], Meta(extra=budgeted("batch_requests"), description="one for each use")
    ] = ()
    user_visible_result_summary: Annotated[
        str, Meta(max_length=2048, description="summary of the result that the user saw")
    ] = ""
    reuse_outcome: Annotated[ToolOutcome, Meta(description="overall outcome")] | None = None
    operator_note: Annotated[str, Meta(max_length=2048, description="an operator's note")] | None = None


class ToolFeedbackWrite(Request, frozen=True, kw_only=True, tag="agent_tool_usage_feedback", tag_field="kind"):
    """Keep what a host observed of its tools, so that experience with them can be governed."""

    feedback: Annotated[ToolUsageFeedback, Meta(description="the observations and the registry they belong to")]


class GovernanceOutcome(Piece, frozen=True, kw_only=True):
    """What became of one candidate or item. `record_id` is set for private material, which has no ref; `waiting_id` of
    what waits, if the caller may know of it: governance.decide takes it.
    """

    index: Open[int]
    candidate_id: Open[str | None] = None
    outcome: Open[OutcomeName]
    reason: Open[Reason]
    ref: Open[str | None] = None
    record_id: Open[str | None] = None
    superseded_ref: Open[str | None] = None
    revision: Open[int | None] = None
    waiting_id: Open[str | None] = None


class LongTermPolicyRequest(Request, frozen=True, kw_only=True):
    """Pause or suppress facts of a kind or topic, lift such a policy, or list the active policies."""

    action: Annotated[
        Literal["pause", "resume", "suppress", "list"],
        Meta(description="pause puts off, suppress refuses, resume lifts what was named alike"),
    ]
    kind: Annotated[FactKind, Meta(description="only this sort of fact")] | None = None
    topic: Annotated[str, Meta(max_length=256, pattern=NONBLANK, description="only this topic")] | None = None
    chat_id: Annotated[Id, Meta(description="only this chat; every chat when left out")] | None = None
    reason: Annotated[Label, Meta(description="reason, shown in the list")] | None = None

    def __post_init__(self) -> None:
        named = (self.kind, self.topic, self.chat_id)
        if self.action == "list" and any(each is not None for each in named):
            raise ValueError("list takes nothing besides")
        if self.action == "suppress" and self.kind is None and self.topic is None:
            raise ValueError("give kind or topic: what is to be suppressed")


class PolicyView(Piece, frozen=True, kw_only=True):
    """A policy that holds."""

    policy_id: Open[int]
    action: Open[Literal["pause", "suppress"]]
    kind: Open[str | None]
    topic: Content[str | None]
    reason: Content[str | None]
    chat_id: Open[str | None]
    at: Open[str]
    by: Open[str]


class LongTermPolicyReport(Report, frozen=True, kw_only=True):
    """`policies` are those that hold now; `rejudged` counts what waited for a pause to end and is decided, as far
    as the caller may know of it.
    """

    policies: Open[tuple[PolicyView, ...]]
    changed: Open[bool]
    rejudged: Open[int] = 0
    receipt: Open[str | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "long_term.policy", "long_term_policy", LongTermPolicyRequest, LongTermPolicyReport, "write", "long_term",
        LONG_TERM, ("long-term", "policy"),
        "pause or suppress facts of a kind or topic, lift such a policy, or list the active policies",
        example={"action": "list"},
    ),
)  # fmt: skip
