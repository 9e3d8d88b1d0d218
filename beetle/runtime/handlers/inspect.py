"""memory.inspect."""

from __future__ import annotations

from beetle.contracts.codec import format_us
from beetle.contracts.memory import (
    AgentSkillReport,
    EventLogState,
    IdentityState,
    MemoryInspectionReport,
    MemoryInspectionRequest,
    OperatorAction,
    OperatorInspection,
    PlaneCounts,
    ProjectionAudit,
    RuntimeState,
    StoreState,
)
from beetle.runtime import agent_skills, snapshots, tool_hints
from beetle.runtime.alias import Current, current_conversation
from beetle.runtime.handlers.governance_report import deferred
from beetle.runtime.handlers.memory import projected
from beetle.runtime.handling import Context
from beetle.runtime.identity import Identity
from beetle.runtime.search import Answer, Search, find
from beetle.store import evidence, state
from beetle.store.connection import PAGE_SIZE
from beetle.store.event_log import Wanted, read_head, read_rows
from beetle.store.transaction import Reading

ACTION_TOPICS = ("lifecycle", "device")
ACTIONS_SHOWN = 20
ROWS_READ = 10_000
"""How far back in the event log actions are looked for."""


def inspect(context: Context, request: MemoryInspectionRequest, tx: Reading) -> MemoryInspectionReport:
    """The store's state, the caller's counts and, with a query, how recall and projection answer it."""
    space = evidence.find_space(tx, context.space_id)
    lifecycle = context.shared.lifecycle
    skills_too = agent_skills.admitted(context, request)
    answer: Answer | None = None
    audit: ProjectionAudit | None = None
    if request.query:
        limit = context.shared.profile.budgets.recall_limit
        search = Search(query=request.query, limit=limit, viewer=context.viewer(), agent_skills=skills_too)
        answer = find(context, tx, search)
        _, audit = projected(context, tx, request, request.query, request.system_max_len, 10)
    current = current_conversation(context, tx, space, None)
    head = read_head(tx)
    return MemoryInspectionReport(
        runtime=RuntimeState(
            mode=lifecycle.mode_for(request),
            task=lifecycle.task,
            replica_horizon=snapshots.horizon(context.shared.store, context.now),
        ),
        store=_store_state(context, tx),
        counts=PlaneCounts(**state.plane_counts(tx, space)),
        event_log=EventLogState(rows=head.seq, head=head.hash.hex()),
        operator=_operator(context, current),
        capabilities=context.shared.catalog.shown_to(context.caller),
        operator_actions=_actions(context, tx, head.seq),
        deferred=deferred(context, tx, space),
        agent_skills=agent_skills.report(context) if skills_too else AgentSkillReport(),
        tool_registries=tool_hints.registry_report(context, tx, space),
        recall=None if answer is None else answer.working,
        recall_hits=() if answer is None else answer.hits,
        projection=audit,
    )


def _actions(context: Context, tx: Reading, head: int) -> tuple[OperatorAction, ...]:
    """The last steps of the runtime and its operators, among the newest rows of the log."""
    wanted = Wanted(context.space_id, context.caller.is_operator, topics=ACTION_TOPICS)
    found = read_rows(tx, wanted, (head - ROWS_READ, head + 1), ACTIONS_SHOWN, backwards=True)
    return tuple(
        OperatorAction(
            event_id=row.seq,
            at=format_us(row.at),
            topic=row.topic,
            event=row.event,
            operation=row.operation,
            principal=row.principal,
        )
        for row, _ in found
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
