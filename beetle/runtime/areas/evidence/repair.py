"""transcript.repair and transcript.repair_safe."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import get_args

from beetle.contracts.codec import pack
from beetle.contracts.common import Conversation
from beetle.contracts.transcript_repair import (
    IssueKind,
    MemoryTranscriptRepairReport,
    MemoryTranscriptRepairRequest,
    MemoryTranscriptRepairSafeReport,
    MemoryTranscriptRepairSafeRequest,
    Mended,
    MendedIssue,
)
from beetle.domain.digest import keyed
from beetle.domain.lexical import evidence_fields
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas import receipts
from beetle.runtime.areas.evidence.alias import existing_conversation
from beetle.runtime.areas.evidence.damage import (
    STEPS,
    Issue,
    IssuePosition,
    counts_issues,
    entry_of,
    issues,
    link_issues,
    message_issues,
    proof_of,
)
from beetle.runtime.pipeline.cursor import read_cursor
from beetle.runtime.pipeline.handlers import Handler, Read, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import page
from beetle.runtime.planes import table
from beetle.store import evidence, recall_index
from beetle.store import repair as store
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.event_places import Matter
from beetle.store.indexed import INDEXED

FIRST = IssuePosition(-1, 0, 0, 0, 0, 0)
"""Before every issue."""


class IssuePage(NamedTuple):
    """The issues behind a place, the first ones; counts over all there are."""

    first: list[Issue]
    counts: dict[str, int]
    repairable: int


def repair(invocation: Invocation, request: MemoryTranscriptRepairRequest, tx: Reading) -> MemoryTranscriptRepairReport:
    """Looks everything through for every page, since the counts are of everything; a page stands at an issue."""
    bound_to = invocation.bound(request.conversation)
    after = FIRST if request.cursor is None else IssuePosition(*read_cursor(invocation.key, bound_to, request.cursor))
    scope = _scope(invocation, tx, request.conversation)
    invocation.progress.plan(STEPS)
    found = _look(invocation, tx, scope, after, request.limit + 1)
    shown = page(
        invocation, found.first, request.limit, Issue.shown, bound_to=bound_to, place=lambda each: tuple(each.position)
    )
    return MemoryTranscriptRepairReport(
        clean=not any(found.counts.values()),
        issues=shown.entries,
        counts=found.counts,
        repairable=found.repairable,
        has_more=shown.has_more,
        next_cursor=shown.next_cursor,
        profile_budget_applied=shown.cut
        or (shown.has_more and request.limit == invocation.shared.profile.budgets.repair_issues),
    )


class _Scope(NamedTuple):
    """What to look through: a space, or one conversation of it."""

    space: int
    conversation: int | None


def _scope(invocation: Invocation, tx: Reading, where: Conversation | None) -> _Scope | None:
    if where is None:
        space = evidence.find_space(tx, invocation.space_id)
        return None if space is None else _Scope(space, None)
    return _Scope(*existing_conversation(invocation, tx, where))


def _look(
    invocation: Invocation,
    tx: Reading,
    scope: _Scope | None,
    after: IssuePosition,
    most: int,
    *,
    mendable: bool = False,
    whole: bool = False,
) -> IssuePage:
    """The first `most` issues behind a place (of those that can be mended), and how many there are of each kind.

    Of links of private records only those that the caller may know of, unless `whole` says otherwise.
    """
    counts = dict.fromkeys(get_args(IssueKind), 0)
    repairable = 0

    def counted() -> Iterable[Issue]:
        nonlocal repairable
        if scope is None:
            return
        for each in issues(tx, proof_of(invocation, tx), scope.space, scope.conversation, INDEXED, invocation.progress):
            known = whole or each.derived is None
            if not known and not table.is_known(invocation, tx, scope.space, each.derived or ""):
                continue
            counts[each.kind] += 1
            repairable += each.mends is not None
            if each.position > after and (each.mends is not None or not mendable):
                yield each

    first = heapq.nsmallest(most, counted())
    return IssuePage(first, counts, repairable)


def repair_safe(
    invocation: Invocation, request: MemoryTranscriptRepairSafeRequest, *, whole: bool = False
) -> Callable[[WriteTransaction], MemoryTranscriptRepairSafeReport]:
    """Looks for issues on the caller's thread; the writer judges each again and mends it if it still is one.

    An operator mends all that there is. Anybody else leaves alone what it may not know of: that it was mended would
    tell of it.

    Args:
        whole: mend all, whoever asks: the report is shown to nobody.
    """
    if not request.dry_run:
        receipts.ready(invocation)
    most = invocation.shared.profile.budgets.repair_issues
    invocation.progress.plan((*STEPS, "mend"))
    with invocation.reading(heavy=True) as tx:
        scope = _scope(invocation, tx, request.conversation)
        every = whole or invocation.caller.is_operator
        found = _look(invocation, tx, scope, FIRST, most + 1, mendable=True, whole=every)
    more = len(found.first) > most
    planned = found.first[:most]
    left = Counter(found.counts) - Counter(each.kind for each in planned)

    def apply(tx: WriteTransaction) -> MemoryTranscriptRepairSafeReport:
        mended: list[tuple[Issue, Mended]] = []
        invocation.progress.step("mend", of=len(planned))
        for issue in invocation.progress.through(planned):
            still = issue if request.dry_run else _again(invocation, tx, scope, issue)
            if still is not None and still.mends is not None:
                if not request.dry_run:
                    _mend(tx, scope, still)
                mended.append((still, still.mends))
        counts = {**dict.fromkeys(get_args(Mended), 0), **Counter(outcome for _, outcome in mended)}
        event: int | None = None
        receipt: str | None = None
        if mended and not request.dry_run:
            event = _log(invocation, tx, scope, mended)
            places = (keyed(invocation.key, "repair", pack(tuple(each.position))) for each, _ in mended)
            receipt = receipts.make(invocation, tx, "transcript.repair_safe", event, counts, places)
        return MemoryTranscriptRepairSafeReport(
            dry_run=request.dry_run,
            changed=event is not None,
            mended=tuple(MendedIssue(issue=each.shown(), outcome=outcome) for each, outcome in mended),
            counts=counts,
            left={kind: left.get(kind, 0) for kind in get_args(IssueKind)},
            has_more=more,
            audit_event_id=None if event is None else invocation.number_of(tx.logged[-1:]),
            receipt=receipt,
            profile_budget_applied=more,
        )

    return apply


def _log(invocation: Invocation, tx: WriteTransaction, scope: _Scope | None, mended: list[tuple[Issue, Mended]]) -> int:
    """An event for each matter that something was mended of, what everybody may know of last; the last one's row."""
    assert scope is not None
    counts: dict[Matter, Counter[Mended]] = {}
    for issue, outcome in mended:
        matter = "shared" if issue.derived is None else table.matter_of(tx, scope.space, issue.derived)
        counts.setdefault(matter, Counter())[outcome] += 1
    event = 0
    ending_with_shared: tuple[Matter, ...] = ("sealed", "private", "shared")
    for each in ending_with_shared:
        if each in counts:
            told = {**dict.fromkeys(get_args(Mended), 0), **counts[each]}
            event = tx.log(invocation.event("transcript", "repaired", each, **told))
    return event


def _again(invocation: Invocation, tx: WriteTransaction, scope: _Scope | None, issue: Issue) -> Issue | None:
    """The same issue as the writer finds it now, None when it is one no more."""
    assert scope is not None
    found: Iterable[Issue] = ()
    if issue.position.part == 0:
        link = store.link(tx, scope.space, issue.key)
        found = () if link is None else link_issues(tx, scope.space, link)
    else:
        (where,) = store.conversations(tx, scope.space, issue.position.conversation)
        if issue.mends == "recounted":
            found = counts_issues(where, store.counts(tx, where.conversation))
        else:
            record = store.record(tx, issue.key)
            if record is not None:
                found = message_issues(tx, invocation.key, scope.space, where, record, INDEXED)
    return next((each for each in found if each.position == issue.position), None)


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
        change = recall_index.put_back if issue.mends == "indexed" else recall_index.remove
        change(tx, entry, fields)


HANDLERS: Mapping[str, Handler] = {
    "transcript.repair": Read(repair),
    "transcript.repair_safe": Write(repair_safe),
}
