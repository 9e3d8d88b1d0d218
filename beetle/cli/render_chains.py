"""Reports of chains as text: a prompt and Markdown as they are, an export as JSON lines, thoughts as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from beetle.cli.text import count, neutral, neutral_json, neutral_lines, pairs, table, when, wrap
from beetle.contracts import codec
from beetle.contracts.chain_agents import (
    ChainAgent,
    ChainAgentRegistryReport,
    ChainAgentReport,
    ChainAgentsReport,
)
from beetle.contracts.chain_writes import (
    ChainAppendReport,
    ChainBootstrapReport,
    ChainBranchReport,
    ChainLifecycleReport,
)
from beetle.contracts.chains import (
    ChainExportReport,
    ChainHeadReport,
    ChainListReport,
    ChainMemoryMarkdownReport,
    ChainMergeReport,
    ChainRecentContextReport,
    ChainSearchReport,
    ChainSummary,
    ChainThoughtReport,
    ChainTraverseReport,
    Thought,
)
from beetle.contracts.common import Report

SHORT_HASH = 12
WITHHELD = "[withheld]"
HEAD = ("NO", "WRITTEN", "TYPE", "BY", "CONTENT")


def said(thought: Thought) -> str:
    """What a thought says, or why it says nothing."""
    if thought.content is not None:
        return thought.content
    return WITHHELD if thought.state == "live" else f"[{thought.state}]"


def thought_table(thoughts: tuple[Thought, ...], width: int | None) -> str:
    """One thought a line."""
    rows = [
        (str(each.index), when(each.timestamp), each.thought_type, each.agent_name or each.agent_id, said(each))
        for each in thoughts
    ]
    return table(rows, HEAD, width, numbers=(0,))


def found(report: ChainSearchReport, width: int | None) -> str:
    """The thoughts that fit."""
    return thought_table(report.thoughts, width) if report.thoughts else "No thought fits."


def walked(report: ChainTraverseReport, width: int | None) -> str:
    """The thoughts in the order of the walk."""
    if not report.thoughts:
        return "No thought fits." if report.anchor is not None else "The chain is empty."
    return thought_table(report.thoughts, width)


def whole(thought: Thought, width: int | None) -> str:
    """A thought with all that is told of it."""
    signed = "-" if thought.thought_signature is None else thought.signing_key_id or "-"
    relations = [f"{each.kind} {each.ref if each.index is None else f'#{each.index}'}" for each in thought.relations]
    shown = [
        ("Thought", f"#{thought.index} {thought.thought_type} / {thought.role}, {thought.state}"),
        ("Written", f"{when(thought.timestamp)} by {thought.agent_name or thought.agent_id}"),
        ("Importance", f"{thought.importance:.2f}"),
        ("Confidence", "-" if thought.confidence is None else f"{thought.confidence:.2f}"),
        ("Tags", ", ".join(thought.tags or ()) or "-"),
        ("Concepts", ", ".join(thought.concepts or ()) or "-"),
        ("Refers to", ", ".join(f"#{each}" for each in thought.refs) or "-"),
        ("Relations", ", ".join(relations) or "-"),
        ("Signed with", signed),
        ("Ref", thought.ref),
        ("Hash", thought.hash),
        ("Before it", thought.prev_hash or "-"),
    ]
    return "\n".join((pairs(shown), "", *wrap(said(thought), "", width)))


def one(report: ChainThoughtReport, width: int | None) -> str:
    """The thought."""
    return "The chain is empty." if report.thought is None else whole(report.thought, width)


def appended(report: ChainAppendReport, width: int | None) -> str:
    """Where the thought stands."""
    del width
    thought = report.thought
    return f"{neutral(thought.ref)} {thought.thought_type}, hash {report.head_hash[:SHORT_HASH]}"


def begun(report: ChainBootstrapReport, width: int | None) -> str:
    """Whether something was written."""
    del width
    done = "Written" if report.bootstrapped else "Not written, the chain is not empty"
    return f"{done}: {count(report.thought_count, 'thought')}, head {(report.head_hash or '-')[:SHORT_HASH]}"


def chain_list(report: ChainListReport, width: int | None) -> str:
    """The chains by their keys."""
    rows = [
        (
            each.chain_key,
            str(each.thought_count),
            str(each.agent_count),
            each.storage_adapter,
            when(each.updated_at),
            (each.head_hash or "-")[:SHORT_HASH],
            "-" if each.branched_from is None else f"{each.branched_from}, {each.shared_thoughts} shared",
        )
        for each in report.chains
    ]
    if not rows:
        return "No chain yet."
    return table(
        rows, ("CHAIN", "THOUGHTS", "AGENTS", "ADAPTER", "CHANGED", "HEAD", "BRANCH OF"), width, numbers=(1, 2)
    )


def head(report: ChainHeadReport, width: int | None) -> str:
    """Where the chain ends, and whether it is whole."""
    del width
    latest = report.latest_thought
    shown = [
        ("Chain", report.chain_key),
        ("Thoughts", str(report.thought_count)),
        ("Integrity", "whole" if report.integrity_ok else "BROKEN: run `beetle verify`"),
        ("Verified from", f"#{report.verified_from}"),
        ("Head", report.head_hash or "-"),
        ("Latest", "-" if latest is None else f"#{latest.index} {latest.thought_type}, {when(latest.timestamp)}"),
    ]
    if report.storage_location is not None:
        shown.append(("Kept in", report.storage_location))
    return pairs(shown)


def merged(report: ChainMergeReport, width: int | None) -> str:
    """What both chains share, and what each says alone."""
    parts = [
        f"{count(report.shared, 'thought')} shared by {neutral(report.chain_key)} and {neutral(report.other_chain_key)}"
    ]
    for key, thoughts in ((report.chain_key, report.only_in_chain), (report.other_chain_key, report.only_in_other)):
        if thoughts:
            parts += ["", f"Only in {neutral(key)}:", thought_table(thoughts, width)]
    for each in report.both_relate_to:
        places = (", ".join(f"#{place}" for place in some) for some in (each.by_chain, each.by_other))
        parts.append(f"#{each.index}: {', '.join(each.kinds)}, by {' and by '.join(places)}")
    return "\n".join(parts)


def branched(report: ChainBranchReport, width: int | None) -> str:
    """The branch as it begins."""
    del width
    made: ChainSummary = report.chain
    shared = count(made.shared_thoughts, "thought")
    return f"{neutral(made.chain_key)} shares {shared} with {neutral(made.branched_from or '-')}"


def changed(report: ChainLifecycleReport, width: int | None) -> str:
    """What was masked, unmasked or erased."""
    del width
    if not report.indexes:
        return "Nothing changes." if report.dry_run else "Nothing changed."
    named = ", ".join(f"#{each}" for each in report.indexes)
    verb = f"would {report.action}" if report.dry_run else f"{report.action} done"
    return f"{neutral(report.chain_key)}: {verb}: {named}" + (f"; erasure {report.erasure}" if report.erasure else "")


def identities(report: ChainAgentsReport, width: int | None) -> str:
    """Who has written."""
    rows = [(each.agent_id, each.agent_name or "-", each.agent_owner or "-") for each in report.agents]
    return table(rows, ("AGENT", "NAME", "OWNER"), width) if rows else "Nobody has written to this chain."


def registry(report: ChainAgentRegistryReport, width: int | None) -> str:
    """Every agent of the chain."""
    rows = [
        (
            each.agent_id,
            each.status,
            str(each.thought_count),
            when(each.last_seen_at),
            str(sum(key.revoked_at is None for key in each.public_keys)),
            each.agent_owner or "-",
            each.display_name or "-",
        )
        for each in report.agents
    ]
    if not rows:
        return "No agent is registered."
    return table(rows, ("AGENT", "STATUS", "THOUGHTS", "LAST", "KEYS", "OWNER", "NAME"), width, numbers=(2, 4))


def agent(report: ChainAgentReport, width: int | None) -> str:
    """One agent with its names and keys."""
    row: ChainAgent = report.agent
    shown = [
        ("Agent", f"{row.agent_id} ({row.status})"),
        ("Name", row.display_name or "-"),
        ("Aliases", ", ".join(row.aliases or ()) or "-"),
        ("Owner", row.agent_owner or "-"),
        ("Description", row.description or "-"),
        ("Thoughts", str(row.thought_count)),
        ("First", when(row.first_seen_at)),
        ("Last", when(row.last_seen_at)),
    ]
    keys = [(each.key_id, each.algorithm, when(each.added_at), when(each.revoked_at)) for each in row.public_keys]
    told = [pairs(shown)]
    if keys:
        told += ["", table(keys, ("KEY", "ALGORITHM", "ADDED", "REVOKED"), width)]
    return "\n".join(told)


def exported(report: ChainExportReport, width: int | None) -> str:
    """One thought a line."""
    del width
    return "\n".join(neutral_json(codec.pack_json(each).decode()) for each in report.thoughts)


def prompt(report: ChainRecentContextReport, width: int | None) -> str:
    """The prompt."""
    del width
    return "\n".join(neutral_lines(report.prompt or "")).rstrip("\n")


def markdown(report: ChainMemoryMarkdownReport, width: int | None) -> str:
    """The Markdown."""
    del width
    return "\n".join(neutral_lines(report.markdown or "")).rstrip("\n")


RENDERERS: Mapping[type[Report], Callable[[Any, int | None], str]] = {
    ChainExportReport: exported,
    ChainRecentContextReport: prompt,
    ChainMemoryMarkdownReport: markdown,
    ChainSearchReport: found,
    ChainTraverseReport: walked,
    ChainThoughtReport: one,
    ChainAppendReport: appended,
    ChainBootstrapReport: begun,
    ChainListReport: chain_list,
    ChainHeadReport: head,
    ChainMergeReport: merged,
    ChainBranchReport: branched,
    ChainLifecycleReport: changed,
    ChainAgentsReport: identities,
    ChainAgentRegistryReport: registry,
    ChainAgentReport: agent,
}
