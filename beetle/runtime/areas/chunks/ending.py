"""chunk.delete, chunk.restore: into the archive, out of it, and out of the store."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.chunks import ChunkDeleteReport, ChunkDeleteRequest, ChunkReport, ChunkRestoreRequest
from beetle.runtime.areas import receipts
from beetle.runtime.areas.chunks.keeping import change
from beetle.runtime.areas.chunks.showing import again, shown
from beetle.runtime.areas.chunks.writing import existing
from beetle.runtime.areas.evidence.lifecycle import settle
from beetle.runtime.pipeline.handlers import Apply, Handler, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.chunk_rows import erase
from beetle.store import chunks
from beetle.store.chunks import ChunkRow
from beetle.store.engine.write_transaction import WriteTransaction


def delete(invocation: Invocation, request: ChunkDeleteRequest) -> Apply:
    """Archive a chunk, or erase it, whether it is archived or not."""
    receipts.ready(invocation)

    def apply(tx: WriteTransaction) -> ChunkDeleteReport:
        row = existing(invocation, tx, request.id)
        invocation.shared.chunk_accesses.write(tx, row.space)
        if request.permanent:
            return _erased(invocation, tx, row)
        if not row.is_live:
            return ChunkDeleteReport(id=row.chunk_id, outcome="unchanged")
        now = change(invocation, tx, row, row._replace(archived_at=tx.now))
        tx.log(invocation.event("chunk", "archived", chunk_id=row.chunk_id, revision=now.revision))
        return ChunkDeleteReport(
            id=row.chunk_id, outcome="archived", audit_event_id=invocation.number_of(tx.logged[-1:])
        )

    return apply


def _erased(invocation: Invocation, tx: WriteTransaction, row: ChunkRow) -> ChunkDeleteReport:
    erase(invocation.key, tx, row)
    invocation.shared.chunk_accesses.forget(tx, [row])
    seq = tx.log(invocation.event("chunk", "deleted", chunk_id=row.chunk_id))
    return ChunkDeleteReport(
        id=row.chunk_id,
        outcome="deleted",
        erasure="pending",
        audit_event_id=invocation.number_of(tx.logged[-1:]),
        receipt=receipts.make(invocation, tx, "chunk.delete", seq, {"chunks": 1}, [row.digest]),
    )


def restore(invocation: Invocation, request: ChunkRestoreRequest) -> Apply:
    """Take a chunk out of the archive; a live one stays as it is."""

    def apply(tx: WriteTransaction) -> ChunkReport:
        row = existing(invocation, tx, request.id)
        invocation.shared.chunk_accesses.write(tx, row.space)
        now = change(invocation, tx, row, row._replace(archived_at=None))
        if now != row:
            tx.log(invocation.event("chunk", "restored", chunk_id=row.chunk_id, revision=now.revision))
        return ChunkReport(chunk=shown(invocation, tx, chunks.by_keys(tx, [row.chunk])[0]))

    return apply


HANDLERS: Mapping[str, Handler] = {
    "chunk.delete": Write(delete, settle),
    "chunk.restore": Write(restore, again=again),
}
