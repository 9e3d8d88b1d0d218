"""What the last repair could not save, so that a verification tells it from what is found for the first time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from beetle.store.engine.transaction import Reading, Writing

KNOWN_SQL = "SELECT value FROM meta WHERE key = 'repair_known'"
KEEP_SQL = "INSERT INTO meta VALUES ('repair_known', ?) ON CONFLICT DO UPDATE SET value = excluded.value"
NONE_SQL = "DELETE FROM meta WHERE key = 'repair_known'"
MARK_BYTES = 12
MOST = 16_384
"""Findings that are remembered; what is beyond them counts as new."""

Named = tuple[str, str, str]
"""Check, subject and problem of a finding."""


def _mark(finding: Named) -> bytes:
    return hashlib.sha256("\x00".join(finding).encode()).digest()[:MARK_BYTES]


def keep(tx: Writing, findings: Iterable[Named]) -> None:
    """Remember what a repair has told, in place of what the one before it had."""
    marks = sorted({_mark(each) for each in findings})[:MOST]
    if marks:
        tx.run(KEEP_SQL, b"".join(marks))
    else:
        tx.run(NONE_SQL)


def known(tx: Reading, findings: Iterable[Named]) -> list[bool]:
    """Of each finding, whether the last repair has told it."""
    kept = tx.value(KNOWN_SQL)
    whole = kept if isinstance(kept, bytes) else b""
    marks = {whole[at : at + MARK_BYTES] for at in range(0, len(whole), MARK_BYTES)}
    return [_mark(each) in marks for each in findings]
