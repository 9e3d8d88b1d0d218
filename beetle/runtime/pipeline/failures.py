"""What a call that failed leaves in the log, and what is answered for an error that no one foresaw."""

from __future__ import annotations

import logging
import os

from beetle.contracts.errors import (
    BeetleError,
    IntegrityViolation,
    Internal,
    NoDescriptor,
    StorageFull,
    StoreCorrupt,
    StoreReadOnly,
    UnknownOperation,
)
from beetle.contracts.operations import BY_NAME
from beetle.runtime.host.metrics import UNKNOWN
from beetle.runtime.pipeline.invocation import Call

log = logging.getLogger("beetle.dispatcher")

TROUBLE = {each.key for each in (Internal, StorageFull, StoreReadOnly, StoreCorrupt, IntegrityViolation)}
"""Errors of this device, not of who asked: each call that meets one has its line in the log."""


def defect_of(call: Call, error: Exception) -> BeetleError:
    """What is answered for an error that no one foresaw, once the log has where it came from."""
    if NoDescriptor.is_behind(error):
        # Any module that is imported late, and any file, may be the one too many.
        return NoDescriptor()
    reference = f"E{os.urandom(4).hex()}"
    import traceback

    # The frames name code, never values; the error's own text might hold content, and is left out.
    frames = "".join(traceback.format_tb(error.__traceback__))
    log.error(
        "%s: %s in %s\n%s",
        reference,
        type(error).__name__,
        call.operation,
        frames,
        extra={"event": "defect", "op": call.operation, "principal": call.caller.name},
    )
    return Internal(reference=reference)


def note_call(call: Call, took: float, failed: str | None) -> None:
    """One line for a call, of names of ours alone: an operation that there is not is one that a caller has made up."""
    level = logging.WARNING if failed in TROUBLE else logging.DEBUG
    if log.isEnabledFor(level):
        op = call.operation if call.operation in BY_NAME else UNKNOWN
        ms = round(took * 1000, 3)
        said = {"event": "request", "op": op, "principal": call.caller.name, "ms": ms, "error": failed}
        log.log(level, "%s %s %s ms%s", call.caller.name, op, ms, f": {failed}" if failed else "", extra=said)


def unknown_operation(name: str) -> UnknownOperation:
    """The error of a name that no operation has, with those that are near it."""
    from difflib import get_close_matches

    close = get_close_matches(name[:128], BY_NAME, n=3)
    nearest = f"did you mean {', '.join(close)}?" if close else "`hello` lists the operations"
    return UnknownOperation(operation=name[:128], nearest=nearest)
