"""The private plane and receipts as text for people."""

from __future__ import annotations

from collections.abc import Iterable

from beetle.cli.text import count, neutral, pairs, table, when, wrap
from beetle.contracts.control import ReceiptCheck
from beetle.contracts.memory import IdentityState
from beetle.contracts.private import PrivateGetReport, PrivateListReport
from beetle.contracts.repairing import IdentityRenewReport

FAULTS = {
    "malformed": "it is not a complete receipt",
    "unknown_version": "it is of a version that this beetle does not know",
    "other_store": "it is of another store",
    "unsigned": "it is not signed",
    "wrong_signature": "it is not what was signed",
    "other_device": "another device signed it",
    "former_device": "a former identity of this store signed it",
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
        (
            each.record_id,
            each.plane,
            each.authority,
            "closed" if each.closed else each.state,
            f"{each.length:,}",
            when(each.at),
        )
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


def renewal(report: IdentityRenewReport, width: int | None) -> str:
    """What another identity closes and takes over, or has; or why there is none to be lost."""
    closed = report.closed or 0
    lines = [f"Identity: {report.state}"]
    if report.changed or report.token is not None:
        former = f" (it signed as {report.former})" if report.former else ""
        what = "closed for good" if report.changed else "would be closed for good"
        sealed = count(report.closes or 0, "private record or waiting text", "private records and waiting texts")
        lines.append(f"What the lost identity sealed{former}: {sealed} {what}.")
        verb = "were taken over" if report.changed else "would be taken over"
        lines.append(
            f"Seals: {report.proven or 0:,} rows proven; {report.unproven or 0:,} could not be proven and {verb}; "
            f"{report.broken or 0:,} are not what beetle wrote and stay found."
        )
    elif report.state == "usable":
        lines.append("It works: there is nothing to renew.")
    else:
        lines.append("It is not lost: `beetle doctor` tells what to do.")
    lines += [neutral(f"{each.check}: {each.subject}: {each.problem}") for each in report.findings or ()]
    if (report.found or report.broken) and report.token is not None:
        lines.append("To renew it all the same, look at the findings and give --despite-findings.")
    if closed:
        lines.append(f"Closed: {', '.join(map(neutral, report.closed_refs or ()))}")
    if report.kept_as:
        lines.append(f"What stood in the key file's place: {neutral(report.kept_as)}")
    if report.changed:
        head = "has signed" if report.head_signed else "has not signed, since it did not fit before,"
        lines.append(f"The store's identity is {report.device} now; it {head} the event log's head.")
        lines.append("Back up its key file, apart from the store.")
    return "\n".join(lines)


def identity(found: IdentityState | None) -> str:
    """The state of the device identity, in a word and why."""
    if found is None:
        return "-"
    return found.state if found.problem is None else f"{found.state}: {found.problem}"
