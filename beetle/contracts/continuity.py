"""Continuity: a chat's turn ledger, continuity snapshots of one chat, archives of a whole memory space."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import ConversationRef, Cursor, DerivedMemoryRef, Report, TurnPageLimit
from beetle.contracts.fields import Content, Id, Open, Piece, Request, Secret, budgeted
from beetle.contracts.transcript import StoredRole

ImportMode = Literal["bootstrap_import", "full_restore"]

ChatId = Annotated[Id, Meta(description="the chat, in the channel of the scope")]
ExportView = Annotated[Literal["export"], Meta(description="what may leave the device is seen through this view")]
IncludePrivate = Annotated[bool, Meta(description="private material too; needs a passphrase, which seals all of it")]
Passphrase = Annotated[
    str, Meta(min_length=8, max_length=1024, description="seals what is taken out, and opens what was sealed")
]
Carried = Annotated[
    bytes, Meta(min_length=1, extra=budgeted("import_bytes"), description="the bytes as they were exported")
]
Mode = Annotated[
    ImportMode, Meta(description="into an empty scope (bootstrap_import), or in place of what is there (full_restore)")
]
Discard = Annotated[
    bool,
    Meta(description="full_restore: take away even what a snapshot of this sort never carries, and cannot bring back"),
]
Counts = dict[str, int]


class MemoryReplayRequest(Request, frozen=True, kw_only=True):
    """Read a chat's turn ledger: what was committed when, and what became of it, without content."""

    chat_id: ChatId
    limit: TurnPageLimit = 50
    cursor: Cursor | None = None


class LedgerMessage(Piece, frozen=True, kw_only=True):
    """A message of the ledger."""

    message_id: Open[str]
    role: Open[StoredRole]
    at: Open[str]
    state: Open[Literal["live", "masked", "deleted"]]


class LedgerStep(Piece, frozen=True, kw_only=True):
    """The lifecycle step that last changed so many messages of the turn."""

    action: Open[str]
    at: Open[str]
    messages: Open[int]


class LedgerTurn(Piece, frozen=True, kw_only=True):
    """A turn of the ledger. `derived_refs` are what memory made of it, as far as the caller may know of that."""

    sequence: Open[int]
    turn_id: Open[str]
    at: Open[str]
    committed_at: Open[str]
    door: Open[Literal["transcript", "capture", "event"]]
    archived: Open[bool]
    messages: Open[tuple[LedgerMessage, ...]]
    steps: Open[tuple[LedgerStep, ...]] = ()
    derived_refs: Open[tuple[DerivedMemoryRef, ...]] = ()


class MemoryReplayReport(Report, frozen=True, kw_only=True):
    """`conversation` is what the chat stands for."""

    conversation: Open[ConversationRef]
    turns: Open[tuple[LedgerTurn, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class MemoryExportRequest(Request, frozen=True, kw_only=True):
    """Take one chat's memory out as a continuity snapshot: shared evidence, its skills, the facts it led to."""

    chat_id: ChatId
    include_private: IncludePrivate = False
    passphrase: Passphrase | None = None
    view: ExportView = "export"


class MemoryExportReport(Report, frozen=True, kw_only=True):
    """`left_out` counts what stays behind, by sort. `state_fingerprint` is that of what was taken out."""

    snapshot: Content[bytes | None]
    sealed: Open[bool]
    counts: Open[Counts]
    left_out: Open[Counts]
    state_fingerprint: Content[str | None]


class MemorySpaceExportRequest(Request, frozen=True, kw_only=True):
    """Take the memory space out as an archive: without private material no transcript, alias or derived ref of one."""

    include_private: IncludePrivate = False
    passphrase: Passphrase | None = None
    view: ExportView = "export"


class MemorySpaceExportReport(Report, frozen=True, kw_only=True):
    """As of a chat's export."""

    archive: Content[bytes | None]
    sealed: Open[bool]
    counts: Open[Counts]
    left_out: Open[Counts]
    state_fingerprint: Content[str | None]


class MemoryImportRequest(Request, frozen=True, kw_only=True):
    """Take a continuity snapshot in as one chat: all of it or nothing."""

    snapshot: Carried
    target_chat_id: Annotated[Id, Meta(description="the chat that it becomes, in the channel of the scope")]
    mode: Mode
    passphrase: Passphrase | None = None
    discard_withheld: Discard = False


class MemorySpaceImportRequest(Request, frozen=True, kw_only=True):
    """Take an archive in as the memory space: all of it or nothing."""

    archive: Carried
    mode: Mode
    passphrase: Passphrase | None = None
    discard_withheld: Discard = False


class MemoryImportReport(Report, frozen=True, kw_only=True):
    """Of both imports. `replaced` counts what full_restore took away; `replica_horizon` is the time of the newest copy
    of the store that may hold it still.

    `state_fingerprint` is what the scope's export of the same sort has from now on. It is a digest of content, so it is
    in the first answer alone.
    """

    counts: Open[Counts]
    replaced: Open[Counts]
    state_fingerprint: Secret[str | None]
    erasure: Open[Literal["done", "pending"] | None] = None
    replica_horizon: Open[str | None] = None
    receipt: Open[str | None] = None
