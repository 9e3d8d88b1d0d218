"""Hints from governed experience with the host's tools, worked out of what was observed when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from beetle.contracts.common import RegistryRef
from beetle.contracts.memory import AgentToolHint, ToolExperienceReason, ToolExperienceStatus, ToolRegistryReport
from beetle.memory.tool_experience import RECENT, Experience, Use, weigh
from beetle.runtime.handling import Context
from beetle.runtime.views import visible_kinds
from beetle.store import evidence, tool_experience, tool_registries
from beetle.store.tool_registries import RegistryRow, ToolRow
from beetle.store.transaction import Reading

CAPABILITY = "tool_registry"
EVERYWHERE = "global"
MOST_HINTS = 16
MOST_REGISTRIES = 64
"""Registries that are looked at where none is named: as many as a request may name."""
MOST_PROBES = 128
"""Tools and schemas that are weighed to say why there are no hints."""
CLOSED = ("private", "soul")
"""Messages whose turns do not speak to who may not see them. What is for operators or from a backend is mostly the
tool's own trace, and hides nothing of the turn that a count would tell."""


class Hints(NamedTuple):
    """What a host is told; `clipped` when there is more experience than that."""

    hints: tuple[AgentToolHint, ...]
    status: ToolExperienceStatus
    clipped: bool


class _Asked(NamedTuple):
    """The registries that a request is about: those that hold, the ids of those that do not."""

    current: list[RegistryRow]
    missing: list[str]
    drifted: list[str]


class _Known(NamedTuple):
    registry: RegistryRow
    tool: ToolRow
    experience: Experience


def hints(context: Context, tx: Reading, refs: Sequence[RegistryRef]) -> Hints:
    """Hints of the registries that the refs name, as far as they are what is registered; without refs, of every
    registry of the space whose scope is global. The best score comes first."""
    space = evidence.find_space(tx, context.space_id)
    if context.shared.catalog.hidden(CAPABILITY) is not None:
        return Hints((), ToolExperienceStatus(), False)
    if space is None:
        names = tuple(dict.fromkeys(ref.registry_id for ref in refs))
        return Hints((), ToolExperienceStatus(registries=names, missing=names), False)
    asked = _named(tx, space, refs) if refs else _everywhere(tx, space)
    known = _known(context, tx, space, asked.current)
    status = ToolExperienceStatus(
        reason="available" if known else _why_none(context, tx, space, asked, bool(refs)),
        registries=tuple(dict.fromkeys(ref.registry_id for ref in refs))
        or tuple(row.registry_id for row in asked.current),
        missing=tuple(asked.missing),
        drifted=tuple(asked.drifted),
    )
    return Hints(tuple(_hint(each) for each in known[:MOST_HINTS]), status, len(known) > MOST_HINTS)


def registry_report(context: Context, tx: Reading, space: int | None) -> ToolRegistryReport:
    """What an inspection says of the registries of a space."""
    if space is None:
        return ToolRegistryReport()
    total = tool_registries.count_registries(tx, space)
    rows = tool_registries.list_registries(tx, space, "", MOST_REGISTRIES)
    known = _known(context, tx, space, rows)
    asked = _Asked(rows, [], [])
    return ToolRegistryReport(
        registries=total,
        tools=sum(tool_registries.count_tools(tx, row.registry) for row in rows),
        experienced=len(known),
        reason="available" if known else _why_none(context, tx, space, asked, named=False),
    )


def _named(tx: Reading, space: int, refs: Sequence[RegistryRef]) -> _Asked:
    """A registry that is named twice holds when either naming does."""
    found = _Asked([], [], [])
    for registry_id in dict.fromkeys(ref.registry_id for ref in refs):
        row = tool_registries.find_registry(tx, space, registry_id)
        if row is None:
            found.missing.append(registry_id)
        elif any(
            ref == RegistryRef(registry_id=registry_id, fingerprint=row.fingerprint, scope=row.scope) for ref in refs
        ):
            found.current.append(row)
        else:
            found.drifted.append(registry_id)
    return found


def _everywhere(tx: Reading, space: int) -> _Asked:
    return _Asked(tool_registries.registries_in_scope(tx, space, EVERYWHERE, MOST_REGISTRIES), [], [])


def _known(context: Context, tx: Reading, space: int, rows: Sequence[RegistryRow]) -> list[_Known]:
    """Tools that are known by experience, the best first."""
    found: list[_Known] = []
    for row in rows:
        for tool in tool_experience.observed_tools(tx, space, row.registry_id, row.registry):
            named = (row.registry_id, tool.tool_id, tool.schema_fingerprint)
            experience = _experience(context, tx, space, named, row.scope)
            if experience.known:
                found.append(_Known(row, tool, experience))
    found.sort(key=_order)
    return found


def _order(known: _Known) -> tuple[float, int, str, str]:
    experience = known.experience
    return (-experience.score, -experience.last_success, known.registry.registry_id, known.tool.tool_id)


def _experience(context: Context, tx: Reading, space: int, tool: tuple[str, str, str], scope: str | None) -> Experience:
    seen = visible_kinds(context.viewer())
    closed = [kind for kind in CLOSED if kind not in seen]
    return weigh(Use(*each) for each in tool_experience.uses(tx, space, tool, scope, closed, RECENT))


def _hint(known: _Known) -> AgentToolHint:
    registry, tool, experience = known
    return AgentToolHint(
        tool_id=tool.tool_id,
        registry_id=registry.registry_id,
        schema_fingerprint=tool.schema_fingerprint,
        reason=experience.reason,
        permission_tags=tool.permission_tags,
        risk_tags=tool.risk_tags,
        score=round(experience.score, 4),
        registry_fingerprint=registry.fingerprint,
        registry_scope=registry.scope,
    )


def _why_none(context: Context, tx: Reading, space: int, asked: _Asked, named: bool) -> ToolExperienceReason:
    """Why there are no hints, where there may be experience all the same."""
    current = {row.registry_id for row in asked.current}
    missing = iter(asked.missing) if named else _unregistered(tx, space, current)
    probes = iter(range(MOST_PROBES))
    ways: tuple[tuple[ToolExperienceReason, Iterator[str]], ...] = (
        ("registry_missing", missing),
        ("registry_drifted", iter(asked.drifted)),
        ("experience_stale", iter(current)),
    )
    for reason, registries in ways:
        for registry_id in registries:
            for tool in _used(tx, space, registry_id):
                if next(probes, None) is None:
                    return "no_governed_tool_experience"
                if _experience(context, tx, space, tool, None).known:
                    return reason
    return "no_governed_tool_experience"


def _unregistered(tx: Reading, space: int, current: set[str]) -> Iterator[str]:
    for registry_id in tool_experience.registries(tx, space):
        if registry_id not in current and tool_registries.find_registry(tx, space, registry_id) is None:
            yield registry_id


def _used(tx: Reading, space: int, registry_id: str) -> Iterator[tuple[str, str, str]]:
    """Every tool of a registry under every schema with which it was used."""
    for tool_id in tool_experience.tools(tx, space, registry_id):
        for schema in tool_experience.schemas(tx, space, registry_id, tool_id):
            yield registry_id, tool_id, schema
