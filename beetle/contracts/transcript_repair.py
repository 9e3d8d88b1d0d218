"""Repair of transcripts: transcript.repair reports, transcript.repair_safe mends what loses nothing."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import Conversation, ConversationRef, Cursor, Limit, Report
from beetle.contracts.fields import Open, Piece, Request, clipped
from beetle.contracts.operation import TRANSCRIPT, Operation

IssueKind = Literal[
    "missing_source_turn",
    "missing_source_message",
    "orphan_derived_ref",
    "mismatched_source_key",
    "duplicate_sequence",
    "corrupt_record",
    "index_mismatch",
]
Problem = Literal[
    "turn_gone",
    "message_gone",
    "record_gone",
    "revision_gone",
    "unknown_record",
    "not_linked",
    "names_another_turn",
    "other_space",
    "message_of_another_turn",
    "other_conversation",
    "sequence_twice",
    "turn_id_twice",
    "ordinal_twice",
    "message_id_twice",
    "counts_disagree",
    "sequence_gap",
    "ordinal_gap",
    "turn_empty",
    "turn_missing",
    "turn_digest_mismatch",
    "body_missing",
    "body_left",
    "digest_mismatch",
    "length_mismatch",
    "not_indexed",
    "indexed_though_withheld",
]
Mended = Literal["dropped", "relinked", "recounted", "indexed", "unindexed"]
RepairLimit = Annotated[Limit, Meta(extra=clipped("repair_issues"))]


class MemoryTranscriptRepairRequest(Request, frozen=True, kw_only=True):
    """Report broken links and records of transcripts, by their ids; changes nothing."""

    conversation: Conversation | None = None
    limit: RepairLimit = 50
    cursor: Cursor | None = None


class TranscriptRepairIssue(Piece, frozen=True, kw_only=True):
    """One thing that is broken. `ref` is the evidence it is about, `derived` the record whose link is broken."""

    kind: Open[IssueKind]
    problem: Open[Problem]
    repairable: Open[bool]
    ref: Open[str | None] = None
    conversation: Open[ConversationRef | None] = None
    turn_id: Open[str | None] = None
    message_id: Open[str | None] = None
    derived: Open[str | None] = None


class MemoryTranscriptRepairReport(Report, frozen=True, kw_only=True):
    """A page of issues. `counts` has every kind, over all pages; `clean` when all of them are 0."""

    clean: Open[bool]
    issues: Open[tuple[TranscriptRepairIssue, ...]]
    counts: Open[dict[str, int]]
    repairable: Open[int]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class MemoryTranscriptRepairSafeRequest(Request, frozen=True, kw_only=True):
    """Repair dead links, counts and index rows without losing data; report the damage that cannot be repaired."""

    conversation: Conversation | None = None
    dry_run: Annotated[bool, Meta(description="report what would be repaired; change nothing")] = False


class MendedIssue(Piece, frozen=True, kw_only=True):
    """An issue and what was done about it."""

    issue: Open[TranscriptRepairIssue]
    outcome: Open[Mended]


class MemoryTranscriptRepairSafeReport(Report, frozen=True, kw_only=True):
    """`mended` in the order of transcript.repair; `counts` by outcome; `left` is what no safe step mends, by kind.

    At most the profile's `repair_issues` are mended at a time: with `has_more`, ask again.
    """

    dry_run: Open[bool]
    changed: Open[bool]
    mended: Open[tuple[MendedIssue, ...]]
    counts: Open[dict[str, int]]
    left: Open[dict[str, int]]
    has_more: Open[bool] = False
    audit_event_id: Open[int | None] = None
    receipt: Open[str | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "transcript.repair", "repair_transcript", MemoryTranscriptRepairRequest, MemoryTranscriptRepairReport, "read",
        "transcript", TRANSCRIPT, ("transcript", "repair"),
        "report broken links and records of transcripts, by their ids; changes nothing",
        batch=False, heavy=True, deadline_ms=3_600_000, word="conversation",
        shell=("beetle transcript repair", "beetle transcript repair telegram/42 --limit 10"),
        progress=True,
    ),
    Operation(
        "transcript.repair_safe", "repair_transcript_safe", MemoryTranscriptRepairSafeRequest,
        MemoryTranscriptRepairSafeReport, "write", "transcript", TRANSCRIPT, ("transcript", "repair-safe"),
        "repair dead links, counts and index rows without losing data; report the damage that cannot be repaired",
        batch=False, heavy=True, deadline_ms=3_600_000, word="conversation",
        shell=("beetle transcript repair-safe --dry-run",),
        progress=True,
    ),
)  # fmt: skip
