"""agent.list, agent.activity: counted from events."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.agents import (
    ActivityBucket,
    AgentActivityReport,
    AgentActivityRequest,
    AgentListReport,
    AgentListRequest,
    AgentSummary,
)
from beetle.contracts.events import LAST_MS
from beetle.runtime.pipeline.handlers import Handler, Read
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.views import visible_kinds
from beetle.store import agents, evidence
from beetle.store.agents import DAY_MS
from beetle.store.engine.transaction import Reading

DAYS: Mapping[str, int] = {"day": 1, "week": 7}
USUAL_DAYS = 30


def listed(invocation: Invocation, request: AgentListRequest, tx: Reading) -> AgentListReport:
    """The agents whose events the view shows."""
    space = evidence.find_space(tx, invocation.space_id)
    if space is None:
        return AgentListReport(agents=())
    found = agents.summaries(tx, space, visible_kinds(invocation.viewer()), request.limit + 1)
    return AgentListReport(
        agents=tuple(
            AgentSummary(
                agent_id=each.agent_id,
                event_count=each.events,
                session_count=each.conversations,
                first_seen_ms=each.first,
                last_seen_ms=each.last,
            )
            for each in found[: request.limit]
        ),
        has_more=len(found) > request.limit,
    )


def activity(invocation: Invocation, request: AgentActivityRequest, tx: Reading) -> AgentActivityReport:
    """Buckets of a time, thirty days unless another is named."""
    space = evidence.find_space(tx, invocation.space_id)
    if space is None:
        return AgentActivityReport(buckets=())
    until = min(LAST_MS, invocation.now // 1000) if request.to_ms is None else request.to_ms
    since = until - USUAL_DAYS * DAY_MS if request.from_ms is None else request.from_ms
    days = DAYS[request.bucket]
    kinds = visible_kinds(invocation.viewer())
    found = agents.activity(tx, space, kinds, (since, until), days, request.agent_id, request.limit + 1)
    return AgentActivityReport(
        buckets=tuple(
            ActivityBucket(
                start_ms=each.start, end_ms=each.start + days * DAY_MS, event_count=each.events, agent_id=each.agent_id
            )
            for each in found[: request.limit]
        ),
        has_more=len(found) > request.limit,
    )


HANDLERS: Mapping[str, Handler] = {"agent.list": Read(listed), "agent.activity": Read(activity)}
