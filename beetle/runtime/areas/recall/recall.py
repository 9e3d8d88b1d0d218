"""memory.recall, memory.project, memory.capabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from beetle.contracts.codec import to_us
from beetle.contracts.memory import (
    MemoryCapabilitiesRequest,
    MemoryCapabilityCatalog,
    MemoryInspectionRequest,
    MemoryProjectionReport,
    MemoryProjectionRequest,
    MemoryRecallReport,
    MemoryRecallRequest,
    ProjectionAudit,
    ProjectionSection,
)
from beetle.domain.projection import Block, Item, Section, project
from beetle.runtime.areas import tools
from beetle.runtime.areas.evidence.alias import current_conversation
from beetle.runtime.areas.recall.search import find
from beetle.runtime.areas.toc.paths import PATH_HITS, led_to
from beetle.runtime.pipeline.handlers import Handler, Plain, Read
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.views import visible_kinds
from beetle.runtime.planes import agent_skill, table
from beetle.runtime.planes.evidence import message_ref
from beetle.runtime.planes.plane import Search
from beetle.runtime.planes.proof import is_whole
from beetle.store import evidence, transcripts
from beetle.store.engine.transaction import Reading
from beetle.store.transcripts import EvidenceRow

PROJECTED_HITS = 40
"""Hits that a projection chooses from."""
RECENT_SHARES = {"normal": 30, "elevated": 30, "critical": 30}
SHARES: dict[str, dict[str, int]] = {
    pressure: {
        **{each.name: each.shares[pressure] for each in table.projected().values()},
        "recent": share,
    }
    for pressure, share in RECENT_SHARES.items()
}
"""Percent of the block that each section may take first, by pressure."""


def recall(invocation: Invocation, request: MemoryRecallRequest, tx: Reading) -> MemoryRecallReport:
    """The fused list, and the same hits by plane."""
    answer = find(
        invocation,
        tx,
        Search(
            query=request.query,
            limit=request.limit if request.path == "direct" else max(PATH_HITS, request.limit),
            viewer=invocation.viewer(),
            conversation=request.conversation,
            planes=request.planes,
            since=None if request.since is None else to_us(request.since),
            until=None if request.until is None else to_us(request.until),
            as_of=None if request.as_of is None else to_us(request.as_of),
            agent_skills=agent_skill.admitted(invocation, request),
            asked_at=invocation.now if request.asked_at is None else to_us(request.asked_at),
        ),
    )
    hits = answer.hits if request.path == "direct" else led_to(invocation, tx, answer.hits, request.limit)
    # The hits apart, in the report's list of each plane.
    by_plane: dict[str, Any] = {
        plane.recall.reported_as: tuple(hit for hit in hits if hit.plane == plane.name)
        for plane in table.PLANES
        if plane.recall is not None
    }
    experience = tools.hints(invocation, tx, request.tool_registry_refs)
    return MemoryRecallReport(
        hits=hits,
        **by_plane,
        agent_tool_hints=experience.hints,
        tool_experience_status=experience.status,
        working_recall=answer.working,
        timings_ms=answer.timings,
        profile_budget_applied=experience.clipped or answer.clipped,
    )


def project_memory(invocation: Invocation, request: MemoryProjectionRequest, tx: Reading) -> MemoryProjectionReport:
    """The block, its sections, and what went into it."""
    block, audit = projected(
        invocation, tx, request, request.user_query, request.system_max_len, request.recent_messages_limit
    )
    sections = tuple(
        ProjectionSection(
            name=each.name,
            items=len(each.items),
            characters=each.characters,
            budget=each.budget,
            omitted=each.omitted,
        )
        for each in block.sections
    )
    experience = tools.hints(invocation, tx, request.tool_registry_refs)
    return MemoryProjectionReport(
        system_memory_block=block.text,
        sections=sections,
        audit=audit,
        agent_tool_hints=experience.hints,
        tool_experience_status=experience.status,
        profile_budget_applied=experience.clipped,
    )


def projected(
    invocation: Invocation,
    tx: Reading,
    request: MemoryProjectionRequest | MemoryInspectionRequest,
    query: str,
    bound: int,
    recent: int,
) -> tuple[Block, ProjectionAudit]:
    """The block that a projection of this query gives, at most `bound` characters, and what went into it."""
    named = request.conversation if isinstance(request, MemoryProjectionRequest) else None
    space = evidence.find_space(tx, invocation.space_id)
    current = current_conversation(invocation, tx, space, named).conversation
    kinds = visible_kinds(invocation.viewer())
    last = [] if current is None else _recent(invocation, tx, current, kinds, recent)
    withheld = 0 if current is None else transcripts.hidden_among_recent(tx, current, kinds, recent)
    skills_too = agent_skill.admitted(invocation, request)
    search = Search(
        query, PROJECTED_HITS, invocation.viewer(), here=named, agent_skills=skills_too, asked_at=invocation.now
    )
    hits = find(invocation, tx, search).hits if query else ()
    said = {message_ref(row) for row in last}
    unsaid = tuple(hit for hit in hits if hit.ref not in said)
    sections = [
        Section(
            each.name,
            each.items(invocation, tx, space, tuple(hit for hit in unsaid if hit.plane == plane)),
            each.shares,
            note=each.note,
            spare=each.spare,
        )
        for plane, each in table.projected().items()
    ]
    recently = [Item(message_ref(row), f"{row.speaker or row.role}: {row.content}") for row in last]
    sections.append(Section("recent", recently, RECENT_SHARES, newest_last=True))
    block = project(sections, bound, request.pressure)
    chosen = [item.ref for each in block.sections for item in each.items]
    audit = ProjectionAudit(
        source_planes=tuple(dict.fromkeys(ref.partition(":")[0] for ref in chosen)),
        selected=tuple(chosen),
        characters=len(block.text),
        budget=bound,
        pressure=request.pressure,
        withheld=withheld,
    )
    return block, audit


def _recent(
    invocation: Invocation, tx: Reading, conversation: int, kinds: tuple[str, ...], most: int
) -> list[EvidenceRow]:
    """The newest messages, without damaged ones."""
    return [row for row in transcripts.recent_evidence(tx, conversation, kinds, most) if is_whole(invocation.key, row)]


def capabilities(invocation: Invocation, request: MemoryCapabilitiesRequest) -> MemoryCapabilityCatalog:
    """What this caller may do here."""
    del request
    shared = invocation.shared
    return MemoryCapabilityCatalog(
        profile=shared.profile.name,
        backend=shared.store.settings.backend,
        capabilities=shared.catalog.shown_to(invocation.caller),
        views=tuple(invocation.caller.views),
    )


HANDLERS: Mapping[str, Handler] = {
    "memory.capabilities": Plain(capabilities),
    "memory.recall": Read(recall),
    "memory.project": Read(project_memory),
}
