"""governance.list: what waits to be judged, and the work that waits, runs or has failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from beetle.contracts.common import ConversationRef
from beetle.contracts.governance import Reason
from beetle.contracts.names import ViewName
from beetle.contracts.refs import evidence_named
from beetle.contracts.waiting import (
    CitedMessage,
    GovernanceListReport,
    GovernanceListRequest,
    WaitingCandidate,
    WaitingJob,
)
from beetle.domain.digest import content_digest
from beetle.runtime.areas.facts.long_term import eyes
from beetle.runtime.areas.governance import queue
from beetle.runtime.pipeline.cursor import read_cursor
from beetle.runtime.pipeline.handlers import Handler, Read
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import page
from beetle.runtime.planes import sealed_items
from beetle.store import candidates, evidence, jobs, private
from beetle.store.candidates import Body, Known, Waiting
from beetle.store.damaged_rows import shown_time
from beetle.store.engine.transaction import Reading
from beetle.store.jobs import JobRow

MESSAGES_SHOWN = 8
"""Most cited messages that are shown of one candidate."""
EXCERPT_CHARS = 500
CANDIDATES, JOBS = 0, 1
"""Where a cursor stands: among which of the two."""


def known_to(invocation: Invocation, view: ViewName | None, reason: str | None = None) -> Known:
    """The part of the queue that the caller may see through a view, and decide."""
    seen = eyes(invocation, view)
    return Known(seen.private, seen.writer, view == "raw_owner" and invocation.reads_private, reason)


def list_waiting(invocation: Invocation, request: GovernanceListRequest, tx: Reading) -> GovernanceListReport:
    """Candidates, then jobs, each in the order in which they came; the cursor stands at one of them."""
    space = evidence.find_space(tx, invocation.space_id)
    seen = known_to(invocation, request.view, request.reason)
    bound_to = invocation.bound(request.what, request.reason, request.view, seen)
    part, after = (CANDIDATES, 0) if request.cursor is None else read_cursor(invocation.key, bound_to, request.cursor)
    of_candidates = request.what != "jobs"
    of_jobs = request.what != "candidates" and request.reason is None
    rows: list[Waiting | JobRow] = []
    if of_candidates and part == CANDIDATES:
        rows.extend(candidates.page(tx, space, seen, after, request.limit + 1))
    if of_jobs and len(rows) <= request.limit:
        rows.extend(jobs.page(tx, space, after if part == JOBS else 0, request.limit + 1 - len(rows)))
    found = page(
        invocation,
        rows,
        request.limit,
        lambda row: _candidate(invocation, tx, space, row) if isinstance(row, Waiting) else _job(invocation, row),
        bound_to=bound_to,
        place=lambda row: (CANDIDATES, row.candidate) if isinstance(row, Waiting) else (JOBS, row.job),
    )
    total = candidates.count(tx, space, seen) if of_candidates else 0
    return GovernanceListReport(
        total=total + (jobs.count_open(tx, space) if of_jobs else 0),
        candidates=tuple(each for each in found.entries if isinstance(each, WaitingCandidate)),
        jobs=tuple(each for each in found.entries if isinstance(each, WaitingJob)),
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        profile_budget_applied=found.cut,
    )


def _candidate(invocation: Invocation, tx: Reading, space: int | None, row: Waiting) -> WaitingCandidate:
    assert space is not None, "a candidate belongs to a space"
    said = _said(invocation, tx, space, row)
    days = invocation.shared.profile.budgets.deferred_days
    return WaitingCandidate(
        waiting_id=row.waiting_id,
        candidate_id=row.candidate_id,
        target=row.target,
        kind=row.kind,
        topic=None if said is None else said.topic,
        content=None if said is None else said.content,
        keywords=None if said is None else said.keywords,
        authority=row.authority,
        privacy=row.privacy,
        level=row.level,
        reason=cast(Reason, row.reason),
        since=shown_time(row.at, "candidate", row.waiting_id),
        expires_at=shown_time(row.at + days * queue.DAY_US, "candidate", row.waiting_id),
        by=row.principal,
        chat_id=row.chat_id,
        evidence_refs=row.evidence,
        messages=_messages(invocation, tx, space, row),
        confidence=row.confidence,
        extractor=row.extractor,
        record_id=row.record_id,
    )


def _said(invocation: Invocation, tx: Reading, space: int, row: Waiting) -> Body | None:
    """What a candidate says, from wherever it is kept; None where it cannot be read now."""
    if row.record_id is None:
        return queue.body_of(invocation, tx, space, row)
    item = private.find_item(tx, space, row.record_id)
    if item is None or item.closed or sealed_items.available(invocation) is not None:
        return None
    return Body("", sealed_items.content_of(invocation, tx, space, item), ())


def _messages(invocation: Invocation, tx: Reading, space: int, row: Waiting) -> tuple[CitedMessage, ...]:
    """The first messages that a candidate cites; the gate shows the excerpts that the view may see."""
    found: list[CitedMessage] = []
    for text in row.evidence:
        ref = evidence_named(text)
        for said in () if ref is None else candidates.words_of_ref(tx, space, ref):
            if len(found) == MESSAGES_SHOWN:
                return tuple(found)
            whole = said.content is not None and content_digest(invocation.key, said.content) == said.digest
            found.append(
                CitedMessage(
                    ref=text,
                    role=said.role,
                    visibility=said.visibility,  # type: ignore[arg-type] - checked by the schema, as is the state
                    state=said.state,  # type: ignore[arg-type]
                    excerpt=said.content[:EXCERPT_CHARS] if whole and said.content is not None else None,
                )
            )
    return tuple(found)


def _job(invocation: Invocation, row: JobRow) -> WaitingJob:
    channel, conversation = row.subject.get("channel_id"), row.subject.get("conversation_id")
    where: ConversationRef | None = None
    if isinstance(channel, str) and isinstance(conversation, str):
        where = ConversationRef(channel_id=channel, conversation_id=conversation)
    return WaitingJob(
        job_id=row.job_id,
        kind=row.kind,
        state=row.state,
        conversation=where,
        error=row.reason,
        attempts=row.attempts,
        created_at=shown_time(row.created_at, "job", row.job_id),
        updated_at=shown_time(row.updated_at, "job", row.job_id),
        due_at=None if row.state == "failed" else shown_time(jobs.due_at(row, invocation.now), "job", row.job_id),
        by=row.principal,
    )


HANDLERS: Mapping[str, Handler] = {
    "governance.list": Read(list_waiting),
}
