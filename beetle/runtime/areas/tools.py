"""Tool registries, feedback on tools, and the hints that come of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from beetle.contracts.common import RegistryRef
from beetle.contracts.errors import InvalidRequest, NotFound, PrivacyDenied
from beetle.contracts.governance import ToolFeedbackWrite, ToolUsageFeedback
from beetle.contracts.memory import (
    AgentToolHint,
    MemoryWriteReport,
    ToolExperienceReason,
    ToolExperienceStatus,
    ToolRegistryReport,
)
from beetle.contracts.tool_registries import (
    RegisteredTool,
    ToolRegistryDeleteRequest,
    ToolRegistryGetReport,
    ToolRegistryGetRequest,
    ToolRegistryListReport,
    ToolRegistryListRequest,
    ToolRegistryMutationReport,
    ToolRegistrySummary,
    ToolRegistryUpsertRequest,
)
from beetle.domain.sensitive import FINDING_WORDS, Finding, finding, is_secret
from beetle.domain.tool_experience import RECENT, Experience, Use, weigh
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.evidence.alias import Current, current_conversation
from beetle.runtime.pipeline.cursor import read_cursor
from beetle.runtime.pipeline.handlers import Apply, Handler, Read, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import page
from beetle.runtime.pipeline.views import visible_kinds
from beetle.store import evidence, tool_experience, tool_observations, tool_registries
from beetle.store.damaged_rows import shown_time
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.tool_observations import Brief, ClaimedConversation, ObservationRow
from beetle.store.tool_registries import RegistryRow, ToolRow


def list_registries(invocation: Invocation, request: ToolRegistryListRequest, tx: Reading) -> ToolRegistryListReport:
    """By id; the cursor stands at an id."""
    space = evidence.find_space(tx, invocation.space_id)
    bound_to = invocation.bound()
    after = "" if request.cursor is None else read_cursor(invocation.key, bound_to, request.cursor)
    rows = tool_registries.list_registries(tx, space, after, request.limit + 1)
    found = page(
        invocation,
        rows,
        request.limit,
        lambda row: _summary(tx, row),
        bound_to=bound_to,
        place=lambda row: row.registry_id,
    )
    return ToolRegistryListReport(
        total=tool_registries.count_registries(tx, space),
        registries=found.entries,
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        profile_budget_applied=found.cut,
    )


def get_registry(invocation: Invocation, request: ToolRegistryGetRequest, tx: Reading) -> ToolRegistryGetReport:
    """One registry with its tools, in the host's order."""
    row = _existing(invocation, tx, request.registry_id)
    tools = tool_registries.tools_of(tx, row.registry)
    return ToolRegistryGetReport(
        registry=_summary(tx, row), tools=tuple(RegisteredTool(**tool._asdict()) for tool in tools)
    )


def upsert(invocation: Invocation, request: ToolRegistryUpsertRequest) -> Apply:
    """Register, or replace whole; the same registry again changes nothing."""
    _refuse_repeated(request)
    hint = "register the tool's id, title and a sentence on it; its schema stays with the host"
    _refuse(((path, finding(text)) for path, text in _texts(request)), hint)
    tools = [
        ToolRow(
            each.tool_id, each.title, each.summary, each.schema_fingerprint, each.permission_tags, each.risk_tags
        )
        for each in request.tools
    ]  # fmt: skip

    def apply(tx: WriteTransaction) -> ToolRegistryMutationReport:
        space = evidence.ensure_space(tx, invocation.space_id, tx.now)
        known = tool_registries.find_registry(tx, space, request.registry_id)
        row = RegistryRow(
            registry=0 if known is None else known.registry,
            registry_id=request.registry_id,
            scope=request.scope,
            fingerprint=request.fingerprint,
            revision=1 if known is None else known.revision + 1,
            principal=invocation.caller.name,
            created_at=tx.now if known is None else known.created_at,
            updated_at=tx.now,
        )
        if known is None:
            tool_registries.add_registry(tx, space, row, tools)
            return _logged_report(invocation, tx, row, "created", [], tools)
        before = tool_registries.tools_of(tx, known.registry)
        if before == tools and (known.scope, known.fingerprint) == (row.scope, row.fingerprint):
            return ToolRegistryMutationReport(
                registry_id=known.registry_id, outcome="unchanged", revision=known.revision
            )
        tool_registries.replace_registry(tx, row, tools)
        return _logged_report(invocation, tx, row, "replaced", before, tools)

    return apply


def delete(invocation: Invocation, request: ToolRegistryDeleteRequest) -> Apply:
    """The registry goes; what was observed of its tools stays, and speaks no more."""

    def apply(tx: WriteTransaction) -> ToolRegistryMutationReport:
        row = _existing(invocation, tx, request.registry_id)
        before = tool_registries.tools_of(tx, row.registry)
        tool_registries.delete_registry(tx, row.registry)
        return _logged_report(invocation, tx, row, "deleted", before, [])

    return apply


def _existing(invocation: Invocation, tx: Reading, registry_id: str) -> RegistryRow:
    found = tool_registries.find_registry(tx, evidence.find_space(tx, invocation.space_id), registry_id)
    if found is None:
        listing = "`beetle tool-registry list` shows the registries of this space"
        raise NotFound(kind="tool registry", name=registry_id, listing=listing)
    return found


def _logged_report(
    invocation: Invocation,
    tx: WriteTransaction,
    row: RegistryRow,
    outcome: str,
    before: list[ToolRow],
    after: list[ToolRow],
) -> ToolRegistryMutationReport:
    """The event of a change, and the report of what it changed."""
    old = {each.tool_id: each.schema_fingerprint for each in before}
    new = {each.tool_id: each.schema_fingerprint for each in after}
    drifted = tuple(name for name in new if name in old and new[name] != old[name])
    event = f"tool_registry_{outcome}"
    subject = {"registry_id": row.registry_id, "revision": row.revision, "tools": len(new), "drifted": len(drifted)}
    tx.log(invocation.event("memory", event, **subject))
    return ToolRegistryMutationReport(
        registry_id=row.registry_id,
        outcome=outcome,  # type: ignore[arg-type] - one of the three that this module gives
        revision=row.revision,
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        drifted=drifted,
    )


def _summary(tx: Reading, row: RegistryRow) -> ToolRegistrySummary:
    return ToolRegistrySummary(
        registry_id=row.registry_id,
        fingerprint=row.fingerprint,
        scope=row.scope,
        revision=row.revision,
        tools=tool_registries.count_tools(tx, row.registry),
        created_at=shown_time(row.created_at, "tool_registry", row.registry_id),
        updated_at=shown_time(row.updated_at, "tool_registry", row.registry_id),
    )


def _refuse_repeated(request: ToolRegistryUpsertRequest) -> None:
    seen: set[str] = set()
    for index, tool in enumerate(request.tools):
        if tool.tool_id in seen:
            raise InvalidRequest(
                reason=f"tool id {tool.tool_id!r} occurs twice in the registry",
                hint="each tool id must be unique; give the other tool another id",
                path=f"$.args.tools[{index}].tool_id",
            )
        seen.add(tool.tool_id)


def _refuse(findings: Iterable[tuple[str, Finding | None]], hint: str) -> None:
    """Raises PrivacyDenied, naming the place, for the first text that holds more than it may; the text is not told."""
    for path, found in findings:
        if found is not None:
            raise PrivacyDenied(reason=f"{path} {FINDING_WORDS[found]}", hint=hint, path=path, found=found)


def _texts(request: ToolRegistryUpsertRequest) -> Iterator[tuple[str, str]]:
    for name in ("registry_id", "fingerprint", "scope"):
        yield f"$.args.{name}", getattr(request, name)
    for index, tool in enumerate(request.tools):
        path = f"$.args.tools[{index}]"
        for name in ("tool_id", "title", "summary", "schema_fingerprint"):
            yield f"{path}.{name}", getattr(tool, name)
        yield from _tags(f"{path}.permission_tags", tool.permission_tags)
        yield from _tags(f"{path}.risk_tags", tool.risk_tags)


def _tags(path: str, tags: Sequence[str]) -> Iterator[tuple[str, str]]:
    return ((f"{path}[{place}]", tag) for place, tag in enumerate(tags))


ROOT = "$.args.feedback"


def write(invocation: Invocation, request: ToolFeedbackWrite) -> Apply:
    """Keep every observation; its text is content of the turn that it was observed in, and is erased with it."""
    feedback = request.feedback
    hint = "say in a sentence what the tool did; results, schemas and secrets stay with the host"
    _refuse(((path, finding(text)) for path, text in _said_in(feedback)), hint)
    _refuse(((path, "secret" if is_secret(word) else None) for path, word in _names(feedback)), hint)

    def apply(tx: WriteTransaction) -> MemoryWriteReport:
        space = evidence.ensure_space(tx, invocation.space_id, tx.now)
        current = current_conversation(invocation, tx, space, None)
        turn = None
        if feedback.turn_id is not None and current.conversation is not None:
            turn = tool_observations.find_turn(tx, current.conversation, feedback.turn_id)
        if feedback.turn_id is not None and turn is None:
            raise InvalidRequest(
                reason=f"it names a turn that does not exist - at {ROOT}.turn_id",
                hint="commit the turn first, name its conversation in the scope, or leave turn_id out",
                path=f"{ROOT}.turn_id",
            )
        awaited = _awaited(invocation, current)
        # Words that would bring an erased turn back are not kept.
        lost = turn is not None and tool_observations.is_erased(tx, turn)
        for each in feedback.observations:
            brief = Brief(
                each.summary, feedback.user_visible_result_summary, feedback.reuse_outcome, feedback.operator_note
            )
            row = ObservationRow(
                registry_id=feedback.registry_ref.registry_id,
                registry_fingerprint=feedback.registry_ref.fingerprint,
                registry_scope=feedback.registry_ref.scope,
                tool_id=each.tool_id,
                schema_fingerprint=each.schema_fingerprint,
                outcome=each.outcome,
                duration_ms=each.duration_ms,
                permission_tags=each.permission_tags,
                risk_tags=each.risk_tags,
                turn=turn,
                turn_id=feedback.turn_id,
                principal=invocation.caller.name,
                at=tx.now,
                channel_id=awaited.channel_id,
                conversation_id=awaited.conversation_id,
            )
            tool_observations.add_observation(tx, space, row, None if lost else brief)
        if feedback.observations:
            registry, count = feedback.registry_ref.registry_id, len(feedback.observations)
            tx.log(invocation.event("memory", "tools_observed", registry_id=registry, observations=count))
        return MemoryWriteReport(accepted=len(feedback.observations))

    return apply


def _awaited(invocation: Invocation, current: Current) -> ClaimedConversation:
    """The conversation that the feedback is about, or the name by which its turn will be known when it is committed."""
    if current.ref is not None:
        return ClaimedConversation(current.ref.channel_id, current.ref.conversation_id)
    return ClaimedConversation(invocation.scope.channel, invocation.scope.conversation_id or invocation.scope.chat_id)


def _said_in(feedback: ToolUsageFeedback) -> Iterator[tuple[str, str]]:
    for index, each in enumerate(feedback.observations):
        yield f"{ROOT}.observations[{index}].summary", each.summary
    yield f"{ROOT}.user_visible_result_summary", feedback.user_visible_result_summary
    yield f"{ROOT}.operator_note", feedback.operator_note or ""


def _names(feedback: ToolUsageFeedback) -> Iterator[tuple[str, str]]:
    for index, each in enumerate(feedback.observations):
        path = f"{ROOT}.observations[{index}]"
        yield f"{path}.tool_id", each.tool_id
        yield from _tags(f"{path}.permission_tags", each.permission_tags)
        yield from _tags(f"{path}.risk_tags", each.risk_tags)


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


def hints(invocation: Invocation, tx: Reading, refs: Sequence[RegistryRef]) -> Hints:
    """Hints of the registries that the refs name, as far as they are what is registered; without refs, of every
    registry of the space whose scope is global. The best score comes first."""
    space = evidence.find_space(tx, invocation.space_id)
    if invocation.shared.catalog.hidden(CAPABILITY) is not None:
        return Hints((), ToolExperienceStatus(), False)
    if space is None:
        names = tuple(dict.fromkeys(ref.registry_id for ref in refs))
        return Hints((), ToolExperienceStatus(registries=names, missing=names), False)
    if refs:
        asked = _named(tx, space, refs)
    else:
        asked = _Asked(tool_registries.registries_in_scope(tx, space, EVERYWHERE, MOST_REGISTRIES), [], [])
    known = _known(invocation, tx, space, asked.current)
    status = ToolExperienceStatus(
        reason="available" if known else _why_none(invocation, tx, space, asked, bool(refs)),
        registries=tuple(dict.fromkeys(ref.registry_id for ref in refs))
        or tuple(row.registry_id for row in asked.current),
        missing=tuple(asked.missing),
        drifted=tuple(asked.drifted),
    )
    return Hints(tuple(_hint(each) for each in known[:MOST_HINTS]), status, len(known) > MOST_HINTS)


def registry_report(invocation: Invocation, tx: Reading, space: int | None) -> ToolRegistryReport:
    """What an inspection says of the registries of a space."""
    if space is None:
        return ToolRegistryReport()
    total = tool_registries.count_registries(tx, space)
    rows = tool_registries.list_registries(tx, space, "", MOST_REGISTRIES)
    known = _known(invocation, tx, space, rows)
    asked = _Asked(rows, [], [])
    return ToolRegistryReport(
        registries=total,
        tools=sum(tool_registries.count_tools(tx, row.registry) for row in rows),
        experienced=len(known),
        reason="available" if known else _why_none(invocation, tx, space, asked, named=False),
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


def _known(invocation: Invocation, tx: Reading, space: int, rows: Sequence[RegistryRow]) -> list[_Known]:
    """Tools that are known by experience, the best first."""
    found: list[_Known] = []
    for row in rows:
        for tool in tool_experience.observed_tools(tx, space, row.registry_id, row.registry):
            named = (row.registry_id, tool.tool_id, tool.schema_fingerprint)
            experience = _experience(invocation, tx, space, named, row.scope)
            if experience.known:
                found.append(_Known(row, tool, experience))
    found.sort(key=_order)
    return found


def _order(known: _Known) -> tuple[float, int, str, str]:
    experience = known.experience
    return (-experience.score, -experience.last_success, known.registry.registry_id, known.tool.tool_id)


def _experience(
    invocation: Invocation, tx: Reading, space: int, tool: tuple[str, str, str], scope: str | None
) -> Experience:
    seen = visible_kinds(invocation.viewer())
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


def _why_none(invocation: Invocation, tx: Reading, space: int, asked: _Asked, named: bool) -> ToolExperienceReason:
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
                if _experience(invocation, tx, space, tool, None).known:
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


HANDLERS: Mapping[str, Handler] = {
    "tool_registry.list": Read(list_registries),
    "tool_registry.get": Read(get_registry),
    "tool_registry.upsert": Write(upsert),
    "tool_registry.delete": Write(delete),
}
