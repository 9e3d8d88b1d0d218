"""The ledger, exports and imports as text for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from beetle.cli.text import neutral, pairs, table, when
from beetle.contracts.common import Report
from beetle.contracts.continuity import (
    MemoryExportReport,
    MemoryImportReport,
    MemoryReplayReport,
    MemorySpaceExportReport,
)

Counts = Mapping[str, int]


def ledger(report: MemoryReplayReport, width: int | None) -> str:
    """A line for each turn."""
    where = neutral(f"{report.conversation.channel_id}/{report.conversation.conversation_id}")
    if not report.turns:
        return f"Nothing was committed to {where}."
    rows = [
        (
            str(turn.sequence),
            turn.turn_id,
            when(turn.at),
            turn.door,
            ",".join(each.role for each in turn.messages),
            _state(turn.archived, [each.state for each in turn.messages]),
            str(len(turn.derived_refs)),
        )
        for turn in report.turns
    ]
    head = ("SEQ", "TURN", "AT", "DOOR", "ROLES", "STATE", "DERIVED")
    return f"{where}\n{table(rows, head, width, numbers=(0, 6))}"


def _state(archived: bool, states: list[str]) -> str:
    told = ",".join(dict.fromkeys(states))
    return f"{told},archived" if archived else told


def exported(report: MemoryExportReport | MemorySpaceExportReport, _width: int | None) -> str:
    """What was taken out, and what was not."""
    entries = [("Taken out", _counts(report.counts)), ("Stays behind", _counts(report.left_out))]
    if report.state_fingerprint is not None:
        entries.append(("Fingerprint", report.state_fingerprint))
    return f"{pairs(entries)}\n{'Sealed with the passphrase.' if report.sealed else 'Not sealed: anyone can read it.'}"


def imported(report: MemoryImportReport, _width: int | None) -> str:
    """What was taken in, and what it took the place of."""
    whose = "this device" if report.own else f"the device {neutral(report.device)}" if report.device else "nobody"
    entries = [("Taken in", _counts(report.counts)), ("Signed by", whose)]
    if report.replaced:
        entries += [("Replaced", _counts(report.replaced)), ("Erasure", report.erasure or "-")]
    if report.state_fingerprint is not None:
        entries.append(("Fingerprint", report.state_fingerprint))
    if report.receipt is not None:
        entries.append(("Receipt", report.receipt))
    return pairs(entries)


def _counts(counts: Counts) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in counts.items()) or "nothing"


RENDERERS: Mapping[type[Report], Callable[[Any, int | None], str]] = {
    MemoryReplayReport: ledger,
    MemoryExportReport: exported,
    MemorySpaceExportReport: exported,
    MemoryImportReport: imported,
}
