"""The format of continuity snapshots and archives: the envelope, and what a scope holds as they carry it.

Nothing here depends on a store: no row keys, no keyed digests. Where one record names another the name is relative, so
that it means the same in another scope: `Here` is a turn of the snapshot's own chat, `OfFact` one of its facts.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from beetle.contracts.chunks import (
    CHUNK_ID,
    LINK_KINDS,
    MOST_COUNT,
    MOST_EXTRA,
    MOST_LINKS,
    MOST_NAME,
    MOST_TAGS,
    ChunkSource,
    ChunkType,
)
from beetle.contracts.fields import NO_CONTROL, Id, Label, Part, Visibility, budgeted
from beetle.contracts.governance import (
    Authority,
    FactKind,
    FactText,
    Keywords,
    Privacy,
    Tags,
    Target,
    ToolOutcome,
    Topic,
)
from beetle.contracts.private import PrivatePlane, PrivatePrivacy
from beetle.contracts.skills import SkillName, SkillSummary, SkillText, SkillTitle, SkillTopic
from beetle.contracts.turns import ActorAttribution, EventType, HostOpaqueRef, RefView, StoredRole

FIRST_US = -62_135_596_800_000_000
LAST_US = 253_402_300_799_999_999
At = Annotated[int, Meta(ge=FIRST_US, le=LAST_US)]
"""Microseconds since the epoch, within the years 1 to 9999."""
Index = Annotated[int, Meta(ge=0, le=2**31)]
RefText = Annotated[str, Meta(min_length=1, max_length=16_384)]
Content = Annotated[str, Meta(extra=budgeted("message_content_bytes"))]
ThoughtIndex = Annotated[int, Meta(ge=0, le=2**53 - 1)]
AgentId = Annotated[str, Meta(min_length=1, max_length=256, pattern=NO_CONTROL)]
Labels = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=256)], ...], Meta(max_length=64)]
ChunkName = Annotated[str, Meta(min_length=1, max_length=MOST_NAME)]
ThoughtWord = Annotated[str, Meta(min_length=1, max_length=64)]
Sha256 = Annotated[bytes, Meta(min_length=32, max_length=32)]


class Here(Part, frozen=True, kw_only=True, tag="here", tag_field="is"):
    """A turn of the chat that the snapshot is of, or one of its messages."""

    turn_id: Id
    message_id: Id | None = None


class OfFact(Part, frozen=True, kw_only=True, tag="fact", tag_field="is"):
    """One of the facts beside it, by its place among them."""

    fact: Index


Source = RefText | Here | OfFact
"""What a record rests on: a ref or any text, or something that is carried along."""


class MessageRecord(Part, frozen=True, kw_only=True):
    """A message. What is imported is live and has its content; a fingerprint also tells of what is not.

    `tools` is what `tool_parts.tail_of` makes of its tool calls and result; absent without any. `event_type` is of an
    event.
    """

    message_id: Id
    role: StoredRole
    at: At
    visibility: Visibility
    content: Content | None
    state: Literal["live", "masked", "deleted"] = "live"
    actor: ActorAttribution | None = None
    tools: Content | UnsetType = UNSET
    event_type: EventType | UnsetType = UNSET


class AttrRecord(Part, frozen=True, kw_only=True):
    """A value beside a turn; `message` is the place of its message, None for the turn."""

    key: Id
    value: Content
    visibility: Annotated[tuple[RefView, ...], Meta(max_length=16)]
    message: Index | None = None
    export_allowed: bool = False


class TurnRecord(Part, frozen=True, kw_only=True):
    turn_id: Id
    at: At
    door: Literal["transcript", "capture", "event"]
    messages: Annotated[tuple[MessageRecord, ...], Meta(min_length=1, max_length=1000)]
    archived: bool = False
    host_refs: Annotated[tuple[HostOpaqueRef, ...], Meta(extra=budgeted("host_refs_per_turn"))] = ()
    attrs: Annotated[tuple[AttrRecord, ...], Meta(max_length=256)] = ()


class ConversationRecord(Part, frozen=True, kw_only=True):
    """A conversation, its turns in sequence. The one of a chat is named by whoever takes it in: its names are None."""

    channel_id: Id | None
    conversation_id: Id | None
    turns: tuple[TurnRecord, ...]


class DerivedRecord(Part, frozen=True, kw_only=True):
    """What a skill's revision or a fact rests on."""

    source: Source
    relation: Label
    revision: Index | None = None


class SkillRevisionRecord(Part, frozen=True, kw_only=True):
    """One revision, in the order of their numbers. `here` says that it was learned in the snapshot's own chat."""

    source: Label
    at: At
    topic: SkillTopic
    title: SkillTitle
    summary: SkillSummary
    content: SkillText
    citations: Annotated[tuple[Source, ...], Meta(max_length=256)] = ()
    here: bool = False
    source_chat_id: Label | None = None
    observed_at: Annotated[int, Meta(ge=-(2**43), le=2**43)] | None = None
    edit_reason: Annotated[str, Meta(max_length=512)] | None = None


class SkillRecord(Part, frozen=True, kw_only=True):
    """A runtime skill with every revision. `authority` None is a hand's own writing."""

    name: SkillName
    enabled: bool
    retired: bool
    created_at: At
    updated_at: At
    revisions: Annotated[tuple[SkillRevisionRecord, ...], Meta(min_length=1)]
    authority: Authority | None = None
    derived: tuple[DerivedRecord, ...] = ()


class FactTextRecord(Part, frozen=True, kw_only=True):
    """What a fact says or said."""

    topic: Topic
    content: FactText
    keywords: Keywords = ()


class FactRevisionRecord(Part, frozen=True, kw_only=True):
    """One revision, in the order of their numbers; `text` is the place of what it says, None once that was erased."""

    action: Literal[
        "created", "evidence_added", "corrected", "superseded", "stale", "scope_changed", "deleted", "restored"
    ]
    state: Literal["current", "stale", "superseded", "deleted"]
    visibility: Literal["shared", "private"]
    authority: Authority
    valid_from: At
    valid_until: At | None = None
    text: Index | None = None
    here: bool = False
    source_chat_id: Label | None = None
    extractor: Label | None = None
    reason: Content | None = None


class FactRecord(Part, frozen=True, kw_only=True):
    """A fact with its revisions. `superseded_by` is the place of the fact that stands for it now."""

    record_id: Annotated[str, Meta(pattern=r"^f-[0-9a-f]{1,64}\Z")]
    target: Literal["long_term", "shared_fact"]
    kind: FactKind
    created_at: At
    texts: tuple[FactTextRecord, ...]
    revisions: Annotated[tuple[FactRevisionRecord, ...], Meta(min_length=1)]
    authority: Authority
    confidence: Annotated[float, Meta(ge=0, le=1)] | None = None
    superseded_by: Index | None = None
    derived: tuple[DerivedRecord, ...] = ()


class PolicyRecord(Part, frozen=True, kw_only=True):
    action: Literal["pause", "suppress"]
    at: At
    kind: FactKind | None = None
    topic: Topic | None = None
    chat_id: Id | None = None
    reason: Label | None = None


class ToolRecord(Part, frozen=True, kw_only=True):
    tool_id: Id
    title: Annotated[str, Meta(max_length=1024)]
    summary: Annotated[str, Meta(max_length=4096)]
    schema_fingerprint: Label
    permission_tags: Tags = ()
    risk_tags: Tags = ()


class RegistryRecord(Part, frozen=True, kw_only=True):
    """What a host registered of its tools."""

    registry_id: Id
    scope: Label
    fingerprint: Label
    revision: Annotated[int, Meta(ge=1, le=2**53)]
    created_at: At
    updated_at: At
    tools: Annotated[tuple[ToolRecord, ...], Meta(max_length=65_536)]


class UploadedVersionRecord(Part, frozen=True, kw_only=True):
    """A version of an uploaded skill, in the order of their numbers; `key` is the one that its signature holds by."""

    version_id: Id
    at: At
    agent_id: Id
    agent_name: Label
    format: Literal["markdown", "json"]
    content: SkillText
    agent_owner: Label | None = None
    chain_key: Label | None = None
    signing_key_id: Label | None = None
    key: Annotated[bytes, Meta(min_length=32, max_length=32)] | None = None
    signature: Annotated[bytes, Meta(min_length=64, max_length=64)] | None = None


class UploadedSkillRecord(Part, frozen=True, kw_only=True):
    """An uploaded skill with every version."""

    skill_id: Annotated[str, Meta(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*\Z", max_length=128)]
    status: Literal["active", "deprecated", "revoked"]
    created_at: At
    updated_at: At
    versions: Annotated[tuple[UploadedVersionRecord, ...], Meta(min_length=1)]
    status_reason: Annotated[str, Meta(max_length=512)] | None = None


class ThoughtLinkRecord(Part, frozen=True, kw_only=True):
    """A ref (`refers`) or relation: to an earlier thought of the chain by `index`, or to any record by `ref`."""

    kind: Literal["refers", "supports", "contradicts", "supersedes", "caused_by"]
    index: ThoughtIndex | None = None
    ref: Annotated[str, Meta(min_length=1, max_length=1024)] | None = None
    valid_at: At | None = None
    invalid_at: At | None = None


class ThoughtBodyRecord(Part, frozen=True, kw_only=True):
    """What of a thought can be erased."""

    salt: Annotated[bytes, Meta(min_length=16, max_length=16)]
    content: Content
    tags: Labels = ()
    concepts: Labels = ()
    signature: Annotated[bytes, Meta(min_length=64, max_length=64)] | None = None


class ThoughtRecord(Part, frozen=True, kw_only=True):
    """A thought; its index follows from its place in the chain. Without `body` it is erased, or may not leave."""

    thought_id: Annotated[str, Meta(min_length=1, max_length=64)]
    at: At
    agent_id: AgentId
    thought_type: ThoughtWord
    role: ThoughtWord
    importance: Annotated[float, Meta(ge=0, le=1)]
    digest: Sha256
    hash: Sha256
    schema_version: Annotated[int, Meta(ge=1, le=2**31)] = 1
    session_id: Annotated[str, Meta(max_length=256, pattern=NO_CONTROL)] | None = None
    signing_key_id: Annotated[str, Meta(max_length=256, pattern=NO_CONTROL)] | None = None
    confidence: Annotated[float, Meta(ge=0, le=1)] | None = None
    body: ThoughtBodyRecord | None = None
    mark: Literal["masked", "erased"] | None = None
    marked_at: At | None = None
    links: Annotated[tuple[ThoughtLinkRecord, ...], Meta(max_length=320)] = ()


class ChainKeyRecord(Part, frozen=True, kw_only=True):
    """A public key of an agent."""

    key_id: Annotated[str, Meta(min_length=1, max_length=256, pattern=NO_CONTROL)]
    key: Annotated[bytes, Meta(min_length=32, max_length=32)]
    added_at: At
    revoked_at: At | None = None


class ChainAgentRecord(Part, frozen=True, kw_only=True):
    """An agent of a chain; what it has written follows from the thoughts."""

    agent_id: AgentId
    display_name: Annotated[str, Meta(max_length=256, pattern=NO_CONTROL)]
    status: Literal["active", "revoked"]
    owner: Annotated[str, Meta(max_length=256, pattern=NO_CONTROL)] | None = None
    description: Annotated[str, Meta(max_length=4096)] | None = None
    aliases: tuple[Annotated[str, Meta(max_length=256)], ...] = ()
    keys: tuple[ChainKeyRecord, ...] = ()


class ChainRecord(Part, frozen=True, kw_only=True):
    """A chain with its own thoughts in their order; the first `shared` of a branch are those of the chain `parent`."""

    chain_key: Annotated[str, Meta(min_length=1, max_length=256, pattern=NO_CONTROL)]
    adapter: Literal["binary", "jsonl"]
    created_at: At
    updated_at: At
    thoughts: tuple[ThoughtRecord, ...] = ()
    agents: tuple[ChainAgentRecord, ...] = ()
    parent: Annotated[str, Meta(min_length=1, max_length=256, pattern=NO_CONTROL)] | None = None
    shared: ThoughtIndex = 0


class BriefRecord(Part, frozen=True, kw_only=True):
    """What was said of a tool's use."""

    summary: Annotated[str, Meta(max_length=512)]
    result_summary: Annotated[str, Meta(max_length=2048)] = ""
    reuse_outcome: ToolOutcome | None = None
    operator_note: Annotated[str, Meta(max_length=2048)] | None = None


class ChunkLinkRecord(Part, frozen=True, kw_only=True):
    """A link of a chunk to another, by its id, or to a conversation."""

    kind: Literal["context_of", "follows", "related_to", "supports", "contradicts"]
    target: ChunkName
    strength: Annotated[float, Meta(ge=0, le=1)]


class ChunkRecord(Part, frozen=True, kw_only=True):
    """A chunk: all that a file of a tree may hold. `extra` is the JSON of what an imported file had besides."""

    chunk_id: Annotated[str, Meta(pattern=CHUNK_ID)]
    conversation_id: Id
    type: ChunkType
    source: ChunkSource
    tokens: Annotated[int, Meta(ge=1, le=MOST_COUNT)]
    confidence: Annotated[float, Meta(ge=0, le=1)]
    created_at: At
    content: Content
    tags: Annotated[tuple[ChunkName, ...], Meta(max_length=MOST_TAGS)] = ()
    extra: Annotated[str, Meta(max_length=MOST_EXTRA)] | None = None
    archived_at: At | None = None
    accesses: Annotated[int, Meta(ge=0, le=MOST_COUNT)] = 0
    last_accessed: At | None = None
    links: Annotated[tuple[ChunkLinkRecord, ...], Meta(max_length=len(LINK_KINDS) * MOST_LINKS)] = ()


class ObservationRecord(Part, frozen=True, kw_only=True):
    """One use of a tool; `turn` is the evidence ref of the turn that it was observed in."""

    registry_id: Id
    registry_fingerprint: Label
    registry_scope: Label
    tool_id: Id
    schema_fingerprint: Label
    outcome: ToolOutcome
    at: At
    duration_ms: Annotated[int, Meta(ge=0, le=2**43)] | None = None
    permission_tags: Tags = ()
    risk_tags: Tags = ()
    turn: RefText | None = None
    turn_id: Id | None = None
    brief: BriefRecord | None = None


class CandidateRecord(Part, frozen=True, kw_only=True):
    """What waits to be judged; what an extraction found has no id. `record` is the place of the private item that holds
    its text.
    """

    candidate_id: Label
    target: Target
    kind: FactKind
    privacy: Privacy
    authority: Authority
    reason: Literal["policy_paused", "needs_assertion", "evidence_does_not_bear", "weaker_authority"]
    chat_id: Id
    at: At
    text: FactTextRecord | None = None
    record: Index | None = None
    confidence: Annotated[float, Meta(ge=0, le=1)] | None = None
    extractor: Label | None = None
    evidence: Annotated[tuple[RefText, ...], Meta(max_length=64)] = ()


class PrivateRecord(Part, frozen=True, kw_only=True):
    """Private material; `content` is None where it was not opened."""

    record_id: Id
    candidate_id: Id
    plane: PrivatePlane
    privacy: PrivatePrivacy
    authority: Authority
    state: Literal["kept", "handoff", "waiting"]
    at: At
    content: Content | None
    derived: tuple[Source, ...] = ()


class AliasRecord(Part, frozen=True, kw_only=True):
    """The conversation, by its place, that a principal last committed to under a chat id."""

    principal: Label
    agent_id: Id
    channel: Id
    chat_id: Id
    conversation: Index


class Records(Part, frozen=True, kw_only=True):
    """All that a snapshot or an archive carries."""

    conversations: tuple[ConversationRecord, ...] = ()
    skills: tuple[SkillRecord, ...] = ()
    facts: tuple[FactRecord, ...] = ()
    policies: tuple[PolicyRecord, ...] = ()
    registries: tuple[RegistryRecord, ...] = ()
    uploaded_skills: tuple[UploadedSkillRecord, ...] = ()
    chains: tuple[ChainRecord, ...] = ()
    chunks: tuple[ChunkRecord, ...] = ()
    observations: tuple[ObservationRecord, ...] = ()
    candidates: tuple[CandidateRecord, ...] = ()
    private: tuple[PrivateRecord, ...] = ()
    aliases: tuple[AliasRecord, ...] = ()


class Named(Part, frozen=True, kw_only=True):
    """What was taken out: a memory space or, where the chat fields are set, one chat of it."""

    memory_space_id: Annotated[str, Meta(min_length=1, max_length=300)]
    channel: Id | None = None
    conversation_id: Id | None = None
    chat_id: Id | None = None


class Policy(Part, frozen=True, kw_only=True):
    """What was allowed to leave, and how many of what was not."""

    include_private: bool
    left_out: dict[str, Annotated[int, Meta(ge=1)]]


class EventFingerprint(Part, frozen=True, kw_only=True):
    """The event log of the store that it comes from, as it stood: how many rows, and the last one's hash."""

    rows: Annotated[int, Meta(ge=0)]
    head: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Body(Part, frozen=True, kw_only=True):
    """What an envelope is about. `schema` is that of the records, `at` when they were taken out."""

    schema: Literal[1]
    at: At
    scope: Named
    policy: Policy
    counts: dict[str, Annotated[int, Meta(ge=0)]]
    state_fingerprint: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    event_fingerprint: EventFingerprint
    records: Records


class Sealing(Part, frozen=True, kw_only=True):
    """How a body was sealed: ChaCha20-Poly1305 with a key that scrypt makes of the passphrase."""

    cipher: Literal["chacha20-poly1305"]
    kdf: Literal["scrypt"]
    n: Literal[16384]
    r: Literal[8]
    p: Literal[5]
    salt: Annotated[bytes, Meta(min_length=16, max_length=16)]
    nonce: Annotated[bytes, Meta(min_length=12, max_length=12)]


class Envelope(Part, frozen=True, kw_only=True):
    """A snapshot (of a chat) or an archive (of a space). `signed` is the device's statement over every byte in front of
    it; an envelope of the first format has none. `sha256` is of every byte that stands before its own.

    `body` is a view into the bytes that were decoded: a copy would be as large as all of them.
    """

    format: Literal["beetle.continuity.v1", "beetle.continuity.v2"]
    kind: Literal["chat", "space"]
    sealing: Sealing | None
    body: memoryview
    signed: Annotated[str, Meta(max_length=2048)] | None = None
    sha256: Annotated[bytes, Meta(min_length=32, max_length=32)]
