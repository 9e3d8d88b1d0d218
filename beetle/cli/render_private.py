"""The private plane and receipts as text for people."""

from __future__ import annotations

from collections.abc import Iterable

from beetle.cli.text import count, neutral, pairs, table, when, wrap
from beetle.contracts.control import ReceiptCheck
from beetle.contracts.memory import IdentityState
from beetle.contracts.private import PrivateGetReport, PrivateListReport

FAULTS = {
    "malformed": "it is not a complete receipt",
    "unknown_version": "it is of a version that this beetle does not know",
    "other_store": "it is of another store",
    "unsigned": "it is not signed",
    "wrong_signature": "it is not what was signed",
    "other_device": "another device signed it",
    "event_missing": "the event log has no such row",
    "event_changed": "the event log has another row in its place",
    "event_differs": "it does not agree with its row of the event log",
}
"""Why a receipt proves nothing."""


def private_list(report: PrivateListReport, width: int | None) -> str:
    """What is kept, without its content."""
    if not report.items:
        return "Nothing private is kept." if not report.total else count(report.total, "private record")
    rows = [
        (each.record_id, each.plane, each.authority, each.state, f"{each.length:,}", when(each.at))
        for each in report.items
    ]
    head = ("RECORD", "PLANE", "AUTHORITY", "STATE", "LENGTH", "KEPT")
    return f"{table(rows, head, width, numbers=(4,))}\n{count(report.total, 'private record')}"


def private_get(report: PrivateGetReport, width: int | None) -> str:
    """One record with its content."""
    head = pairs(
        [
            ("Record", report.record_id),
            ("Plane", f"{report.plane}, {report.privacy}"),
            ("Authority", report.authority),
            ("State", report.state),
            ("Kept", when(report.at)),
            ("Candidate", report.candidate_id),
        ]
    )
    if report.content is None:
        return f"{head}\n  [withheld]"
    return "\n".join((head, *wrap(report.content.rstrip("\n"), "  ", width)))


def receipt(found: ReceiptCheck) -> Iterable[str]:
    """Whether a receipt holds, and what it tells of."""
    if found.event is not None:
        told = (found.kind or "", f"event {found.event}", found.at or "", f"device {found.device or '-'}")
        yield neutral(f"Receipt: {', '.join(told)}")
    if found.valid:
        yield "The receipt is valid."
    else:
        yield f"The receipt is not valid: {'; '.join(FAULTS.get(each, each) for each in found.reasons)}."


def identity(found: IdentityState | None) -> str:
    """The state of the device identity, in a word and why."""
    if found is None:
        return "-"
    return found.state if found.problem is None else f"{found.state}: {found.problem}"
