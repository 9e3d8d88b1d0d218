"""The table of operations, gathered from the areas. Every transport, the command line and the docs come out of it."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts import (
    admin,
    agent_skills,
    agents,
    capture,
    chain_agents,
    chain_writes,
    chains,
    chunk_reasoning,
    chunk_trees,
    chunks,
    console,
    continuity,
    control,
    devices,
    event_log,
    events,
    evolve,
    forgetting,
    governance,
    harness,
    lifecycle,
    long_term,
    maintain,
    memory,
    private,
    remembering,
    replication,
    routing,
    scheduler,
    skill_registry,
    skills,
    snapshots,
    toc,
    tool_registries,
    transcript,
    transcript_repair,
    transfer,
    waiting,
)
from beetle.contracts.names import TransportName
from beetle.contracts.operation import EVERYWHERE as EVERYWHERE
from beetle.contracts.operation import Operation as Operation

OPERATIONS: tuple[Operation, ...] = (
    *memory.OPERATIONS,
    *routing.OPERATIONS,
    *maintain.OPERATIONS,
    *remembering.OPERATIONS,
    *forgetting.OPERATIONS,
    *continuity.OPERATIONS,
    *transfer.OPERATIONS,
    *skills.OPERATIONS,
    *agent_skills.OPERATIONS,
    *skill_registry.OPERATIONS,
    *tool_registries.OPERATIONS,
    *long_term.OPERATIONS,
    *governance.OPERATIONS,
    *waiting.OPERATIONS,
    *chain_writes.OPERATIONS,
    *chains.OPERATIONS,
    *chain_agents.OPERATIONS,
    *chunks.OPERATIONS,
    *chunk_reasoning.OPERATIONS,
    *chunk_trees.OPERATIONS,
    *transcript.OPERATIONS,
    *transcript_repair.OPERATIONS,
    *capture.OPERATIONS,
    *events.OPERATIONS,
    *agents.OPERATIONS,
    *toc.OPERATIONS,
    *private.OPERATIONS,
    *evolve.OPERATIONS,
    *console.OPERATIONS,
    *devices.OPERATIONS,
    *event_log.OPERATIONS,
    *harness.OPERATIONS,
    *lifecycle.OPERATIONS,
    *scheduler.OPERATIONS,
    *replication.OPERATIONS,
    *snapshots.OPERATIONS,
    *admin.OPERATIONS,
    *control.OPERATIONS,
)
"""In the order in which hello, help and docs show them: an area's rows stand together."""

EXPOSED_TRANSPORTS: frozenset[TransportName] = frozenset(name for row in OPERATIONS for name in row.exposed)
"""The transports over which some operation can be reached; what a build contains of them, the runtime knows."""

BY_NAME: Mapping[str, Operation] = {row.name: row for row in OPERATIONS}
