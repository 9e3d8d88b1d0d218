"""memory.replay, memory.export, memory.import, memory.export_space, memory.import_space."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from beetle.contracts.codec import replace
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
from beetle.contracts.errors import Forbidden, NotFound
from beetle.runtime.areas import receipts
from beetle.runtime.areas.continuity.export import export_records
from beetle.runtime.areas.continuity.load import Loading
from beetle.runtime.areas.continuity.prepare import Prepared, prepare
from beetle.runtime.areas.continuity.scope import chat_of
from beetle.runtime.areas.erasure import slices
from beetle.runtime.areas.evidence.lifecycle import settle
from beetle.runtime.pipeline.cursor import read_cursor
from beetle.runtime.pipeline.handlers import Apply, Handler, Read, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import page
from beetle.runtime.pipeline.views import visible_kinds
from beetle.runtime.planes.gathering import Chat
from beetle.store import continuity, evidence
from beetle.store.damaged_rows import shown_time, whole
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.sight import Sight


def replay(invocation: Invocation, request: MemoryReplayRequest, tx: Reading) -> MemoryReplayReport:
    """The ledger in sequence order; the cursor stands at a sequence of the conversation that the chat stood for."""
    chat = chat_of(invocation, tx, request.chat_id)
    space = evidence.find_space(tx, invocation.space_id)
    found = evidence.find_conversation(tx, space, chat.channel, chat.conversation_id)
    if space is None or found is None:
        raise NotFound(
            kind="chat", name=request.chat_id, listing="`beetle transcript conversations` lists the conversations"
        )
    bound_to = invocation.bound(request.chat_id, found.conversation)
    after = 0 if request.cursor is None else read_cursor(invocation.key, bound_to, request.cursor)
    rows = continuity.ledger(tx, found.conversation, after, request.limit + 1)
    most = invocation.shared.profile.budgets.derived_refs
    clipped = False

    def show(row: continuity.LedgerTurn) -> LedgerTurn:
        nonlocal clipped
        turn, more_refs = _ledger_turn(invocation, tx, space, row, most)
        clipped = clipped or more_refs
        return turn

    shown = page(invocation, rows, request.limit, show, bound_to=bound_to, place=lambda row: row.sequence)
    return MemoryReplayReport(
        conversation=ConversationRef(channel_id=chat.channel, conversation_id=chat.conversation_id),
        turns=shown.entries,
        has_more=shown.has_more,
        next_cursor=shown.next_cursor,
        profile_budget_applied=clipped or shown.cut,
    )


def _ledger_turn(
    invocation: Invocation, tx: Reading, space: int, row: continuity.LedgerTurn, most: int
) -> tuple[LedgerTurn, bool]:
    """A turn, and whether it led to more than is shown."""
    messages = continuity.ledger_messages(tx, row.turn)
    steps = Counter((m.step, m.action, m.stepped_at) for m in messages if m.step is not None)
    viewer = invocation.viewer()
    sight = Sight(private="private" in visible_kinds(viewer), sealed=viewer.view == "raw_owner")
    found = continuity.ledger_derived(tx, row.turn, space, sight, most + 1)
    refs = tuple(DerivedMemoryRef(**each._asdict()) for each in found)
    return (
        LedgerTurn(
            sequence=row.sequence,
            turn_id=row.turn_id,
            at=shown_time(row.at, "turn", row.turn),
            committed_at=shown_time(row.committed_at, "turn", row.turn),
            door=row.door,  # type: ignore[arg-type]
            archived=bool(row.archived),
            messages=tuple(whole(messages, _ledger_message)),
            steps=tuple(whole(sorted(steps.items(), key=lambda each: each[0][0] or 0), _ledger_step)),
            derived_refs=refs[:most],
        ),
        len(refs) > most,
    )


def _ledger_message(row: continuity.LedgerMessage) -> LedgerMessage:
    at = shown_time(row.at, "message", row.message_id)
    return LedgerMessage(message_id=row.message_id, role=row.role, at=at, state=row.state)  # type: ignore[arg-type]


def _ledger_step(counted: tuple[tuple[int | None, str | None, int | None], int]) -> LedgerStep:
    (step, action, at), number = counted
    return LedgerStep(action=action or "", at=shown_time(at, "transcript_lifecycle", step), messages=number)


def export(invocation: Invocation, request: MemoryExportRequest, tx: Reading) -> MemoryExportReport:
    """One chat's memory. Who may take private material out was checked when the request was admitted."""
    data, said = export_records(invocation, tx, request)
    return MemoryExportReport(snapshot=data, **said)


def export_space(invocation: Invocation, request: MemorySpaceExportRequest, tx: Reading) -> MemorySpaceExportReport:
    """The whole space."""
    data, said = export_records(invocation, tx, request)
    return MemorySpaceExportReport(archive=data, **said)


def import_snapshot(invocation: Invocation, request: MemoryImportRequest) -> Apply:
    """A chat's snapshot as one chat; it is opened and checked before the transaction begins."""
    _check_discard(invocation, request)
    assert request.snapshot is not None, "pieces are put together before"
    prepared = prepare(invocation, request.snapshot, "chat", request.passphrase)
    receipts.ready(invocation)

    def apply(tx: WriteTransaction) -> MemoryImportReport:
        return _load(invocation, tx, request, prepared, chat_of(invocation, tx, request.target_chat_id))

    return apply


def import_space(invocation: Invocation, request: MemorySpaceImportRequest) -> Apply:
    """An archive as the memory space."""
    _check_discard(invocation, request)
    assert request.archive is not None, "pieces are put together before"
    prepared = prepare(invocation, request.archive, "space", request.passphrase)
    receipts.ready(invocation)

    def apply(tx: WriteTransaction) -> MemoryImportReport:
        return _load(invocation, tx, request, prepared, None)

    return apply


def _check_discard(invocation: Invocation, request: MemoryImportRequest | MemorySpaceImportRequest) -> None:
    """Discarding private material needs the right to it, whether or not there is any: else the answer would tell."""
    if request.discard_withheld and not (invocation.caller.is_operator or invocation.reads_private):
        raise Forbidden(
            reason="discard_withheld deletes private material, which this caller may not read",
            hint="leave discard_withheld out, or ask as an operator or the owner",
            capability="private.read",
        )


def _load(
    invocation: Invocation,
    tx: WriteTransaction,
    request: MemoryImportRequest | MemorySpaceImportRequest,
    prepared: Prepared,
    chat: Chat | None,
) -> MemoryImportReport:
    loaded = Loading(invocation, tx, prepared, chat, request.mode, request.discard_withheld, request.other_store).run()
    return MemoryImportReport(
        counts=loaded.counts,
        replaced=loaded.replaced,
        state_fingerprint=loaded.state_fingerprint,
        erasure="pending" if loaded.replaced else None,
        receipt=loaded.receipt,
        own=prepared.signer.fault is None,
        former=prepared.signer.fault == "former_device",
        device=prepared.signer.device,
    )


def _settle(invocation: Invocation, report: MemoryImportReport) -> MemoryImportReport:
    """What was replaced is erased once it is in neither the index's pages nor the write-ahead log."""
    if report.erasure != "pending":
        return report
    merged = slices.finish_merge(invocation)
    settled = settle(invocation, report)
    return settled if merged else replace(settled, erasure="pending")


HANDLERS: Mapping[str, Handler] = {
    "memory.replay": Read(replay),
    "memory.export": Read(export),
    "memory.import": Write(import_snapshot, _settle),
    "memory.export_space": Read(export_space),
    "memory.import_space": Write(import_space, _settle),
}
