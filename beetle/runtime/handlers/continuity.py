"""memory.replay, memory.export, memory.import, memory.export_space, memory.import_space."""

from __future__ import annotations

from collections import Counter

from beetle.contracts.codec import format_us
from beetle.contracts.common import ConversationRef, DerivedMemoryRef
from beetle.contracts.continuity import (
    LedgerMessage,
    LedgerStep,
    LedgerTurn,
    MemoryExportReport,
    MemoryExportRequest,
    MemoryImportReport,
    MemoryImportRequest,
    MemoryReplayReport,
    MemoryReplayRequest,
    MemorySpaceExportReport,
    MemorySpaceExportRequest,
    MemorySpaceImportRequest,
)
from beetle.contracts.errors import NotFound
from beetle.memory.governance import SEALED
from beetle.runtime import receipts
from beetle.runtime.continuity.export import check_passphrase, take_out
from beetle.runtime.continuity.gather import Chat
from beetle.runtime.continuity.load import Loading
from beetle.runtime.continuity.prepare import Prepared, prepare
from beetle.runtime.continuity.scope import chat_of
from beetle.runtime.cursor import make_cursor, read_cursor
from beetle.runtime.handling import Apply, Context
from beetle.runtime.views import visible_kinds
from beetle.store import continuity, evidence
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction


def replay(context: Context, request: MemoryReplayRequest, tx: Reading) -> MemoryReplayReport:
    """The ledger in sequence order; the cursor stands at a sequence of the conversation that the chat stood for."""
    chat = chat_of(context, tx, request.chat_id)
    space = evidence.find_space(tx, context.space_id)
    found = evidence.find_conversation(tx, space, chat.channel, chat.conversation_id)
    if space is None or found is None:
        raise NotFound(
            kind="chat", name=request.chat_id, listing="`beetle transcript conversations` lists what is there"
        )
    bound_to = context.bound(request.chat_id, found.conversation)
    after = 0 if request.cursor is None else read_cursor(context.key, bound_to, request.cursor)
    rows = continuity.ledger(tx, found.conversation, after, request.limit + 1)
    more = len(rows) > request.limit
    rows = rows[: request.limit]
    most = context.shared.profile.budgets.derived_refs
    turns: list[LedgerTurn] = []
    clipped = False
    for row in rows:
        turn, cut = _ledger_turn(context, tx, space, row, most)
        turns.append(turn)
        clipped = clipped or cut
    return MemoryReplayReport(
        conversation=ConversationRef(channel_id=chat.channel, conversation_id=chat.conversation_id),
        turns=tuple(turns),
        has_more=more,
        next_cursor=make_cursor(context.key, bound_to, rows[-1].sequence) if more else None,
        profile_budget_applied=clipped,
    )


def _ledger_turn(
    context: Context, tx: Reading, space: int, row: continuity.LedgerTurn, most: int
) -> tuple[LedgerTurn, bool]:
    """A turn, and whether it led to more than is shown."""
    messages = continuity.ledger_messages(tx, row.turn)
    steps = Counter((m.step, m.action, m.stepped_at) for m in messages if m.step is not None)
    refs = _known_to(context, continuity.ledger_derived(tx, row.turn, space, most + 1))
    return (
        LedgerTurn(
            sequence=row.sequence,
            turn_id=row.turn_id,
            at=format_us(row.at),
            committed_at=format_us(row.committed_at),
            door=row.door,  # type: ignore[arg-type]
            archived=bool(row.archived),
            messages=tuple(
                LedgerMessage(message_id=m.message_id, role=m.role, at=format_us(m.at), state=m.state)  # type: ignore[arg-type]
                for m in messages
            ),
            steps=tuple(
                LedgerStep(action=action or "", at=format_us(at or 0), messages=number)
                for (_, action, at), number in sorted(steps.items(), key=lambda each: each[0][0] or 0)
            ),
            derived_refs=refs[:most],
        ),
        len(refs) > most,
    )


def _known_to(context: Context, rows: list[continuity.LedgerDerived]) -> tuple[DerivedMemoryRef, ...]:
    """Private facts and items are told of only to whom their content is."""
    viewer = context.viewer()
    private, owner = "private" in visible_kinds(viewer), viewer.view == "raw_owner"
    return tuple(
        DerivedMemoryRef(derived=row.derived, evidence=row.evidence, relation=row.relation)
        for row in rows
        if (owner if row.derived.partition(":")[0] in SEALED else private or row.visibility != "private")
    )


def export(context: Context, request: MemoryExportRequest, tx: Reading) -> MemoryExportReport:
    """One chat's memory. Who may take private material out was checked when the request was admitted."""
    check_passphrase(request.include_private, request.passphrase)
    chat = chat_of(context, tx, request.chat_id)
    taken = take_out(context, tx, chat, include_private=request.include_private, words=request.passphrase)
    return MemoryExportReport(
        snapshot=taken.data,
        sealed=request.passphrase is not None,
        counts=taken.counts,
        left_out=taken.left_out,
        state_fingerprint=taken.state_fingerprint,
    )


def export_space(context: Context, request: MemorySpaceExportRequest, tx: Reading) -> MemorySpaceExportReport:
    """The whole space."""
    check_passphrase(request.include_private, request.passphrase)
    taken = take_out(context, tx, None, include_private=request.include_private, words=request.passphrase)
    return MemorySpaceExportReport(
        archive=taken.data,
        sealed=request.passphrase is not None,
        counts=taken.counts,
        left_out=taken.left_out,
        state_fingerprint=taken.state_fingerprint,
    )


def import_snapshot(context: Context, request: MemoryImportRequest) -> Apply:
    """A chat's snapshot as one chat; it is opened and checked before the transaction begins."""
    prepared = prepare(context, request.snapshot, "chat", request.passphrase)
    receipts.ready(context)

    def apply(tx: WriteTransaction) -> MemoryImportReport:
        return _load(context, tx, request, prepared, chat_of(context, tx, request.target_chat_id))

    return apply


def import_space(context: Context, request: MemorySpaceImportRequest) -> Apply:
    """An archive as the memory space."""
    prepared = prepare(context, request.archive, "space", request.passphrase)
    receipts.ready(context)

    def apply(tx: WriteTransaction) -> MemoryImportReport:
        return _load(context, tx, request, prepared, None)

    return apply


def _load(
    context: Context,
    tx: WriteTransaction,
    request: MemoryImportRequest | MemorySpaceImportRequest,
    prepared: Prepared,
    chat: Chat | None,
) -> MemoryImportReport:
    loaded = Loading(context, tx, prepared, chat, request.mode, request.discard_withheld).run()
    return MemoryImportReport(
        counts=loaded.counts,
        replaced=loaded.replaced,
        state_fingerprint=loaded.state_fingerprint,
        erasure="pending" if loaded.replaced else None,
        receipt=loaded.receipt,
    )
