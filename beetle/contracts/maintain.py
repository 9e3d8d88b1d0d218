"""memory.maintain, memory.finalize_turn, governance.report; and what a model may answer."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.codec import decode_json
from beetle.contracts.common import Conversation, ConversationRef, DerivedMemoryRef, ModeArg, Report, TurnPageLimit
from beetle.contracts.fields import NONBLANK, Id, Open, Part, Piece, Request, Time
from beetle.contracts.governance import FactKind, GovernanceOutcome, Reason
from beetle.contracts.operation import MEMORY, Operation
from beetle.contracts.turns import CanonicalTurnDelta

SessionCommit = Literal["alias_current", "alias_updated", "alias_untrusted"]
JobState = Literal["waiting", "leased", "done", "failed", "dropped"]
Maintained = Literal["done", "deferred", "not_asked", "not_granted"]

DecisionName = Literal["accepted", "rejected", "deferred", "dropped"]
PolicyAction = Literal["pause", "suppress"]

MOST_ITEMS = 64


class ModelItem(Part, frozen=True, kw_only=True):
    """One thing that a model says is worth remembering. `evidence` are ids of messages that it was shown."""

    kind: FactKind
    topic: Annotated[str, Meta(max_length=80)]
    content: Annotated[str, Meta(max_length=1000, pattern=NONBLANK)]
    keywords: Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=64)], ...], Meta(max_length=16)] = ()
    confidence: Annotated[float, Meta(ge=0, le=1)]
    evidence: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=16)]


class ModelAnswer(Part, frozen=True, kw_only=True):
    """All that a model may answer. Whatever else it says makes the whole answer worthless."""

    items: Annotated[tuple[ModelItem, ...], Meta(max_length=MOST_ITEMS)]


def decode_answer(text: bytes) -> ModelAnswer:
    """A model's answer, decoded strictly.

    Raises:
        InvalidRequest: it is anything but the one JSON object that was asked for. Its message may quote the answer.
    """
    return decode_json(text, ModelAnswer)


class MemoryMaintainRequest(Request, frozen=True, kw_only=True):
    """Let the configured model read the turns since the last run, and judge the facts that it notes."""

    conversation: Annotated[Conversation, Meta(description="the conversation; default: the current one")] | None = None
    limit: TurnPageLimit = 50
    mode_input: ModeArg | None = None


class MemoryMaintainReport(Report, frozen=True, kw_only=True):
    """What became of the turns behind `watermark_before`, up to `watermark`, which are not looked at again.

    `asked` says whether the model was asked: not where nothing may be shown to it. Of its `items`, those that no cited
    message says are `unsupported`, and those that hold what looks like a secret are `refused`; the rest were judged.
    `withheld` counts messages that were not shown to it. `has_more`: turns are left behind `watermark`. `job_id` names
    the job that goes on with them.
    """

    conversation: Open[ConversationRef]
    asked: Open[bool]
    model: Open[str]
    turns: Open[int]
    shown: Open[int]
    withheld: Open[int]
    items: Open[int] = 0
    outcomes: Open[tuple[GovernanceOutcome, ...]] = ()
    unsupported: Open[int] = 0
    refused: Open[int] = 0
    derived_refs: Open[tuple[DerivedMemoryRef, ...]] = ()
    watermark_before: Open[int]
    watermark: Open[int]
    has_more: Open[bool] = False
    job_id: Open[str | None] = None


class MemoryFinalizeTurnRequest(Request, frozen=True, kw_only=True):
    """Commit one delivered turn as evidence, then maintain its conversation or queue a job for it."""

    conversation: Conversation
    turn: Annotated[CanonicalTurnDelta, Meta(description="the delivered turn")]
    maintain: Annotated[bool, Meta(description="whether to maintain the conversation after the commit")] = True
    mode_input: ModeArg | None = None


class TurnCommit(Piece, frozen=True, kw_only=True):
    """The outcome for the turn; `unchanged` if it existed already."""

    turn_id: Open[str]
    sequence: Open[int]
    outcome: Open[Literal["committed", "unchanged"]]


class MemoryFinalizeTurnReport(Report, frozen=True, kw_only=True):
    """`session_commit` says which conversation the scope's chat id refers to now; untrusted, it refers to none.

    `maintained`: `done`, with the report in `maintenance`; `deferred`, to the job `deferred_job_id`, for
    `deferred_reason`; `not_asked`; `not_granted`, when this caller may not maintain.
    """

    transcript_commit: Open[TurnCommit]
    session_commit: Open[SessionCommit]
    maintained: Open[Maintained]
    maintenance: Open[MemoryMaintainReport | None] = None
    deferred_job_id: Open[str | None] = None
    deferred_reason: Open[str | None] = None


class GovernanceReportRequest(Request, frozen=True, kw_only=True):
    """Report the deferred candidates, the jobs, the decisions and the active policies."""

    since: Annotated[Time, Meta(description="count decisions since this time; default: since the runtime started")] | (
        None
    ) = None


class WaitingCandidates(Piece, frozen=True, kw_only=True):
    """Candidates that wait for one thing, by how long they have waited."""

    reason: Open[Reason]
    count: Open[int]
    within_day: Open[int]
    within_week: Open[int]
    longer: Open[int]
    oldest_at: Open[str]


class JobCount(Piece, frozen=True, kw_only=True):
    """Jobs of one kind and state; `reason` is why the last attempt did not end well."""

    kind: Open[str]
    state: Open[JobState]
    reason: Open[str | None]
    count: Open[int]


class OpenJob(Piece, frozen=True, kw_only=True):
    """A job that is not done: `due_at` is when it is taken up next."""

    job_id: Open[str]
    kind: Open[str]
    state: Open[JobState]
    reason: Open[str | None]
    attempts: Open[int]
    created_at: Open[str]
    due_at: Open[str]
    principal: Open[str]


class DecisionCount(Piece, frozen=True, kw_only=True):
    """How many candidates were decided alike; `dropped` ones had waited without result."""

    outcome: Open[DecisionName]
    reason: Open[str]
    count: Open[int]


class PolicyInForce(Piece, frozen=True, kw_only=True):
    """A policy that holds, without what it names; long_term.policy lists that."""

    policy_id: Open[int]
    action: Open[PolicyAction]
    kind: Open[str | None]
    at: Open[str]


class DeferredGovernance(Piece, frozen=True, kw_only=True):
    """What waits: candidates by reason, jobs by state, and the jobs that are not done, the next one first."""

    waiting: Open[tuple[WaitingCandidates, ...]] = ()
    jobs: Open[tuple[JobCount, ...]] = ()
    open_jobs: Open[tuple[OpenJob, ...]] = ()


class GovernanceReport(Report, frozen=True, kw_only=True):
    """Counts and ids alone. `complete` is false when the event log was not read back as far as `since`.

    Private and soul candidates are not counted: private.list shows their owner what waits.
    """

    deferred: Open[DeferredGovernance]
    since: Open[str]
    decisions: Open[tuple[DecisionCount, ...]]
    complete: Open[bool]
    policies: Open[tuple[PolicyInForce, ...]]
    model: Open[str | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "memory.maintain", "maintain", MemoryMaintainRequest, MemoryMaintainReport, "write", "maintain", MEMORY,
        ("memory", "maintain"),
        "let the configured model read the turns since the last run, and judge the facts that it notes",
        batch=False, deadline_ms=660_000, word="conversation",
        shell=("beetle memory maintain", "beetle memory maintain telegram/42 --limit 20"),
        progress=True,
        idempotent=False, open_world=True,
    ),
    Operation(
        "memory.finalize_turn", "finalize_turn_and_maintain", MemoryFinalizeTurnRequest, MemoryFinalizeTurnReport,
        "write", "transcript", MEMORY, ("memory", "finalize-turn"),
        "commit one delivered turn as evidence, then maintain its conversation or queue a job for it",
        batch=False, deadline_ms=660_000, word="conversation",
        example={
            "conversation": {"conversation_id": "c1"},
            "turn": {
                "turn_id": "t1", "at": "2026-05-17T09:30:00Z",
                "messages": [{"message_id": "m1", "role": "user", "content": "The key is under the pot"}]
            },
        },
        shell=('beetle memory finalize-turn telegram/42 --turn "$(cat turn.json)"',),
        idempotent=False, open_world=True,
    ),
    Operation(
        "governance.report", "governance_report", GovernanceReportRequest, GovernanceReport, "read", "inspect", MEMORY,
        ("memory", "governance"),
        "report the deferred candidates, the jobs, the decisions and the active policies",
        example={"since": "2026-05-01T00:00:00Z"},
        shell=("beetle memory governance --since 2026-05-01T00:00:00Z",),
    ),
)  # fmt: skip
