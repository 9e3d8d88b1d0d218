"""What every operation shares: identity, scope, conversations, lifecycle, the parent of all reports."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from beetle.contracts.codec import to_plain
from beetle.contracts.fields import Id, Label, Open, Part, Piece, clipped

DEFAULT_OWNER = "owner-default"
DEFAULT_AGENT = "agent-main"
DEFAULT_CHANNEL = "local"
DEFAULT_CHAT = "chat-1"


class MemoryIdentity(Part, frozen=True, kw_only=True):
    """Who a runtime was opened for. `memory_space_id` is `space:` + owner_id."""

    agent_id: Id = DEFAULT_AGENT
    owner_id: Id = DEFAULT_OWNER

    @property
    def memory_space_id(self) -> str:
        """The id that every row of this owner carries."""
        return f"space:{self.owner_id}"


class MemoryScope(Part, frozen=True, kw_only=True):
    """Where a single agent talks: a channel and a chat, and the stable conversation id where the host has one."""

    channel: Id = DEFAULT_CHANNEL
    chat_id: Id = DEFAULT_CHAT
    conversation_id: Id | None = None


class WireScope(Part, frozen=True, kw_only=True):
    """A request's `scope` on the wire: every field optional, a principal's own owner and agent where it has them."""

    owner_id: Id | None = None
    agent_id: Id | None = None
    channel: Id | None = None
    chat_id: Id | None = None
    conversation_id: Id | None = None


class Conversation(Part, frozen=True, kw_only=True):
    """A conversation within the caller's memory space."""

    channel_id: Annotated[Id, Meta(description="channel of the conversation")] = DEFAULT_CHANNEL
    conversation_id: Annotated[Id, Meta(description="id of the conversation within its channel")]


class ConversationRef(Piece, frozen=True, kw_only=True):
    """A conversation in a report."""

    channel_id: Open[str]
    conversation_id: Open[str]


class ModeInput(Part, frozen=True, kw_only=True):
    """The lifecycle mode that a caller asks an operation to run under; read_only and safe refuse writes."""

    mode: Literal["normal", "maintenance", "read_only", "safe"] = "normal"
    reason: Label | None = None


ModeArg = Annotated[
    ModeInput,
    Meta(
        description="the lifecycle mode that a caller asks an operation to run under; read_only and safe refuse writes"
    ),
]


class RegistryRef(Part, frozen=True, kw_only=True):
    """Names a tool registry of the host and the fingerprint that the host has now."""

    registry_id: Id
    fingerprint: Label
    scope: Label = "global"


class Lifecycle(Piece, frozen=True, kw_only=True):
    """What an operation did to the store: whether anything changed, when, and the number of its event, as
    `event_log.read` numbers it for this caller; null where the caller may not know of the event.
    """

    operation: Open[str]
    changed: Open[bool]
    at: Open[str]
    event_id: Open[int | None] = None


class Report(Piece, frozen=True, kw_only=True):
    """Parent of all reports. The dispatcher fills `lifecycle`; `profile_budget_applied` says that a budget clipped."""

    lifecycle: Open[Lifecycle | None] = None
    profile_budget_applied: Open[bool] = False

    def to_dict(self) -> dict[str, Any]:
        """The report as a dictionary of plain values, as `--json` prints it: bytes are base64 text."""
        return to_plain(self)


class DerivedMemoryRef(Piece, frozen=True, kw_only=True):
    """Joins a derived record to the evidence it came from; both ends are refs (see `contracts/refs.py`)."""

    derived: Open[str]
    evidence: Open[str]
    relation: Open[str] = "cites"


Limit = Annotated[int, Meta(ge=1, description="maximum number; clipped to the profile's limit")]
RecallLimit = Annotated[Limit, Meta(extra=clipped("recall_limit"))]
PageLimit = Annotated[Limit, Meta(extra=clipped("page_limit"))]
TurnPageLimit = Annotated[Limit, Meta(extra=clipped("transcript_page_turns"))]
ExpectedRevision = Annotated[int, Meta(ge=1, description="refuse unless this is the current revision")]
Cursor = Annotated[str, Meta(min_length=1, max_length=1024, description="next_cursor of the previous page")]
