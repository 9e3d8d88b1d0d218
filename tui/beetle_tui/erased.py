"""What came of an erasure: what is left of it where, until when, and its receipt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from beetle_tui.text import moment


class Copied(Protocol):
    """A report of something that was erased, of which copies may be left."""

    @property
    def replica_horizon(self) -> str | None: ...
    @property
    def copies_until(self) -> str | None: ...
    @property
    def replicated_until(self) -> str | None: ...


class Erased(Copied, Protocol):
    """One that says how far the erasure has come."""

    @property
    def erasure(self) -> str | None: ...
    @property
    def receipt(self) -> str | None: ...


def copies_lines(report: Copied) -> Iterator[str]:
    """Where erased content may still be, and until when."""
    if report.replica_horizon is not None:
        until = report.copies_until
        gone = "until they are pruned" if until is None else f"until {moment(until)}, by the schedule of snapshots"
        yield f"Copies of the store up to {moment(report.replica_horizon)} may hold it still, {gone}."
    if report.replicated_until is not None:
        yield f"The replica holds it until {moment(report.replicated_until)}: `beetle replica forget` removes it now."


def erasure_lines(report: Erased) -> Iterator[str]:
    """How far it has come, the copies that are left, and the receipt."""
    if report.erasure == "done":
        yield "No byte of it is left in the store's files."
    elif report.erasure == "pending":
        yield "Erasure is pending: a reader still holds the old content."
    yield from copies_lines(report)
    if report.receipt is not None:
        yield from ("", "Receipt (beetle verify --receipt checks it):", report.receipt)
