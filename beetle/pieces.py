"""A client's side of a transfer: imports and exports that are larger than a frame go in pieces by themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

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


class Ask(Protocol):
    """One request and its answer."""

    def __call__(self, operation: str, arguments: Any, /) -> Report: ...


def call_in_pieces(
    row: Operation, arguments: Any, ask: Ask, whole: Callable[[Any], Report], on_progress: OnProgress | None, end: float
) -> Report:
    """Run an import or export; what is large of it goes in pieces over the connection.

    Args:
        ask: sends one request of a transfer.
        whole: runs the operation itself with the arguments that it is given.
        end: until when, in monotonic seconds, a transfer that was lost with its connection is begun again.
    """
    if not isinstance(arguments, Mapping | Request):
        return whole(arguments)
    given = cast("dict[str, Any]", to_wire(arguments) if isinstance(arguments, Request) else dict(arguments))
    moving = _Moving(ask, on_progress or (lambda step: None))
    while True:
        try:
            return moving.fetched(row, given, whole) if row.effect == "read" else moving.sent(row, given, whole)
        except BeetleError as error:
            # Its connection was lost, and another one has taken its place.
            if error.key != "not_found" or error.details.get("kind") != "transfer" or time.monotonic() > end:
                raise


class _Moving:
    def __init__(self, ask: Ask, on_progress: OnProgress) -> None:
        self._ask = ask
        self._on_progress = on_progress

    def sent(self, row: Operation, given: dict[str, Any], whole: Callable[[Any], Report]) -> Report:
        data = given.get(row.carries)
        if not isinstance(data, bytes | bytearray | memoryview) or len(data) <= SMALL_BYTES:
            return whole(given)
        view = memoryview(data)
        answer = self._ask("transfer.begin", TransferBeginRequest(total_bytes=len(view)))
        begun = cast(TransferBeginReport, answer).transfer
        offset = 0
        while offset < len(view):
            self._on_progress(ProgressStep(SENDING, 1, 1, offset, len(view)))
            piece = bytes(view[offset : offset + begun.piece_bytes])
            self._ask("transfer.put", TransferPutRequest(transfer_id=begun.transfer_id, offset=offset, data=piece))
            offset += len(piece)
        self._on_progress(ProgressStep(SENDING, 1, 1, offset, len(view)))
        rest = {name: value for name, value in given.items() if name != row.carries}
        return whole({**rest, "transfer_id": begun.transfer_id})

    def fetched(self, row: Operation, given: dict[str, Any], whole: Callable[[Any], Report]) -> Report:
        if given.get("in_pieces"):
            return whole(given)
        report = whole({**given, "in_pieces": True})
        handle = cast("TransferHandle | None", getattr(report, "transfer", None))
        if handle is None:
            return report
        parts: list[bytes] = []
        offset = 0
        while offset < handle.total_bytes:
            self._on_progress(ProgressStep(FETCHING, 1, 1, offset, handle.total_bytes))
            request = TransferGetRequest(transfer_id=handle.transfer_id, offset=offset)
            piece = cast(TransferGetReport, self._ask("transfer.get", request)).data or b""
            if not piece:
                raise IntegrityViolation(reason=f"the export ends after {offset} of its {handle.total_bytes} bytes")
            parts.append(piece)
            offset += len(piece)
        self._on_progress(ProgressStep(FETCHING, 1, 1, offset, handle.total_bytes))
        return replace(report, **{row.carries: b"".join(parts), "transfer": None})
