"""Reports as text for people: one function per report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from beetle.cli import (
    render_capture,
    render_chains,
    render_chunks,
    render_console,
    render_continuity,
    render_evolve,
    render_governance,
    render_host,
    render_lifecycle,
    render_long_term,
    render_maintain,
    render_private,
    render_registry,
    render_repair,
    render_replica,
    render_scheduler,
    render_time,
    render_waiting,
)
from beetle.cli.text import clip, count, duration, neutral, neutral_json, neutral_lines, pairs, size, table, when, wrap
from beetle.contracts import codec
from beetle.contracts.chains import ThoughtCursor
from beetle.contracts.common import Report
from beetle.contracts.control import HelloReport, StoreVerifyReport
from beetle.contracts.governance import LongTermPolicyReport
from beetle.contracts.long_term import LongTermDetailReport, LongTermListReport, LongTermMutateReport
from beetle.contracts.memory import (
    MemoryCapabilityCatalog,
    MemoryInspectionReport,
    MemoryProjectionReport,
    MemoryRecallReport,
    MemoryWriteReport,
    PlaneCounts,
    RecallHit,
)
from beetle.contracts.private import PrivateGetReport, PrivateListReport
from beetle.contracts.remembering import MemoryRememberReport
from beetle.contracts.repairing import IdentityRenewReport, StoreRepairReport
from beetle.contracts.skills import RuntimeSkillDetailReport, RuntimeSkillListReport, RuntimeSkillMutationReport
from beetle.contracts.transcript import (
    MemoryTranscriptCommitReport,
    MemoryTranscriptConversationsReport,
    MemoryTranscriptLifecycleReport,
    MemoryTranscriptSearchReport,
    MemoryTranscriptTimelineReport,
    RedactedTranscriptSlice,
    SearchHit,
    TranscriptMessage,
)
from beetle.contracts.transcript_repair import MemoryTranscriptRepairReport, MemoryTranscriptRepairSafeReport

Width = int | None
SHORT_HASH = 12


def as_json(value: Any) -> str:
    """One line of JSON: a report as it stands."""
    return neutral_json(codec.pack_json(value).decode())


def as_indented_json(value: Any) -> str:
    """JSON to be read by a person."""
    import json

    return neutral_json(json.dumps(json.loads(codec.pack_json(value)), indent=2, ensure_ascii=False))


def as_text(report: Report, width: Width) -> str:
    """The report for a person; `width` None is a pipe: nothing is cut or wrapped."""
    for kind, render in RENDERERS.items():
        if isinstance(report, kind):
            text = render(report, width)
            break
    else:
        from beetle.cli.render_default import report_text

        text = report_text(report, width)
    notes = _notes(report)
    return "\n".join((text, *notes)) if notes else text


def _notes(report: Report) -> list[str]:
    notes: list[str] = []
    if getattr(report, "has_more", False) and not hasattr(report, "continuation_token"):
        cursor = getattr(report, "next_cursor", None)
        if isinstance(cursor, ThoughtCursor):
            notes.append(f"More: --anchor-index {cursor.index}")
        else:
            notes.append(f"More: --cursor {neutral(cursor)}" if cursor else "There is more.")
    if report.profile_budget_applied:
        notes.append("A limit of this profile shortened the answer.")
    return notes


def _quote(text: str | None, indent: str, width: Width, most: int | None = None) -> list[str]:
    if text is None:
        return [f"{indent}[withheld]"]
    lines = wrap(text.rstrip("\n"), indent, width)
    if most is not None and len(lines) > most:
        lines = [*lines[:most], f"{indent}…"]
    return lines


def _place(conversation: Any) -> str:
    return f"{neutral(conversation.channel_id)}/{neutral(conversation.conversation_id)}"


def recall(report: MemoryRecallReport, width: Width) -> str:
    """Hits, best first, each with its place, its text, its ref and what ranked it."""
    hints = render_host.tool_hints(report.agent_tool_hints, width)
    if not report.hits:
        return "\n".join(("Nothing found.", *hints))
    lines: list[str] = []
    for number, hit in enumerate(report.hits, 1):
        lines.extend(_recall_hit(number, hit, width))
    lines.extend(hints)
    lines.append(f"{count(len(report.hits), 'hit')} in {report.timings_ms.total:.1f} ms")
    return "\n".join(lines)


def _recall_hit(number: int, hit: RecallHit, width: Width) -> Iterable[str]:
    parts = [f"{number:>2}. {hit.plane}", f"{hit.score:.3f}"]
    if hit.at:
        parts.append(when(hit.at))
    if hit.conversation is not None:
        parts.append(_place(hit.conversation))
    if hit.title:
        parts.append(neutral(hit.title))
    yield clip("  ".join(parts), width)
    yield from _quote(hit.excerpt, "    ", width, 4)
    yield f"    {neutral(hit.ref)}"
    yield clip(f"    why: {', '.join(neutral(each) for each in hit.why) or '-'}", width)


def project(report: MemoryProjectionReport, width: Width) -> str:
    """The block as it is; on a terminal also what went into it."""
    block = "\n".join(neutral_lines(report.system_memory_block or ""))
    if width is None:
        return block
    sections = ", ".join(f"{neutral(each.name)} {each.items}" for each in report.sections) or "nothing"
    audit = report.audit
    told = f"{audit.characters:,} of {audit.budget:,} characters; {sections}; {audit.withheld} withheld"
    return f"{block}\n\n({told})" if block else f"(empty block; {told})"


def inspect(report: MemoryInspectionReport, width: Width) -> str:
    """Store, counts, event log, daemon; recall and projection where a query was given."""
    store, counts, operator = report.store, report.counts, report.operator
    current = operator.current_conversation
    entries = [
        ("Store", store.path or "(not shown to this caller)"),
        ("Backend", f"{store.backend}, schema {store.schema}"),
        ("Size", f"{size(store.bytes)} of {size(store.ceiling_bytes)}, and {size(store.wal_bytes)} of log"),
        ("Profile", operator.profile),
        ("Asking as", operator.principal),
        ("Open for", duration(operator.uptime_s)),
        ("Conversations", f"{counts.conversations:,}"),
        ("Turns", f"{counts.turns:,} with {count(counts.messages, 'message')}"),
        ("Masked, deleted", f"{counts.masked_messages:,}, {counts.deleted_messages:,}"),
        ("Runtime skills", f"{counts.runtime_skills:,} in {count(counts.skill_revisions, 'revision')}"),
        ("Facts", _facts(counts)),
        ("Derived refs", f"{counts.derived_refs:,}"),
        ("Current", "-" if current is None else _place(current)),
        ("Event log", f"{count(report.event_log.rows, 'row')}, head {report.event_log.head[:SHORT_HASH]}"),
        ("Refusals", "-" if operator.refusals is None else f"{operator.refusals:,}"),
        ("Identity", render_private.identity(operator.identity)),
    ]
    if store.pending_erasures:
        entries.append(("Pending", count(store.pending_erasures, "erasure")))
    if report.runtime.mode != "normal":
        entries.append(("Mode", f"{report.runtime.mode}{f' ({report.runtime.task})' if report.runtime.task else ''}"))
    lines = [pairs(entries), *(f"Finding: {neutral(each)}" for each in operator.findings or ())]
    if report.recall is not None:
        lines.append(f"\nRecall of the query: {count(report.recall.candidates, 'candidate')}")
        for number, hit in enumerate(report.recall_hits, 1):
            lines.extend(_recall_hit(number, hit, width))
    if report.projection is not None:
        audit = report.projection
        lines.append(
            f"Projection of the query: {audit.characters:,} of {audit.budget:,} characters, "
            f"{count(len(audit.selected), 'item')}, {audit.withheld} withheld"
        )
    return "\n".join(lines)


def _facts(counts: PlaneCounts) -> str:
    gone = f"{counts.stale_facts:,} stale, {counts.superseded_facts:,} superseded, {counts.deleted_facts:,} deleted"
    return f"{counts.facts:,}; {gone}; {count(counts.waiting_candidates, 'waiting candidate')}"


def capabilities(report: MemoryCapabilityCatalog, width: Width) -> str:
    """The catalog, with the reason where something is hidden."""
    rows = [
        (name, "yes" if each.visible else "no", each.reason or ", ".join(each.operations))
        for name, each in report.capabilities.items()
    ]
    head = pairs(
        [("Profile", report.profile), ("Backend", report.backend), ("Views", ", ".join(report.views) or "none")]
    )
    return f"{head}\n\n{table(rows, ('CAPABILITY', 'MAY', 'OPERATIONS, OR WHY NOT'), width, fold=True)}"


def write(report: MemoryWriteReport, width: Width) -> str:
    """What became of each skill, or of each candidate."""
    if not report.writes:
        return render_governance.outcomes(report, width)
    rows = [(each.name, each.outcome, str(each.revision), each.reason or "") for each in report.writes]
    return table(rows, ("SKILL", "OUTCOME", "REVISION", "REASON"), width, numbers=(2,))


def skill_list(report: RuntimeSkillListReport, width: Width) -> str:
    """Skills by name, and how many there are."""
    rows = [
        (
            each.name,
            "retired" if each.retired else "on" if each.enabled else "off",
            str(each.revision),
            when(each.updated_at)[:10],
            each.title or "",
        )
        for each in report.runtime_skills
    ]
    summary = f"{count(report.total, 'runtime skill')}: {report.active} active, {report.disabled} disabled"
    if not rows:
        return summary if report.total else "No runtime skills."
    return f"{table(rows, ('NAME', 'STATE', 'REV', 'UPDATED', 'TITLE'), width, numbers=(2,))}\n{summary}"


def skill_detail(report: RuntimeSkillDetailReport, width: Width) -> str:
    """One skill: head, procedure, citations, lineage, the last change."""
    state = "retired" if report.retired else "enabled" if report.enabled else "disabled"
    lines = [
        pairs(
            [
                ("Name", report.name),
                ("Title", report.title or "[withheld]"),
                ("Topic", report.topic or "[withheld]"),
                ("State", f"{state}, revision {report.revision}"),
                ("Created", when(report.created_at)),
                ("Updated", when(report.updated_at)),
                ("Ref", report.ref),
            ]
        ),
        "Summary:",
        *_quote(report.summary, "  ", width),
        "Procedure:",
        *_quote(report.procedure, "  ", width),
    ]
    if report.citations:
        lines.append("Citations:")
        for each in report.citations:
            lost = "" if each.resolves in (True, None) else "  (no such record)"
            lines.append(f"  {neutral(each.text or '[withheld]')}{lost}")
    lines.append("Revisions:")
    for each in report.lineage:
        reason = f": {each.edit_reason}" if each.edit_reason else ""
        lines.append(clip(neutral(f"  {each.revision:>3}  {when(each.at)}  {each.source}{reason}"), width))
    for each in report.strategy_diffs[-1:]:
        lines.append(f"Change from revision {each.from_revision} to {each.to_revision}:")
        lines.extend(_quote(each.diff, "  ", None))
    return "\n".join(lines)


def skill_mutation(report: RuntimeSkillMutationReport, _width: Width) -> str:
    """What became of the skill."""
    receipt = f"\nReceipt: {neutral(report.receipt)}" if report.receipt else ""
    return f"{neutral(report.name)}: {report.outcome} (revision {report.revision}){receipt}"


def commit(report: MemoryTranscriptCommitReport, width: Width) -> str:
    """How many turns are new, and each with its place in the conversation."""
    rows = [(str(each.sequence), each.outcome, each.turn_id) for each in report.turns]
    done = f"{count(report.committed, 'turn')} committed, {report.unchanged} unchanged"
    return f"{done}\n{table(rows, ('SEQUENCE', 'OUTCOME', 'TURN'), width, numbers=(0,))}"


def turns(report: RedactedTranscriptSlice, width: Width) -> str:
    """Turns in order with their messages; a marker stands where the view withholds something."""
    lines: list[str] = []
    for turn in report.turns:
        flag = "  archived" if turn.archived else ""
        lines.append(clip(f"#{turn.sequence}  {when(turn.at)}  turn {neutral(turn.turn_id)}{flag}", width))
        for message in turn.messages:
            lines.extend(_message(message, width))
        for ref in turn.host_refs:
            label = f"  {ref.label}" if ref.label else ""
            lines.append(clip(neutral(f"  ref {ref.kind} {ref.ref_id}{label}"), width))
        lines.extend(
            clip(neutral(f"  attr {each.key or '[withheld]'}={each.value or ''}"), width) for each in turn.attrs
        )
    if not lines:
        lines.append("No turns.")
    audit = report.audit
    hidden = audit.messages_redacted + audit.host_refs_redacted + audit.labels_redacted + audit.attrs_redacted
    if hidden:
        lines.append(f"The view {report.view} withheld {count(hidden, 'thing')}.")
    if isinstance(report, MemoryTranscriptTimelineReport):
        beyond = [name for name, there in (("before", report.has_before), ("after", report.has_after)) if there]
        if beyond:
            lines.append(f"There are turns {' and '.join(beyond)} this page.")
    return "\n".join(lines)


def _message(message: TranscriptMessage, width: Width) -> Iterable[str]:
    speaker = f" {message.actor.speaker}" if message.actor is not None and message.actor.speaker else ""
    apart = "" if message.visibility == "shared" else f" [{message.visibility}]"
    yield clip(neutral(f"  {message.role}{speaker}{apart} ({message.message_id})"), width)
    if isinstance(message.content, str):
        from beetle.contracts.tool_parts import lines_of  # few commands show messages

        if message.content or not (message.tool_calls or message.tool_result):
            yield from _quote(message.content, "    ", width)
        for line in lines_of(message):
            yield from _quote(line, "    ", width)
        return
    redacted = message.redacted
    reason = "not shown" if redacted is codec.UNSET else getattr(redacted, "reason", "not shown")
    yield f"    [withheld: {neutral(reason)}]"


def conversations(report: MemoryTranscriptConversationsReport, width: Width) -> str:
    """Conversations with their size and their time."""
    if not report.conversations:
        return "No conversations."
    rows = [
        (
            f"{each.channel_id}/{each.conversation_id}",
            f"{each.turns:,}",
            when(each.first_at),
            when(each.last_at),
            ", ".join(each.speakers or ()),
        )
        for each in report.conversations
    ]
    return table(rows, ("CONVERSATION", "TURNS", "FIRST", "LAST", "SPEAKERS"), width, numbers=(1,))


def search(report: MemoryTranscriptSearchReport, width: Width) -> str:
    """Messages, best first."""
    if not report.hits:
        return "Nothing found."
    lines: list[str] = []
    for number, hit in enumerate(report.hits, 1):
        lines.extend(_search_hit(number, hit, width))
    return "\n".join(lines)


def _search_hit(number: int, hit: SearchHit, width: Width) -> Iterable[str]:
    yield clip(f"{number:>2}. {hit.score:.3f}  {when(hit.at)}  {_place(hit.conversation)}", width)
    yield from _quote(hit.excerpt, "    ", width, 4)
    yield f"    {neutral(hit.ref)}"


def lifecycle(report: MemoryTranscriptLifecycleReport, width: Width) -> str:
    """What the step touched, and what an erasure still waits for."""
    verb = "would touch" if report.dry_run else "touched"
    lines = [
        f"{neutral(report.action)}: {verb} {count(report.affected_turns, 'turn')}, "
        f"{count(report.affected_messages, 'message')}, {count(report.affected_refs, 'host ref')}, "
        f"{count(report.affected_derived, 'derived ref')}"
    ]
    if not report.dry_run and not report.changed:
        lines.append("Nothing was left to change.")
    lines.extend(clip(f"  turn {neutral(each)}", width) for each in report.turn_ids)
    lines.extend(render_lifecycle.erased(report, "the content"))
    return "\n".join(lines)


def verify(report: StoreVerifyReport, width: Width) -> str:
    """What was walked, and what was found."""
    rows = [(name, f"{number:,}") for name, number in report.checked.items()]
    lines = [table(rows, ("CHECKED", "COUNT"), width, numbers=(1,)), f"Event-log head: {report.event_log_head}"]
    if report.unsigned_events:
        lines.append(f"{count(report.unsigned_events, 'event')} behind the last signature.")
    for each in report.findings:
        since = " (known since the repair)" if each.known else ""
        lines.append(neutral(f"{each.check}: {each.subject}: {each.problem}{since}"))
    lines.append(_verdict(report))
    if report.receipt is not None:
        lines.extend(render_private.receipt(report.receipt))
    return "\n".join(lines)


def _verdict(report: StoreVerifyReport) -> str:
    if report.clean:
        return "Clean."
    known = sum(each.known for each in report.findings)
    found = count(len(report.findings), "finding")
    if not known:
        return f"{found}."
    return f"{found}, {f'{len(report.findings) - known:,} of them' if known < len(report.findings) else 'none'} new."


def hello(report: HelloReport, width: Width) -> str:
    """Who answers, who asks, the limits, the operations."""
    head = pairs(
        [
            ("Server", f"{report.server} {report.version}, protocol {report.protocol}, pid {report.pid}"),
            ("Profile", report.profile),
            ("Asking as", report.principal),
            ("Uptime", duration(report.uptime_s)),
        ]
    )
    limits = table([(name, f"{value:,}") for name, value in report.limits.items()], ("LIMIT", "VALUE"), width, (1,))
    rows = [(each.name, each.effect, "yes" if each.visible else "no") for each in report.operations]
    return f"{head}\n\n{limits}\n\n{table(rows, ('OPERATION', 'EFFECT', 'MAY'), width)}"


RENDERERS: Mapping[type[Report], Callable[[Any, Width], str]] = {
    MemoryRecallReport: recall,
    MemoryProjectionReport: project,
    MemoryInspectionReport: inspect,
    MemoryCapabilityCatalog: capabilities,
    MemoryWriteReport: write,
    MemoryRememberReport: render_governance.remembered,
    RuntimeSkillListReport: skill_list,
    RuntimeSkillDetailReport: skill_detail,
    RuntimeSkillMutationReport: skill_mutation,
    LongTermListReport: render_long_term.long_term_list,
    LongTermDetailReport: render_long_term.long_term_detail,
    LongTermMutateReport: render_long_term.long_term_mutation,
    LongTermPolicyReport: render_governance.policy,
    MemoryTranscriptCommitReport: commit,
    RedactedTranscriptSlice: turns,
    MemoryTranscriptConversationsReport: conversations,
    MemoryTranscriptSearchReport: search,
    MemoryTranscriptLifecycleReport: lifecycle,
    MemoryTranscriptRepairReport: render_repair.repair,
    MemoryTranscriptRepairSafeReport: render_repair.repair_safe,
    PrivateListReport: render_private.private_list,
    PrivateGetReport: render_private.private_get,
    IdentityRenewReport: render_private.renewal,
    StoreVerifyReport: verify,
    StoreRepairReport: render_repair.salvaged,
    HelloReport: hello,
    **render_capture.RENDERERS,
    **render_chains.RENDERERS,
    **render_chunks.RENDERERS,
    **render_console.RENDERERS,
    **render_continuity.RENDERERS,
    **render_evolve.RENDERERS,
    **render_host.RENDERERS,
    **render_registry.RENDERERS,
    **render_lifecycle.RENDERERS,
    **render_maintain.RENDERERS,
    **render_replica.RENDERERS,
    **render_scheduler.RENDERERS,
    **render_time.RENDERERS,
    **render_waiting.RENDERERS,
}
"""Report type, or the parent of several, to what renders it. Others are shown field by field: see render_default."""
