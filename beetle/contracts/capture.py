"""Turns that hosts deliver, one call a turn: turn.capture, host_key.enroll, revoke and list, host.coverage."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from beetle.contracts.common import ConversationRef, Cursor, PageLimit, Report
from beetle.contracts.fields import NO_CONTROL, Id, Label, Open, OpenText, Part, Piece, Request, Time, budgeted
from beetle.contracts.operation import CAPTURE, HOST_KEY, RPC, Operation, Tool

TurnRole = Literal["user", "assistant", "tool_use", "tool_result", "system", "other"]
AttestLevel = Literal["signed_by_peer", "self_signed"]
NO_HOST = "unknown"
"""The host kind of a turn that names none."""
KEY_BYTES = 32
SIGNATURE_BYTES = 64
Base64 = Annotated[str, Meta(min_length=1, max_length=256, pattern=NO_CONTROL)]
HostKind = Annotated[Id, Meta(description="what the host is: `claude-code`, `codex`, `gemini`…")]


class ToolCallSummary(Part, frozen=True, kw_only=True):
    """One tool call of a turn."""

    tool: Annotated[Id, Meta(description="name of the tool")]
    brief: Annotated[str, Meta(max_length=200, description="the call in short")]


class MemoryCaptureTurnRequest(Request, frozen=True, kw_only=True):
    """Keep one turn of a host's session as evidence, once: (host_session_id, host_turn_index) names it.

    The session is a conversation whose channel is `host_kind`.
    """

    host_session_id: Annotated[Id, Meta(description="the host's id of the session; the same for all of its turns")]
    host_turn_index: Annotated[
        int, Meta(ge=0, le=2**63 - 1, description="number of the turn in its session, from 0; any order, gaps allowed")
    ]
    role: Annotated[TurnRole, Meta(description="role of the speaker")]
    content: Annotated[
        str, Meta(extra=budgeted("message_content_bytes"), description="the text; stored byte for byte, may be empty")
    ]
    host_kind: Annotated[HostKind, Meta(description="what the host is; default: `unknown`")] | None = None
    host_version: Annotated[Label, Meta(description="version of the host")] | None = None
    tool_calls: Annotated[
        tuple[ToolCallSummary, ...], Meta(max_length=128, description="tools that the turn calls, in order")
    ] | (None) = None
    timestamp_iso: Annotated[Time, Meta(description="when the turn was; default: now")] | None = None
    host_signature_b64: (
        Annotated[
            Base64,
            Meta(
                description="Ed25519 signature of session, index in decimal, role and content, joined by one zero byte"
            ),
        ]
        | None
    ) = None
    host_pubkey_b64: (
        Annotated[Base64, Meta(description="the enrolled key of the signature, 32 bytes; with it or not at all")] | None
    ) = None
    namespace: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=512,
                pattern=NO_CONTROL,
                description="label of the turn, such as `team/api`; never a memory space",
            ),
        ]
        | None
    ) = None
    metadata: (
        Annotated[
            dict[str, Any],
            Meta(description="values that the host keeps with the turn, any JSON object of 65,536 bytes at most"),
        ]
        | None
    ) = None


class CaptureAttr(Part, frozen=True, kw_only=True, omit_defaults=True):
    """The attr `capture` of a captured turn, as JSON: how it was delivered. It goes with the turn into archives."""

    host_session_id: Id
    host_turn_index: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    host_kind: Id
    agent_id: Id
    attest_level: AttestLevel
    host_version: Label | None = None
    host_signature_b64: Base64 | None = None
    host_pubkey_b64: Base64 | None = None


class MemoryCaptureTurnReport(Report, frozen=True, kw_only=True):
    """`memory_id` is the ref of the turn's message. `dedup_hit`: the turn existed already, and nothing was written.

    `content_mismatch`: the existing turn has another role, content or tool calls; the first ones stay. It is false
    where the caller may not see them. `memory_deleted`: the content of the turn was deleted, and stays so.
    `elapsed_ms` is the time that the runtime took.
    """

    memory_id: Open[str]
    dedup_hit: Open[bool]
    attest_level: Open[AttestLevel]
    conversation: Open[ConversationRef]
    turn_id: Open[str]
    content_mismatch: Open[bool] = False
    memory_deleted: Open[bool] = False
    layer: Open[Literal["L4"]] = "L4"
    elapsed_ms: Open[int] = 0


class HostKey(Piece, frozen=True, kw_only=True):
    """A host's public key. `fingerprint`: the first 16 hex digits of its SHA-256. `host_kind` null: of any host."""

    fingerprint: Open[str]
    host_pubkey_b64: Open[str]
    label: OpenText[str]
    host_kind: Open[str | None]
    added_at: Open[str]
    revoked_at: Open[str | None] = None


class HostKeyEnrollRequest(Request, frozen=True, kw_only=True):
    """Let a host sign the turns that it captures into this memory space."""

    host_pubkey_b64: Annotated[Base64, Meta(description="the Ed25519 public key: 32 bytes in padded base64")]
    label: Annotated[
        str, Meta(min_length=1, max_length=256, pattern=NO_CONTROL, description="what people call the host")
    ]
    host_kind: Annotated[HostKind, Meta(description="the key signs turns of this host kind only")] | None = None


class HostKeyReport(Report, frozen=True, kw_only=True):
    """The key as it is now; `changed` in `lifecycle` says whether anything was written."""

    host_key: Open[HostKey]


class HostKeyRevokeRequest(Request, frozen=True, kw_only=True):
    """Refuse what a key signs from now on; turns that it signed stay.

    A revoked key is never enrolled again.
    """

    host_key: Annotated[Base64, Meta(description="the key's fingerprint, or the key in base64")]


class HostKeyListRequest(Request, frozen=True, kw_only=True):
    """List the keys of capturing hosts, in the order in which they were added."""

    host_kind: Annotated[HostKind, Meta(description="keys that sign turns of this host kind")] | None = None
    include_revoked: Annotated[bool, Meta(description="also revoked keys")] = True
    limit: PageLimit = 50
    cursor: Cursor | None = None


class HostKeyListReport(Report, frozen=True, kw_only=True):
    """A page of keys."""

    host_keys: Open[tuple[HostKey, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class HostCoverageRequest(Request, frozen=True, kw_only=True):
    """Report what each host has captured: turns, gaps, duplicates, signatures, versions."""

    host_kind: Annotated[HostKind, Meta(description="this host kind only")] | None = None
    host_session_id: Annotated[Id, Meta(description="this session only")] | None = None
    limit: Annotated[PageLimit, Meta(description="most sessions with gaps to list")] = 50


class HostVersionCoverage(Piece, frozen=True, kw_only=True):
    """What one version of a host has captured. `host_version` null: the turns name none."""

    host_version: Open[str | None]
    turns: Open[int]
    signed: Open[int]
    duplicates: Open[int]
    first_at: Open[str]
    last_at: Open[str]


class HostCoverage(Piece, frozen=True, kw_only=True):
    """What one kind of host has captured.

    `gaps` counts the indexes between 0 and a session's largest one that never came, over the host's sessions;
    `coverage` is turns / (turns + gaps), `signed_share` signed / turns. A session belongs to the host of its first
    turn. `duplicates` counts deliveries of existing turns, `content_mismatches` those of them that had
    other content, if their sender may see the existing one. `first_at` and `last_at` are times of turns.
    """

    host_kind: Open[str]
    sessions: Open[int]
    turns: Open[int]
    gaps: Open[int]
    coverage: Open[float]
    signed: Open[int]
    self_signed: Open[int]
    signed_share: Open[float]
    duplicates: Open[int]
    content_mismatches: Open[int]
    roles: Open[dict[str, int]]
    agents: Open[tuple[str, ...]]
    first_at: Open[str]
    last_at: Open[str]
    versions: Open[tuple[HostVersionCoverage, ...]]


class IndexRange(Piece, frozen=True, kw_only=True):
    """Turn indexes from `first` to `last`, both included."""

    first: Open[int]
    last: Open[int]


class IncompleteSession(Piece, frozen=True, kw_only=True):
    """A session with gaps. `missing` holds its first 16 ranges."""

    host_session_id: Open[str]
    host_kind: Open[str]
    turns: Open[int]
    last_index: Open[int]
    gaps: Open[int]
    missing: Open[tuple[IndexRange, ...]]


class HostCoverageReport(Report, frozen=True, kw_only=True):
    """`hosts` by host kind; `incomplete` are the sessions with the most gaps; `has_more`: there are more of those."""

    hosts: Open[tuple[HostCoverage, ...]]
    incomplete: Open[tuple[IncompleteSession, ...]]
    has_more: Open[bool] = False


KEY_EXAMPLE = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "turn.capture", "capture_turn", MemoryCaptureTurnRequest, MemoryCaptureTurnReport, "write", "capture",
        CAPTURE, ("host", "capture-turn"),
        "keep one turn of a host's session as evidence, once: (host_session_id, host_turn_index) names it",
        example={
            "host_session_id": "s1", "host_turn_index": 0, "role": "user", "content": "The key is under the pot",
            "host_kind": "claude-code", "timestamp_iso": "2026-05-17T09:30:00Z",
        },
        tool=Tool(name="memory_capture_turn", place=6),
    ),
    Operation(
        "host.coverage", "host_coverage", HostCoverageRequest, HostCoverageReport, "read", "capture", CAPTURE,
        ("host", "coverage"),
        "report what each host has captured: turns, gaps, duplicates, signatures, versions",
        heavy=True, word="host_kind",
        example={"host_kind": "claude-code"},
        exposed=RPC,
    ),
    Operation(
        "host_key.enroll", "enroll_host_key", HostKeyEnrollRequest, HostKeyReport, "admin", "host_key", HOST_KEY,
        ("host-key", "enroll"),
        "let a host sign the turns that it captures into this memory space",
        batch=False, word="host_pubkey_b64",
        example={"host_pubkey_b64": KEY_EXAMPLE, "label": "laptop", "host_kind": "claude-code"},
        shell=(f"beetle host-key enroll {KEY_EXAMPLE} --label laptop --host-kind claude-code",),
        tool=Tool(none="whose signatures count is for people to say"),
    ),
    Operation(
        "host_key.revoke", "revoke_host_key", HostKeyRevokeRequest, HostKeyReport, "admin", "host_key", HOST_KEY,
        ("host-key", "revoke"),
        "refuse what a key signs from now on; turns that it signed stay",
        batch=False, grows=False, word="host_key",
        example={"host_key": "21fe31dfa154a261"},
        tool=Tool(none="whose signatures count is for people to say"),
    ),
    Operation(
        "host_key.list", "list_host_keys", HostKeyListRequest, HostKeyListReport, "read", "host_key", HOST_KEY,
        ("host-key", "list"),
        "list the keys of capturing hosts, in the order in which they were added",
    ),
)  # fmt: skip
