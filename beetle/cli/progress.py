"""How far long work is, on one line of the terminal that is rewritten, and wiped when the work is done."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from beetle.contracts.progress import OnProgress, ProgressStep

WIPE = "\r\x1b[K"


@contextmanager
def shown() -> Generator[OnProgress | None]:
    """What to tell progress to; None where nobody looks: stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    try:
        yield _show
    finally:
        print(WIPE, end="", file=sys.stderr, flush=True)


def _show(step: ProgressStep) -> None:
    share = f": {step.done:,} of {step.of:,}" if step.of else ""
    text = f"step {step.number} of {step.steps}, {step.name.replace('_', ' ')}{share}"
    print(f"{WIPE}{text}", end="", file=sys.stderr, flush=True)
