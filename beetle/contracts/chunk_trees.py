"""chunk.export_tree and chunk.import_tree: the chunks of a space as a folder of JSON files, in a tar archive."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from beetle.contracts.common import Report
from beetle.contracts.continuity import InPieces, Sent
from beetle.contracts.fields import Content, Open, Piece, Request, budgeted
from beetle.contracts.operation import CHUNK, Operation, Tool
from beetle.contracts.transfer import ExportView, TransferHandle


class ChunkExportTreeRequest(Request, frozen=True, kw_only=True):
    """Export the chunks as a tar archive of JSON files: chunks by month, indexes, archive."""

    view: ExportView = "export"
    in_pieces: InPieces = False


class ChunkExportTreeReport(Report, frozen=True, kw_only=True):
    """`transfer` is what to fetch in place of `archive`, where it goes in pieces. `revision`: of the space's chunks.
    `damaged` chunks are not in it: `beetle verify` names them.
    """

    archive: Content[bytes | None]
    transfer: Open[TransferHandle | None] = None
    chunks: Open[int]
    archived_chunks: Open[int]
    damaged: Open[int]
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
    """`unchanged`: chunks that are already as in the file. Those that the folder lacks stay. Of the refused files
    `refused` lists as many as the profile's repair_issues, and `refused_files` counts all.
    """

    imported: Open[int]
    updated: Open[int]
    unchanged: Open[int]
    refused_files: Open[int]
    refused: Open[tuple[RefusedFile, ...]]
    dry_run: Open[bool] = False


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "chunk.export_tree", "export_chunk_tree", ChunkExportTreeRequest, ChunkExportTreeReport, "admin", "export",
        CHUNK, ("chunk", "export-tree"),
        "export the chunks as a tar archive of JSON files: chunks by month, indexes, archive",
        batch=False, heavy=True, deadline_ms=3_600_000, carries="archive",
        shell=("beetle chunk export-tree brain/memory",),
        progress=True,
        tool=Tool(none="bytes, which are for files"),
    ),
    Operation(
        "chunk.import_tree", "import_chunk_tree", ChunkImportTreeRequest, ChunkImportTreeReport, "admin", "import",
        CHUNK, ("chunk", "import-tree"),
        "import a folder of JSON chunk files from a tar archive; a file that is no chunk is listed and does not stop",
        batch=False, heavy=True, deadline_ms=3_600_000, carries="archive",
        example={"archive": b"the bytes of a tar archive"},
        shell=("beetle chunk import-tree brain/memory", "beetle chunk import-tree brain/memory --dry-run"),
        progress=True, destructive=True,
        tool=Tool(none="bytes, which are for files"),
    ),
)  # fmt: skip
