"""A client's side of a transfer: imports and exports that are larger than a frame go in pieces by themselves."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, cast

from beetle.asking import Asked, Asking
from beetle.contracts.codec import replace, to_wire
from beetle.contracts.common import Report
from beetle.contracts.errors import BeetleError, IntegrityViolation
from beetle.contracts.fields import Request
from beetle.contracts.operations import Operation
from beetle.contracts.progress import OnProgress, ProgressStep
from beetle.contracts.transfer import (
    TransferBeginReport,
    TransferBeginRequest,
    TransferGetReport,
    TransferGetRequest,
    TransferHandle,
    TransferPutRequest,
)

SMALL_BYTES = 65_536
"""What goes with its request: it fits into a frame of every profile."""
SENDING, FETCHING = "send", "fetch"
"""Steps that a client reports itself."""


class Piecewise:
    """An import or export; what is large of it goes in pieces, which must all be asked for over one connection."""

    def __init__(self, row: Operation, arguments: Any, on_progress: OnProgress | None, end: float) -> None:
        """`end`: until when, in monotonic seconds, a transfer that was lost with its connection is begun again."""
        self._row = row
        self._arguments = {} if arguments is None else arguments
        self._on_progress = on_progress or (lambda step: None)
        self._end = end

    def steps(self) -> Asking[Report]:
        """What is to be asked, one request after another."""
        row, given = self._row, self._arguments
        if not isinstance(given, Mapping | Request):
            return (yield Asked(row.name, given))
        plain = cast("dict[str, Any]", to_wire(given) if isinstance(given, Request) else dict(given))
        while True:
            try:
                return (yield from (self._fetched(plain) if row.takes_out else self._sent(plain)))
            except BeetleError as error:
                # Its connection was lost, and another one has taken its place.
                lost = error.key == "not_found" and error.details.get("kind") == "transfer"
                if not lost or time.monotonic() > self._end:
                    raise

    def _sent(self, given: dict[str, Any]) -> Asking[Report]:
        row = self._row
        data = given.get(row.carries)
        if not isinstance(data, bytes | bytearray | memoryview) or len(data) <= SMALL_BYTES:
            return (yield Asked(row.name, given))
        view = memoryview(data)
        answer = yield Asked("transfer.begin", TransferBeginRequest(total_bytes=len(view)))
        begun = cast(TransferBeginReport, answer).transfer
        offset = 0
        while offset < len(view):
            self._on_progress(ProgressStep(SENDING, 1, 1, offset, len(view)))
            piece = bytes(view[offset : offset + begun.piece_bytes])
            yield Asked("transfer.put", TransferPutRequest(transfer_id=begun.transfer_id, offset=offset, data=piece))
            offset += len(piece)
        self._on_progress(ProgressStep(SENDING, 1, 1, offset, len(view)))
        rest = {name: value for name, value in given.items() if name != row.carries}
        return (yield Asked(row.name, {**rest, "transfer_id": begun.transfer_id}))

    def _fetched(self, given: dict[str, Any]) -> Asking[Report]:
        row = self._row
        if given.get("in_pieces"):
            return (yield Asked(row.name, given))
        report = yield Asked(row.name, {**given, "in_pieces": True})
        handle = cast("TransferHandle | None", getattr(report, "transfer", None))
        if handle is None:
            return report
        parts: list[bytes] = []
        offset = 0
        while offset < handle.total_bytes:
            self._on_progress(ProgressStep(FETCHING, 1, 1, offset, handle.total_bytes))
            answer = yield Asked("transfer.get", TransferGetRequest(transfer_id=handle.transfer_id, offset=offset))
            piece = cast(TransferGetReport, answer).data or b""
            if not piece:
                raise IntegrityViolation(reason=f"the export ends after {offset} of its {handle.total_bytes} bytes")
            parts.append(piece)
            offset += len(piece)
        self._on_progress(ProgressStep(FETCHING, 1, 1, offset, handle.total_bytes))
        return replace(report, **{row.carries: b"".join(parts), "transfer": None})
