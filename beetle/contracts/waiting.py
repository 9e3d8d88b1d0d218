"""governance.list and governance.decide: what waits to be judged or to be done, and its decision."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import ConversationRef, Cursor, PageLimit, Report
from beetle.contracts.fields import Content, Evidence, Id, Open, Piece, Request, Visibility, budgeted
from beetle.contracts.governance import Reason, ReasonText
from beetle.contracts.long_term import ViewOption
from beetle.contracts.maintain import JobState
from beetle.contracts.operation import GOVERNANCE, Operation

WaitsFor = Literal["policy_paused", "needs_assertion", "evidence_does_not_bear", "weaker_authority"]
Decision = Literal["accept", "reject", "retry"]


class GovernanceListRequest(Request, frozen=True, kw_only=True):
    """List the candidates that wait, the oldest first, then the jobs that wait, run or have failed."""

    what: Annotated[Literal["all", "candidates", "jobs"], Meta(description="only candidates, or only jobs")] = "all"
    reason: Annotated[WaitsFor, Meta(description="only candidates that wait for this")] | None = None
    view: ViewOption | None = None
    limit: PageLimit = 50
    cursor: Cursor | None = None

    def __post_init__(self) -> None:
        if self.reason is not None and self.what == "jobs":
            raise ValueError("reason is of candidates: jobs take none")


class CitedMessage(Piece, frozen=True, kw_only=True):
    """A message that a candidate cites; `excerpt` is its beginning, as far as the view shows the message."""

    ref: Open[str]
    role: Open[str]
    visibility: Open[Visibility]
    state: Open[Literal["live", "masked", "deleted"]]
    excerpt: Evidence[str | None] = None


class WaitingCandidate(Piece, frozen=True, kw_only=True):
    """A candidate that waits: what it says, whose word it is, what it cites, what it waits for, and since when.

    `content` is None where the view does not show it, where it is sealed and cannot be opened now. `messages` are the
    first that `evidence_refs` name; a ref without one names no existing message. `expires_at`: when it is dropped.
    """

    waiting_id: Open[str]
    candidate_id: Open[str]
    target: Open[str]
    kind: Open[str]
    topic: Content[str | None]
    content: Content[str | None]
    keywords: Content[tuple[str, ...] | None]
    authority: Open[str]
    privacy: Open[str]
    level: Open[Literal["shared", "private", "sealed"]]
    reason: Open[Reason]
    since: Open[str]
    expires_at: Open[str]
    by: Open[str]
    chat_id: Open[str]
    evidence_refs: Open[tuple[str, ...]]
    messages: Open[tuple[CitedMessage, ...]]
    confidence: Open[float | None] = None
    extractor: Open[str | None] = None
    record_id: Open[str | None] = None


class WaitingJob(Piece, frozen=True, kw_only=True):
    """A job that waits, runs (`leased`) or has failed: its conversation, and `error`, the key of the last attempt's
    error. `due_at` is when it is taken up next; None when it has failed. `updated_at`: when its state changed.
    """

    job_id: Open[str]
    kind: Open[str]
    state: Open[JobState]
    conversation: Open[ConversationRef | None]
    error: Open[str | None]
    attempts: Open[int]
    created_at: Open[str]
    updated_at: Open[str]
    due_at: Open[str | None]
    by: Open[str]


class GovernanceListReport(Report, frozen=True, kw_only=True):
    """`total` counts all that the request asks for and the caller may know of, not the page.

    Private candidates are listed through a view that shows private facts; to an operator, also those that it wrote
    itself. Sealed ones are listed only through raw_owner, to who holds private.read.
    """

    total: Open[int]
    candidates: Open[tuple[WaitingCandidate, ...]]
    jobs: Open[tuple[WaitingJob, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class GovernanceDecideRequest(Request, frozen=True, kw_only=True):
    """Accept or reject waiting candidates under the caller's own authority, or retry jobs.

    An error decides nothing: all of them are decided, or none.
    """

    ids: Annotated[
        tuple[Id, ...],
        Meta(
            min_length=1,
            extra=budgeted("batch_requests"),
            description="waiting_id of candidates to accept or reject, job_id of jobs to retry, as governance.list "
            "gives them",
        ),
    ]
    decision: Annotated[
        Decision,
        Meta(
            description="accept judges a candidate as if the caller said it now; reject erases it; retry has a failed "
            "or waiting job done at once"
        ),
    ]
    reason: (
        Annotated[
            ReasonText,
            Meta(description="reason; needed to reject. Stored in the revision of an accepted fact, in nothing else"),
        ]
        | None
    ) = None
    dry_run: Annotated[bool, Meta(description="report what would come of it; change nothing")] = False
    view: ViewOption | None = None

    def __post_init__(self) -> None:
        if len(set(self.ids)) < len(self.ids):
            raise ValueError("an id is given twice")
        if self.decision == "reject" and self.reason is None:
            raise ValueError("reject needs a reason")
        if self.decision == "retry" and self.reason is not None:
            raise ValueError("retry takes no reason")


class DecisionOutcome(Piece, frozen=True, kw_only=True):
    """The outcome for one: `deferred` still waits, for the given reason; a `rejected` candidate is gone."""

    id: Open[str]
    outcome: Open[Literal["accepted", "rejected", "deferred", "retried"]]
    reason: Open[Reason | None] = None
    ref: Open[str | None] = None
    record_id: Open[str | None] = None
    superseded_ref: Open[str | None] = None
    revision: Open[int | None] = None


class GovernanceDecideReport(Report, frozen=True, kw_only=True):
    """In the order of the request; `decided` counts those that wait no more, or would not after the dry run.

    `erasure` is `done` when no byte of the texts that left the queue is left in the store's files, else `pending`;
    `replica_horizon` says until when snapshots hold them.
    """

    decision: Open[Decision]
    dry_run: Open[bool]
    outcomes: Open[tuple[DecisionOutcome, ...]]
    decided: Open[int]
    erasure: Open[Literal["done", "pending"] | None] = None
    replica_horizon: Open[str | None] = None
    replicated_until: Open[str | None] = None
    copies_until: Open[str | None] = None
    receipt: Open[str | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "governance.list", "list_waiting", GovernanceListRequest, GovernanceListReport, "read", "long_term", GOVERNANCE,
        ("governance", "list"),
        "list the candidates that wait, the oldest first, then the jobs that wait, run or have failed",
        example={"what": "candidates"},
        shell=("beetle governance list", "beetle governance list --what jobs"),
    ),
    Operation(
        "governance.decide", "decide_waiting", GovernanceDecideRequest, GovernanceDecideReport, "write", "long_term",
        GOVERNANCE, ("governance", "decide"),
        "accept or reject waiting candidates under the caller's own authority, or retry jobs",
        batch=False, grows=False,
        example={"ids": ["w-1"], "decision": "reject", "reason": "it was a joke"},
        shell=(
            "beetle governance decide --ids w-1 --ids w-2 --decision accept --reason 'she told me so'",
            "beetle governance decide --ids w-1 --decision reject --reason 'it was a joke'",
            "beetle governance decide --ids j-1 --decision retry",
        ),
        idempotent=False,
    ),
)  # fmt: skip
