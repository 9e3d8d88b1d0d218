"""Transfers: an export or import that is larger than a frame goes in pieces, under a handle that expires."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import Report
from beetle.contracts.fields import Content, Id, Open, Piece, Request, budgeted
from beetle.contracts.operation import ANY, Operation, Tool

TransferId = Annotated[Id, Meta(description="handle of a transfer, as `transfer.begin` or an export answered it")]
ExportView = Annotated[Literal["export"], Meta(description="view that filters the exported content")]
Offset = Annotated[int, Meta(ge=0, le=2**53)]


class TransferHandle(Piece, frozen=True, kw_only=True):
    """A transfer of `total_bytes` in all. It belongs to the caller and connection that began it, and ends with that
    connection, or when no piece has come or gone until `expires_at`."""

    transfer_id: Open[str]
    total_bytes: Open[int]
    piece_bytes: Open[int]
    expires_at: Open[str]


class TransferBeginRequest(Request, frozen=True, kw_only=True):
    """Begin to send the bytes of an import in pieces."""

    total_bytes: Annotated[
        int, Meta(ge=1, le=2**53, extra=budgeted("import_bytes"), description="how many bytes will be sent in all")
    ]


class TransferBeginReport(Report, frozen=True, kw_only=True):
    """Where to send the pieces, each of at most `piece_bytes`."""

    transfer: Open[TransferHandle]


class TransferPutRequest(Request, frozen=True, kw_only=True):
    """Send the next piece of an import; the last one completes it."""

    transfer_id: TransferId
    offset: Annotated[Offset, Meta(description="how many bytes were sent before this piece")]
    data: Annotated[bytes, Meta(min_length=1, extra=budgeted("piece_bytes"), description="the piece")]


class TransferPutReport(Report, frozen=True, kw_only=True):
    """`received` of `total_bytes` are here; the import may be asked for when they are equal."""

    received: Open[int]
    total_bytes: Open[int]
    expires_at: Open[str]


class TransferGetRequest(Request, frozen=True, kw_only=True):
    """Fetch a piece of an export; the one that ends the export ends the transfer."""

    transfer_id: TransferId
    offset: Annotated[Offset, Meta(description="where the piece begins; below the export's total_bytes")]
    view: ExportView = "export"


class TransferGetReport(Report, frozen=True, kw_only=True):
    """The piece that begins at `offset`, of an export of `total_bytes`; `done` with the last one."""

    data: Content[bytes | None]
    offset: Open[int]
    total_bytes: Open[int]
    done: Open[bool]


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "transfer.begin", "begin_transfer", TransferBeginRequest, TransferBeginReport, "read", "import", ANY, (),
        "begin to send the bytes of an import in pieces",
        batch=False,
        example={"total_bytes": 2_000_000},
        tool=Tool(none="pieces of bytes, which are for files"),
    ),
    Operation(
        "transfer.put", "put_piece", TransferPutRequest, TransferPutReport, "read", "import", ANY, (),
        "send the next piece of an import; the last one completes it",
        batch=False,
        example={"transfer_id": "t-0123456789abcdef", "offset": 0, "data": b"the first bytes of an export"},
        tool=Tool(none="pieces of bytes, which are for files"),
    ),
    Operation(
        "transfer.get", "get_piece", TransferGetRequest, TransferGetReport, "read", "export", ANY, (),
        "fetch a piece of an export; the one that ends the export ends the transfer",
        batch=False,
        example={"transfer_id": "t-0123456789abcdef", "offset": 0},
        tool=Tool(none="pieces of bytes, which are for files"),
    ),
)  # fmt: skip
