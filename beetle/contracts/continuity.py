"""Continuity: a chat's turn ledger, continuity snapshots of one chat, archives of a whole memory space."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import ConversationRef, Cursor, DerivedMemoryRef, Report, TurnPageLimit
from beetle.contracts.fields import Content, Id, Open, Piece, Request, Secret, budgeted
from beetle.contracts.operation import MEMORY, Operation, Tool
from beetle.contracts.transfer import ExportView, TransferHandle, TransferId
from beetle.contracts.turns import StoredRole

ImportMode = Literal["bootstrap_import", "full_restore"]

ChatId = Annotated[Id, Meta(description="the chat, in the channel of the scope")]
IncludePrivate = Annotated[
    bool, Meta(description="include private material; needs a passphrase, which encrypts the whole export")
]
Passphrase = Annotated[
    str, Meta(min_length=8, max_length=1024, description="encrypts an export, and decrypts an encrypted one")
]
Carried = Annotated[
    bytes, Meta(min_length=1, extra=budgeted("import_bytes"), description="the bytes as they were exported")
]
Mode = Annotated[
    ImportMode, Meta(description="import into an empty scope (bootstrap_import), or replace its content (full_restore)")
]
Discard = Annotated[
    bool,
    Meta(description="full_restore: also delete material that such an export never contains and cannot restore"),
]
OtherStore = Annotated[
    bool, Meta(description="full_restore: replace existing content with an export that this device has not signed")
]
InPieces = Annotated[
    bool,
    Meta(description="hand over what is larger than a piece under a handle, to be fetched with `transfer.get`"),
]
Sent = Annotated[TransferId | None, Meta(description="the transfer that holds the bytes, in place of the bytes")]
Counts = dict[str, int]


class MemoryReplayRequest(Request, frozen=True, kw_only=True):
    """Read a chat's turn ledger: when each turn was committed and its later changes, without content."""

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
    """`conversation` is the one that the chat refers to."""

    conversation: Open[ConversationRef]
    turns: Open[tuple[LedgerTurn, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class MemoryExportRequest(Request, frozen=True, kw_only=True):
    """Export one chat as a continuity snapshot: shared evidence, its skills, and the facts learned from it."""

    chat_id: ChatId
    include_private: IncludePrivate = False
    passphrase: Passphrase | None = None
    view: ExportView = "export"
    in_pieces: InPieces = False


class MemoryExportReport(Report, frozen=True, kw_only=True):
    """`left_out` counts what stays behind, by sort. `state_fingerprint` is that of what was taken out. `device` is the
    fingerprint of this device, which signed it; null where its identity cannot be used. `transfer` is what to fetch in
    place of `snapshot`, where it goes in pieces."""

    snapshot: Content[bytes | None]
    transfer: Open[TransferHandle | None] = None
    sealed: Open[bool]
    device: Open[str | None] = None
    counts: Open[Counts]
    left_out: Open[Counts]
    state_fingerprint: Content[str | None]


class MemorySpaceExportRequest(Request, frozen=True, kw_only=True):
    """Export the memory space as an archive; without private material it has no transcripts, aliases or their refs."""

    include_private: IncludePrivate = False
    passphrase: Passphrase | None = None
    view: ExportView = "export"
    in_pieces: InPieces = False


class MemorySpaceExportReport(Report, frozen=True, kw_only=True):
    """As of a chat's export."""

    archive: Content[bytes | None]
    transfer: Open[TransferHandle | None] = None
    sealed: Open[bool]
    device: Open[str | None] = None
    counts: Open[Counts]
    left_out: Open[Counts]
    state_fingerprint: Content[str | None]


class MemoryImportRequest(Request, frozen=True, kw_only=True):
    """Import a continuity snapshot as one chat: all of it or nothing."""

    snapshot: Carried | None = None
    transfer_id: Sent = None
    target_chat_id: Annotated[Id, Meta(description="chat to import into, in the channel of the scope")]
    mode: Mode
    passphrase: Passphrase | None = None
    discard_withheld: Discard = False
    other_store: OtherStore = False


class MemorySpaceImportRequest(Request, frozen=True, kw_only=True):
    """Import an archive as the memory space: all of it or nothing."""

    archive: Carried | None = None
    transfer_id: Sent = None
    mode: Mode
    passphrase: Passphrase | None = None
    discard_withheld: Discard = False
    other_store: OtherStore = False


class MemoryImportReport(Report, frozen=True, kw_only=True):
    """Of both imports. `replaced` counts what full_restore took away; `replica_horizon` is the time of the newest copy
    of the store that may hold it still.

    `device` is the fingerprint of the device that signed what was imported, null when it is unsigned; `own`, that it is
    this one; `former`, that it is an identity that this store had before.

    `state_fingerprint` is what the scope's export of the same sort has from now on. It is a digest of content, so it is
    in the first answer alone.
    """

    counts: Open[Counts]
    replaced: Open[Counts]
    state_fingerprint: Secret[str | None]
    erasure: Open[Literal["done", "pending"] | None] = None
    replica_horizon: Open[str | None] = None
    replicated_until: Open[str | None] = None
    copies_until: Open[str | None] = None
    receipt: Open[str | None] = None
    own: Open[bool] = False
    former: Open[bool] = False
    device: Open[str | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "memory.replay", "replay", MemoryReplayRequest, MemoryReplayReport, "read", "replay", MEMORY,
        ("memory", "replay"),
        "read a chat's turn ledger: when each turn was committed and its later changes, without content",
        word="chat_id",
        example={"chat_id": "chat-1"},
    ),
    Operation(
        "memory.export", "export_snapshot", MemoryExportRequest, MemoryExportReport, "read", "export", MEMORY,
        ("memory", "export"),
        "export one chat as a continuity snapshot: shared evidence, its skills, and the facts learned from it",
        batch=False, heavy=True, carries="snapshot",
        example={"chat_id": "chat-1"},
        shell=(
            "beetle memory export --chat-id chat-1 --out chat-1.beetle",
            "beetle memory export --chat-id chat-1 --include-private --passphrase-file words --out chat-1.beetle",
        ),
        progress=True,
        tool=Tool(none="bytes, which are for files"),
    ),
    Operation(
        "memory.import", "import_snapshot", MemoryImportRequest, MemoryImportReport, "write", "import", MEMORY,
        ("memory", "import"),
        "import a continuity snapshot as one chat: all of it or nothing",
        batch=False, heavy=True, carries="snapshot",
        example={"snapshot": b"the bytes of an export", "target_chat_id": "chat-1", "mode": "bootstrap_import"},
        shell=("beetle memory import chat-1.beetle --target-chat-id chat-1 --mode bootstrap_import",),
        progress=True, destructive=True, idempotent=False,
        tool=Tool(none="bytes, which are for files"),
    ),
    Operation(
        "memory.export_space", "export_space", MemorySpaceExportRequest, MemorySpaceExportReport, "read", "export",
        MEMORY, ("memory", "export-space"),
        "export the memory space as an archive; without private material it has no transcripts, aliases or their refs",
        batch=False, heavy=True, carries="archive",
        shell=("beetle memory export-space --include-private --out everything.beetle",),
        progress=True,
        tool=Tool(none="bytes, which are for files"),
    ),
    Operation(
        "memory.import_space", "import_space", MemorySpaceImportRequest, MemoryImportReport, "write", "import", MEMORY,
        ("memory", "import-space"),
        "import an archive as the memory space: all of it or nothing",
        batch=False, heavy=True, carries="archive",
        example={"archive": b"the bytes of an export", "mode": "bootstrap_import"},
        shell=("beetle memory import-space everything.beetle --mode bootstrap_import",),
        progress=True, destructive=True, idempotent=False,
        tool=Tool(none="bytes, which are for files"),
    ),
)  # fmt: skip
