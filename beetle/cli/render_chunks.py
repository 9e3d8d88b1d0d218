"""Reports of chunks as text for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from beetle.cli.text import count, neutral, neutral_lines, pairs, table, when, wrap
from beetle.contracts.chunk_reasoning import ChunkReasonReport, ChunkRecallReport, ChunkRememberReport
from beetle.contracts.chunk_trees import ChunkExportTreeReport, ChunkImportTreeReport
from beetle.contracts.chunks import (
    LINK_KINDS,
    Chunk,
    ChunkDeleteReport,
    ChunkGetReport,
    ChunkListReport,
    ChunkReport,
    ChunkStatsReport,
)
from beetle.contracts.common import Report

WITHHELD = "[withheld]"
DRY_RUN = "\nNothing was changed: this was a dry run."
HEAD = ("CHUNK", "CREATED", "TYPE", "CONFIDENCE", "TAGS", "CONTENT")


def _whole(chunk: Chunk, width: int | None) -> str:
    data = chunk.metadata
    state = "archived" if chunk.archived else "live"
    shown = [
        ("Chunk", f"{chunk.id}, {chunk.type}, {count(chunk.tokens, 'token')}, {state}"),
        ("Created", f"{when(data.created)} in {data.conversation_id}, by {data.source}"),
        ("Confidence", f"{data.confidence:.2f}"),
        ("Accessed", f"{count(data.access_count, 'time')}, last {when(data.last_accessed)}"),
        ("Tags", WITHHELD if chunk.tags is None else ", ".join(chunk.tags) or "-"),
        *((kind.replace("_", " ").capitalize(), ", ".join(getattr(chunk.links, kind)) or "-") for kind in LINK_KINDS),
        ("Ref", f"{chunk.ref}, revision {chunk.revision}"),
    ]
    return "\n".join((pairs(shown), "", *wrap(WITHHELD if chunk.content is None else chunk.content, "", width)))


def one(report: ChunkReport, width: int | None) -> str:
    """The chunk."""
    return _whole(report.chunk, width)


def got(report: ChunkGetReport, width: int | None) -> str:
    """The chunk, and what leads to it."""
    if report.chunk is None:
        return "No chunk has this id."
    if not report.linked_from:
        return _whole(report.chunk, width)
    rows = [(each.kind, each.target, f"{each.strength:.2f}") for each in report.linked_from]
    return f"{_whole(report.chunk, width)}\n\n{table(rows, ('LINKED BY', 'CHUNK', 'STRENGTH'), width, numbers=(2,))}"


def listed(report: ChunkListReport, width: int | None) -> str:
    """One chunk a line, and the ids of deleted ones."""
    rows = [
        (
            each.id,
            when(each.metadata.created),
            each.type,
            f"{each.metadata.confidence:.2f}",
            ", ".join(each.tags or ()) or "-",
            WITHHELD if each.content is None else each.content,
        )
        for each in report.chunks
    ]
    parts = [table(rows, HEAD, width, numbers=(3,))] if rows else []
    parts += [f"deleted: {neutral(each)}" for each in report.removed]
    return "\n".join(parts) or "No chunk fits."


def stats(report: ChunkStatsReport, width: int | None) -> str:
    """Counts, and conversations or tags."""
    by_type = ", ".join(f"{name} {number:,}" for name, number in report.by_type.items())
    shown = [
        ("Chunks", f"{report.total_chunks:,}"),
        ("By type", by_type or "-"),
        ("Archived", f"{report.archived_chunks:,}"),
    ]
    if not report.groups:
        return pairs(shown)
    rows = [(WITHHELD if each.name is None else each.name, f"{each.chunks:,}") for each in report.groups]
    return f"{pairs(shown)}\n\n{table(rows, ('NAME', 'CHUNKS'), width, numbers=(1,))}"


def deleted(report: ChunkDeleteReport, width: int | None) -> str:
    """What became of the chunk."""
    del width
    said = {"archived": "archived", "deleted": "deleted for good", "unchanged": "was archived already"}
    lines = [f"{neutral(report.id)} {said[report.outcome]}"]
    if report.erasure == "pending":
        lines.append(
            "erasure pending: a reader holds the log (`beetle memory recover` finishes it), or chunks are imported"
        )
    return "\n".join(lines)


def remembered(report: ChunkRememberReport, width: int | None) -> str:
    """The chunks that were made."""
    del width
    if not report.success:
        return f"Nothing was stored: {neutral(report.error or '')}"
    head = f"{count(report.chunks_created, 'chunk')}, {count(report.total_tokens, 'token')}"
    return "\n".join((head, *map(neutral, report.chunk_ids)))


def recalled(report: ChunkRecallReport, width: int | None) -> str:
    """The answer, and what it rests on."""
    del width
    lines = neutral_lines(WITHHELD if report.answer is None else report.answer)
    if report.source_chunks:
        lines += ["", f"from {', '.join(map(neutral, report.source_chunks))}; confidence {report.confidence:.2f}"]
    return "\n".join(lines)


def reasoned(report: ChunkReasonReport, width: int | None) -> str:
    """The analysis, its points and the contradictions."""
    del width
    lines = neutral_lines(WITHHELD if report.synthesis is None else report.synthesis)
    lines += ["", *(f"- {neutral(each)}" for each in report.insights or ())]
    for each in report.contradictions:
        lines.append(f"! {' and '.join(map(neutral, each.chunks))}: {neutral(each.reason or WITHHELD)}")
    return "\n".join((*lines, f"confidence {report.confidence:.2f}"))


def exported_tree(report: ChunkExportTreeReport, width: int | None) -> str:
    """How many chunks were exported."""
    del width
    damaged = f"; {report.damaged:,} damaged, left out: see `beetle verify`" if report.damaged else ""
    return f"{count(report.chunks, 'chunk')} and {report.archived_chunks:,} archived{damaged}"


def imported_tree(report: ChunkImportTreeReport, width: int | None) -> str:
    """What became of the files. Those refused stand on stderr, each with its reason."""
    del width
    told = f"{report.imported:,} imported, {report.updated:,} updated, {report.unchanged:,} unchanged"
    refused = f"; {count(report.refused_files, 'file')} not imported" if report.refused_files else ""
    return f"{told}{refused}{DRY_RUN if report.dry_run else ''}"


RENDERERS: Mapping[type[Report], Callable[[Any, int | None], str]] = {
    ChunkReport: one,
    ChunkGetReport: got,
    ChunkListReport: listed,
    ChunkStatsReport: stats,
    ChunkDeleteReport: deleted,
    ChunkRememberReport: remembered,
    ChunkRecallReport: recalled,
    ChunkReasonReport: reasoned,
    ChunkExportTreeReport: exported_tree,
    ChunkImportTreeReport: imported_tree,
}
