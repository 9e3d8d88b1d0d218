"""Long-term facts: long_term.list, long_term.detail, long_term.mutate."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import Cursor, DerivedMemoryRef, ExpectedRevision, PageLimit, Report
from beetle.contracts.fields import NONBLANK, Content, Open, Piece, Request, budgeted
from beetle.contracts.governance import FactKind, FactPrivacy, FactText, Keywords, ReasonText, Topic
from beetle.contracts.names import ViewName
from beetle.contracts.operation import LONG_TERM, Operation

FactState = Literal["current", "stale", "superseded", "deleted"]
FactAction = Literal["correct", "supersede", "delete", "forget_by_query", "mark_stale", "change_scope"]
FactOutcome = Literal[
    "corrected", "restored", "superseded", "deleted", "forgotten", "stale", "scope_changed", "unchanged"
]
RevisionAction = Literal[
    "created", "evidence_added", "corrected", "superseded", "stale", "scope_changed", "deleted", "restored"
]
WORDED = ("correct", "supersede")
"""Actions that give a record new words."""
ERASING = ("delete", "forget_by_query")
"""Actions after which no word of a record is left."""

ViewOption = Annotated[ViewName, Meta(description="view that filters the report; default: the caller's first view")]
FactRef = Annotated[str, Meta(min_length=1, max_length=1024, description="the record's ref, as recall returns it")]
FactWords = Annotated[
    str,
    Meta(
        min_length=1,
        pattern=NONBLANK,
        extra=budgeted("query_chars"),
        description="words that must all occur in topic, content or keywords",
    ),
]


class LongTermListRequest(Request, frozen=True, kw_only=True):
    """List facts, the newest first, by state, kind and words."""

    query: FactWords | None = None
    kind: Annotated[FactKind, Meta(description="only this sort of fact")] | None = None
    state: Annotated[FactState | Literal["all"], Meta(description="only facts in this state")] = "current"
    view: ViewOption | None = None
    limit: PageLimit = 50
    cursor: Cursor | None = None


class LongTermRecord(Piece, frozen=True, kw_only=True):
    """A fact. A deleted one has no words; `digest` replaces them in the operator_audit view.

    `evidence` counts what it cites. `confidence` is the extractor's, where one gave it.
    """

    ref: Open[str]
    record_id: Open[str]
    target: Open[Literal["long_term", "shared_fact"]]
    kind: Open[str]
    topic: Content[str | None]
    content: Content[str | None]
    keywords: Content[tuple[str, ...] | None]
    authority: Open[str]
    confidence: Open[float | None]
    visibility: Open[Literal["shared", "private"]]
    state: Open[FactState]
    revision: Open[int]
    created_at: Open[str]
    updated_at: Open[str]
    evidence: Open[int]
    digest: Open[str | None] = None


class LongTermListReport(Report, frozen=True, kw_only=True):
    """`total` counts every record that the request matches and the caller may see, not the page."""

    total: Open[int]
    records: Open[tuple[LongTermRecord, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class LongTermDetailRequest(Request, frozen=True, kw_only=True):
    """Show one fact with its revisions, its sources and its current state."""

    ref: FactRef
    history: Annotated[bool, Meta(description="include the text of earlier revisions")] = False
    view: ViewOption | None = None


class FactRevision(Piece, frozen=True, kw_only=True):
    """One revision. `content` is what it said: of the last one, and with `history` of every one."""

    revision: Open[int]
    at: Open[str]
    action: Open[RevisionAction]
    state: Open[FactState]
    by: Open[str]
    authority: Open[str]
    reason: Content[str | None]
    valid_from: Open[str]
    valid_until: Open[str | None]
    content: Content[str | None]
    source_chat_id: Open[str | None] = None
    extractor: Open[str | None] = None


class LongTermDetailReport(Report, frozen=True, kw_only=True):
    """`policy` is what a write of this kind and topic would meet now: none, pause or suppress."""

    record: Open[LongTermRecord]
    revisions: Open[tuple[FactRevision, ...]]
    derived_refs: Open[tuple[DerivedMemoryRef, ...]]
    superseded_by: Open[str | None]
    supersedes: Open[tuple[str, ...]]
    policy: Open[Literal["none", "pause", "suppress"]]


class LongTermMutateRequest(Request, frozen=True, kw_only=True):
    """Correct, supersede, delete or forget facts, mark one stale, or change its visibility."""

    action: Annotated[FactAction, Meta(description="action to take")]
    ref: FactRef | None = None
    content: FactText | None = None
    topic: Topic | None = None
    keywords: Annotated[Keywords, Meta(description="additional search words")] | None = None
    privacy: Annotated[FactPrivacy, Meta(description="new visibility of the fact")] | None = None
    query: FactWords | None = None
    reason: Annotated[ReasonText, Meta(description="reason; stored in the revision, but not for a deletion")] | None = (
        None
    )
    dry_run: Annotated[bool, Meta(description="report what would change; change nothing")] = False
    confirm: (
        Annotated[
            str, Meta(min_length=1, max_length=256, description="confirm_token of the dry run of forget_by_query")
        ]
        | None
    ) = None
    expected_revision: ExpectedRevision | None = None
    view: ViewOption | None = None

    def __post_init__(self) -> None:
        forgets = self.action == "forget_by_query"
        worded = any(each is not None for each in (self.content, self.topic, self.keywords))
        if forgets != (self.query is not None) or forgets == (self.ref is not None):
            raise ValueError("give query for forget_by_query, ref for every other action")
        if self.action in WORDED and not worded:
            raise ValueError(f"{self.action} needs content, topic or keywords")
        if self.action not in WORDED and worded:
            raise ValueError(f"{self.action} takes no content, topic or keywords")
        if self.action == "change_scope" and self.privacy is None:
            raise ValueError("change_scope needs privacy")
        if self.action not in ("change_scope", "supersede") and self.privacy is not None:
            raise ValueError(f"{self.action} takes no privacy")
        if self.action not in ERASING and self.reason is None:
            raise ValueError(f"{self.action} needs a reason")
        if not forgets and self.confirm is not None:
            raise ValueError(f"{self.action} takes no confirm")
        if forgets and self.expected_revision is not None:
            raise ValueError("forget_by_query takes no expected_revision: the token stands for every revision")


class LongTermMutateReport(Report, frozen=True, kw_only=True):
    """`refs` are the records that the action changes, or in a dry run would; `ref` and `revision` the record after it,
    of supersede the new one. `waiting` and `proposals` count the deferred candidates and the open proposals that a
    forgotten query takes with it. `hidden` shows operators alone how many private facts of the space it may not see:
    among them the words of a query were not looked for, and it counts them whatever they say.

    A deletion is `erasure: done` when no byte of it is left in the store's files, else `pending`; `replica_horizon` is
    the time of the newest copy of the store that may hold it still, None where there is none.
    """

    action: Open[FactAction]
    dry_run: Open[bool]
    changed: Open[bool]
    outcome: Open[FactOutcome]
    affected: Open[int]
    refs: Open[tuple[str, ...]]
    waiting: Open[int] = 0
    proposals: Open[int] = 0
    hidden: Open[int] = 0
    ref: Open[str | None] = None
    revision: Open[int | None] = None
    derived_refs: Open[tuple[DerivedMemoryRef, ...]] = ()
    confirm_token: Open[str | None] = None
    erasure: Open[Literal["done", "pending"] | None] = None
    replica_horizon: Open[str | None] = None
    replicated_until: Open[str | None] = None
    copies_until: Open[str | None] = None
    audit_event_id: Open[int | None] = None
    receipt: Open[str | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "long_term.list", "list_long_term", LongTermListRequest, LongTermListReport, "read", "long_term", LONG_TERM,
        ("long-term", "list"),
        "list facts, the newest first, by state, kind and words",
        word="query",
        example={"query": "spare key"},
    ),
    Operation(
        "long_term.detail", "get_long_term", LongTermDetailRequest, LongTermDetailReport, "read", "long_term",
        LONG_TERM, ("long-term", "show"),
        "show one fact with its revisions, its sources and its current state",
        word="ref",
        example={"ref": "long_term:f-1"},
    ),
    Operation(
        "long_term.mutate", "mutate_long_term", LongTermMutateRequest, LongTermMutateReport, "write", "long_term",
        LONG_TERM, ("long-term", "mutate"),
        "correct, supersede, delete or forget facts, mark one stale, or change its visibility",
        batch=False, grows=False, word="ref",
        example={"action": "delete", "ref": "long_term:f-1"},
        shell=(
            "beetle long-term mutate REF --action correct --content 'The spare key is in the shed' --reason 'it moved'",
            "beetle long-term mutate --action forget_by_query --query 'spare key' --dry-run",
        ),
        destructive=True, idempotent=False,
    ),
)  # fmt: skip
