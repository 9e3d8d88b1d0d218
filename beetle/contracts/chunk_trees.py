"""chunk.export_tree and chunk.import_tree: the chunks of a space as a folder of JSON files, in a tar archive."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from beetle.contracts.common import Report
from beetle.contracts.continuity import InPieces, Sent
from beetle.contracts.fields import Content, Open, Piece, Request, budgeted
from beetle.contracts.transfer import ExportView, TransferHandle


class ChunkExportTreeRequest(Request, frozen=True, kw_only=True):
    """Export the chunks as a tar archive of JSON files: chunks by month, indexes, archive."""

    view: ExportView = "export"
    in_pieces: InPieces = False


class ChunkExportTreeReport(Report, frozen=True, kw_only=True):
    """`transfer` is what to fetch in place of `archive`, where it goes in pieces. `revision`: of the space's chunks."""

    archive: Content[bytes | None]
    transfer: Open[TransferHandle | None] = None
    chunks: Open[int]
    archived_chunks: Open[int]
    revision: Open[int]


class ChunkImportTreeRequest(Request, frozen=True, kw_only=True):
    """Import a folder of JSON chunk files from a tar archive; a file that is no chunk is listed and does not stop."""

    archive: (
        Annotated[bytes, Meta(min_length=1, extra=budgeted("import_bytes"), description="tar archive of the folder")]
        | None
    ) = None
    transfer_id: Sent = None
    dry_run: Annotated[bool, Meta(description="report what would be imported; change nothing")] = False


class RefusedFile(Piece, frozen=True, kw_only=True):
    """A file that was not imported, and why."""

    path: Content[str | None]
    reason: Open[str]


class ChunkImportTreeReport(Report, frozen=True, kw_only=True):
    """`unchanged`: chunks that were there as the file has them. Those that the folder lacks stay."""

    imported: Open[int]
    updated: Open[int]
    unchanged: Open[int]
    refused: Open[tuple[RefusedFile, ...]]
    dry_run: Open[bool] = False
