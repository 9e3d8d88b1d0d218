"""long_term.list and long_term.detail."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.common import DerivedMemoryRef
from beetle.contracts.errors import InvalidRequest, NotFound
from beetle.contracts.long_term import (
    FactRevision,
    LongTermDetailReport,
    LongTermDetailRequest,
    LongTermListReport,
    LongTermListRequest,
    LongTermRecord,
)
from beetle.contracts.names import ViewName
from beetle.contracts.refs import fact_named, format_ref
from beetle.domain.digest import shown_digest
from beetle.runtime.pipeline.cursor import read_cursor
from beetle.runtime.pipeline.handlers import Handler, Read
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import Room, page
from beetle.runtime.pipeline.views import Viewer, visible_kinds
from beetle.runtime.planes.fact_search import Eyes, keys_saying, saying
from beetle.runtime.planes.long_term import LIVING, NAME, fact_ref
from beetle.store import evidence, long_term, policies
from beetle.store.damaged_rows import known_time, shown_time, whole
from beetle.store.engine.transaction import Reading
from beetle.store.long_term import FactRow, RevisionRow, Shown

STATES = (*LIVING, "deleted")
FIRST = 2**63 - 1
"""Above every key."""


def eyes(invocation: Invocation, view: ViewName | None) -> Eyes:
    """How the call's viewer sees facts."""
    viewer: Viewer = invocation.viewer(view)
    # Who has a view of private facts uses it; and what may leave the store is nobody's to widen.
    writes = viewer.operator and viewer.view != "export" and not invocation.sees_private
    private, audit = "private" in visible_kinds(viewer), viewer.view == "operator_audit"
    return Eyes(private, audit, invocation.key, invocation.caller.name if writes else None)


def list_facts(invocation: Invocation, request: LongTermListRequest, tx: Reading) -> LongTermListReport:
    """The newest first; the cursor stands at a record."""
    space = evidence.find_space(tx, invocation.space_id)
    seen = eyes(invocation, request.view)
    states = STATES if request.state == "all" else (request.state,)
    bound_to = invocation.bound(request.query, request.kind, request.state, request.view, seen)
    below = FIRST if request.cursor is None else read_cursor(invocation.key, bound_to, request.cursor)
    if request.query is None:
        total = long_term.count_facts(tx, space, states, request.kind, seen.private, seen.writer)
        rows = long_term.page_of_facts(
            tx, space, states, below=below, kind=request.kind, private=seen.private, writer=seen.writer,
            limit=request.limit + 1,
        )  # fmt: skip
    else:
        total, rows = _page_saying(tx, space, request, seen, states, below)
    found = page(
        invocation,
        rows,
        request.limit,
        lambda row: records(tx, space, [row], seen)[0],
        bound_to=bound_to,
        place=lambda row: row.fact,
    )
    return LongTermListReport(
        total=total,
        records=found.entries,
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        profile_budget_applied=found.cut,
    )


def _page_saying(
    tx: Reading, space: int | None, request: LongTermListRequest, seen: Eyes, states: tuple[str, ...], below: int
) -> tuple[int, list[FactRow]]:
    """How many records match the request's words, and those of the page, with one more where there is one."""
    assert request.query is not None
    if states == ("current",) and request.kind is None:
        # The index tells all that there is to tell of these: only the page's own records are read.
        keys = keys_saying(tx, space, request.query, seen, states, ever=False)
        page = sorted((key for key in keys if key < below), reverse=True)[: request.limit + 1]
        return len(keys), long_term.facts_by_key(tx, space, page)
    found = saying(tx, space, request.query, seen, states)
    found = [row for row in found if request.kind is None or row.kind == request.kind]
    return len(found), [row for row in found if row.fact < below][: request.limit + 1]


def records(tx: Reading, space: int | None, rows: list[FactRow], seen: Eyes) -> tuple[LongTermRecord, ...]:
    """Records with their words, where they have any."""
    shown = {each.row.fact: each for each in long_term.shown_by_key(tx, space, [row.fact for row in rows])}
    return tuple(_record(tx, row, shown.get(row.fact), seen) for row in rows)


def _record(tx: Reading, row: FactRow, shown: Shown | None, seen: Eyes) -> LongTermRecord:
    body = None if shown is None else shown.body
    return LongTermRecord(
        ref=fact_ref(row),
        record_id=row.record_id,
        target=row.target,  # type: ignore[arg-type] - the column is checked by the schema, as those below
        kind=row.kind,
        topic=None if body is None else body.topic,
        content=None if body is None else body.content,
        keywords=None if body is None else body.keywords,
        authority=row.authority,
        confidence=row.confidence,
        visibility=row.visibility,  # type: ignore[arg-type]
        state=row.state,  # type: ignore[arg-type]
        revision=row.revision,
        created_at=shown_time(row.created_at, "fact", row.fact),
        updated_at=shown_time(row.updated_at, "fact", row.fact),
        evidence=long_term.count_evidence(tx, row.fact),
        digest=_shown_digest(row, seen),
    )


def _shown_digest(row: FactRow, seen: Eyes) -> str | None:
    if not seen.audit or row.content_mac is None:
        return None
    # By the revision too: a correction to a guess is to show nothing of the text that it replaced.
    return shown_digest(seen.key, (row.record_id, row.revision), row.content_mac).hex()


def existing(invocation: Invocation, tx: Reading, ref: str, seen: Eyes) -> tuple[int, FactRow]:
    """The record that a ref names, and the space it is in.

    Raises:
        InvalidRequest: the ref is none of a fact.
        NotFound: there is no such record in this space, or this viewer may not know of it.
    """
    record_id = fact_named(ref)
    if record_id is None:
        raise InvalidRequest(
            reason="this is not a ref of a long-term fact", hint="give a ref as recall returns it", path="$.args.ref"
        )
    space = evidence.find_space(tx, invocation.space_id)
    row = long_term.find_fact(tx, space, record_id)
    if space is None or row is None or not seen.see(tx, row):
        name = format_ref(NAME, record_id)
        raise NotFound(kind="fact", name=name, listing="`beetle long-term list` lists the facts")
    return space, row


def detail(invocation: Invocation, request: LongTermDetailRequest, tx: Reading) -> LongTermDetailReport:
    """One record with its history."""
    seen = eyes(invocation, request.view)
    space, row = existing(invocation, tx, request.ref, seen)
    most = invocation.shared.profile.budgets.derived_refs
    revisions = long_term.revisions_of(tx, row.fact)
    room = Room(invocation)
    bodies = _bodies(tx, row, revisions if request.history else revisions[-1:], seen, room)
    by = _visible_record(tx, space, long_term.record_id_of(tx, row.superseded_by), seen)
    befores = (_visible_record(tx, space, each, seen) for each in long_term.superseded_records(tx, row.fact))
    derived = derived_refs(tx, space, row, seen, most + 1)
    acting = policies.acting(tx, space, row.kind, row.topic_mac, invocation.scope.chat_id)
    return LongTermDetailReport(
        record=records(tx, space, [row], seen)[0],
        revisions=tuple(
            whole(
                revisions,
                lambda each: _revision(each, bodies if request.history or each.revision == row.revision else {}, seen),
            )
        ),
        derived_refs=derived[:most],
        superseded_by=by,
        supersedes=tuple(each for each in befores if each is not None),
        policy="suppress" if "suppress" in acting else "pause" if "pause" in acting else "none",
        profile_budget_applied=room.full or len(derived) > most,
    )


def _bodies(tx: Reading, row: FactRow, revisions: list[RevisionRow], seen: Eyes, room: Room) -> dict[int, str]:
    """The texts of some revisions that this viewer may see, by their keys: those of the newest, as there is room."""
    found: dict[int, str] = {}
    for each in reversed(revisions):
        if each.body is None or each.body in found:
            continue
        body = long_term.body_of(tx, row.fact, each.body)
        if not seen.private and "private" in (row.visibility, body.visibility) and each.principal != seen.writer:
            continue
        if not room.takes(body.content):
            break
        found[each.body] = body.content
    return found


def derived_refs(tx: Reading, space: int, row: FactRow, seen: Eyes, limit: int) -> tuple[DerivedMemoryRef, ...]:
    """What a record came from, at most `limit` that this viewer may know of: what it may not is not counted."""
    made: list[DerivedMemoryRef] = []
    for derived, source, relation in long_term.derived_refs_of(tx, row.fact):
        if len(made) >= limit:
            break
        record_id = fact_named(source)
        if record_id is not None and _visible_record(tx, space, record_id, seen) is None:
            continue
        made.append(DerivedMemoryRef(derived=derived, evidence=source, relation=relation))
    return tuple(made)


def _visible_record(tx: Reading, space: int, record_id: str | None, seen: Eyes) -> str | None:
    row = None if record_id is None else long_term.find_fact(tx, space, record_id)
    return None if row is None or not seen.see(tx, row) else fact_ref(row)


def _revision(each: RevisionRow, bodies: dict[int, str], seen: Eyes) -> FactRevision:
    return FactRevision(
        revision=each.revision,
        at=shown_time(each.valid_from, "fact_revision", each.revision),
        action=each.action,  # type: ignore[arg-type] - the column is checked by the schema
        state=each.state,  # type: ignore[arg-type] - likewise
        by=each.principal,
        authority=each.authority,
        reason=each.reason if seen.private or each.visibility == "shared" or each.principal == seen.writer else None,
        valid_from=shown_time(each.valid_from, "fact_revision", each.revision),
        valid_until=known_time(each.valid_until),
        content=None if each.body is None else bodies.get(each.body),
        source_chat_id=each.source_chat_id,
        extractor=each.extractor,
    )


HANDLERS: Mapping[str, Handler] = {
    "long_term.list": Read(list_facts),
    "long_term.detail": Read(detail),
}
