"""memory.inspect."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.memory import (
    AgentSkillReport,
    IdentityState,
    MemoryInspectionReport,
    MemoryInspectionRequest,
    OperatorAction,
    OperatorInspection,
    ProjectionAudit,
    RuntimeState,
    StoreState,
)
from beetle.runtime.areas import copies, event_log, tools
from beetle.runtime.areas.evidence.alias import Current, current_conversation
from beetle.runtime.areas.governance.report import deferred
from beetle.runtime.areas.recall.recall import projected
from beetle.runtime.areas.recall.search import Answer, find
from beetle.runtime.areas.snapshots import kept, store_snapshots
from beetle.runtime.host.identity import fingerprint_of
from beetle.runtime.pipeline.handlers import Handler, Read
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import agent_skill, table
from beetle.runtime.planes.plane import Search
from beetle.store import erasures, evidence, private
from beetle.store.damaged_rows import shown_time, whole
from beetle.store.engine.connection import PAGE_SIZE
from beetle.store.engine.transaction import Reading
from beetle.store.event_log import EventFilter, Numbered, read_rows

ACTION_TOPICS = ("lifecycle", "device")
ACTIONS_SHOWN = 20
ROWS_READ = 10_000
"""How far back in the event log actions are looked for."""


def inspect(invocation: Invocation, request: MemoryInspectionRequest, tx: Reading) -> MemoryInspectionReport:
    """The store's state, the caller's counts and, with a query, how recall and projection answer it."""
    space = evidence.find_space(tx, invocation.space_id)
    lifecycle = invocation.shared.lifecycle
    skills_too = agent_skill.admitted(invocation, request)
    answer: Answer | None = None
    audit: ProjectionAudit | None = None
    if request.query:
        limit = invocation.shared.profile.budgets.recall_limit
        viewer = invocation.viewer()
        search = Search(request.query, limit, viewer, agent_skills=skills_too, asked_at=invocation.now)
        answer = find(invocation, tx, search)
        _, audit = projected(invocation, tx, request, request.query, request.system_max_len, 10)
    current = current_conversation(invocation, tx, space, None)
    return MemoryInspectionReport(
        runtime=RuntimeState(
            mode=lifecycle.mode_for(request),
            task=lifecycle.task,
            replica_horizon=store_snapshots.horizon(invocation.shared.store, invocation.now),
            replicated_until=copies.replicated_until(invocation.shared.store, invocation.now, tx),
            copies_until=kept.until(invocation.shared, invocation.now, tx),
        ),
        store=_store_state(invocation, tx),
        counts=table.counts(invocation, tx, space),
        event_log=event_log.log_state(invocation, tx),
        operator=_operator(invocation, tx, current),
        capabilities=invocation.shared.catalog.shown_to(invocation.caller),
        operator_actions=_actions(invocation, tx),
        deferred=deferred(invocation, tx, space),
        agent_skills=agent_skill.report(invocation) if skills_too else AgentSkillReport(),
        tool_registries=tools.registry_report(invocation, tx, space),
        recall=None if answer is None else answer.working,
        recall_hits=() if answer is None else answer.hits,
        projection=audit,
    )


def _actions(invocation: Invocation, tx: Reading) -> tuple[OperatorAction, ...]:
    """The last steps of the runtime and its operators, among the newest rows of the log."""
    head = event_log.head_number(invocation, tx)
    wanted = EventFilter(invocation.space_id, invocation.level, topics=ACTION_TOPICS)
    found = read_rows(tx, wanted, (head - ROWS_READ, head + 1), ACTIONS_SHOWN, backwards=True)
    return tuple(whole(found, _action))


def _action(each: Numbered) -> OperatorAction:
    return OperatorAction(
        event_id=each.number,
        at=shown_time(each.row.at, "event_log", each.row.seq),
        topic=each.row.topic,
        event=each.row.event,
        operation=each.row.operation,
        principal=each.row.principal,
    )


def _store_state(invocation: Invocation, tx: Reading) -> StoreState:
    store = invocation.shared.store
    pages = tx.value("PRAGMA page_count")
    return StoreState(
        path=store.open_report.path,
        bytes=pages * PAGE_SIZE,
        wal_bytes=store.wal_bytes(),
        pages=pages,
        ceiling_bytes=store.settings.store_bytes,
        schema=store.schema,
        backend=store.settings.backend,
        pending_erasures=max(store.writer.erasures, erasures.count(tx)),
    )


def _operator(invocation: Invocation, tx: Reading, current: Current) -> OperatorInspection:
    shared = invocation.shared
    key, sealed = private.public_key(tx), private.sealed_counts(tx)
    state = shared.identity.state
    problem, advice = shared.identity.problem(state, whole_path=True) or (None, None)
    return OperatorInspection(
        principal=invocation.caller.name,
        profile=shared.profile.name,
        uptime_s=shared.uptime_s,
        current_conversation=current.ref,
        current_by=current.by,
        queued_writes=shared.store.writer.queued,
        readers=shared.store.settings.readers,
        refusals=shared.refusals(),
        findings=shared.store.findings,
        identity=IdentityState(
            state=state,
            problem=problem,
            advice=advice,
            device=None if key is None else fingerprint_of(key),
            former=tuple(
                fingerprint_of(each.public_key) for each in private.former_identities(tx) if each.public_key is not None
            ),
            closed=sealed.closed_items + sealed.closed_texts,
        ),
    )


HANDLERS: Mapping[str, Handler] = {
    "memory.inspect": Read(inspect),
}
