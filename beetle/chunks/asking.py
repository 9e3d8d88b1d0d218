"""What keeping a tree in step asks of the store."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeVar

from beetle.chunk_tree.archive import Member, packed
from beetle.chunks.lease import WAIT_S
from beetle.contracts.chunk_trees import ChunkImportTreeReport, ChunkImportTreeRequest
from beetle.contracts.chunks import (
    Chunk,
    ChunkGetReport,
    ChunkGetRequest,
    ChunkListReport,
    ChunkListRequest,
    ChunkStatsReport,
    ChunkStatsRequest,
)
from beetle.contracts.codec import replace
from beetle.contracts.common import Report
from beetle.contracts.errors import DeadlineExceeded

if TYPE_CHECKING:
    from beetle.open import Embedded

R = TypeVar("R", bound=Report)
PAGE: Final = 50
"""Chunks that are read at once: far fewer than a call has time for, on a busy machine too."""


def get(opened: Embedded, chunk_id: str) -> Chunk | None:
    """A chunk, archived or not, which is no access."""
    return _asked(opened, "chunk.get", ChunkGetRequest(id=chunk_id, count_access=False), ChunkGetReport).chunk


def revision(opened: Embedded) -> int:
    """The newest revision of the chunks."""
    return _asked(opened, "chunk.stats", ChunkStatsRequest(), ChunkStatsReport).revision


def reports(opened: Embedded, request: ChunkListRequest) -> Iterator[ChunkListReport]:
    """A list, page by page."""
    while True:
        report = _asked(opened, "chunk.list", request, ChunkListReport)
        yield report
        if not report.has_more:
            return
        request = replace(request, cursor=report.next_cursor)


def pages(opened: Embedded, request: ChunkListRequest) -> Iterator[Chunk]:
    """The chunks of a list."""
    for report in reports(opened, request):
        yield from report.chunks


def imported(opened: Embedded, files: list[Member]) -> ChunkImportTreeReport:
    """What became of some files."""
    return _asked(opened, "chunk.import_tree", ChunkImportTreeRequest(archive=packed(files)), ChunkImportTreeReport)


def _asked(opened: Embedded, operation: str, request: object, kind: type[R]) -> R:
    """A call that keeps the tree in step. All of them may be made again.

    A call's time is that of a caller who waits. The first call of a process loads modules too, which on a machine that
    is busy beyond measure takes longer.
    """
    until = time.monotonic() + WAIT_S
    while True:
        try:
            report = opened.call(operation, request, None, None, None).report
        except DeadlineExceeded:
            if time.monotonic() >= until:
                raise
        else:
            assert isinstance(report, kind)
            return report
