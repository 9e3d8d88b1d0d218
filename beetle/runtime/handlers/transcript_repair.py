"""transcript.repair and transcript.repair_safe."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, get_args

from beetle.contracts.codec import pack
from beetle.contracts.common import Conversation
from beetle.contracts.errors import NotFound
from beetle.contracts.transcript_repair import (
    IssueKind,
    MemoryTranscriptRepairReport,
    MemoryTranscriptRepairRequest,
    MemoryTranscriptRepairSafeReport,
    MemoryTranscriptRepairSafeRequest,
    Mended,
    MendedIssue,
)
from beetle.memory.digest import keyed
from beetle.memory.lexical import evidence_fields
from beetle.runtime import receipts
from beetle.runtime.cursor import make_cursor, read_cursor
from beetle.runtime.handlers.transcript import INDEXED
from beetle.runtime.handling import Apply, Context
from beetle.runtime.repair import STEPS, Issue, Place, counts_issues, entry_of, issues, link_issues, message_issues
from beetle.store import evidence, recall_index
from beetle.store import repair as store
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction

FIRST = Place(-1, 0, 0, 0, 0, 0)
"""Before every issue."""


class Found(NamedTuple):
    """The issues behind a place, the first ones; counts over all there are."""

    first: list[Issue]
    counts: dict[str, int]
    repairable: int


def repair(context: Context, request: MemoryTranscriptRepairRequest, tx: Reading) -> MemoryTranscriptRepairReport:
    """Looks everything through for every page, since the counts are of everything; a page stands at an issue."""
    bound_to = context.bound(request.conversation)
    after = FIRST if request.cursor is None else Place(*read_cursor(context.key, bound_to, request.cursor))
    scope = _scope(context, tx, request.conversation)
    context.progress.plan(STEPS)
    found = _look(context, tx, scope, after, request.limit + 1)
    shown = found.first[: request.limit]
    more = len(found.first) > request.limit
    return MemoryTranscriptRepairReport(
        clean=not any(found.counts.values()),
        issues=tuple(each.shown() for each in shown),
        counts=found.counts,
        repairable=found.repairable,
        has_more=more,
        next_cursor=make_cursor(context.key, bound_to, tuple(shown[-1].place)) if more else None,
        profile_budget_applied=more and request.limit == context.shared.profile.budgets.repair_issues,
    )


class _Scope(NamedTuple):
    """What to look through: a space, or one conversation of it."""

    space: int
    conversation: int | None


def _scope(context: Context, tx: Reading, where: Conversation | None) -> _Scope | None:
    space = evidence.find_space(tx, context.space_id)
    if where is None:
        return None if space is None else _Scope(space, None)
    row = evidence.find_conversation(tx, space, where.channel_id, where.conversation_id)
    if space is None or row is None:
        raise NotFound(
            kind="conversation",
            name=f"{where.channel_id}/{where.conversation_id}",
            listing="`beetle transcript conversations` lists what is there",
        )
    return _Scope(space, row.conversation)


def _look(
    context: Context, tx: Reading, scope: _Scope | None, after: Place, most: int, *, mendable: bool = False
) -> Found:
    """The first `most` issues behind a place (of those that can be mended), and how many there are of each kind."""
    counts = dict.fromkeys(get_args(IssueKind), 0)
    repairable = 0

    def counted() -> Iterable[Issue]:
        nonlocal repairable
        if scope is None:
            return
        for each in issues(tx, context.key, scope.space, scope.conversation, INDEXED, context.progress):
            counts[each.kind] += 1
            repairable += each.mends is not None
            if each.place > after and (each.mends is not None or not mendable):
                yield each

    first = heapq.nsmallest(most, counted())
    return Found(first, counts, repairable)


def repair_safe(context: Context, request: MemoryTranscriptRepairSafeRequest) -> Apply:
    """Looks for issues on the caller's thread; the writer judges each again and mends it if it still is one."""
    if not request.dry_run:
        receipts.ready(context)
    most = context.shared.profile.budgets.repair_issues
    context.progress.plan((*STEPS, "mend"))
    with context.shared.store.read(context.deadline) as tx:
        scope = _scope(context, tx, request.conversation)
        found = _look(context, tx, scope, FIRST, most + 1, mendable=True)
    more = len(found.first) > most
    planned = found.first[:most]
    left = Counter(found.counts) - Counter(each.kind for each in planned)

    def apply(tx: WriteTransaction) -> MemoryTranscriptRepairSafeReport:
        mended: list[tuple[Issue, Mended]] = []
        context.progress.step("mend", of=len(planned))
        for number, issue in enumerate(planned):
            context.progress.at(number)
            still = issue if request.dry_run else _again(context, tx, scope, issue)
            if still is not None and still.mends is not None:
                if not request.dry_run:
                    _mend(tx, scope, still)
                mended.append((still, still.mends))
        counts = {**dict.fromkeys(get_args(Mended), 0), **Counter(outcome for _, outcome in mended)}
        event: int | None = None
        receipt: str | None = None
        if mended and not request.dry_run:
            event = tx.log(context.event("transcript", "repaired", **counts))
            places = (keyed(context.key, "repair", pack(tuple(each.place))) for each, _ in mended)
            receipt = receipts.make(context, tx, "transcript.repair_safe", event, counts, places)
        return MemoryTranscriptRepairSafeReport(
            dry_run=request.dry_run,
            changed=event is not None,
            mended=tuple(MendedIssue(issue=each.shown(), outcome=outcome) for each, outcome in mended),
            counts=counts,
            left={kind: left.get(kind, 0) for kind in get_args(IssueKind)},
            has_more=more,
            audit_event_id=event,
            receipt=receipt,
            profile_budget_applied=more,
        )

    return apply


def _again(context: Context, tx: WriteTransaction, scope: _Scope | None, issue: Issue) -> Issue | None:
    """The same issue as the writer finds it now, None when it is one no more."""
    assert scope is not None
    found: Iterable[Issue] = ()
    if issue.place.part == 0:
        link = store.link(tx, scope.space, issue.key)
        found = () if link is None else link_issues(tx, scope.space, link)
    else:
        (where,) = store.conversations(tx, scope.space, issue.place.conversation)
        if issue.mends == "recounted":
            found = counts_issues(where, store.counts(tx, where.conversation))
        else:
            record = store.record(tx, issue.key)
            if record is not None:
                found = message_issues(tx, context.key, scope.space, where, record, INDEXED)
    return next((each for each in found if each.place == issue.place), None)


def _mend(tx: WriteTransaction, scope: _Scope | None, issue: Issue) -> None:
    assert scope is not None
    if issue.mends == "dropped":
        store.drop_link(tx, issue.key)
    elif issue.mends == "relinked":
        store.link_turn(tx, issue.key, issue.turn)
    elif issue.mends == "recounted":
        held = store.counts(tx, issue.key)
        assert held is not None
        store.recount(tx, issue.key, held)
    else:
        record = store.record(tx, issue.key)
        assert record is not None and record.content is not None
        fields = evidence_fields(record.content, record.actor[0], record.at)
        entry = entry_of(scope.space, record)
        change = recall_index.add if issue.mends == "indexed" else recall_index.remove
        change(tx, entry, fields)
