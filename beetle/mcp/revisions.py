"""Revisions of the protocol, and what each one brought that changes what is written."""

from __future__ import annotations

from beetle.named_tuple import NamedTuple


class Revision(NamedTuple):
    """One revision: whether it has batches, hints on tools, structured results with titles, words of progress; and
    whether each request names it, instead of a handshake.
    """

    name: str
    batches: bool
    hints: bool
    structured: bool
    progress_message: bool
    enveloped: bool = False


REVISIONS: tuple[Revision, ...] = (
    Revision("2024-11-05", batches=False, hints=False, structured=False, progress_message=False),
    Revision("2025-03-26", batches=True, hints=True, structured=False, progress_message=True),
    Revision("2025-06-18", batches=False, hints=True, structured=True, progress_message=True),
    Revision("2025-11-25", batches=False, hints=True, structured=True, progress_message=True),
)
"""Those that a handshake may agree on."""
LATEST = REVISIONS[-1]
ENVELOPED = Revision(
    "2026-07-28", batches=False, hints=True, structured=True, progress_message=True, enveloped=True
)  # fmt: skip


def negotiated(asked: str) -> Revision:
    """The revision that a host asks for; the latest one where it is not known here, as the protocol has it."""
    return next((each for each in REVISIONS if each.name == asked), LATEST)
