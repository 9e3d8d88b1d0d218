"""memory.inspect."""

from __future__ import annotations

from beetle.contracts.memory import (
    EventLogState,
    IdentityState,
    MemoryInspectionReport,
    MemoryInspectionRequest,
    OperatorInspection,
    PlaneCounts,
    ProjectionAudit,
    StoreState,
)
from beetle.runtime.alias import Current, current_conversation
from beetle.runtime.handlers.memory import projected
from beetle.runtime.handling import Context
from beetle.runtime.identity import Identity
from beetle.runtime.search import Answer, Search, find
from beetle.store import evidence, state
from beetle.store.connection import PAGE_SIZE
from beetle.store.event_log import read_head
from beetle.store.transaction import Reading


def inspect(context: Context, request: MemoryInspectionRequest, tx: Reading) -> MemoryInspectionReport:
    """The store's state, the caller's counts and, with a query, how recall and projection answer it."""
    space = evidence.find_space(tx, context.space_id)
    answer: Answer | None = None
    audit: ProjectionAudit | None = None
    if request.query:
        limit = context.shared.profile.budgets.recall_limit
        answer = find(context, tx, Search(query=request.query, limit=limit, viewer=context.viewer()))
        _, audit = projected(context, tx, request, request.query, request.system_max_len, 10)
    current = current_conversation(context, tx, space, None)
    head = read_head(tx)
    return MemoryInspectionReport(
        store=_store_state(context, tx),
        counts=PlaneCounts(**state.plane_counts(tx, space)),
        event_log=EventLogState(rows=head.seq, head=head.hash.hex()),
        operator=_operator(context, current),
        recall=None if answer is None else answer.working,
        recall_hits=() if answer is None else answer.hits,
        projection=audit,
    )


def _store_state(context: Context, tx: Reading) -> StoreState:
    store = context.shared.store
    pages = tx.value("PRAGMA page_count")
    return StoreState(
        path=store.open_report.path,
        bytes=pages * PAGE_SIZE,
        wal_bytes=store.wal_bytes(),
        pages=pages,
        ceiling_bytes=store.settings.store_bytes,
        schema=store.schema,
        backend=store.settings.backend,
        pending_erasures=store.writer.erasures,
    )


def _identity(identity: Identity) -> IdentityState:
    state = identity.state
    problem, advice = identity.problem(state, whole_path=True) or (None, None)
    return IdentityState(state=state, problem=problem, advice=advice)


def _operator(context: Context, current: Current) -> OperatorInspection:
    shared = context.shared
    return OperatorInspection(
        principal=context.caller.name,
        profile=shared.profile.name,
        uptime_s=round((context.now - shared.started_at) / 1_000_000, 3),
        current_conversation=current.ref,
        current_by=current.by,
        queued_writes=shared.store.writer.queued,
        readers=shared.store.settings.readers,
        refusals=shared.refusals(),
        findings=shared.store.open_report.findings,
        identity=_identity(shared.identity),
    )
