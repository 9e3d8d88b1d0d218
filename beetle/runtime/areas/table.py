"""The handler of each operation, gathered from the areas."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.runtime.areas import (
    admin,
    console,
    daemon,
    devices,
    event_log,
    maintain,
    private_items,
    scheduled,
    tools,
    transfers,
)
from beetle.runtime.areas.capture import coverage, events, host_keys, turns
from beetle.runtime.areas.chains import agents, ending, reading, walking, writing
from beetle.runtime.areas.continuity import transfer
from beetle.runtime.areas.erasure import forget
from beetle.runtime.areas.evidence import lifecycle, repair, transcript
from beetle.runtime.areas.evolve import evolve
from beetle.runtime.areas.facts import long_term, mutate, policy
from beetle.runtime.areas.governance import decide, private_records, remember, report, waiting, write
from beetle.runtime.areas.recall import inspect, recall
from beetle.runtime.areas.registry import finding, uploading
from beetle.runtime.areas.skills import agent_skills, runtime_skills
from beetle.runtime.areas.snapshots import snapshots
from beetle.runtime.areas.toc import expanding, rebuilding, searching
from beetle.runtime.areas.toc import reading as toc_reading
from beetle.runtime.pipeline.handlers import Handler

AREAS = (
    admin,
    toc_reading,
    searching,
    expanding,
    rebuilding,
    agents,
    ending,
    reading,
    walking,
    writing,
    console,
    event_log,
    transfer,
    daemon,
    devices,
    lifecycle,
    forget,
    repair,
    transcript,
    turns,
    host_keys,
    coverage,
    events,
    evolve,
    long_term,
    mutate,
    policy,
    report,
    waiting,
    decide,
    private_records,
    write,
    remember,
    maintain,
    scheduled,
    private_items,
    inspect,
    recall,
    agent_skills,
    runtime_skills,
    finding,
    uploading,
    snapshots,
    tools,
    transfers,
)

HANDLERS: Mapping[str, Handler] = {name: handler for area in AREAS for name, handler in area.HANDLERS.items()}
"""Every row of the table but batch, subscribe and unsubscribe, which are the dispatcher's and the connection's own."""
